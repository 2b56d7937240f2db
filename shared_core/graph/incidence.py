"""Which entries a concept occurs in, or which concepts an entry has, in compressed sparse rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Incidence:
    """Weighted links from rows to members.

    Attributes:
        starts: Row ``r`` owns ``members[starts[r]:starts[r + 1]]``, shape (rows + 1,).
        members: Entries of a concept, or concepts of an entry, shape (links,).
        weights: Link weights, shape (links,).
    """

    starts: NDArray[np.int64]
    members: NDArray[np.int32]
    weights: NDArray[np.float32]

    @classmethod
    def from_links(
        cls,
        rows: NDArray[np.integer],
        members: NDArray[np.integer],
        weights: NDArray[np.floating],
        row_count: int,
    ) -> Incidence:
        """Sort links, given as three arrays of one length, into rows."""
        order = np.argsort(rows, kind="stable")
        counts = np.bincount(rows, minlength=row_count)
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return cls(starts, members[order].astype(np.int32), weights[order].astype(np.float32))

    @property
    def row_count(self) -> int:
        """Number of rows."""
        return len(self.starts) - 1

    def row(self, row: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Members and weights of one row, each shape (n,)."""
        low, high = self.starts[row], self.starts[row + 1]
        return self.members[low:high], self.weights[low:high]

    def rows(self, rows: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Link positions of several rows one after another, shape (n,), and the size of each row, shape (rows,)."""
        first = self.starts[rows]
        sizes = self.starts[np.asarray(rows) + 1] - first
        ends = np.cumsum(sizes)
        positions = np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(first - (ends - sizes), sizes)
        return positions, sizes
