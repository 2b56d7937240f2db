"""One namespace in memory, as of one moment, and how it becomes that of a later moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from shared_core.entry import MemoryEntry
from shared_core.store.values import KeyScores


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """An entry with its place in the namespace's order."""

    seq: int
    entry: MemoryEntry
    assimilated: bool


@dataclass(frozen=True, slots=True, eq=False)
class NamespaceChange:
    """What was added to a namespace since an earlier moment, in which nothing was erased.

    The four link arrays run in parallel, shape (links,), sorted by entry, then by concept, and hold what was not
    there before. Indices are those of the later state: entries and concepts keep theirs.

    Attributes:
        generation: The later generation.
        entries: Entries that are new, or got links or were assimilated, in seq order.
        entry_place: Index of each of ``entries``, int64, ascending; from the earlier number of entries up: new.
        concepts: Key and surface of the new concepts, in the order they were made.
        concept_number: Number of each new concept in the store, int64.
        link_entry: Entry of each added link, int32.
        link_concept: Concept of each added link, int32.
        link_weight: Weight, float32.
        link_origin: Index into :data:`ORIGINS`, uint8.
    """

    generation: int
    entries: Sequence[StoredEntry]
    entry_place: npt.NDArray[np.int64]
    concepts: Sequence[tuple[str, str]]
    concept_number: npt.NDArray[np.int64]
    link_entry: npt.NDArray[np.int32]
    link_concept: npt.NDArray[np.int32]
    link_weight: npt.NDArray[np.float32]
    link_origin: npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True, eq=False)
class NamespaceState:
    """One namespace as of one moment.

    The four link arrays run in parallel, shape (links,), sorted by entry, then by concept.

    Attributes:
        generation: Changes with every committed change of entries or links; never returns to an old value.
            0 for a namespace that does not exist.
        entries: The entries, in seq order.
        concepts: Key and surface of every concept, in the order they were made.
        concept_number: Number of each concept in the store, int64, ascending; never given twice.
        link_entry: Index into ``entries``, int32.
        link_concept: Index into ``concepts``, int32.
        link_weight: Weight, float32.
        link_origin: Index into :data:`ORIGINS`, uint8.
        scores: What is stored for the asked fingerprint, by key.
    """

    generation: int = 0
    entries: list[StoredEntry] = field(default_factory=list)
    concepts: list[tuple[str, str]] = field(default_factory=list)
    concept_number: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    link_entry: npt.NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    link_concept: npt.NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    link_weight: npt.NDArray[np.float32] = field(default_factory=lambda: np.empty(0, np.float32))
    link_origin: npt.NDArray[np.uint8] = field(default_factory=lambda: np.empty(0, np.uint8))
    scores: dict[str, KeyScores] = field(default_factory=dict)

    def after(self, change: NamespaceChange) -> NamespaceState:
        """The later state; this one stays as it is. Scores are not carried along."""
        entries = list(self.entries)
        old = int(np.searchsorted(change.entry_place, len(entries)))
        for place, entry in zip(change.entry_place[:old].tolist(), change.entries, strict=False):
            entries[place] = entry
        entries += change.entries[old:]
        at = self._places(change.link_entry, change.link_concept)
        return NamespaceState(
            generation=change.generation,
            entries=entries,
            concepts=[*self.concepts, *change.concepts],
            concept_number=np.concatenate([self.concept_number, change.concept_number]),
            link_entry=np.insert(self.link_entry, at, change.link_entry),
            link_concept=np.insert(self.link_concept, at, change.link_concept),
            link_weight=np.insert(self.link_weight, at, change.link_weight),
            link_origin=np.insert(self.link_origin, at, change.link_origin),
        )

    def links_of(self, places: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
        """Where the links of some entries stand, one entry after another, shape (n,)."""
        first = np.searchsorted(self.link_entry, places)
        sizes = np.searchsorted(self.link_entry, places, side="right") - first
        return ranges(first, sizes)

    def _places(self, entries: npt.NDArray[np.int32], concepts: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
        """Where links have to be inserted to keep the order, shape (n,)."""
        near = self.links_of(np.unique(entries))
        width = int(max(concepts.max(initial=0), self.link_concept[near].max(initial=0))) + 1
        known = self.link_entry[near].astype(np.int64) * width + self.link_concept[near]
        wanted = entries.astype(np.int64) * width + concepts
        smaller = np.searchsorted(known, wanted) - np.searchsorted(known, entries.astype(np.int64) * width)
        places: npt.NDArray[np.int64] = np.searchsorted(self.link_entry, entries) + smaller
        return places


@dataclass(frozen=True, slots=True, eq=False)
class ScoreColumns:
    """How one language model reads keys, in columns.

    Attributes:
        saved: The moment up to which saved scores are in here, to ask for later ones.
        concept: Index of each key's concept in the state, int32, ascending, shape (keys,). (Within the store: its
            number, int64.)
        starts: Key ``i`` owns ``tokens[starts[i]:starts[i + 1]]``, int64, shape (keys + 1,).
        tokens: Token ids, int32, shape (Σ tokens,).
        neutral: Log-probabilities (natural log) under a neutral query, float32, shape (Σ tokens + keys,): of key
            ``i`` those of its tokens, then that of its terminator, from ``starts[i] + i`` on; NaN where not known.
        known: Whether ``neutral`` was computed, bool, shape (keys,).
    """

    saved: int
    concept: npt.NDArray[np.int32] | npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    tokens: npt.NDArray[np.int32]
    neutral: npt.NDArray[np.float32]
    known: npt.NDArray[np.bool_]

    @classmethod
    def empty(cls, saved: int = 0) -> ScoreColumns:
        """No keys."""
        none = np.empty(0, np.int32)
        return cls(saved, none, np.zeros(1, np.int64), none, np.empty(0, np.float32), np.empty(0, np.bool_))

    def select(self, rows: npt.NDArray[np.integer]) -> ScoreColumns:
        """Some of the keys, in this order."""
        first, sizes = self.starts[rows], np.diff(self.starts)[rows]
        return ScoreColumns(
            saved=self.saved,
            concept=self.concept[rows],
            starts=np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]),
            tokens=self.tokens[ranges(first, sizes)],
            neutral=self.neutral[ranges(first + rows, sizes + 1)],
            known=self.known[rows],
        )

    def after(self, later: ScoreColumns) -> ScoreColumns:
        """With what was saved later, which replaces what is here of the same concepts."""
        both = ScoreColumns(
            saved=later.saved,
            concept=np.concatenate([self.concept, later.concept]),
            starts=np.concatenate([self.starts, later.starts[1:] + self.starts[-1]]),
            tokens=np.concatenate([self.tokens, later.tokens]),
            neutral=np.concatenate([self.neutral, later.neutral]),
            known=np.concatenate([self.known, later.known]),
        )
        if not len(later.concept) or not len(self.concept) or later.concept[0] > self.concept[-1]:
            return both
        kept = np.concatenate([~np.isin(self.concept, later.concept), np.ones(len(later.concept), np.bool_)])
        rows = np.flatnonzero(kept)
        return both.select(rows[np.argsort(both.concept[rows], kind="stable")])


