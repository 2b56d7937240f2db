"""Nodes and memory entries: one translation, both ways, and what a recall says of a node."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import replace
from typing import Any

from llama_index.core.bridge.pydantic import Field
from llama_index.core.schema import BaseNode, IndexNode, MetadataMode, NodeWithScore, ObjectType, TextNode
from llama_index.core.storage.docstore.utils import json_to_doc

from shared_core import MemoryEntry
from shared_core.adapting import document_entry, document_metadata
from shared_core.errors import InvalidInputError
from shared_core.recall import Reason, RecalledEntry

NODE = "_node"
"""The metadata field of an entry that keeps what a node has beside its text and metadata. No node shows it."""

_ORDER = "order"
# A node's text and metadata are the entry's own; an embedding is never used.
_NOT_KEPT = ("id_", "text", "text_resource", "metadata", "embedding", "class_name", "obj")
_WITH_RESOURCES = (ObjectType.DOCUMENT.value, ObjectType.MULTIMODAL.value)


class RecalledNode(NodeWithScore):
    """A node with its relevance as score, and why it came back.

    Scores and reasons stand beside the node, not in its metadata: a node is the same whichever query found it.

    Attributes:
        recall_score: The score that ranks it, comparable within one recall; ``score`` is its relevance in [0, 1].
        reasons: The concepts that brought it, strongest first.
    """

    recall_score: float
    reasons: tuple[Reason, ...] = Field(default_factory=tuple)

    @classmethod
    def class_name(cls) -> str:
        """The name in serialised components."""
        return "RecalledNode"


def entries_of(nodes: Iterable[BaseNode]) -> list[MemoryEntry]:
    """The memory entries of some nodes, each id once: of two nodes with one id the later counts.

    Nodes without text are passed over, as other indexes do: documents have empty pages.
    """
    return list({node.node_id: entry_of(node) for node in nodes if not _is_empty(node)}.values())


def entry_of(node: BaseNode) -> MemoryEntry:
    """The memory entry of a node, by :func:`shared_core.adapting.document_entry`.

    Raises:
        InvalidInputError: if it cannot be stored: without text, or with metadata that JSON cannot carry.
    """
    if not isinstance(node, BaseNode):
        raise InvalidInputError(f"expected a node, not {type(node).__name__}")
    if NODE in node.metadata:
        raise InvalidInputError(f"the metadata field {NODE!r} is taken: rename it in the node {node.node_id!r:.200}")
    try:
        entry = document_entry(node.get_content(MetadataMode.NONE), node.node_id, node.metadata)
    except InvalidInputError as error:
        raise InvalidInputError(f"the node {node.node_id!r:.200} cannot be stored: {error}") from error
    kept = _beside_text(node)
    order = list(node.metadata)
    if list(document_metadata(entry)) != order:
        kept[_ORDER] = order  # nodes are compared by a hash that depends on it
    return replace(entry, metadata={**entry.metadata, NODE: kept}) if kept else entry


def node_of(entry: MemoryEntry) -> BaseNode:
    """The node of a memory entry, as it was stored; of an entry that was no node, a text node."""
    kept: Any = entry.metadata.get(NODE)
    metadata = metadata_of(entry)
    if not isinstance(kept, dict):
        return TextNode(id_=entry.id, text=entry.content, metadata=metadata)
    kept = deepcopy(kept)
    order = kept.pop(_ORDER, list(metadata))
    fields = {
        "class_name": kept.get("class", TextNode.class_name()),
        **kept.get("fields", {}),
        "id_": entry.id,
        "metadata": {name: metadata[name] for name in order if name in metadata},
    }
    kind = kept.get("type", ObjectType.TEXT.value)
    if kind in _WITH_RESOURCES:
        fields["text_resource"] = {"text": entry.content}
    else:
        fields["text"] = entry.content
    return json_to_doc({"__type__": kind, "__data__": fields})


def metadata_of(entry: MemoryEntry) -> dict[str, Any]:
    """The metadata of an entry's node: its source, the time as ISO 8601 text, and what else was given."""
    metadata = document_metadata(entry)
    metadata.pop(NODE, None)
    return metadata


def found_node(one: RecalledEntry) -> RecalledNode:
    """The node of a recalled entry; its score is the relevance."""
    return RecalledNode(node=node_of(one.entry), score=one.relevance, recall_score=one.score, reasons=one.reasons)


def _is_empty(node: object) -> bool:
    return isinstance(node, BaseNode) and not node.get_content(MetadataMode.NONE).strip()


def _beside_text(node: BaseNode) -> dict[str, Any]:
    """Type and fields of a node that are not those of a text node made of nothing but text and metadata."""
    plain = node.model_copy(update={"obj": None}) if isinstance(node, IndexNode) else node
    fields = plain.model_dump(mode="json", exclude_defaults=True)
    fields = {name: value for name, value in fields.items() if name not in _NOT_KEPT}
    kept: dict[str, Any] = {"fields": fields} if fields else {}
    if node.get_type() != TextNode.get_type():
        kept |= {"type": ObjectType(node.get_type()).value, "class": node.class_name()}
    return kept
