"""Families: concepts whose keys have the same stems.

"paint" and "painted" are a family; how rare a word is shows in the family, not in one spelling.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Families:
    """Which concepts are of one family. Immutable.

    A family is known by a signature of its stems, the sum of a 64-bit random number for each: of a million families,
    two have the same with a probability of 3e-8.

    Attributes:
        of: Family of each concept, named by its first member, shape (concepts,).
        signatures: Signature of every family, ascending, shape (families,).
        names: Name of each of these, shape (families,).
    """

    of: NDArray[np.int32]
    signatures: NDArray[np.uint64]
    names: NDArray[np.int32]

    @classmethod
    def empty(cls) -> Families:
        """No concepts."""
        return cls(np.zeros(0, np.int32), np.zeros(0, np.uint64), np.zeros(0, np.int32))

    def extend(self, stems: NDArray[np.integer], sizes: NDArray[np.integer]) -> Families:
        """New families with further concepts at the end.

        Args:
            stems: Numbers of their distinct stems, one concept after another, shape (Σ sizes,).
            sizes: How many each has, shape (n,).
        """
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(_scrambled(stems))])
        ends = np.cumsum(sizes)
        found, first, own = _distinct(sums[ends] - sums[ends - sizes])
        at = np.searchsorted(self.signatures, found)
        known = np.zeros(len(found), dtype=np.bool_)
        inside = at < len(self.signatures)
        known[inside] = self.signatures[at[inside]] == found[inside]
        names = (first + len(self.of)).astype(np.int32)
        names[known] = self.names[at[known]]
        return Families(
            np.concatenate([self.of, names[own]]),
            np.insert(self.signatures, at[~known], found[~known]),
            np.insert(self.names, at[~known], names[~known]),
        )


def _distinct(
    signatures: NDArray[np.uint64],
) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.int32]]:
    """The distinct ones, ascending, where each is first, and which of them each is; in half the time of NumPy's own."""
    order = np.argsort(signatures)  # not stable, which would take twice as long
    ascending = signatures[order]
    begins = np.ones(len(order), dtype=np.bool_)
    begins[1:] = ascending[1:] != ascending[:-1]
    starts = np.flatnonzero(begins)
    own = np.empty(len(order), dtype=np.int32)
    own[order] = np.cumsum(begins, dtype=np.int32) - 1
    return ascending[starts], np.minimum.reduceat(order, starts) if len(order) else order, own


def _scrambled(numbers: NDArray[np.integer]) -> NDArray[np.uint64]:
    """A 64-bit pseudo-random number for each number (the finaliser of SplitMix64), shape (n,)."""
    mixed = (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
