"""Reciprocal rank fusion."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.locomo.systems import Cost, Ranked, Report
from benchmarks.locomo.systems.fusion import DEPTH, Fusion, fuse
from shared_core import MemoryEntry


def test_a_case_worked_out_by_hand():
    # a 1/61 + 1/63, b 1/62, c 1/63 + 1/62, d 1/61
    assert fuse([["a", "b", "c"], ["d", "c", "a"]], 9) == ["a", "c", "d", "b"]
    assert fuse([["a", "b", "c"], ["d", "c", "a"]], 2) == ["a", "c"]
    assert fuse([["a"], ["b"]], 2) == ["a", "b"]


class Fixed:
    def __init__(self, ids: list[str], cost: Cost) -> None:
        self.ids, self.cost, self.closed = ids, cost, False

    def write(self, turns: Sequence[MemoryEntry], report: Report) -> Cost:
        return self.cost

    def read(self, query: str, k: int) -> Ranked:
        assert k == DEPTH  # deeper than what is wanted in the end
        return Ranked(self.ids, self.cost)

    def close(self) -> None:
        self.closed = True


def test_costs_add_up():
    parts = [Fixed(["a", "b"], Cost(1.0, 2, 3)), Fixed(["b"], Cost(10.0, 20, 30))]
    system = Fusion(parts)
    assert system.write([], lambda _: None) == Cost(11.0, 22, 33)
    found = system.read("?", 1)
    assert found.ids == ["b"]
    assert (found.cost.passes, found.cost.tokens) == (22, 33)
    assert found.cost.seconds >= 11
    system.close()
    assert all(part.closed for part in parts)
