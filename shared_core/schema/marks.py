"""Marked places, one bit each: which are marked, how many are before a place, and where the n-th is."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]

_ONE = np.uint64(1)


class Marks:
    """An immutable set of places below a bound, in 1.5 bits a place, with rank and select.

    Args:
        marked: Whether each place is marked, shape (places,).
    """

    __slots__ = ("_before", "_one_before", "_one_word", "_words")

    def __init__(self, marked: NDArray[np.bool_]) -> None:
        # A whole word of zeros more than needed, so that the place after the last has a rank too.
        packed = np.zeros((len(marked) // 64 + 1) * 8, dtype=np.uint8)
        packed[: (len(marked) + 7) // 8] = np.packbits(marked, bitorder="little")
        self._words = packed.view(np.dtype("<u8")).astype(np.uint64)
        self._before = np.zeros(len(self._words) + 1, dtype=np.uint32)
        np.cumsum(np.bitwise_count(self._words), out=self._before[1:])
        # The same memory: a view gives single numbers in half the time that an array takes.
        self._one_word, self._one_before = self._words.data, self._before.data

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return int(self._words.nbytes + self._before.nbytes)

    def find(self, place: int) -> int:
        """How many places before this one are marked, if it is marked itself; otherwise -1."""
        at, bit = place >> 6, 1 << (place & 63)
        word: int = self._one_word[at]
        return self._one_before[at] + (word & (bit - 1)).bit_count() if word & bit else -1

    def rank(self, places: Ints) -> tuple[NDArray[np.bool_], Ints]:
        """Whether each place is marked, and how many before it are, shape (n,) each."""
        at = places >> 6
        word = self._words[at]
        bit = _ONE << (places & 63).astype(np.uint64)
        before = self._before[at] + np.bitwise_count(word & (bit - _ONE)).astype(np.int64)
        return (word & bit) != 0, before

    def select(self, ranks: Ints) -> Ints:
        """The place of each given mark, counted from 0, shape (n,)."""
        at = np.searchsorted(self._before, ranks.astype(np.uint32), side="right") - 1
        bits = np.unpackbits(self._words[at].view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
        nth = ranks - self._before[at] + 1
        place: Ints = at * 64 + (np.cumsum(bits, axis=1, dtype=np.uint8) < nth[:, None]).sum(axis=1)
        return place
