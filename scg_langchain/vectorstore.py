"""The memory with the face of a vector store, for code that insists on one. There are no vectors behind it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore, VectorStoreRetriever

from scg_langchain.documents import document_of, documents_from, entries_of
from scg_langchain.filters import as_filter
from shared_core import Memory, MemoryEntry
from shared_core.adapting import as_memory
from shared_core.errors import InvalidInputError, UnsupportedError, refuse
from shared_core.recall import RecalledEntry, check_count, check_threshold

_SEARCH = "k and filter; score_threshold with the search type similarity_score_threshold"
_NO_MMR = "search type 'mmr' compares vectors, and there are none: use 'similarity'"


class SCGVectorStore(VectorStore):
    """A schema-constrained memory where a vector store is expected.

    A search returns what the memory recalls: the best ``k``, fewer only where fewer are reached at all. Scores are
    higher for better documents; relevance scores are in [0, 1]. Whatever needs vectors raises, and so does every
    argument that nothing here would heed.

    Args:
        memory: The memory, or the path of one; by default one that is kept nowhere. One namespace is one collection:
            ``SCGVectorStore(memory.in_namespace("papers"))``.
    """

    def __init__(self, memory: Memory | str | Path = ":memory:") -> None:
        self._memory = as_memory(memory)

    @property
    def memory(self) -> Memory:
        """The memory behind it."""
        return self._memory

    @classmethod
    def from_texts(
        cls,
        texts: Sequence[str],
        embedding: object = None,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        memory: Memory | str | Path = ":memory:",
        **kwargs: Any,
    ) -> Self:
        """A store with some texts in it.

        Args:
            texts: The texts.
            embedding: Not used, since recall embeds nothing: it stands here because code that was written for another
                vector store passes it.
            metadatas: Metadata of each.
            ids: Id of each; one that exists is an update.
            memory: See the class.
            kwargs: As for :meth:`add_documents`.
        """
        store = cls(memory)
        store.add_texts(texts, metadatas, ids=ids, **kwargs)
        return store

    @classmethod
    def from_documents(cls, documents: list[Document], embedding: Any = None, **kwargs: Any) -> Self:
        """A store with some documents in it; the arguments are those of :meth:`from_texts`."""
        return super().from_documents(documents, embedding, **kwargs)

    @classmethod
    async def afrom_documents(cls, documents: list[Document], embedding: Any = None, **kwargs: Any) -> Self:
        """:meth:`from_documents`, without blocking the event loop."""
        return await super().afrom_documents(documents, embedding, **kwargs)

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Add or update texts; ``kwargs`` as for :meth:`add_documents`."""
        return self.add_documents(documents_from(texts, metadatas, ids), **kwargs)

    async def aadd_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """:meth:`add_texts`, without blocking the event loop."""
        return await self.aadd_documents(documents_from(texts, metadatas, ids), **kwargs)

    def add_documents(
        self,
        documents: list[Document],
        *,
        ids: Sequence[str | None] | None = None,
        batch_size: int | None = None,
        use_model: bool = True,
        **kwargs: Any,
    ) -> list[str]:
        """Add documents, or update those whose ids exist.

        Args:
            documents: The documents; a retrieved one may be among them, and changes nothing.
            ids: Their ids, instead of those that they have themselves.
            batch_size: How many to remember at a time; ``None`` for all.
            use_model: Let the model infer concepts now. Without it thousands a second are stored, and
                ``memory.consolidate()`` lets the model catch up.
            kwargs: Anything else is refused.

        Returns:
            Their ids, in order, each once.
        """
        refuse(kwargs, "ids, batch_size, use_model")
        stored: list[str] = []
        for batch in _batches(entries_of(documents, ids), batch_size):
            stored += self._memory.remember(batch, use_model=use_model).ids
        return stored

    async def aadd_documents(
        self,
        documents: list[Document],
        *,
        ids: Sequence[str | None] | None = None,
        batch_size: int | None = None,
        use_model: bool = True,
        **kwargs: Any,
    ) -> list[str]:
        """:meth:`add_documents`, without blocking the event loop."""
        refuse(kwargs, "ids, batch_size, use_model")
        stored: list[str] = []
        for batch in _batches(entries_of(documents, ids), batch_size):
            stored += (await self._memory.aremember(batch, use_model=use_model)).ids
        return stored

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool:
        """Erase documents by id, from results and from the file; without ids, all of them.

        Returns:
            True. Unknown ids are passed over.
        """
        refuse(kwargs, "ids")
        if ids is None:
            self._memory.clear()
        else:
            self._memory.forget(ids=ids)
        return True

    async def adelete(self, ids: list[str] | None = None, **kwargs: Any) -> bool:
        """:meth:`delete`, without blocking the event loop."""
        refuse(kwargs, "ids")
        if ids is None:
            await self._memory.aclear()
        else:
            await self._memory.aforget(ids=ids)
        return True

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """The documents with these ids, in their order; unknown ids are passed over."""
        return [document_of(entry) for entry in self._memory.find(ids)]

    def similarity_search(self, query: str, k: int = 4, *, filter: object = None, **kwargs: Any) -> list[Document]:
        """The ``k`` documents that belong most to a query, best first; ``filter`` as for :class:`SCGRetriever`."""
        return [document_of(one.entry) for one in self._recall(query, k, filter, kwargs)]

    async def asimilarity_search(
        self, query: str, k: int = 4, *, filter: object = None, **kwargs: Any
    ) -> list[Document]:
        """:meth:`similarity_search`, without blocking the event loop."""
        return [document_of(one.entry) for one in await self._arecall(query, k, filter, kwargs)]

    def similarity_search_with_score(
        self, query: str, k: int = 4, *, filter: object = None, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """:meth:`similarity_search` with the recall's scores: higher is better, comparable within one search."""
        return [(document_of(one.entry), one.score) for one in self._recall(query, k, filter, kwargs)]

    async def asimilarity_search_with_score(
        self, query: str, k: int = 4, *, filter: object = None, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """:meth:`similarity_search_with_score`, without blocking the event loop."""
        return [(document_of(one.entry), one.score) for one in await self._arecall(query, k, filter, kwargs)]

    def similarity_search_with_relevance_scores(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """:meth:`similarity_search` with relevance in [0, 1], comparable across queries.

        Args:
            query: As for :meth:`similarity_search`.
            k: As for :meth:`similarity_search`.
            kwargs: ``filter``, and ``score_threshold``, the least relevance.
        """
        check_threshold(kwargs.get("score_threshold"))
        return super().similarity_search_with_relevance_scores(query, k, **kwargs)

    async def asimilarity_search_with_relevance_scores(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """:meth:`similarity_search_with_relevance_scores`, without blocking the event loop."""
        check_threshold(kwargs.get("score_threshold"))
        return await super().asimilarity_search_with_relevance_scores(query, k, **kwargs)

    def _similarity_search_with_relevance_scores(
        self, query: str, k: int = 4, *, filter: object = None, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        return [(document_of(one.entry), one.relevance) for one in self._recall(query, k, filter, kwargs)]

    async def _asimilarity_search_with_relevance_scores(
        self, query: str, k: int = 4, *, filter: object = None, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        return [(document_of(one.entry), one.relevance) for one in await self._arecall(query, k, filter, kwargs)]

    def as_retriever(self, **kwargs: Any) -> VectorStoreRetriever:
        """A retriever on this store.

        What its searches could not heed is refused here, not at the first question: ``k`` beside ``search_kwargs``,
        which LangChain's own would ignore, search types that need vectors, and ``search_kwargs`` that are unknown or
        of no use.
        """
        known = VectorStoreRetriever.model_fields
        refuse({name: value for name, value in kwargs.items() if name not in known}, "search_type, search_kwargs, tags")
        search: Any = kwargs.get("search_kwargs") or {}
        if not isinstance(search, Mapping):
            raise InvalidInputError(f"search_kwargs must be a dict such as {{'k': 4}}, not {search!r:.200}")
        search_type = kwargs.get("search_type", "similarity")
        if search_type == "mmr":
            raise UnsupportedError(_NO_MMR)
        heeded = {"k", "filter", *(["score_threshold"] if search_type == "similarity_score_threshold" else [])}
        refuse({name: value for name, value in search.items() if name not in heeded}, _SEARCH)
        as_filter(search.get("filter"))
        check_count(search.get("k"))
        check_threshold(search.get("score_threshold"))
        return super().as_retriever(**kwargs)

    def _recall(self, query: str, k: int, filter: object, unknown: dict[str, Any]) -> tuple[RecalledEntry, ...]:
        refuse(unknown, _SEARCH)
        return self._memory.recall(query, k=k, where=as_filter(filter)).entries

    async def _arecall(self, query: str, k: int, filter: object, unknown: dict[str, Any]) -> tuple[RecalledEntry, ...]:
        refuse(unknown, _SEARCH)
        return (await self._memory.arecall(query, k=k, where=as_filter(filter))).entries

    # Their async twins call them.

    def similarity_search_by_vector(self, embedding: list[float], k: int = 4, **kwargs: Any) -> list[Document]:
        """Refused: there are no vectors."""
        raise UnsupportedError("there are no vectors to search by: search with a text")

    def max_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """Refused: it compares vectors."""
        raise UnsupportedError(_NO_MMR)

    def max_marginal_relevance_search_by_vector(
        self, embedding: list[float], k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """Refused: there are no vectors."""
        raise UnsupportedError("there are no vectors to search by: search with a text")


def _batches(entries: list[MemoryEntry], size: object) -> Iterator[list[MemoryEntry]]:
    step = max(len(entries), 1) if size is None else size
    if isinstance(step, bool) or not isinstance(step, int) or step < 1:
        raise InvalidInputError(f"batch_size must be a whole number of at least 1, not {size!r:.200}")
    return (entries[start : start + step] for start in range(0, len(entries), step))
