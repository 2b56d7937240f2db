"""Building a trie from sequences and from arrays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core.errors import InvalidInputError
from shared_core.schema import NO_KEY, build_trie, build_trie_from_arrays

TOKEN = st.one_of(st.integers(0, 3), st.sampled_from([254, 255, 256, 257, 65_535, 65_536, 2**31 - 1]))
KEY = st.one_of(st.lists(TOKEN, min_size=1, max_size=5), st.lists(st.integers(0, 1), min_size=1, max_size=70)).map(
    tuple
)
KEYS = st.lists(KEY, max_size=25, unique=True)


def columns(keys):
    starts = np.cumsum([0, *map(len, keys)])
    return np.array([token for key in keys for token in key], dtype=np.int32), starts


def contents(trie):
    """All that a reader can ask of a built trie, by node."""
    nodes = np.arange(trie.node_count)
    return [part.tolist() for part in (*trie.children(nodes), trie.keys_at(nodes), trie.ends())]


@given(KEYS)
def test_arrays_and_sequences_build_the_same(keys):
    flat, starts = columns(keys)
    before = flat.copy(), starts.copy()
    trie = build_trie_from_arrays(flat, starts)
    assert list(trie) == keys
    assert contents(trie) == contents(build_trie(keys))
    np.testing.assert_array_equal(flat, before[0])
    np.testing.assert_array_equal(starts, before[1])


@given(KEYS, st.randoms(use_true_random=False))
def test_the_order_of_keys_changes_their_numbers_only(keys, random):
    shuffled = random.sample(keys, len(keys))
    one, other = build_trie(keys), build_trie(shuffled)
    assert contents(one)[:3] == contents(other)[:3]
    nodes = np.arange(one.node_count)
    assert [keys[key] if key != NO_KEY else None for key in one.keys_at(nodes)] == [
        shuffled[key] if key != NO_KEY else None for key in other.keys_at(nodes)
    ]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ([(1, 2), ()], "without tokens"),
        ([(1,), (2, -1)], "negative"),
        ([(1, 2), (3,), (1, 2)], "twice"),
        ([(1,), (1,)], "twice"),
        ([(1,), (1, 2), (1,)], "twice"),
    ],
)
def test_unusable_keys_are_refused(keys, message):
    with pytest.raises(InvalidInputError, match=message):
        build_trie(keys)
    with pytest.raises(InvalidInputError, match=message):
        build_trie_from_arrays(*columns(keys))
