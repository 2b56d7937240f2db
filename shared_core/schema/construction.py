"""Building a trie from all its keys at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shared_core.errors import InvalidInputError
from shared_core.schema.layout import NO_KEY, IntArray, Layout
from shared_core.schema.marks import Ints
from shared_core.schema.trie import Trie


def build_trie(keys: Sequence[Sequence[int]]) -> Trie:
    """Build a trie; key ``i`` of the trie is ``keys[i]``.

    Args:
        keys: Distinct, non-empty sequences of non-negative token ids.

    Raises:
        InvalidInputError: if a key is empty, repeated, or holds a negative token.
    """
    starts = np.zeros(len(keys) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, keys), dtype=np.int64, count=len(keys)), out=starts[1:])
    flat = np.fromiter((token for key in keys for token in key), dtype=np.int32, count=int(starts[-1]))
    return build_trie_from_arrays(flat, starts)


def build_trie_from_arrays(flat: IntArray, starts: Ints) -> Trie:
    """Build a trie from the columns of its keys: what opening a large memory uses.

    Args:
        flat: The tokens of the keys, one key after the other, shape (tokens,).
        starts: Where each key starts, and the number of tokens, shape (keys + 1,).

    Raises:
        InvalidInputError: as :func:`build_trie`.
    """
    lengths = check_columns(flat, starts)
    order = _lexicographic_order(flat, starts, lengths)
    return Trie(_link_levels(flat, starts[:-1], lengths, order))


def check_columns(flat: IntArray, starts: Ints) -> Ints:
    """The length of each key.

    Raises:
        InvalidInputError: if a key is empty or holds a negative token.
    """
    lengths = np.diff(starts)
    if len(lengths) and lengths.min() <= 0:
        raise InvalidInputError("a key without tokens cannot be stored in a trie")
    if len(flat) and flat.min() < 0:
        raise InvalidInputError("token ids must not be negative")
    return lengths


def _lexicographic_order(flat: IntArray, starts: Ints, lengths: Ints) -> NDArray[np.intp]:
    # Tokens + 1, packed into 64-bit words and padded with zeros, compare like the sequences themselves, with a shorter
    # key before its extensions. Sorting is stable, so the words are sorted by from the last to the first; what is
    # long past most keys' ends is constant there and takes next to no time.
    bits = (int(flat.max(initial=0)) + 1).bit_length()
    together = 64 // bits
    words = []
    for begin in range(0, int(lengths.max(initial=0)), together):
        word = np.zeros(len(lengths), dtype=np.uint64)
        for depth in range(begin, begin + together):
            reaching = np.flatnonzero(lengths > depth)
            word <<= np.uint64(bits)
            word[reaching] |= flat[starts[reaching] + depth].astype(np.uint64) + np.uint64(1)
        words.append(word)
    return np.lexsort(words[::-1]) if words else np.zeros(0, dtype=np.intp)


def _link_levels(flat: IntArray, starts: Ints, lengths: Ints, order: NDArray[np.intp]) -> Layout:
    root = np.zeros(1, dtype=np.int64)
    tokens, keys, counts = [root], [root + NO_KEY], []
    alive = order  # keys long enough for the level, in lexicographic order
    above = np.zeros(len(alive), dtype=np.int64)  # each such key's node within the level above
    above_count = 1
    longest = 0
    while len(alive):
        token = flat[starts[alive] + longest]
        # A new node begins where the prefix differs from the previous key's.
        begins = np.ones(len(alive), dtype=bool)
        begins[1:] = (token[1:] != token[:-1]) | (above[1:] != above[:-1])
        node = np.cumsum(begins) - 1
        counts.append(np.bincount(above[begins], minlength=above_count))
        tokens.append(token[begins].astype(np.int64))
        ends = lengths[alive] == longest + 1
        # The same keys are neighbours, and no others end at one node.
        if (ends[1:] & ends[:-1] & ~begins[1:]).any():
            raise InvalidInputError("the same key was given twice")
        level_keys = np.full(len(tokens[-1]), NO_KEY, dtype=np.int64)
        level_keys[node[ends]] = alive[ends]
        keys.append(level_keys)
        above_count = len(level_keys)
        alive, above = alive[~ends], node[~ends]
        longest += 1
    counts.append(np.zeros(above_count, dtype=np.int64))
    return Layout.from_levels(
        np.concatenate(tokens), np.concatenate(counts), np.concatenate(keys), len(lengths), longest
    )
