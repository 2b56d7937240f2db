"""The memory as a retriever."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever, LangSmithRetrieverParams
from langchain_core.runnables import RunnableConfig, ensure_config
from pydantic import ConfigDict, Field, field_validator
from pydantic.json_schema import SkipJsonSchema

from scg_langchain.documents import documents_from, entries_of, found_document
from scg_langchain.filters import as_filter
from shared_core import Filter, Memory, Recall
from shared_core.adapting import Namespace, as_memory, memory_in
from shared_core.entry import check_namespace
from shared_core.errors import refuse
from shared_core.recall import check_threshold


class SCGRetriever(BaseRetriever):
    """Retrieves what a schema-constrained memory recalls, each document with its score, relevance and reasons.

    Documents come with ``metadata["recall"]``: ``score`` (comparable within one recall), ``relevance`` (in [0, 1],
    comparable across queries) and ``reasons`` (the concepts that brought it).

    Every setting can be given for one call as well: ``invoke(query, k=3, filter={"speaker": "Anna"})``. A namespace
    may also come with the config, ``config={"configurable": {"namespace": "anna"}}``. Wrappers that call a retriever
    themselves may drop the config; where each user has a namespace, let ``memory`` be one of nobody, so that a call
    that lost its namespace recalls nothing.

    Attributes:
        memory: The memory.
        namespace: Another namespace of its file to recall from.
        k: Documents to return; ``None`` for ``memory.config.k``.
        filter: Which entries may come back: a :class:`shared_core.Filter`, or a dict of metadata conditions.
        score_threshold: Least relevance; ``None`` returns the best ``k``, however relevant.
    """

    model_config = ConfigDict(extra="forbid", validate_assignment=True)

    memory: SkipJsonSchema[Memory] = Field(exclude=True, repr=False)
    namespace: str | tuple[str, ...] | None = None
    k: int | None = Field(default=None, ge=1)
    filter: Any = None
    score_threshold: float | None = Field(default=None, ge=0, le=1)

    @field_validator("filter")
    @classmethod
    def _translate(cls, condition: object) -> Filter | None:
        return as_filter(condition)

    @field_validator("namespace")
    @classmethod
    def _check(cls, namespace: str | tuple[str, ...] | None) -> tuple[str, ...] | None:
        return None if namespace is None else check_namespace(namespace)

    @classmethod
    def from_memory(cls, memory: Memory | str | Path, **settings: Any) -> Self:
        """A retriever on a memory, or on the memory at a path.

        Args:
            memory: The memory.
            settings: Fields of the retriever.
        """
        return cls(memory=as_memory(memory), **settings)

    @classmethod
    def from_texts(
        cls,
        texts: Sequence[str],
        metadatas: Sequence[Mapping[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        memory: Memory | str | Path = ":memory:",
        use_model: bool = True,
        **settings: Any,
    ) -> Self:
        """A retriever over texts, which are added to a memory first; see :meth:`from_documents`."""
        documents = documents_from(texts, metadatas, ids)
        return cls.from_documents(documents, memory=memory, use_model=use_model, **settings)

    @classmethod
    def from_documents(
        cls,
        documents: Sequence[Document],
        *,
        memory: Memory | str | Path = ":memory:",
        use_model: bool = True,
        **settings: Any,
    ) -> Self:
        """A retriever over documents, which are added to a memory first.

        Args:
            documents: The documents; an id that exists is an update.
            memory: The memory, or the path of one; by default one that is kept nowhere.
            use_model: See :meth:`shared_core.SchemaMemory.remember`.
            settings: Fields of the retriever.
        """
        retriever = cls.from_memory(memory, **settings)
        memory_in(retriever.memory, retriever.namespace).remember(entries_of(documents), use_model=use_model)
        return retriever

    def invoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> list[Document]:
        """Recall; ``kwargs`` are settings for this call."""
        return super().invoke(input, config, **_with_namespace(config, kwargs))

    async def ainvoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> list[Document]:
        """:meth:`invoke`, without blocking the event loop."""
        return await super().ainvoke(input, config, **_with_namespace(config, kwargs))

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        filter: object = None,
        score_threshold: float | None = None,
        namespace: Namespace | None = None,
        **unknown: Any,
    ) -> list[Document]:
        memory = self._called(namespace, score_threshold, unknown)
        recall = memory.recall(query, k=self._count(k), where=self._condition(filter))
        return self._documents(recall, score_threshold)

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
        filter: object = None,
        score_threshold: float | None = None,
        namespace: Namespace | None = None,
        **unknown: Any,
    ) -> list[Document]:
        memory = self._called(namespace, score_threshold, unknown)
        recall = await memory.arecall(query, k=self._count(k), where=self._condition(filter))
        return self._documents(recall, score_threshold)

    def _called(self, namespace: Namespace | None, score_threshold: float | None, unknown: dict[str, Any]) -> Memory:
        """The memory that a call means, once its arguments are known to be usable."""
        refuse(unknown, "k, filter, score_threshold, namespace")
        check_threshold(score_threshold)
        return memory_in(self.memory, self.namespace if namespace is None else namespace)

    def _count(self, k: int | None) -> int | None:
        return self.k if k is None else k

    def _condition(self, filter: object) -> Filter | None:
        return as_filter(self.filter if filter is None else filter)

    def _documents(self, recall: Recall, score_threshold: float | None) -> list[Document]:
        least = self.score_threshold if score_threshold is None else score_threshold
        return [found_document(one) for one in recall.entries if least is None or one.relevance >= least]

    def _get_ls_params(self, **kwargs: Any) -> LangSmithRetrieverParams:
        params = super()._get_ls_params(**kwargs)
        params["ls_vector_store_provider"] = type(self.memory).__name__
        return params


def _with_namespace(config: RunnableConfig | None, kwargs: dict[str, Any]) -> dict[str, Any]:
    """The call's settings, with the namespace of its config unless they name one."""
    configured = ensure_config(config).get("configurable", {}).get("namespace")
    return kwargs if configured is None else {"namespace": configured, **kwargs}