@dataclass(frozen=True, slots=True, eq=False)
class Anticipations:
    """What one language model expects the concepts of entries to begin with, in columns; see :class:`Anticipation`.

    Attributes:
        generation: Of the state whose entries are meant.
        entry: Index of each entry into the state's, int32, ascending, shape (n,).
        starts: Entry ``entry[i]`` owns ``tokens[starts[i]:starts[i + 1]]``, int64, shape (n + 1,).
        tokens: Token ids, int32, shape (Σ tokens,).
        logprobs: Log-probabilities (natural log), float32, shape (Σ tokens,).
    """

    generation: int
    entry: npt.NDArray[np.int32]
    starts: npt.NDArray[np.int64]
    tokens: npt.NDArray[np.int32]
    logprobs: npt.NDArray[np.float32]

    @classmethod
    def empty(cls, generation: int = 0) -> Anticipations:
        """Of no entry."""
        none = np.empty(0, np.int32)
        return cls(generation, none, np.zeros(1, np.int64), none, np.empty(0, np.float32))

    def after(self, later: Anticipations) -> Anticipations:
        """With those of a later state, which replace what is here of the same entries."""
        entry = np.concatenate([self.entry, later.entry])
        kept = np.concatenate([~np.isin(self.entry, later.entry), np.ones(len(later.entry), np.bool_)])
        rows = np.flatnonzero(kept)
        rows = rows[np.argsort(entry[rows], kind="stable")]
        first = np.concatenate([self.starts[:-1], later.starts[:-1] + self.starts[-1]])[rows]
        sizes = np.concatenate([np.diff(self.starts), np.diff(later.starts)])[rows]
        at = ranges(first, sizes)
        return Anticipations(
            later.generation,
            entry[rows],
            np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]),
            np.concatenate([self.tokens, later.tokens])[at],
            np.concatenate([self.logprobs, later.logprobs])[at],
        )


def ranges(starts: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """``start, …, start + size - 1`` of every row, one row after another, shape (Σ sizes,)."""
    ends = np.cumsum(sizes)
    steps: npt.NDArray[np.int64] = np.repeat(starts - (ends - sizes), sizes)
    return steps + np.arange(len(steps))
