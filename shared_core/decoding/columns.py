"""Many keys as one model spells and weighs them, in four arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shared_core.decoding.prior import FloatArray
from shared_core.errors import InvalidInputError
from shared_core.schema import IntArray, Ints, Tokens


@dataclass(frozen=True, slots=True, eq=False)
class KeyColumns:
    """Token sequences and neutral log-probabilities of keys, one key after the other; no Python object for each.

    Attributes:
        tokens: Token ids, shape (tokens,). A key that the tokenizer cannot spell has none.
        starts: Where each key's tokens start, and the number of tokens, shape (keys + 1,).
        neutral: For each key ``log P_θ`` of its tokens and then of the terminator after them, under a neutral prompt,
            shape (tokens + keys,). Of no meaning where not ``known``.
        known: Whether each key's log-probabilities were computed, shape (keys,).
    """

    tokens: IntArray
    starts: Ints
    neutral: FloatArray
    known: NDArray[np.bool_]

    def __post_init__(self) -> None:
        keys = len(self.known)
        sizes = len(self.starts), len(self.tokens), len(self.neutral)
        total = int(self.starts[-1]) if len(self.starts) else -1
        if sizes != (keys + 1, total, total + keys):
            raise InvalidInputError(f"columns of {keys} keys do not fit together: {sizes} places, {total} tokens")

    @classmethod
    def of(cls, keys: Sequence[Tokens | None], neutral: Sequence[FloatArray | None]) -> KeyColumns:
        """The columns of single keys: of each its tokens, and ``len(key) + 1`` log-probabilities, if there are any."""
        lengths = np.fromiter((len(key or ()) for key in keys), dtype=np.int64, count=len(keys))
        starts = np.concatenate([[0], np.cumsum(lengths)])
        flat = np.fromiter((token for key in keys for token in key or ()), dtype=np.int32, count=int(starts[-1]))
        known = np.fromiter((scores is not None for scores in neutral), dtype=bool, count=len(keys))
        scores = [
            np.zeros(length + 1, dtype=np.float32) if one is None else one
            for one, length in zip(neutral, lengths.tolist(), strict=True)
        ]
        return cls(flat, starts, np.concatenate([np.zeros(0, dtype=np.float32), *scores]), known)

    def __len__(self) -> int:
        return len(self.known)

    @property
    def lengths(self) -> Ints:
        """Number of tokens of each key, shape (keys,)."""
        return np.diff(self.starts)

    def take(self, keys: NDArray[np.bool_]) -> KeyColumns:
        """The columns of some of the keys, told by whether each is wanted."""
        lengths = self.lengths
        starts = np.concatenate([[0], np.cumsum(lengths[keys])])
        tokens = self.tokens[np.repeat(keys, lengths)]
        return KeyColumns(tokens, starts, self.neutral[np.repeat(keys, lengths + 1)], self.known[keys])
