"""Documents and memory entries: one translation, both ways, and what a recall says of a document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from langchain_core.documents import Document

from shared_core import MemoryEntry
from shared_core.entry import parse_time
from shared_core.errors import InvalidInputError
from shared_core.recall import RecalledEntry

RECALL = "recall"
"""The metadata field in which a retrieved document says how it was found. It is never stored."""


class Finding(dict[str, Any]):
    """How a document was found: ``score``, ``relevance`` and ``reasons``.

    Any two are equal. Wrappers that merge the results of several queries compare whole documents, and a document is
    the same whichever query found it.
    """

    __hash__ = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Finding)


def documents_from(
    texts: Sequence[str], metadatas: Sequence[Mapping[str, Any]] | None, ids: Sequence[str | None] | None
) -> list[Document]:
    """Documents from their parts.

    Raises:
        InvalidInputError: if there are not as many of each.
    """
    for name, given in (("metadatas", metadatas), ("ids", ids)):
        if given is not None and len(given) != len(texts):
            raise InvalidInputError(f"there are {len(texts)} texts and {len(given)} {name}: pass one for each text")
    return [
        Document(text, id=ids[place] if ids else None, metadata=dict(metadatas[place]) if metadatas else {})
        for place, text in enumerate(texts)
    ]


def entries_of(documents: Sequence[Document], ids: Sequence[str | None] | None = None) -> list[MemoryEntry]:
    """The memory entries of some documents.

    Args:
        documents: The documents.
        ids: Their ids, instead of those that they have themselves.

    Raises:
        InvalidInputError: if there are not as many ids, or an entry cannot be stored.
    """
    if ids is not None and len(ids) != len(documents):
        raise InvalidInputError(f"there are {len(documents)} documents and {len(ids)} ids: pass one for each")
    return [
        entry_of(document, (ids[place] if ids else None) or document.id) for place, document in enumerate(documents)
    ]


def entry_of(document: Document, id: str | None = None) -> MemoryEntry:
    """The memory entry of a document.

    The metadata is kept whole. ``speaker``, ``session`` (text or a whole number) and ``occurred_at`` (a ``datetime``
    or ISO 8601 text) become the entry's source, which ranking and filters use; where they are something else, they
    are metadata like any other.

    Raises:
        InvalidInputError: if it cannot be stored: without text, or with metadata that JSON cannot carry.
    """
    metadata = {name: value for name, value in document.metadata.items() if name != RECALL}
    if isinstance(metadata.get("occurred_at"), datetime):
        metadata["occurred_at"] = metadata["occurred_at"].isoformat()
    text, caption = _uncaptioned(document.page_content, metadata.get("caption"))
    entry = MemoryEntry(
        text,
        id,
        name_of(metadata.get("speaker")),
        name_of(metadata.get("session")),
        _time(metadata.get("occurred_at")),
        caption,
    )
    # What the entry's own fields give back unchanged is not kept twice.
    known = _source(entry)
    rest = {name: value for name, value in metadata.items() if name not in known or known[name] != value}
    return replace(entry, metadata=deepcopy(rest))


def document_of(entry: MemoryEntry) -> Document:
    """The document of a memory entry; its source stands in the metadata, the time as ISO 8601 text."""
    return Document(entry.content, id=entry.id, metadata={**_source(entry), **deepcopy(dict(entry.metadata))})


def found_document(one: RecalledEntry) -> Document:
    """The document of a recalled entry, which says in its metadata how it was found."""
    document = document_of(one.entry)
    reasons = [asdict(reason) for reason in one.reasons]
    document.metadata[RECALL] = Finding(score=one.score, relevance=one.relevance, reasons=reasons)
    return document


def name_of(value: object) -> str | None:
    """A speaker or session by name; numbers become text, and what names nothing is ``None``."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) else None


def _uncaptioned(content: str, caption: object) -> tuple[str, str | None]:
    """Text and caption of an entry by its content, if it has the caption."""
    ending = f"[image: {caption}]"
    if not isinstance(caption, str) or not caption or not content.endswith(ending):
        return content, None
    if content == ending:
        return "", caption
    text = content.removesuffix(f" {ending}")
    return (content, None) if text == content else (text, caption)


def _time(value: object) -> datetime | None:
    try:
        return parse_time(value)
    except InvalidInputError:
        return None


def _source(entry: MemoryEntry) -> dict[str, Any]:
    """The fields of an entry that are metadata of a document."""
    fields = entry.to_dict()
    return {name: fields[name] for name in ("speaker", "session", "occurred_at", "caption") if name in fields}
