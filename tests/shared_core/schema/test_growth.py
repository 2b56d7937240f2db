"""A growing and shrinking trie against a dictionary of tuples."""

from __future__ import annotations

import itertools
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from shared_core.errors import InvalidInputError
from shared_core.schema import NO_NODE, PrefixTrie, build_trie, extend_trie, growth, node_origins

TOKEN = st.one_of(st.integers(0, 3), st.sampled_from([254, 255, 256, 257, 65_535, 65_536, 2**31 - 1]))
KEY = st.lists(TOKEN, min_size=1, max_size=5).map(tuple)
KEYS = st.lists(KEY, max_size=25, unique=True)


def columns(keys):
    return np.array([token for key in keys for token in key], dtype=np.int32), np.cumsum([0, *map(len, keys)])


def contents(trie):
    """The trie by prefix: what may follow, and the key's number."""
    nodes = np.concatenate([nodes for nodes, *_ in trie.levels()]).tolist()
    return {trie.path(node): (trie.allowed_tokens(node).tolist(), trie.key_at(node)) for node in nodes}


@pytest.mark.parametrize("key", [(), (-1,), (3, -2)])
def test_unusable_keys_are_not_inserted(key):
    trie = PrefixTrie([(1, 2)])
    with pytest.raises(InvalidInputError):
        trie.insert(key)
    assert not trie.delete(key)
    assert list(trie) == [(1, 2)]
    assert list(trie.snapshot()) == [(1, 2)]


def test_repeated_keys_of_a_new_trie_count_once():
    assert list(PrefixTrie(iter([(1, 2), [3], (1, 2), (3,), (1,)]))) == [(1, 2), (3,), (1,)]


class ChangingTrie(RuleBasedStateMachine):
    """A :class:`PrefixTrie` beside a dictionary of numbers, with every snapshot taken on the way."""

    merged_from = 256

    def __init__(self):
        super().__init__()
        growth._SMALLEST_MERGED, self.before = self.merged_from, growth._SMALLEST_MERGED
        growth._MERGED_PER_ROOT, self.per_root = self.merged_from // 64, growth._MERGED_PER_ROOT
        self.trie = PrefixTrie()
        self.model = {}
        self.given = 0
        self.taken = []

    def teardown(self):
        growth._SMALLEST_MERGED, growth._MERGED_PER_ROOT = self.before, self.per_root

    @rule(key=KEY)
    def insert(self, key):
        assert self.trie.insert(list(key)) == (key not in self.model)
        if key not in self.model:
            self.model[key] = self.given
            self.given += 1

    @rule(key=KEY)
    def delete(self, key):
        assert self.trie.delete(key) == (key in self.model)
        self.model.pop(key, None)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def delete_one_of_the_keys(self, data):
        self.delete(data.draw(st.sampled_from(list(self.model))))

    @rule()
    def snapshot(self):
        self.taken.append((self.trie.snapshot(), dict(self.model), contents(self.trie.snapshot())))

    @rule()
    def go_on_from_a_snapshot(self):
        self.trie = PrefixTrie(self.trie.snapshot())

    @invariant()
    def holds_the_same_keys(self):
        now = self.trie.snapshot()
        assert len(self.trie) == now.key_count == len(self.model)
        assert list(self.trie) == list(now) == list(self.model)
        assert [now.find(key) for key in self.model] == list(self.model.values())
        assert now.key_limit == self.given
        assert all(key in self.trie for key in self.model)
        assert (9, 9, 9) not in self.trie

    @invariant()
    def holds_no_node_too_many(self):
        now, anew = self.trie.snapshot(), build_trie(list(self.model))
        numbers = list(self.model.values())
        assert contents(now) == {
            path: (tokens, numbers[key] if key >= 0 else key) for path, (tokens, key) in contents(anew).items()
        }
        assert now.node_count == anew.node_count

    @invariant()
    def snapshots_stay_as_they_were(self):
        for trie, keys, seen in self.taken:
            assert list(trie) == list(keys)
            assert contents(trie) == seen


