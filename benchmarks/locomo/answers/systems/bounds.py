"""Floor and ceiling, and the whole conversation."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.locomo.answers.systems.system import Context
from benchmarks.locomo.dataset import Question
from shared_core import MemoryEntry


class Nothing:
    """No memory: what the model answers from the question alone."""

    def write(self, turns: Sequence[MemoryEntry]) -> None:
        """Nothing is kept."""

    def contexts(self, questions: Sequence[Question]) -> list[Context]:
        return [Context(()) for _ in questions]

    def close(self) -> None:
        """Nothing is held."""


class Oracle:
    """The turns that hold the answer, as the data set names them."""

    def write(self, turns: Sequence[MemoryEntry]) -> None:
        self._turns = {turn.id: turn for turn in turns}

    def contexts(self, questions: Sequence[Question]) -> list[Context]:
        return [Context([self._turns[id] for id in question.evidence]) for question in questions]

    def close(self) -> None:
        """Nothing is held but the turns."""


class FullContext:
    """LoCoMo's full-context baseline (Maharana et al., 2024, arXiv 2402.17753): every turn in the prompt.

    The most recent turns come first, so that the oldest are those that do not fit.
    """

    def write(self, turns: Sequence[MemoryEntry]) -> None:
        self._recent_first = list(reversed(turns))

    def contexts(self, questions: Sequence[Question]) -> list[Context]:
        return [Context(self._recent_first) for _ in questions]

    def close(self) -> None:
        """Nothing is held but the turns."""
