"""Which entries a concept occurs in, or which concepts an entry has, in compressed sparse rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shared_core.graph.ordering import ranges, stable_order


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
        if (rows[1:] < rows[:-1]).any():
            order = stable_order(rows)
            members, weights = members[order], weights[order]
        counts = np.bincount(rows, minlength=row_count)
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return cls(starts, members.astype(np.int32, copy=False), weights.astype(np.float32, copy=False))

    def places(self, rows: NDArray[np.integer], members: NDArray[np.integer]) -> NDArray[np.int64]:
        """Where further links have to be inserted, shape (n,), if the members of every row ascend.

        Args:
            rows: Row of each link, ascending; may be beyond the rows there are.
            members: Member of each link, ascending within a row, shape (n,).
        """
        touched, own = np.unique(rows, return_inverse=True)
        inside = np.minimum(touched, max(self.row_count - 1, 0))
        known = touched < self.row_count
        near, sizes = self.rows(inside[known])
        width = int(max(members.max(initial=0), self.members[near].max(initial=0))) + 1
        there = np.repeat(np.flatnonzero(known), sizes) * width + self.members[near]
        smaller = np.searchsorted(there, own * width + members) - np.searchsorted(there, own * width)
        ends = np.full(len(touched), len(self.members), dtype=np.int64)
        ends[known] = self.starts[inside[known]]
        places: NDArray[np.int64] = ends[own] + smaller
        return places

    def insert(
        self,
        places: NDArray[np.int64],
        rows: NDArray[np.integer],
        members: NDArray[np.integer],
        weights: NDArray[np.floating],
        row_count: int,
    ) -> Incidence:
        """A new incidence with further links, and rows up to ``row_count``.

        Args:
            places: Where the links belong, see :meth:`places`.
            rows: Row of each link, shape (n,).
            members: Its member, shape (n,).
            weights: Its weight, shape (n,).
            row_count: Number of rows then.
        """
        starts = np.full(row_count + 1, self.starts[-1])
        starts[: len(self.starts)] = self.starts
        starts[1:] += np.cumsum(np.bincount(rows, minlength=row_count))
        return Incidence(
            starts,
            np.insert(self.members, places, members),
            np.insert(self.weights, places, weights),
        )

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
        return ranges(first, sizes), sizes