class OftenMerged(ChangingTrie):
    """The same, with an overlay that is merged at its seventh entry."""

    merged_from = 6


TestChangingTrie = ChangingTrie.TestCase
TestOftenMerged = OftenMerged.TestCase
TestChangingTrie.settings = TestOftenMerged.settings = settings(max_examples=15, stateful_step_count=25)


def test_an_overlay_stays_small():
    trie = PrefixTrie()
    sizes = []
    for number in range(2_000):
        trie.insert((number % 13, number % 17, number))
        sizes.append(len(trie.snapshot().overlay.twigs))
    assert max(sizes) <= 4 * 256
    assert sum(after < before for before, after in itertools.pairwise(sizes)) >= 3  # merges
    for number in range(2_000):
        trie.delete((number % 13, number % 17, number))
    assert trie.snapshot().node_count == 1
    assert len(trie.snapshot().overlay.twigs) <= 4 * 256


@given(KEYS, KEYS, st.booleans())
def test_keys_that_join_together_are_as_inserted_one_by_one(keys, more, rebuilt):
    new = [key for key in more if key not in keys]
    trie = PrefixTrie(build_trie(keys))
    if keys:
        trie.delete(keys[0])
        new = [*new, keys[0]]
    before = trie.snapshot()
    seen = contents(before)
    with pytest.MonkeyPatch.context() as patch:
        if rebuilt:
            patch.setattr(growth, "_SMALLEST_MERGED", 0)
            patch.setattr(growth, "_REBUILT_SHARE", 0.0)
        after = extend_trie(before, *columns(new))
    for key in new:
        trie.insert(key)
    assert contents(after) == contents(trie.snapshot())
    assert (after.key_limit, after.key_count) == (trie.snapshot().key_limit, len(trie))
    assert list(after) == list(trie)
    assert contents(before) == seen


@pytest.mark.parametrize("keys", [[(1, 2)], [(5,), (5,)], [()], [(-1,)]])
@pytest.mark.parametrize("rebuilt", [False, True])
def test_unusable_keys_do_not_join(keys, rebuilt, monkeypatch):
    if rebuilt:
        monkeypatch.setattr(growth, "_SMALLEST_MERGED", 0)
        monkeypatch.setattr(growth, "_REBUILT_SHARE", 0.0)
    with pytest.raises(InvalidInputError):
        extend_trie(build_trie([(1, 2)]), *columns(keys))


@given(KEYS, KEYS, st.booleans())
def test_nodes_are_found_again_after_a_merge(keys, more, shrunk):
    trie = PrefixTrie(build_trie(keys))
    before = trie.snapshot()
    for key in more:
        trie.insert(key)
    if shrunk and keys:
        trie.delete(keys[0])
    assert node_origins(before, trie.snapshot()) is None
    after = growth.merged(trie.snapshot())
    origins = node_origins(before, after)
    old = {path: before.walk(path) for path in contents(before)}
    assert origins.tolist() == [old.get(after.path(node), NO_NODE) for node in range(after.node_limit)]


def test_readers_of_a_snapshot_do_not_see_the_writer(monkeypatch):
    monkeypatch.setattr(growth, "_SMALLEST_MERGED", 40)
    monkeypatch.setattr(growth, "_MERGED_PER_ROOT", 1)
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
            start, child, _ = now.children(np.arange(8))
            if now.parents(child).tolist() != np.repeat(np.arange(8), np.diff(start)).tolist():
                faults.append("children of other parents")
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


def test_writers_do_not_lose_each_others_keys():
    trie = PrefixTrie()
    together = threading.Barrier(4)

    def write(part):
        together.wait()
        for number in range(150):
            trie.insert((part, number))
            if number % 3 == 0:
                trie.delete((part, number))

    writers = [threading.Thread(target=write, args=(part,)) for part in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert set(trie) == {(part, number) for part in range(4) for number in range(150) if number % 3}
    assert len(set(trie)) == len(trie) == 400
