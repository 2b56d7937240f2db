"""What every memory system is to the benchmark: it takes turns, and gives what a question is to be answered from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from benchmarks.locomo.dataset import Question
from shared_core import MemoryEntry


@dataclass(frozen=True, slots=True)
class Context:
    """What a question is answered from.

    Attributes:
        entries: Turns, or what the system made of them, each with its date; the most important first, since what
            does not fit the model's window is cut off at the end.
        further: What would come next if more were asked for; answers are given without it, and it counts for what the
            context covers, which is compared at equal numbers of tokens.
    """

    entries: Sequence[MemoryEntry]
    further: Sequence[MemoryEntry] = ()


class AnswerSystem(Protocol):
    """A memory of one conversation. What it has the model do is counted by its :class:`Writer`."""

    def write(self, turns: Sequence[MemoryEntry]) -> None:
        """Take all turns; called once, before anything is asked."""
        ...

    def contexts(self, questions: Sequence[Question]) -> list[Context]:
        """What each question is to be answered from. Only oracles look at more of a question than its text."""
        ...

    def close(self) -> None:
        """Let go of what it holds."""
        ...
