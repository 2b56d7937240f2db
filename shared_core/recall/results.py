"""What a recall returns, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from shared_core.entry import MemoryEntry
from shared_core.store import Origin

Source: TypeAlias = Literal["generated", "mentioned", "both"]
"""How a seed was found: decoded by the model, named in the query, or both."""


@dataclass(frozen=True, slots=True)
class Seed:
    """A concept that the query activated.

    Attributes:
        key: The concept.
        surface: Its display form.
        source: How it was found.
        activation: Its activation.
        logprob: Its log-probability after the query (natural logarithm), if it was generated.
    """

    key: str
    surface: str
    source: Source
    activation: float
    logprob: float | None = None


@dataclass(frozen=True, slots=True)
class ContextConcept:
    """A concept reached from a seed over the associative graph.

    Attributes:
        key: The concept.
        surface: Its display form.
        seed: Key of the seed its path began at.
        path: Keys from the seed to the concept.
        probability: Product of the transition probabilities along the path (Eq. 12).
        activation: Its activation.
    """

    key: str
    surface: str
    seed: str
    path: tuple[str, ...]
    probability: float
    activation: float


@dataclass(frozen=True, slots=True)
class Reason:
    """A concept that brought an entry.

    Attributes:
        key: The concept.
        surface: Its display form.
        source: How the concept was activated.
        seed: Key of the seed it was reached from, for a context concept.
        origin: How the entry is linked to it: it said it, or the model inferred or generated it.
        contribution: What it adds to the entry's concept score.
    """

    key: str
    surface: str
    source: Source | Literal["context"]
    seed: str | None
    origin: Origin
    contribution: float


@dataclass(frozen=True, slots=True)
class RecalledEntry:
    """An entry that came back.

    Attributes:
        entry: The entry.
        score: Its score; comparable within one recall.
        reasons: The concepts that brought it, strongest first.
        parts: What the score is made of: ``concepts``, ``lexical``, ``anticipation``, ``answer``, ``passage``
            and ``session`` are summands, ``speaker`` multiplies their sum.
        relevance: How relevant it is, in [0, 1], comparable across queries; see
            :func:`~shared_core.recall.relevances`.
    """

    entry: MemoryEntry
    score: float
    reasons: tuple[Reason, ...]
    parts: Mapping[str, float]
    relevance: float


@dataclass(frozen=True, slots=True)
class Recall:
    """The result of a recall.

    Attributes:
        query: What was asked.
        entries: The entries, best first.
        seeds: The concepts that the query activated, strongest first.
        context: The concepts reached from them.
    """

    query: str
    entries: tuple[RecalledEntry, ...] = ()
    seeds: tuple[Seed, ...] = ()
    context: tuple[ContextConcept, ...] = ()

    def as_text(self, *, ids: bool = True) -> str:
        """The entries as a context block, one a line, with id, date, speaker and text; empty if there are none.

        Args:
            ids: Begin each line with the entry's id.
        """
        return "\n".join(describe(one.entry, with_id=ids) for one in self.entries)

    def to_dict(self) -> dict[str, Any]:
        """A JSON object."""
        return {
            "query": self.query,
            "entries": [
                {
                    **one.entry.to_dict(),
                    "score": one.score,
                    "relevance": one.relevance,
                    "parts": dict(one.parts),
                    "reasons": [asdict(reason) for reason in one.reasons],
                }
                for one in self.entries
            ],
            "seeds": [asdict(seed) for seed in self.seeds],
            "context": [{**asdict(concept), "path": list(concept.path)} for concept in self.context],
        }


def describe(entry: MemoryEntry, *, with_id: bool = True) -> str:
    """An entry in one line, whatever it holds: ``[id] 8 May 2023, Anna: text``."""
    day = f"{entry.occurred_at.day} {entry.occurred_at:%B %Y}" if entry.occurred_at else None
    source = ", ".join(part for part in (day, entry.speaker) if part)
    line = f"{source}: {entry.content}" if source else entry.content
    return " ".join((f"[{entry.id}] {line}" if with_id else line).split())
