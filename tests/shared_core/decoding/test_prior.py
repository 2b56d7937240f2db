"""Neutral log-probabilities over a trie against sums over single keys."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared_core.decoding import build_prior, gather_scores
from shared_core.decoding.prior import below
from shared_core.schema import build_trie

KEYS = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=4).map(tuple), min_size=1, max_size=15, unique=True)
SEED = st.integers(0, 2**32 - 1)


def steps(trie, seed):
    """A log-probability for the token into each node and for the terminator after each key."""
    random = np.random.default_rng(seed)
    token = random.uniform(-12, -0.1, trie.node_count).astype(np.float32)
    return token, random.uniform(-12, -0.1, trie.key_count).astype(np.float32)


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
@settings(max_examples=50)
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
        assert prior.total[place] == pytest.approx(prior.prefix[trie.end[place]] + following[key]["end"], abs=1e-4)
    np.testing.assert_array_equal(before[0], token)
    np.testing.assert_array_equal(before[1], end)


@settings(max_examples=50)
@given(KEYS, SEED)
def test_schema_probabilities_of_all_keys_sum_to_one(keys, seed):
    trie = build_trie(keys)
    prior = build_prior(trie, *steps(trie, seed), "schema")
    assert np.exp(prior.total.astype(np.float64)).sum() == pytest.approx(1.0, abs=1e-4)


@settings(max_examples=50)
@given(KEYS, SEED)
def test_a_forced_token_costs_nothing_in_the_schema(keys, seed):
    trie = build_trie(keys)
    prior = build_prior(trie, *steps(trie, seed), "schema")
    for node in range(1, trie.node_count):
        above = trie.parent[node]
        if len(trie.allowed_tokens(above)) == 1 and trie.key[above] < 0:
            assert prior.prefix[node] == pytest.approx(prior.prefix[above], abs=1e-5)


@settings(max_examples=50)
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


@settings(max_examples=50)
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
