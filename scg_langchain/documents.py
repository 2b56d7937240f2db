"""Documents and memory entries: one translation, both ways, and what a recall says of a document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from langchain_core.documents import Document

from shared_core import MemoryEntry
from shared_core.adapting import document_entry, document_metadata
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
    """The memory entry of a document, by :func:`shared_core.adapting.document_entry`.

    Raises:
        InvalidInputError: if it cannot be stored: without text, or with metadata that JSON cannot carry.
    """
    metadata = {name: value for name, value in document.metadata.items() if name != RECALL}
    return document_entry(document.page_content, id, metadata)


def document_of(entry: MemoryEntry) -> Document:
    """The document of a memory entry; its source stands in the metadata, the time as ISO 8601 text."""
    return Document(entry.content, id=entry.id, metadata=document_metadata(entry))


def found_document(one: RecalledEntry) -> Document:
    """The document of a recalled entry, which says in its metadata how it was found."""
    document = document_of(one.entry)
    reasons = [asdict(reason) for reason in one.reasons]
    document.metadata[RECALL] = Finding(score=one.score, relevance=one.relevance, reasons=reasons)
    return document
