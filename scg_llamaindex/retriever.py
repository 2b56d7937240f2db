"""The memory as a retriever."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Self

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.indices.base import BaseIndex
from llama_index.core.schema import BaseNode, IndexNode, NodeWithScore, QueryBundle
from llama_index.core.storage.docstore.types import BaseDocumentStore
from llama_index.core.vector_stores.types import MetadataFilters

from scg_llamaindex.events import tell
from scg_llamaindex.filters import MetadataCondition, as_filter
from scg_llamaindex.nodes import entries_of, found_node
from shared_core import Filter, Memory, Recall, SCGConfig, SchemaMemory
from shared_core.adapting import Namespace, as_memory, memory_in
from shared_core.entry import parse_time
from shared_core.errors import FormatError, InvalidInputError
from shared_core.models import ModelSource
from shared_core.recall import check_count, check_threshold

_SETTINGS: Final = "scg_retriever.json"
_ENTRIES: Final = "scg_memory.jsonl"
_VERSION: Final = 1


class SCGRetriever(BaseRetriever):
    """Retrieves what a schema-constrained memory recalls.

    Scores are relevances, in [0, 1] and comparable across queries. Each result also has the recall's own score and
    reasons (:class:`scg_llamaindex.RecalledNode`); a :class:`scg_llamaindex.SCGRecallEvent` tells them to traces.

    Args:
        memory: The memory, or the path of one.
        similarity_top_k: Nodes to return; ``None`` for ``memory.config.k``.
        filters: Which nodes may come back: metadata filters, or a :class:`shared_core.Filter`.
        namespace: Another namespace of the memory's file.
        score_threshold: Least relevance; ``None`` returns the best, however relevant.
        callback_manager: Told of every retrieval.
        object_map: What index nodes stand for, by their index id.
        objects: Index nodes whose objects are added to the map.
        verbose: Print which objects are entered.
    """

    def __init__(
        self,
        memory: Memory | str | Path,
        *,
        similarity_top_k: int | None = None,
        filters: MetadataFilters | Filter | None = None,
        namespace: Namespace | None = None,
        score_threshold: float | None = None,
        callback_manager: CallbackManager | None = None,
        object_map: dict[str, Any] | None = None,
        objects: list[IndexNode] | None = None,
        verbose: bool = False,
    ) -> None:
        self._memory = memory_in(as_memory(memory), namespace)
        self.similarity_top_k = similarity_top_k
        self.filters = filters
        self.score_threshold = score_threshold
        self._settings()  # refuses what cannot be used now, not at the first question
        super().__init__(callback_manager, object_map, objects, verbose)

    @property
    def memory(self) -> Memory:
        """The memory that is recalled from."""
        return self._memory

    @classmethod
    def from_defaults(
        cls,
        index: BaseIndex[Any] | None = None,
        nodes: Sequence[BaseNode] | None = None,
        docstore: BaseDocumentStore | None = None,
        memory: Memory | str | Path | None = None,
        *,
        use_model: bool = True,
        **settings: Any,
    ) -> Self:
        """A retriever over an index, nodes or a document store, which are added to a memory first; or over a memory.

        Args:
            index: An index, whose memory or document store is used.
            nodes: The nodes; an id that exists is an update.
            docstore: A document store.
            memory: The memory, or the path of one; by default, where there are nodes, one that is kept nowhere.
            use_model: See :meth:`shared_core.SchemaMemory.remember`.
            settings: As for the class.

        Raises:
            InvalidInputError: if there is not exactly one source.
        """
        given = [source for source in (index, nodes, docstore) if source is not None]
        if len(given) > 1 or (not given and memory is None):
            raise InvalidInputError("pass one of index, nodes and docstore, or a memory alone")
        held = getattr(index, "memory", None)
        if isinstance(held, Memory):
            if memory is not None:
                raise InvalidInputError("the index has its own memory: pass no other")
            return cls(held, **settings)
        retriever = cls(":memory:" if memory is None else memory, **settings)
        if index is not None:
            docstore = index.docstore
        added = [*docstore.docs.values()] if docstore is not None else list(nodes or ())
        for node in added:
            if isinstance(node, IndexNode) and node.obj is not None:
                retriever.object_map[node.index_id] = node.obj
        if entries := entries_of(added):
            retriever.memory.remember(entries, use_model=use_model)
        return retriever

    def persist(self, persist_dir: str | Path) -> None:
        """Write entries and settings to a folder. Objects that index nodes stand for are not written."""
        folder = Path(persist_dir)
        folder.mkdir(parents=True, exist_ok=True)
        self._memory.export(folder / _ENTRIES)
        settings = {
            "version": _VERSION,
            "namespace": self._memory.namespace,
            "config": {name: getattr(self._memory.config, name) for name in SCGConfig.__dataclass_fields__},
            "similarity_top_k": self.similarity_top_k,
            "filters": _filter_to_dict(as_filter(self.filters)),
            "score_threshold": self.score_threshold,
            "verbose": self._verbose,
        }
        (folder / _SETTINGS).write_text(json.dumps(settings, ensure_ascii=False, indent=1), encoding="utf-8")

    @classmethod
    def from_persist_dir(
        cls,
        persist_dir: str | Path,
        *,
        memory: Memory | str | Path | None = None,
        model: ModelSource = None,
        callback_manager: CallbackManager | None = None,
        object_map: dict[str, Any] | None = None,
    ) -> Self:
        """The retriever that was written to a folder, with all its settings.

        Nothing that a model computed is written: ranks and scores are near what they were, and the same after the
        memory's ``consolidate()``, which reads every entry once and takes some 30 ms a concept.

        Args:
            persist_dir: The folder.
            memory: Where its entries go, or the path of it; by default a memory that is kept nowhere.
            model: The recall model of a memory that is opened here.
            callback_manager: As for the class.
            object_map: As for the class.

        Raises:
            FormatError: if there is no retriever in the folder, or one of another version.
        """
        folder = Path(persist_dir)
        try:
            settings = json.loads((folder / _SETTINGS).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise FormatError(f"there is no retriever in {folder}: pass the folder that persist() wrote") from error
        if not isinstance(settings, dict) or settings.get("version") != _VERSION:
            raise FormatError(f"the retriever in {folder} is of another version: write it again")
        if not isinstance(memory, Memory):
            memory = SchemaMemory.open(
                memory or ":memory:",
                model=model,
                namespace=settings["namespace"],
                config=SCGConfig(**settings["config"]),
            )
        memory.import_file(folder / _ENTRIES)
        retriever = cls(
            memory,
            similarity_top_k=settings["similarity_top_k"],
            filters=_filter_from_dict(settings["filters"]),
            score_threshold=settings["score_threshold"],
            callback_manager=callback_manager,
            object_map=object_map,
        )
        retriever._verbose = settings["verbose"]
        return retriever

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        k, where = self._settings()
        return self._nodes(self._memory.recall(query_bundle.query_str, k=k, where=where))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        k, where = self._settings()
        return self._nodes(await self._memory.arecall(query_bundle.query_str, k=k, where=where))

    def _settings(self) -> tuple[int | None, Filter | None]:
        """Checked for every call: LlamaIndex lets them be set on the retriever at any time."""
        k, least = self.similarity_top_k, self.score_threshold
        check_count(k)
        check_threshold(least)
        return k, as_filter(self.filters)

    def _nodes(self, recall: Recall) -> list[NodeWithScore]:
        tell(recall)
        least = self.score_threshold
        return [found_node(one) for one in recall.entries if least is None or one.relevance >= least]


def _filter_to_dict(condition: Filter | None) -> dict[str, Any] | None:
    if condition is None:
        return None
    if isinstance(condition, MetadataCondition):
        return {"metadata_filters": condition.filters.model_dump(mode="json")}
    chosen = {
        name: sorted(value) if isinstance(value, frozenset) else value
        for name, value in (("session", condition.session), ("speaker", condition.speaker))
    }
    times = {
        name: time.isoformat() if time else None
        for name, time in (("after", condition.after), ("before", condition.before))
    }
    return {**chosen, **times, "metadata": dict(condition.metadata)}


def _filter_from_dict(body: dict[str, Any] | None) -> MetadataFilters | Filter | None:
    if body is None:
        return None
    if "metadata_filters" in body:
        return MetadataFilters.model_validate(body["metadata_filters"])
    times = {name: parse_time(body[name]) if body[name] else None for name in ("after", "before")}
    return Filter(session=body["session"], speaker=body["speaker"], metadata=body["metadata"], **times)
