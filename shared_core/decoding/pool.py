"""Open prefixes of a search, and which of them go through the model next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from shared_core.schema import Trie

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]

# Tokens below one open prefix that may join it in a forward pass.
_DEPTH = 8


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """Open prefixes, each waiting to be run through the model.

    Attributes:
        prefix: Trie node, shape (n,).
        token: The prefix's last token, shape (n,).
        parent: Node of the token tree that this token comes after, shape (n,).
        logprob: Cumulative log-probability, shape (n,).
        perturbed: Cumulative log-probability with Gumbel noise, shape (n,); only when sampling.
        promise: Orders the pool: what the best key below is expected to score, shape (n,).
        bound: No key below is taken to score more than this, shape (n,).
    """

    prefix: Ints
    token: Ints
    parent: Ints
    logprob: Floats
    perturbed: Floats
    promise: Floats
    bound: Floats

    def __getitem__(self, chosen: NDArray[np.bool_] | Ints | slice) -> Pool:
        return Pool(*(getattr(self, name)[chosen] for name in self.__slots__))

    def __add__(self, other: Pool) -> Pool:
        pairs = ((getattr(self, name), getattr(other, name)) for name in self.__slots__)
        return Pool(*(np.concatenate(pair) for pair in pairs))

    def __len__(self) -> int:
        return len(self.prefix)


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Prefixes that go through the model in one forward pass: some of the pool, and some that continue these.

    Rows stand level by level: first those taken off the pool, then the children of these, and so on.

    Attributes:
        taken: The prefixes taken off the pool.
        prefix: Trie node of each row, shape (rows,); the first rows are ``taken``.
        token: Token into each row, shape (rows,).
        above: Row of this batch that each row continues, shape (rows,); -1 for those taken off the pool.
        place: Which child of that row it is, shape (rows,); -1 likewise.
        levels: Where each level starts, and the number of rows.
    """

    taken: Pool
    prefix: Ints
    token: Ints
    above: Ints
    place: Ints
    levels: tuple[int, ...]

    @property
    def parents(self) -> Ints:
        """Token-tree node above each row, or ``-1 - i`` for row ``i`` of this batch, shape (rows,)."""
        return np.concatenate([self.taken.parent, -1 - self.above[len(self.taken) :]])


def forced_chains(trie: Trie, taken: Pool) -> Batch:
    """The prefixes taken, each with the tokens that are forced after it: those cost no decision."""
    rows = _Rows(taken)
    level = rows.prefix
    for _ in range(_DEPTH):
        start, child, token = trie.children(level)
        forced = np.flatnonzero(np.diff(start) == 1)
        if len(forced) == 0:
            break
        at = start[forced]
        level = child[at]
        rows.add(level, token[at], rows.last_level + forced, np.zeros(len(forced), dtype=np.int64))
    return rows.batch()


def likely_continuations(trie: Trie, taken: Pool, ahead: Callable[[Ints], Floats], limit: int, least: float) -> Batch:
    """The prefixes taken and what below them promises as much, up to a number of rows.

    What the query makes of a continuation is not known before the model has read it, so it is judged by neutral
    log-probabilities: a prefix hands its promise on along the way to its best key, and takes off the difference
    elsewhere. Promises so never rise towards the leaves, and the most promising rows are whole branches.

    Args:
        trie: The trie.
        taken: Prefixes off the pool, most promising first.
        ahead: Gives the neutral score of the best key below each of some nodes.
        limit: Most rows of the batch.
        least: A continuation that promises less is not worth a row.
    """
    rows = _Rows(taken)
    level, promise = rows.prefix, taken.promise
    gain = promise - ahead(level)
    promises = [promise]
    for _ in range(_DEPTH):
        start, child, token = trie.children(level)
        row = np.repeat(np.arange(len(level)), np.diff(start))
        # Bounded by the row above, which rounding must not let a continuation overtake: it would lose its parent.
        expected = np.minimum(gain[row] + ahead(child), promise[row])
        better = np.flatnonzero(expected >= least)
        so_far = np.concatenate(promises)
        if len(so_far) >= limit:
            better = better[expected[better] > np.partition(so_far, -limit)[-limit]]
        if len(better) == 0:
            break
        chosen = better[np.sort(largest(expected[better], limit))]
        row = row[chosen]
        rows.add(child[chosen], token[chosen], rows.last_level + row, chosen - start[row])
        level, gain, promise = child[chosen], gain[row], expected[chosen]
        promises.append(promise)
    return rows.batch(largest(np.concatenate(promises), limit))


class _Rows:
    """Rows of a batch in the making, level by level."""

    def __init__(self, taken: Pool) -> None:
        none = np.full(len(taken), -1, dtype=np.int64)
        self._taken = taken
        self._columns = [(taken.prefix, taken.token, none, none)]
        self.last_level = 0
        """First row of the last level."""

    @property
    def prefix(self) -> Ints:
        """Trie nodes of the last level."""
        return self._columns[-1][0]

    def add(self, prefix: Ints, token: Ints, above: Ints, place: Ints) -> None:
        """Add a level; columns as in :class:`Batch`."""
        self.last_level += len(self._columns[-1][0])
        self._columns.append((prefix, token, above, place))

    def batch(self, kept: Ints | None = None) -> Batch:
        """The rows, or some of them, among which is the row above each."""
        level = np.repeat(np.arange(len(self._columns)), [len(column[0]) for column in self._columns])
        prefix, token, above, place = (np.concatenate(column) for column in zip(*self._columns, strict=True))
        taken = self._taken
        if kept is not None and len(kept) < len(prefix):
            kept = np.sort(kept)
            number = np.cumsum(np.isin(np.arange(len(prefix)), kept)) - 1
            level, prefix, token, above, place = (each[kept] for each in (level, prefix, token, above, place))
            above = np.where(above < 0, -1, number[above])
            taken = taken[: int(np.searchsorted(level, 1))]
        levels = np.searchsorted(level, np.arange(int(level[-1]) + 2)) if len(level) else np.zeros(1, dtype=np.int64)
        return Batch(taken, prefix, token, above, place, tuple(levels.tolist()))


def largest(values: Floats, count: int) -> Ints:
    """Indices of the ``count`` largest values, largest first; of equal ones the first."""
    chosen = np.arange(len(values))
    if len(values) > count:
        # Ties at the edge must not be left to chance: a tree of rows needs the upper ones.
        edge = -np.partition(-values, count - 1)[count - 1]
        chosen = np.flatnonzero(values >= edge)
    ordered: Ints = chosen[np.argsort(-values[chosen], kind="stable")][:count]
    return ordered
