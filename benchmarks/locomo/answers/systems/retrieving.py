"""The systems of the retrieval benchmark as memories to answer from: this project's own, BM25, embeddings."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.locomo.answers.systems.system import Context
from benchmarks.locomo.answers.writer import Spent, Writer
from benchmarks.locomo.dataset import Question
from benchmarks.locomo.metrics import DEPTH
from benchmarks.locomo.systems import Cost, System
from shared_core import MemoryEntry


class Retrieving:
    """The best turns of a system of the retrieval benchmark.

    Args:
        system: The system, which is closed with this one.
        writer: Where what it takes is counted.
        k: How many turns.
    """

    def __init__(self, system: System, writer: Writer, k: int) -> None:
        self._system = system
        self._writer = writer
        self._k = k

    def write(self, turns: Sequence[MemoryEntry]) -> None:
        self._turns = {turn.id: turn for turn in turns}
        self._count(self._system.write(turns, lambda _: None))

    def contexts(self, questions: Sequence[Question]) -> list[Context]:
        return [self._context(question) for question in questions]

    def _context(self, question: Question) -> Context:
        ranked = self._system.read(question.text, max(self._k, DEPTH))
        self._count(ranked.cost)
        turns = [self._turns[id] for id in ranked.ids]
        return Context(turns[: self._k], turns[self._k :])

    def _count(self, cost: Cost) -> None:
        self._writer.spent += Spent(cost.passes, cost.tokens, 0, cost.seconds)

    def close(self) -> None:
        self._system.close()
