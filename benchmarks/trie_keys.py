"""Phrase-like keys from a seed: token sequences with the prefix sharing of real concepts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Words, each of one to three tokens (frequent ones of one), their use as frequent as Zipf's law has it.
_WORDS = 40_000
_FIRST_TOKEN = 300
_LAST_TOKEN = 49_000
_SHORTEST, _LONGEST = 2, 6


def phrase_keys(count: int, seed: int = 0) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Distinct keys of 2 to 6 tokens.

    One in five goes on from another key by a word, as "new york marathon" does from "new york".

    Returns:
        Their tokens, shape (tokens,), and where each key starts, shape (count + 1,).
    """
    random = np.random.default_rng(seed)
    spelling, sizes = _vocabulary(random)
    rows = np.zeros((0, _LONGEST), dtype=np.int32)
    while len(rows) < count:
        fresh = _phrases(random, spelling, sizes, count + 100)
        longer = _with_another_word(random, spelling, sizes, fresh[: count // 4])
        rows = _distinct(np.concatenate([rows, random.permutation(np.concatenate([fresh, longer]))]))
    rows = rows[:count]
    lengths = (rows > 0).sum(axis=1)
    return rows[rows > 0], np.concatenate([[0], np.cumsum(lengths)])


def _vocabulary(random: np.random.Generator) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Tokens of each word, zeros after them, shape (words, 3), and their numbers, shape (words,)."""
    sizes = 1 + (random.random((_WORDS, 2)) < np.linspace(0.0, 0.6, _WORDS)[:, None]).sum(axis=1)
    spelling = random.integers(_FIRST_TOKEN, _LAST_TOKEN, (_WORDS, 3), dtype=np.int32)
    spelling[np.arange(3) >= sizes[:, None]] = 0
    return spelling, sizes


def _words(random: np.random.Generator, count: int) -> NDArray[np.int64]:
    weights = 1 / (np.arange(_WORDS) + 2.7)
    return np.searchsorted(np.cumsum(weights) / weights.sum(), random.random(count))


def _phrases(
    random: np.random.Generator, spelling: NDArray[np.int32], sizes: NDArray[np.int64], count: int
) -> NDArray[np.int32]:
    words = random.choice([1, 2, 3, 4], size=count, p=[0.15, 0.45, 0.3, 0.1])
    rows = np.zeros((count, _LONGEST), dtype=np.int32)
    for place in range(4):
        chosen = np.flatnonzero(words > place)
        rows[chosen] = _append(rows[chosen], _words(random, len(chosen)), spelling, sizes)
    return rows[(rows > 0).sum(axis=1) >= _SHORTEST]


def _with_another_word(
    random: np.random.Generator, spelling: NDArray[np.int32], sizes: NDArray[np.int64], rows: NDArray[np.int32]
) -> NDArray[np.int32]:
    return _append(rows, _words(random, len(rows)), spelling, sizes)


def _append(
    rows: NDArray[np.int32], words: NDArray[np.int64], spelling: NDArray[np.int32], sizes: NDArray[np.int64]
) -> NDArray[np.int32]:
    """The rows with a word each after them, where there is room for it."""
    used = (rows > 0).sum(axis=1)
    fits = used + sizes[words] <= _LONGEST
    rows = rows.copy()
    for place in range(3):
        writes = np.flatnonzero(fits & (sizes[words] > place))
        rows[writes, used[writes] + place] = spelling[words[writes], place]
    return rows


def _distinct(rows: NDArray[np.int32]) -> NDArray[np.int32]:
    """Each row once, in the order in which they first come."""
    order = np.lexsort(rows.T)
    ordered = rows[order]
    new = np.ones(len(rows), dtype=bool)
    new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    return rows[np.sort(order[new])]
