"""Answering from what was recalled, with the memory's own model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shared_core.decoding import generate
from shared_core.entry import MemoryEntry
from shared_core.models import LanguageModel
from shared_core.recall.results import Recall, describe

_INSTRUCTION = "Answer the question from these notes, in as few words as possible.\n\n"
# Read at most, of the question and of the notes: the time it takes grows with the square.
_QUESTION_CHARACTERS = 1000
_NOTES_TOKENS = 2048


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer and what it rests on.

    Attributes:
        text: The answer; empty if nothing was recalled.
        recall: The recall.
    """

    text: str
    recall: Recall

    def to_dict(self) -> dict[str, Any]:
        """A JSON object."""
        return {"answer": self.text, **self.recall.to_dict()}


def compose_answer(recall: Recall, model: LanguageModel, max_tokens: int) -> Answer:
    """Let the model answer a recall's query from its entries, in the order in which they happened."""
    start = [*model.start, *model.encode(_INSTRUCTION)]
    room = max(1, model.window - len(start) - max_tokens)
    asked = " ".join(recall.query.split())[-_QUESTION_CHARACTERS:]  # a long text asks at its end, if at all
    question = model.encode(f"\nQuestion: {asked}\nAnswer:")[-room:]
    room = min(_NOTES_TOKENS, room - len(question))
    kept: list[tuple[MemoryEntry, list[int]]] = []
    for one in recall.entries:  # best first, as far as there is room; the last one may be cut
        line = model.encode(f"{describe(one.entry)}\n")[:room]
        room -= len(line)
        kept.append((one.entry, line))
        if not room:
            break
    kept.sort(key=lambda pair: (pair[0].occurred_at is not None, str(pair[0].occurred_at)))
    notes = [token for _, line in kept for token in line]
    tree = model.tree(start)
    node = tree.read([*notes, *question])
    (text,) = generate(model, tree, [node], max_tokens=max_tokens, stop=("\n",))
    return Answer(text.strip(), recall)
