"""Why an entry came back, or did not."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from shared_core.entry import MemoryEntry
from shared_core.recall.results import ContextConcept, Reason, Recall, RecalledEntry, Seed, describe

_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Explanation:
    """The path from a query to one entry.

    Attributes:
        query: The query.
        entry: The entry.
        rank: Its rank from 1 among all entries that were reached; ``None`` if it was not.
        reached: How many entries were.
        recalled: Its score, the score's parts, and its reasons; ``None`` if it was not reached.
        seeds: The concepts that the query activated.
        context: The context concepts that brought this entry.
        concepts: All concepts of the entry.
        excluded: Whether the filter leaves the entry out.
    """

    query: str
    entry: MemoryEntry
    rank: int | None
    reached: int
    recalled: RecalledEntry | None
    seeds: tuple[Seed, ...]
    context: tuple[ContextConcept, ...]
    concepts: tuple[str, ...]
    excluded: bool

    @classmethod
    def of(cls, recall: Recall, entry: MemoryEntry, concepts: tuple[str, ...], *, excluded: bool) -> Explanation:
        """The explanation of one entry from a recall of all entries."""
        ids = [one.entry.id for one in recall.entries]
        rank = ids.index(entry.id) + 1 if entry.id in ids else None
        recalled = recall.entries[rank - 1] if rank else None
        keys = {reason.key for reason in recalled.reasons} if recalled else set()
        context = tuple(concept for concept in recall.context if concept.key in keys)
        return cls(recall.query, entry, rank, len(ids), recalled, recall.seeds, context, concepts, excluded)

    def as_text(self) -> str:
        """For people."""
        lines = [f"Query: {self.query}", f"Entry: {describe(self.entry)}"]
        if self.excluded:
            return "\n".join([*lines, "Left out by the filter."])
        if self.recalled is None:
            concepts = f"activated none of its concepts ({', '.join(self.concepts)})"
            reason = concepts if self.concepts else "shares no word with it, and it has no concepts"
            return "\n".join([*lines, f"Not reached: the query {reason}."])
        parts = self.recalled.parts
        summands = " + ".join(f"{name} {value:.3f}" for name, value in parts.items() if name != "speaker")
        lines.append(f"Rank {self.rank} of {self.reached}, score {self.recalled.score:.3f}")
        lines.append(f"  = ({summands}) × speaker {parts['speaker']:.2f}")
        lines.append("Concepts that brought it:" if self.recalled.reasons else "None of its own concepts did.")
        lines += [f"  {self._describe(reason)}" for reason in self.recalled.reasons[:_SHOWN]]
        if len(self.recalled.reasons) > _SHOWN:
            lines.append(f"  and {len(self.recalled.reasons) - _SHOWN} more")
        lines.append(f"Seeds: {', '.join(seed.surface for seed in self.seeds[:_SHOWN])}")
        return "\n".join(lines)

    def _describe(self, reason: Reason) -> str:
        how: str = reason.source
        if reason.source == "context":
            path = next((" → ".join(one.path) for one in self.context if one.key == reason.key), reason.key)
            probability = next((one.probability for one in self.context if one.key == reason.key), 0.0)
            how = f"context by {path}, p = {probability:.3f}"
        else:
            seed = next(one for one in self.seeds if one.key == reason.key)
            how += f", activation {seed.activation:.3f}"
            if seed.logprob is not None:
                how += f", log-probability {seed.logprob:.2f}"
        return f"{reason.contribution:8.3f}  {reason.surface}  ({reason.origin}; {how})"

    def to_dict(self) -> dict[str, Any]:
        """A JSON object."""
        return {
            "query": self.query,
            "entry": self.entry.to_dict(),
            "rank": self.rank,
            "reached": self.reached,
            "score": self.recalled.score if self.recalled else None,
            "relevance": self.recalled.relevance if self.recalled else None,
            "parts": dict(self.recalled.parts) if self.recalled else {},
            "reasons": [asdict(reason) for reason in self.recalled.reasons] if self.recalled else [],
            "seeds": [asdict(seed) for seed in self.seeds],
            "context": [{**asdict(concept), "path": list(concept.path)} for concept in self.context],
            "concepts": list(self.concepts),
            "excluded": self.excluded,
        }
