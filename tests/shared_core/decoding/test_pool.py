"""A batch is whole branches of the trie, and the most promising ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core.decoding.pool import Batch, Pool, forced_chains, largest, likely_continuations
from shared_core.schema import ROOT, Trie, build_trie

KEYS = st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=6).map(tuple), min_size=1, max_size=40, unique=True)
COARSE = st.integers(-40, 0).map(lambda value: value / 8)


def pool(trie: Trie, nodes: list[int], promise: list[float]) -> Pool:
    at = np.array(nodes, dtype=np.int64)
    promises = np.array(promise, dtype=np.float64)
    tokens = np.array([trie.path(node)[-1] for node in nodes], dtype=np.int64)
    return Pool(at, tokens, np.full(len(at), 7), promises, promises, promises, promises)


def best_below(trie: Trie, score: list[float]) -> np.ndarray:
    """The best score of the keys at or below each node, found the slow way."""
    best = np.full(trie.node_limit, -np.inf)
    for key, tokens in enumerate(trie):
        for length in range(len(tokens) + 1):
            node = trie.walk(tokens[:length])
            best[node] = max(best[node], score[key])
    return best


def check_shape(trie: Trie, batch: Batch) -> None:
    """Every row stands where it says, below a row before it or below what was taken."""
    taken = len(batch.taken)
    assert batch.levels[0] == 0
    assert batch.levels[-1] == len(batch.prefix) == len(batch.token) == len(batch.above) == len(batch.place)
    assert len(batch.levels) < 3 or batch.levels[1] == taken
    np.testing.assert_array_equal(batch.prefix[:taken], batch.taken.prefix)
    assert len(set(batch.prefix.tolist())) == len(batch.prefix)
    for row in range(taken, len(batch.prefix)):
        above = int(batch.above[row])
        assert 0 <= above < row
        start, child, token = trie.children(batch.prefix[[above]])
        assert child[start[0] + batch.place[row]] == batch.prefix[row]
        assert token[start[0] + batch.place[row]] == batch.token[row]
    np.testing.assert_array_equal(batch.parents[:taken], batch.taken.parent)
    np.testing.assert_array_equal(batch.parents[taken:], -1 - batch.above[taken:])


@given(keys=KEYS, data=st.data())
def test_likely_continuations_are_the_most_promising_rows(keys, data):
    trie = build_trie(keys)
    best = best_below(trie, data.draw(st.lists(COARSE, min_size=len(keys), max_size=len(keys))))
    top = trie.children(np.array([ROOT]))[1].tolist()
    promise = data.draw(st.lists(COARSE, min_size=len(top), max_size=len(top)))
    # An offset that binary fractions cannot hold: rounding must not tear a branch apart.
    promise = sorted((value + 0.1 * (at % 3) for at, value in enumerate(promise)), reverse=True)
    limit = data.draw(st.integers(1, 30))
    least = data.draw(st.sampled_from([-np.inf, -3.0, -0.5]))
    taken = pool(trie, top, promise)[: min(limit, len(top))]
    batch = likely_continuations(trie, taken, lambda nodes: best[nodes], limit, least)
    check_shape(trie, batch)

    expected = dict(zip(taken.prefix.tolist(), taken.promise.tolist(), strict=True))
    continued: list[float] = []

    def descend(node: int, promised: float) -> None:
        for child in trie.children(np.array([node]))[1].tolist():
            below = promised - best[node] + best[child]
            expected[child] = below
            if below >= least - 1e-9:
                continued.append(below)
                descend(child, below)

    for node, promised in zip(taken.prefix.tolist(), taken.promise.tolist(), strict=True):
        descend(node, promised)
    wanted = sorted([*taken.promise.tolist(), *continued], reverse=True)[:limit]
    got = sorted((expected[node] for node in batch.prefix.tolist()), reverse=True)
    np.testing.assert_allclose(got, wanted, atol=1e-9)


@given(keys=KEYS)
def test_forced_chains_hold_what_is_forced_and_nothing_else(keys):
    trie = build_trie(keys)
    top = trie.children(np.array([ROOT]))[1].tolist()
    batch = forced_chains(trie, pool(trie, top, [0.0] * len(top)))
    check_shape(trie, batch)
    assert len(batch.taken) == len(top)
    expected = set(top)
    for node in top:
        for _ in range(8):
            below = trie.children(np.array([node]))[1].tolist()
            if len(below) != 1:
                break
            (node,) = below
            expected.add(node)
    assert set(batch.prefix.tolist()) == expected


@pytest.mark.parametrize("count", [1, 3, 5, 9])
def test_largest_takes_the_first_of_equal_values(count):
    values = np.array([1.0, 3.0, 2.0, 3.0, 1.0, 2.0, 2.0])
    assert largest(values, count).tolist() == [1, 3, 2, 5, 6, 0, 4][:count]
