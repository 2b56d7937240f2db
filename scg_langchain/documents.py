"""Documents and memory entries: one translation, both ways, and what a recall says of a document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from langchain_core.documents import Document

from shared_core import MemoryEntry
from shared_core.adapting import document_entry, document_metadata
from shared_core.errors import InvalidInputError
from shared_core.recall import RecalledEntry

RECALL = "recall"
"""The metadata field in which a retrieved document says how it was found. It is never stored."""
_FINDING = {"score", "relevance", "reasons"}


class Finding(dict[str, Any]):
    """How a document was found: ``score``, ``relevance`` and ``reasons``.

    Any two are equal. Wrappers that merge the results of several queries compare whole documents, and a document is
    the same whichever query found it.
    """

    __hash__ = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Finding)


def documents_from(
    texts: Iterable[str], metadatas: Sequence[Mapping[str, Any]] | None, ids: Sequence[str | None] | None
) -> list[Document]:
    """Documents from their parts.

    Raises:
        InvalidInputError: if they are no lists, or there are not as many of each.
    """
    contents = _listed("texts", texts, str)
    given: dict[str, list[Any]] = {}
    if metadatas is not None:
        given["metadatas"] = _listed("metadatas", metadatas, Mapping)
    if ids is not None:
        given["ids"] = _listed("ids", ids, (str, int, type(None)))
    for name, listed in given.items():
        if len(listed) != len(contents):
            raise InvalidInputError(f"there are {len(contents)} texts and {len(listed)} {name}: pass one for each text")
    all_metadata = given.get("metadatas") or [{}] * len(contents)
    all_ids = given.get("ids") or [None] * len(contents)
    return [
        Document(content, id=id, metadata=dict(metadata))
        for content, id, metadata in zip(contents, all_ids, all_metadata, strict=True)
    ]


def entries_of(documents: Iterable[Document], ids: Sequence[str | None] | None = None) -> list[MemoryEntry]:
    """The memory entries of some documents.

    Args:
        documents: The documents.
        ids: Their ids, instead of those that they have themselves.

    Raises:
        InvalidInputError: if they are no lists, there are not as many ids, or an entry cannot be stored.
    """
    listed = _listed("documents", documents, Document)
    given = [None] * len(listed) if ids is None else _listed("ids", ids, (str, type(None)))
    if len(given) != len(listed):
        raise InvalidInputError(f"there are {len(listed)} documents and {len(given)} ids: pass one for each")
    return [entry_of(document, id or document.id) for document, id in zip(listed, given, strict=True)]


def entry_of(document: Document, id: str | None = None) -> MemoryEntry:
    """The memory entry of a document, by :func:`shared_core.adapting.document_entry`.

    Raises:
        InvalidInputError: if it cannot be stored: without text, with metadata that JSON cannot carry, or with a field
            of its own where a retrieved document says how it was found.
    """
    metadata = dict(document.metadata)
    found = metadata.pop(RECALL, Finding())
    # A finding that went through JSON is a plain object.
    if not isinstance(found, Finding) and not (isinstance(found, Mapping) and found.keys() == _FINDING):
        raise InvalidInputError(
            f"the metadata field {RECALL!r} is where a retrieved document says how it was found: rename your own"
        )
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


def _listed(name: str, given: Iterable[Any], kind: Any) -> list[Any]:
    """Several things as a list; one alone, of which some can be iterated over too, is refused.

    Raises:
        InvalidInputError: if it is no list, or holds something of another kind.
    """
    if isinstance(given, str | Mapping | Document) or not isinstance(given, Iterable):
        raise InvalidInputError(f"{name} must be a list, not {type(given).__name__}: a single one goes into a list too")
    listed = list(given)
    wrong = [one for one in listed if not isinstance(one, kind)]
    if wrong:
        raise InvalidInputError(f"{type(wrong[0]).__name__} is no type for {name}; nothing was stored")
    return listed
