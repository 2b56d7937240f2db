"""The answer to a recall's query, and what it rests on."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from shared_core.answering.candidates import find_candidates
from shared_core.answering.choosing import DEFAULT_WEIGHTS, ChoosingWeights, choose, judge
from shared_core.answering.prompt import DEFAULT_PROMPT, Asked, note
from shared_core.answering.reading import Reading, answer_freely, read
from shared_core.entry import MemoryEntry
from shared_core.models import LanguageModel
from shared_core.recall import Recall, content_stems

# Read at most: the time it takes grows with the square.
_NOTES_TOKENS = 2048


@dataclass(frozen=True, slots=True)
class Grounded:
    """An answer that entries give.

    Attributes:
        text: The answer: words of an entry, what a date in it means, yes or no, or a choice that the question offers;
            several, parted by commas, if the question asks for several.
        sources: Places, among the entries asked about, of those that give it, best first; if the answer is yes or no,
            or a choice that no entry speaks of, the one that fits the question best.
        score: How well it answers, the best of several; comparable within one model.
    """

    text: str
    sources: tuple[int, ...]
    score: float


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer and what it rests on.

    Attributes:
        text: The answer; empty if nothing that was recalled supports one.
        recall: The recall.
        sources: The entries that give it, in the order of the recall; empty if there is no answer. Of one that the
            model wrote freely, the entries that say most of its words, or all that it read if none says any.
    """

    text: str
    recall: Recall
    sources: tuple[MemoryEntry, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """A JSON object."""
        return {"answer": self.text, "sources": [entry.id for entry in self.sources], **self.recall.to_dict()}


def answer_grounded(reading: Reading, weights: ChoosingWeights = DEFAULT_WEIGHTS) -> list[Grounded | None]:
    """The best span of each question's entries, or ``None`` where nothing supports an answer."""
    answers: list[Grounded | None] = []
    for asked, candidates in zip(reading.asked, find_candidates(reading), strict=True):
        chosen = choose(asked, judge(asked, candidates, weights), weights)
        if chosen:
            sources = dict.fromkeys(place for one in chosen for place in one.sources)
            text = ", ".join(one.candidate.text for one in chosen)
            answers.append(Grounded(text, tuple(sources), chosen[0].score))
        else:
            answers.append(None)
    return answers


def compose_answer(
    recall: Recall, model: LanguageModel, *, speakers: Collection[str] = (), free_tokens: int | None = None
) -> Answer:
    """Answer a recall's query from its entries.

    Args:
        recall: The recall, with entries.
        model: The model.
        speakers: Who speaks in the memory, in these entries or others.
        free_tokens: Let the model write freely, so many tokens at most, instead of choosing among what entries say.
    """
    entries = [one.entry for one in recall.entries]
    reading = read(model, DEFAULT_PROMPT, [Asked(recall.query, entries, speakers)], _NOTES_TOKENS)
    if not reading.asked[0].entries:  # there was room for none: whatever is said would rest on nothing
        return Answer("", recall)
    if free_tokens is not None:
        text = answer_freely(reading, free_tokens)[0]
        return Answer(text, recall, tuple(entries[place] for place in _said_in(text, reading.asked[0].entries)))
    [found] = answer_grounded(reading)
    if found is None:
        return Answer("", recall)
    return Answer(found.text, recall, tuple(entries[place] for place in found.sources))


def _said_in(text: str, entries: Sequence[MemoryEntry]) -> list[int]:
    """Places of the entries that say most of a text's words, as the model read them: dated."""
    if not text:
        return []
    words = set(content_stems(text))
    shared = [len(words.intersection(content_stems(note(entry)))) for entry in entries]
    return [place for place, count in enumerate(shared) if count == max(shared)]
