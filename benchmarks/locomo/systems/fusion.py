"""Reciprocal rank fusion (Cormack et al., 2009) of two systems."""

from __future__ import annotations

import time
from collections.abc import Sequence

from benchmarks.locomo.systems.system import Cost, Ranked, Report, System
from shared_core import MemoryEntry

CONSTANT = 60
DEPTH = 100
"""Turns that each of the systems is asked for."""


def fuse(rankings: Sequence[Sequence[str]], k: int) -> list[str]:
    """Rank by the sum of ``1 / (60 + rank)``; of equals what an earlier ranking has first."""
    scores: dict[str, float] = {}
    for ranking in rankings:
        for rank, id in enumerate(ranking, start=1):
            scores[id] = scores.get(id, 0.0) + 1 / (CONSTANT + rank)
    return sorted(scores, key=lambda id: -scores[id])[:k]


class Fusion:
    """The rank fusion of systems, which it owns.

    Args:
        systems: The systems.
    """

    def __init__(self, systems: Sequence[System]) -> None:
        self._systems = systems

    def write(self, turns: Sequence[MemoryEntry], report: Report) -> Cost:
        return sum((system.write(turns, report) for system in self._systems), Cost(0.0))

    def read(self, query: str, k: int) -> Ranked:
        found = [system.read(query, max(k, DEPTH)) for system in self._systems]
        start = time.perf_counter()
        ids = fuse([one.ids for one in found], k)
        own = Cost(time.perf_counter() - start)
        return Ranked(ids, sum((one.cost for one in found), own))

    def close(self) -> None:
        for system in self._systems:
            system.close()
