"""Neutral log-probabilities over a trie against sums over single keys."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared_core.decoding import PriorChange, build_prior, gather_scores, update_prior
from shared_core.decoding.prior import below
from shared_core.schema import NO_KEY, NO_NODE, PrefixTrie, build_trie, node_origins
from shared_core.schema.growth import merged

KEYS = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=4).map(tuple), min_size=1, max_size=15, unique=True)
SEED = st.integers(0, 2**32 - 1)


def steps(trie, seed):
    """A log-probability for the token into each node and for the terminator after each key."""
    random = np.random.default_rng(seed)
    token = random.uniform(-12, -0.1, trie.node_limit).astype(np.float32)
    return token, random.uniform(-12, -0.1, trie.key_limit).astype(np.float32)


def of_keys(trie, keys, token, end):
    """The same for each key by itself: its tokens and its terminator."""
    prefixes = ([key[:length] for length in range(1, len(key) + 1)] for key in keys)
    return [
        np.array([*(token[trie.walk(prefix)] for prefix in several), end[place]], dtype=np.float32)
        for place, several in enumerate(prefixes)
    ]


def naive_steps(keys, scores, score):
    """By prefix: the share of what comes next, for each key and its terminator (Eq. 6 for ``schema``)."""
    following = {}
    for key, values in zip(keys, scores, strict=True):
        for depth, value in enumerate(values):
            following.setdefault(key[:depth], {})[key[depth] if depth < len(key) else "end"] = float(value)
    if score == "schema":
        for options in following.values():
            normaliser = np.logaddexp.reduce(list(options.values()))
            for option in options:
                options[option] -= normaliser
    return following


@pytest.mark.parametrize("score", ["base", "schema"])
@given(keys=KEYS, seed=SEED)
def test_sums_equal_those_of_single_keys(score, keys, seed):
    trie = build_trie(keys)
    token, end = steps(trie, seed)
    before = token.copy(), end.copy()
    prior = build_prior(trie, token, end, score)
    following = naive_steps(keys, of_keys(trie, keys, token, end), score)
    for node in range(trie.node_count):
        path = trie.path(node)
        expected = sum(following[path[:depth]][token] for depth, token in enumerate(path))
        assert prior.prefix[node] == pytest.approx(expected, abs=1e-4)
    for place, key in enumerate(keys):
        assert prior.total[place] == pytest.approx(prior.prefix[trie.walk(key)] + following[key]["end"], abs=1e-4)
    np.testing.assert_array_equal(before[0], token)
    np.testing.assert_array_equal(before[1], end)


@given(KEYS, SEED)
def test_schema_probabilities_of_all_keys_sum_to_one(keys, seed):
    trie = build_trie(keys)
    prior = build_prior(trie, *steps(trie, seed), "schema")
    assert np.exp(prior.total.astype(np.float64)).sum() == pytest.approx(1.0, abs=1e-4)


@given(KEYS, SEED)
def test_a_forced_token_costs_nothing_in_the_schema(keys, seed):
    trie = build_trie(keys)
    prior = build_prior(trie, *steps(trie, seed), "schema")
    for node in range(1, trie.node_count):
        above = int(trie.parents(np.array([node]))[0])
        if len(trie.allowed_tokens(above)) == 1 and trie.key_at(above) == NO_KEY:
            assert prior.prefix[node] == pytest.approx(prior.prefix[above], abs=1e-5)


@given(KEYS, SEED)
def test_best_and_worst_of_the_keys_below_each_node(keys, seed):
    trie = build_trie(keys)
    prior = build_prior(trie, *steps(trie, seed))
    worst = below(trie, prior.total, np.minimum)
    for node in range(trie.node_count):
        path = trie.path(node)
        under = [prior.total[place] for place, key in enumerate(keys) if key[: len(path)] == path]
        assert prior.best[node] == max(under)
        assert worst[node] == min(under)


@given(KEYS, SEED)
def test_scores_of_keys_are_laid_out_over_the_trie(keys, seed):
    trie = build_trie(keys)
    token, end = steps(trie, seed)
    got_token, got_end = gather_scores(trie, of_keys(trie, keys, token, end))
    np.testing.assert_array_equal(got_token[1:], token[1:])
    assert got_token[0] == 0.0
    np.testing.assert_array_equal(got_end, end)


@pytest.mark.parametrize("score", ["base", "schema"])
def test_no_keys_have_an_empty_prior(score):
    trie = build_trie([])
    prior = build_prior(trie, *gather_scores(trie, []), score)
    assert prior.prefix.tolist() == [0.0]
    assert prior.total.tolist() == []
    assert prior.best.tolist() == [-np.inf]


@pytest.mark.parametrize("score", ["base", "schema"])
@given(keys=KEYS, more=KEYS, seed=SEED, data=st.data())
def test_a_grown_and_shrunk_trie_has_the_prior_of_its_keys(score, keys, more, seed, data):
    trie = PrefixTrie(build_trie(keys))
    for key in more:
        trie.insert(key)
    for key in data.draw(st.sets(st.sampled_from(keys))):
        trie.delete(key)
    grown = trie.snapshot()
    alone = build_trie(list(grown))
    node = [grown.walk(alone.path(one)) for one in range(alone.node_count)]
    key = [grown.find(one) for one in alone]
    token, end = steps(grown, seed)
    prior = build_prior(grown, token, end, score)
    expected = build_prior(alone, token[node], end[key], score)
    assert (len(prior.prefix), len(prior.best), len(prior.total)) == (grown.node_limit, grown.node_limit, len(end))
    np.testing.assert_allclose(prior.prefix[node], expected.prefix, atol=1e-5)
    np.testing.assert_allclose(prior.best[node], expected.best, atol=1e-5)
    np.testing.assert_allclose(prior.total[key], expected.total, atol=1e-5)
    dead = np.setdiff1d(np.arange(grown.key_limit), key)
    assert (prior.total[dead] == -np.inf).all()


def is_the_prior(prior, trie, token, end):
    expected = build_prior(trie, token, end)
    nodes = np.concatenate([nodes for nodes, *_ in trie.levels()])
    np.testing.assert_array_equal(prior.prefix[nodes], expected.prefix[nodes])
    np.testing.assert_array_equal(prior.best[nodes], expected.best[nodes])
    np.testing.assert_array_equal(prior.total, expected.total)


@settings(max_examples=100)
@given(keys=KEYS, more=KEYS, seed=SEED, merge=st.booleans(), data=st.data())
def test_a_prior_grows_as_if_built_anew(keys, more, seed, merge, data):
    """New keys come, and some of what was there gets other log-probabilities, better or worse."""
    held = data.draw(st.integers(0, len(keys)))
    before = build_trie(keys[:held])
    prior = build_prior(before, *steps(before, seed))
    trie = PrefixTrie(before)
    for key in [*keys[held:], *more]:
        trie.insert(key)
    after = merged(trie.snapshot()) if merge else trie.snapshot()

    token, end = steps(after, seed + 1)
    origins = node_origins(before, after)
    old = np.arange(after.node_limit) if origins is None else origins
    old[old >= before.node_limit] = NO_NODE
    there = np.flatnonzero(old != NO_NODE)
    differing = data.draw(st.sets(st.sampled_from(there[there > 0].tolist()))) if len(there) > 1 else set()
    same = np.setdiff1d(there, list(differing))
    token[same] = steps(before, seed)[0][old[same]]
    learned = data.draw(st.sets(st.sampled_from(range(held)))) if held else set()
    kept = np.setdiff1d(np.arange(held), list(learned))
    end[kept] = steps(before, seed)[1][kept]

    nodes = np.setdiff1d(np.arange(1, after.node_limit), same)
    numbers = np.setdiff1d(np.arange(after.key_limit), kept)
    arrays = [prior.prefix.copy(), prior.total.copy(), prior.best.copy()]
    grown = update_prior(prior, after, origins, PriorChange(nodes, numbers), token, end)
    is_the_prior(grown, after, token, end)
    for array, kept_array in zip((prior.prefix, prior.total, prior.best), arrays, strict=True):
        np.testing.assert_array_equal(array, kept_array)


def test_nothing_that_changes_leaves_a_prior_as_it_is():
    trie = build_trie([(1, 2), (1,), (3,)])
    token, end = steps(trie, 0)
    nothing = np.zeros(0, dtype=np.int64)
    same = update_prior(build_prior(trie, token, end), trie, None, PriorChange(nothing, nothing), token, end)
    is_the_prior(same, trie, token, end)
