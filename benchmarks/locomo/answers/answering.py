"""The answers: the same prompt and the same model for every system, once freely and once grounded."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from benchmarks.locomo.answers.scores import REFUSAL, Scores, coverage, score
from benchmarks.locomo.answers.systems import Context
from benchmarks.locomo.answers.writer import Spent
from benchmarks.locomo.dataset import Question
from shared_core.answering import (
    DEFAULT_PROMPT,
    DEFAULT_WEIGHTS,
    AnswerPrompt,
    Asked,
    answer_freely,
    answer_grounded,
    note,
    read,
)
from shared_core.models import LanguageModel

MODES = ("free", "grounded")
"""Ways to answer: what the model writes, and the best span of the context or a refusal."""

BUDGETS = (200, 500, 1_000)
"""Tokens of context within which the answer is looked for."""

_FREE_TOKENS = 24


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer as it is judged; its text is not kept, since it may be the data set's.

    Attributes:
        scores: How right it is.
        coverage: The share of the gold answer's stems within each budget of context tokens, by budget.
        context: Tokens of context that were read.
        left_out: Tokens of context for which the model's window had no room.
        spent: What answering took.
    """

    scores: Scores
    coverage: Mapping[str, float | None]
    context: int
    left_out: int
    spent: Spent


class Answerer:
    """Answers questions from contexts.

    Args:
        model: The model.
        prompt: The prompt.
    """

    def __init__(self, model: LanguageModel, prompt: AnswerPrompt = DEFAULT_PROMPT) -> None:
        self._model = model
        self._prompt = prompt
        self._sizes: dict[str, int] = {}

    @property
    def settings(self) -> list[object]:
        """What answers depend on beside model and context."""
        return [self._prompt.examples, _FREE_TOKENS, list(MODES), list(BUDGETS), asdict(DEFAULT_WEIGHTS)]

    def answer(self, questions: Sequence[Question], contexts: Sequence[Context]) -> list[dict[str, Reply]]:
        """Answer a few questions together, each in every mode."""
        start = time.perf_counter()
        asked = [Asked(question.text, one.entries) for question, one in zip(questions, contexts, strict=True)]
        reading = read(self._model, self._prompt, asked)
        shared = time.perf_counter() - start
        free = [text or REFUSAL for text in answer_freely(reading, _FREE_TOKENS)]
        freely = time.perf_counter() - start
        grounded = [one.text if one else REFUSAL for one in answer_grounded(reading)]
        took = {"free": freely, "grounded": shared + time.perf_counter() - start - freely}
        replies = []
        for place, (question, context) in enumerate(zip(questions, contexts, strict=True)):
            whole = sum(self._size(note(entry)) for entry in context.entries)
            said = {"free": free[place], "grounded": grounded[place]}
            judged = self._coverage(question, context)
            replies.append(
                {
                    mode: Reply(
                        score(text, question),
                        judged,
                        reading.lengths[place],
                        whole - reading.lengths[place],
                        Spent(1, reading.lengths[place], self._size(text), took[mode] / len(questions)),
                    )
                    for mode, text in said.items()
                }
            )
        return replies

    def _size(self, text: str) -> int:
        if text not in self._sizes:
            self._sizes[text] = len(self._model.encode(f"{text}\n"))
        return self._sizes[text]

    def _coverage(self, question: Question, context: Context) -> dict[str, float | None]:
        tokens: list[int] = []
        for entry in (*context.entries, *context.further):
            if len(tokens) >= max(BUDGETS):
                break
            tokens += self._model.encode(f"{note(entry)}\n")
        return {str(budget): coverage(self._model.decode(tokens[:budget]), question) for budget in BUDGETS}
