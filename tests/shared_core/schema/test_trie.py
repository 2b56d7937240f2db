"""Reading a trie, whether built, grown or shrunk, against plain sets of tuples."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core.errors import InvalidInputError
from shared_core.schema import NO_KEY, NO_NODE, ROOT, PrefixTrie, build_trie

# Few tokens, so that keys share prefixes and are prefixes of each other; and large ones, on either side of a byte.
TOKEN = st.one_of(st.integers(0, 3), st.sampled_from([254, 255, 256, 257, 65_535, 65_536, 2**31 - 1]))
KEY = st.lists(TOKEN, min_size=1, max_size=5).map(tuple)
KEYS = st.lists(KEY, max_size=25, unique=True)


@st.composite
def tries(draw):
    """A trie and its keys by number: some built, some inserted, some of either deleted again."""
    keys = draw(KEYS)
    built = draw(st.integers(0, len(keys)))
    trie = PrefixTrie(build_trie(keys[:built]))
    for key in keys[built:]:
        trie.insert(key)
    gone = draw(st.sets(st.sampled_from(range(len(keys))))) if keys else set()
    for number in gone:
        trie.delete(keys[number])
    return trie.snapshot(), {number: key for number, key in enumerate(keys) if number not in gone}


def prefixes(keys):
    """``Ω``: every prefix of every key, the empty one included."""
    return {()} | {key[:length] for key in keys for length in range(len(key) + 1)}


def nodes_of(trie):
    return np.concatenate([nodes for nodes, *_ in trie.levels()])


@given(tries())
def test_every_node_is_a_prefix_and_allows_what_keys_go_on_with(made):
    trie, keys = made
    paths = {node: trie.path(node) for node in nodes_of(trie).tolist()}
    assert len(paths) == len(set(paths.values())) == trie.node_count <= trie.node_limit
    assert set(paths.values()) == prefixes(keys.values())
    numbers = {key: number for number, key in keys.items()}
    for node, path in paths.items():
        assert node < trie.node_limit
        following = {key[len(path)] for key in keys.values() if key[: len(path)] == path and len(key) > len(path)}
        assert trie.allowed_tokens(node).tolist() == sorted(following)
        assert trie.key_at(node) == numbers.get(path, NO_KEY)


@given(tries())
def test_keys_come_back_under_their_numbers(made):
    trie, keys = made
    assert trie.key_count == len(keys)
    assert list(trie) == list(keys.values())
    assert [trie.tokens_of(number) for number in keys] == list(keys.values())
    assert [trie.find(key) for key in keys.values()] == list(keys)
    assert trie.longest >= max(map(len, keys.values()), default=0)
    for number in {-1, *range(trie.key_limit + 1)} - set(keys):
        with pytest.raises(InvalidInputError, match=f"the number {number}"):
            trie.tokens_of(number)


@given(tries(), st.lists(TOKEN, max_size=6).map(tuple))
def test_walk_and_find_know_prefixes_and_keys_only(made, tokens):
    trie, keys = made
    node = trie.walk(tokens)
    assert (node is not None) == (tokens in prefixes(keys.values()))
    if node is not None:
        assert trie.path(node) == tokens
    assert trie.find(tokens) == {key: number for number, key in keys.items()}.get(tokens)


@given(tries(), st.one_of(TOKEN, st.sampled_from([-1, 2**31, 2**40])))
def test_a_child_is_one_token_further(made, token):
    trie, _ = made
    for node in nodes_of(trie).tolist():
        below = trie.child(node, token)
        assert (below is not None) == (token in trie.allowed_tokens(node))
        if below is not None:
            assert trie.path(below) == (*trie.path(node), token)


@given(tries(), st.randoms(use_true_random=False))
def test_many_nodes_are_read_as_each_by_itself(made, random):
    trie, _ = made
    nodes = nodes_of(trie)
    nodes = np.array(random.choices(nodes.tolist(), k=2 * len(nodes)), dtype=np.int32)
    asked = nodes.copy()
    start, child, token = trie.children(nodes)
    assert {part.dtype for part in (start, child, token, trie.keys_at(nodes))} == {np.dtype(np.int64)}
    for node, low, high in zip(nodes.tolist(), start, start[1:], strict=False):
        assert token[low:high].tolist() == trie.allowed_tokens(node).tolist()
        assert child[low:high].tolist() == [trie.child(node, one) for one in token[low:high].tolist()]
    assert start[-1] == len(child) == len(token)
    assert trie.keys_at(nodes).tolist() == [trie.key_at(node) for node in nodes.tolist()]
    above = trie.parents(child)
    assert above.tolist() == np.repeat(nodes, np.diff(start)).tolist()
    np.testing.assert_array_equal(nodes, asked)


@given(tries())
def test_parents_ends_and_paths_lead_back_to_the_root(made):
    trie, keys = made
    assert trie.parents(np.array([ROOT])).tolist() == [NO_NODE]
    ends = trie.ends()
    assert ends.tolist() == trie.ends(np.arange(trie.key_limit)).tolist()
    assert np.flatnonzero(ends != NO_NODE).tolist() == list(keys)
    few = list(keys)[:1]
    for some in (list(keys), few, []):  # many keys and few take different ways
        nodes, starts = trie.paths(np.array(some, dtype=np.int64))
        expected = [[trie.walk(keys[one][: length + 1]) for length in range(len(keys[one]))] for one in some]
        assert nodes.tolist() == list(itertools.chain(*expected))
        assert np.diff(starts).tolist() == list(map(len, expected))


@given(tries())
def test_columns_hold_all_keys(made):
    trie, keys = made
    numbers, flat, starts = trie.columns()
    assert numbers.tolist() == list(keys)
    found = [flat[low:high].tolist() for low, high in itertools.pairwise(starts)]
    assert found == [list(key) for key in keys.values()]


@given(KEYS)
def test_built_nodes_are_numbered_level_by_level(keys):
    trie = build_trie(keys)
    depths = np.array([len(trie.path(node)) for node in range(trie.node_count)])
    assert (np.diff(depths) >= 0).all()
    assert trie.node_limit == trie.node_count
    assert trie.longest == depths[-1]
    assert trie.children(np.arange(trie.node_count))[1].tolist() == list(range(1, trie.node_count))


def test_an_empty_trie_allows_nothing():
    trie = build_trie([])
    assert (trie.node_count, trie.key_count, trie.longest) == (1, 0, 0)
    assert trie.allowed_tokens(ROOT).tolist() == []
    assert trie.walk([]) == ROOT
    assert trie.walk([1]) is trie.find([1]) is trie.find([]) is trie.child(ROOT, 0) is None
    assert list(trie) == []


@pytest.mark.parametrize(("largest", "width"), [(65_535, 2), (65_536, 4)])
def test_tokens_take_as_little_room_as_they_can(largest, width):
    trie = build_trie([(largest,), (1, 2)])
    assert trie.allowed_tokens(ROOT).itemsize == width
    assert trie.allowed_tokens(ROOT).tolist() == [1, largest]


def test_bytes_are_counted():
    keys = [(number % 50, number % 70, number) for number in range(3_000)]
    built = build_trie(keys)
    assert 8 * len(keys) < built.nbytes < 30 * len(keys)
    trie = PrefixTrie(built)
    trie.insert((1, 2, 3, 4))
    assert 0 < trie.snapshot().nbytes - built.nbytes < 10_000
