"""Answers of a service as the results of a memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from shared_core.answering import Answer
from shared_core.config import SCGConfig
from shared_core.entry import MemoryEntry
from shared_core.recall import ContextConcept, Explanation, Reason, Recall, RecalledEntry, Seed, Stats
from shared_core.store import Erased, WriteOutcome

_OF_RECALL = ("score", "relevance", "parts", "reasons")


def entries_of(body: Mapping[str, Any]) -> list[MemoryEntry]:
    """Entries."""
    return [MemoryEntry.from_dict(one) for one in body["entries"]]


def page_of(body: Mapping[str, Any]) -> tuple[list[MemoryEntry], int | None]:
    """A page of entries, and after which place the next one begins."""
    following = body["next"]
    return entries_of(body), None if following is None else int(following)


def waited_of(body: Mapping[str, Any]) -> int:
    """How many entries waited."""
    return int(body["waited"])


def outcome_of(body: Mapping[str, Any]) -> WriteOutcome:
    """What a write did."""
    return WriteOutcome(**{**body, "ids": tuple(body["ids"])})


def erased_of(body: Mapping[str, Any]) -> Erased:
    """The receipt of an erasure."""
    return Erased(**{**body, "ids": tuple(body["ids"]), "namespace": tuple(body["namespace"])})


def stats_of(body: Mapping[str, Any]) -> Stats:
    """Figures."""
    return Stats(**body)


def config_of(body: Mapping[str, Any]) -> SCGConfig:
    """Settings; those that this version does not know say nothing to it."""
    known = {one.name for one in fields(SCGConfig)}
    return SCGConfig(**{name: value for name, value in body["settings"].items() if name in known})


def recall_of(body: Mapping[str, Any]) -> Recall:
    """A recall."""
    return Recall(
        body["query"],
        tuple(_recalled(one) for one in body["entries"]),
        _seeds(body),
        _context(body),
    )


def answer_of(body: Mapping[str, Any]) -> Answer:
    """An answer."""
    recall = recall_of(body)
    by_id = {one.entry.id: one.entry for one in recall.entries}
    return Answer(body["answer"], recall, tuple(by_id[id] for id in body["sources"]))


def explanation_of(body: Mapping[str, Any]) -> Explanation:
    """An explanation."""
    entry = MemoryEntry.from_dict(body["entry"])
    recalled = None
    if body["rank"] is not None:
        recalled = RecalledEntry(entry, body["score"], _reasons(body), body["parts"], body["relevance"])
    return Explanation(
        body["query"],
        entry,
        body["rank"],
        body["reached"],
        recalled,
        _seeds(body),
        _context(body),
        tuple(body["concepts"]),
        body["excluded"],
    )


def _recalled(body: Mapping[str, Any]) -> RecalledEntry:
    entry = MemoryEntry.from_dict({name: value for name, value in body.items() if name not in _OF_RECALL})
    return RecalledEntry(entry, body["score"], _reasons(body), body["parts"], body["relevance"])


def _reasons(body: Mapping[str, Any]) -> tuple[Reason, ...]:
    return tuple(Reason(**one) for one in body["reasons"])


def _seeds(body: Mapping[str, Any]) -> tuple[Seed, ...]:
    return tuple(Seed(**one) for one in body["seeds"])


def _context(body: Mapping[str, Any]) -> tuple[ContextConcept, ...]:
    return tuple(ContextConcept(**{**one, "path": tuple(one["path"])}) for one in body["context"])
