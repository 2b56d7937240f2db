"""Answering from what was recalled, with the memory's own model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shared_core.decoding import generate
from shared_core.models import LanguageModel
from shared_core.recall.results import Recall, describe

_INSTRUCTION = "Answer the question from these notes, in as few words as possible.\n\n"


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
    question = model.encode(f"\nQuestion: {' '.join(recall.query.split())}\nAnswer:")
    start = [*model.start, *model.encode(_INSTRUCTION)]
    room = model.window - len(start) - len(question) - max_tokens
    lines = {one.entry.id: model.encode(f"{describe(one.entry)}\n") for one in recall.entries}
    kept = []
    for one in recall.entries:  # best first, as far as the model's window reaches
        room -= len(lines[one.entry.id])
        if room < 0:
            break
        kept.append(one.entry)
    kept.sort(key=lambda entry: (entry.occurred_at is not None, str(entry.occurred_at)))
    notes = [token for entry in kept for token in lines[entry.id]]
    tree = model.tree(start)
    node = tree.read([*notes, *question])
    (text,) = generate(model, tree, [node], max_tokens=max_tokens, stop=("\n",))
    return Answer(text.strip(), recall)
