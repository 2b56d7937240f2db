"""The trie against plain sets and dictionaries of tuples."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from shared_core.errors import InvalidInputError
from shared_core.schema import NO_KEY, ROOT, PrefixTrie, build_trie

# Few tokens, so that keys share prefixes and are prefixes of each other; and large ones, on either side of a byte.
TOKEN = st.one_of(st.integers(0, 3), st.sampled_from([254, 255, 256, 257, 65_535, 65_536, 2**31 - 1]))
KEY = st.lists(TOKEN, min_size=1, max_size=5).map(tuple)
KEYS = st.lists(KEY, max_size=25, unique=True)


def prefixes(keys):
    """``Ω``: every prefix of every key, the empty one included."""
    return {()} | {key[:length] for key in keys for length in range(len(key) + 1)}


@given(KEYS)
def test_every_node_is_a_prefix_and_allows_what_keys_go_on_with(keys):
    trie = build_trie(keys)
    paths = [trie.path(node) for node in range(trie.node_count)]
    assert len(paths) == len(set(paths))
    assert set(paths) == prefixes(keys)
    for node, path in enumerate(paths):
        following = {key[len(path)] for key in keys if key[: len(path)] == path and len(key) > len(path)}
        assert trie.allowed_tokens(node).tolist() == sorted(following)
        assert trie.key[node] == (keys.index(path) if path in keys else NO_KEY)


@given(KEYS)
def test_keys_come_back_in_the_order_given(keys):
    trie = build_trie(keys)
    assert trie.key_count == len(keys)
    assert list(trie) == keys
    assert [trie.tokens_of(number) for number in range(len(keys))] == keys
    assert [trie.find(key) for key in keys] == list(range(len(keys)))


@given(KEYS, st.lists(TOKEN, max_size=6).map(tuple))
def test_walk_and_find_know_prefixes_and_keys_only(keys, tokens):
    trie = build_trie(keys)
    node = trie.walk(tokens)
    assert (node is not None) == (tokens in prefixes(keys))
    if node is not None:
        assert trie.path(node) == tokens
    assert trie.find(tokens) == (keys.index(tokens) if tokens in keys else None)


@given(KEYS, TOKEN)
def test_a_child_is_one_token_further(keys, token):
    trie = build_trie(keys)
    for node in range(trie.node_count):
        below = trie.child(node, token)
        assert (below is not None) == (token in trie.allowed_tokens(node))
        if below is not None:
            assert trie.path(below) == (*trie.path(node), token)


@given(KEYS)
def test_nodes_are_numbered_level_by_level(keys):
    trie = build_trie(keys)
    depths = np.array([len(trie.path(node)) for node in range(trie.node_count)])
    assert (np.diff(depths) >= 0).all()
    assert trie.levels.tolist() == np.searchsorted(depths, np.arange(depths[-1] + 2)).tolist()
    assert trie.first[0] == 1
    assert trie.first[-1] == trie.node_count
    for node in range(trie.node_count):
        children = np.flatnonzero(trie.parent == node)
        assert children.tolist() == list(range(trie.first[node], trie.first[node + 1]))
        assert (np.diff(trie.token[children].astype(np.int64)) > 0).all()
    assert trie.parent[ROOT] == trie.token[ROOT] == -1


@given(KEYS, st.randoms(use_true_random=False))
def test_the_order_of_keys_changes_their_numbers_only(keys, random):
    shuffled = random.sample(keys, len(keys))
    one, other = build_trie(keys), build_trie(shuffled)
    for name in ("first", "token", "parent", "levels"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert [keys[key] if key != NO_KEY else None for key in one.key] == [
        shuffled[key] if key != NO_KEY else None for key in other.key
    ]


def test_an_empty_trie_allows_nothing():
    trie = build_trie([])
    assert (trie.node_count, trie.key_count) == (1, 0)
    assert trie.allowed_tokens(ROOT).tolist() == []
    assert trie.walk([]) == ROOT
    assert trie.walk([1]) is trie.find([1]) is trie.find([]) is trie.child(ROOT, 0) is None
    assert list(trie) == []


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ([(1, 2), ()], "without tokens"),
        ([(1,), (2, -1)], "negative"),
        ([(1, 2), (3,), (1, 2)], "twice"),
        ([(1,), (1,)], "twice"),
    ],
)
def test_unusable_keys_are_refused(keys, message):
    with pytest.raises(InvalidInputError, match=message):
        build_trie(keys)


@pytest.mark.parametrize("key", [(), (-1,), (3, -2)])
def test_unusable_keys_are_not_inserted(key):
    trie = PrefixTrie([(1, 2)])
    with pytest.raises(InvalidInputError):
        trie.insert(key)
    assert list(trie) == [(1, 2)]
    assert list(trie.snapshot()) == [(1, 2)]


class ChangingTrie(RuleBasedStateMachine):
    """A :class:`PrefixTrie` beside a dictionary, with every snapshot taken on the way."""

    def __init__(self):
        super().__init__()
        self.trie = PrefixTrie()
        self.model = {}
        self.taken = []

    @rule(key=KEY)
    def insert(self, key):
        assert self.trie.insert(list(key)) == (key not in self.model)
        self.model.setdefault(key)

    @rule(key=KEY)
    def delete(self, key):
        assert self.trie.delete(key) == (key in self.model)
        self.model.pop(key, None)

    @rule(data=st.data())
    def delete_one_of_the_keys(self, data):
        if self.model:
            self.delete(data.draw(st.sampled_from(list(self.model))))

    @rule()
    def snapshot(self):
        self.taken.append((self.trie.snapshot(), list(self.model)))

    @invariant()
    def holds_the_same_keys(self):
        assert len(self.trie) == len(self.model)
        assert list(self.trie) == list(self.model)
        assert all(key in self.trie for key in self.model)
        assert (9, 9, 9) not in self.trie

    @invariant()
    def snapshots_stay_as_they_were(self):
        for trie, keys in self.taken:
            assert list(trie) == keys
        if self.taken and self.taken[-1][1] == list(self.model):
            assert list(self.trie.snapshot()) == list(self.model)


TestChangingTrie = ChangingTrie.TestCase
TestChangingTrie.settings = settings(max_examples=25, stateful_step_count=30)


def test_readers_of_a_snapshot_do_not_see_the_writer():
    keys = [(number % 7, number % 11, number) for number in range(400)]
    trie = PrefixTrie(keys[:100])
    snapshot = trie.snapshot()
    reads, stop = threading.Semaphore(0), threading.Event()
    faults = []

    def read():
        while not stop.is_set():
            if list(snapshot) != keys[:100] or snapshot.find(keys[100]) is not None:
                faults.append("the snapshot changed")
            now = trie.snapshot()
            if list(now) != keys[: now.key_count]:
                faults.append("a snapshot of no moment")
            reads.release()

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for number, key in enumerate(keys[100:]):
        trie.insert(key)
        if number % 10 == 0:
            assert reads.acquire(timeout=10)
    stop.set()
    for reader in readers:
        reader.join()
    assert not faults
    assert list(trie.snapshot()) == keys


def test_a_snapshot_taken_during_an_insert_does_not_hide_it(monkeypatch):
    """A reader builds its snapshot from the keys of a moment; what is inserted meanwhile is in the next one."""
    trie = PrefixTrie([(1,)])
    building, inserted = threading.Event(), threading.Event()

    def slow_build(keys):
        keys = list(keys)
        building.set()
        inserted.wait(0.2)
        return build_trie(keys)

    monkeypatch.setattr("shared_core.schema.trie.build_trie", slow_build)
    reader = threading.Thread(target=trie.snapshot)
    reader.start()
    assert building.wait(5)
    trie.insert((2,))
    inserted.set()
    reader.join()
    assert list(trie.snapshot()) == [(1,), (2,)]
