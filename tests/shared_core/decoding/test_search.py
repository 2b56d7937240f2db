"""The search equals scoring every key alone, and never leaves the schema."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from shared_core.decoding import Prior, SearchOptions, SearchRequest, build_prior, score_trie, search
from shared_core.errors import InvalidInputError
from shared_core.models import TransformersModel
from shared_core.schema import build_trie
from tests.conftest import ARCHITECTURES, HEAVY, REPEATED

TERMINATOR = 28
PROMPT = [5, 9, 40]
QUERY = [17, 33, 80, 21, 60, 90, 14]
KEYS = st.lists(
    st.lists(st.integers(100, 105), min_size=1, max_size=5).map(tuple), min_size=1, max_size=14, unique=True
)
SCORES = ("base", "schema")


def brute_force(model: TransformersModel, keys, score: str) -> np.ndarray:
    """Log-probability of each key after the query, each scored alone in a plain forward pass."""
    totals = []
    for key in keys:
        with torch.inference_mode():
            logits = model._model(torch.tensor([[*PROMPT, *QUERY, *key]])).logits[0, -1 - len(key) :]
        logprobs = torch.log_softmax(logits.float(), -1).numpy()
        total = 0.0
        for depth, token in enumerate((*key, TERMINATOR)):
            prefix = key[:depth]
            allowed = {other[depth] for other in keys if other[:depth] == prefix and len(other) > depth}
            allowed |= {TERMINATOR} if prefix in keys else set()
            total += logprobs[depth, token]
            if score == "schema":
                total -= float(np.logaddexp.reduce(logprobs[depth, sorted(allowed)]))
        totals.append(total)
    return np.array(totals)


def start(model: TransformersModel):
    tree = model.tree(PROMPT)
    return tree, tree.read(QUERY)


def neutral(model: TransformersModel, trie, score: str) -> Prior:
    tree = model.tree(PROMPT)
    return build_prior(trie, *score_trie(tree, tree.read([3, 4]), trie, TERMINATOR), score)


@pytest.mark.parametrize("name", ARCHITECTURES)
@pytest.mark.parametrize("method", ["beam", "exact"])
@REPEATED
@given(
    keys=KEYS,
    score=st.sampled_from(SCORES),
    calibration=st.sampled_from([0.0, 0.6, 1.0]),
    lookahead=st.booleans(),
)
def test_whole_ranking_equals_brute_force(tiny, name, method, keys, score, calibration, lookahead):
    model = tiny(name)
    trie = build_trie(keys)
    prior = neutral(model, trie, score)
    expected = brute_force(model, keys, score) - calibration * prior.total
    options = SearchOptions(len(keys) + 3, method, score, calibration, lookahead)
    tree, node = start(model)
    (found,) = search(tree, [SearchRequest(node, trie, TERMINATOR, prior, options)])
    assert {one.key for one in found} == set(range(len(keys)))
    for one in found:
        assert one.score == pytest.approx(expected[one.key], abs=2e-3)
        assert one.logprob == pytest.approx(one.score + calibration * prior.total[one.key], abs=1e-3)
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)


@HEAVY
@given(keys=KEYS, width=st.integers(1, 6), score=st.sampled_from(SCORES), calibration=st.sampled_from([0.0, 0.6]))
def test_exact_top_equals_brute_force(tiny, keys, width, score, calibration):
    model = tiny("llama")
    trie = build_trie(keys)
    prior = neutral(model, trie, score)
    expected = np.sort(brute_force(model, keys, score) - calibration * prior.total)[::-1][:width]
    tree, node = start(model)
    options = SearchOptions(width, "exact", score, calibration)
    (found,) = search(tree, [SearchRequest(node, trie, TERMINATOR, prior, options)])
    np.testing.assert_allclose([one.score for one in found], expected, atol=2e-3)


@pytest.mark.parametrize("method", ["beam", "exact", "sample"])
@HEAVY
@given(keys=KEYS, width=st.integers(1, 20), score=st.sampled_from(SCORES), lookahead=st.booleans())
def test_no_key_outside_the_schema_and_none_twice(tiny, method, keys, width, score, lookahead):
    model = tiny("qwen3")
    trie = build_trie(keys)
    prior = neutral(model, trie, score)
    tree, node = start(model)
    options = SearchOptions(width, method, score, 0.0, lookahead)
    (found,) = search(tree, [SearchRequest(node, trie, TERMINATOR, prior, options)])
    assert len(found) == min(width, len(keys))
    assert len({one.key for one in found}) == len(found)
    assert all(0 <= one.key < len(keys) and np.isfinite(one.score) for one in found)


@HEAVY
@given(keys=KEYS)
def test_schema_probabilities_sum_to_one(tiny, keys):
    tree, node = start(tiny("gemma3"))
    options = SearchOptions(len(keys), "beam", "schema")
    (found,) = search(tree, [SearchRequest(node, build_trie(keys), TERMINATOR, None, options)])
    assert np.exp([one.logprob for one in found]).sum() == pytest.approx(1.0, abs=1e-4)


@HEAVY
@given(several=st.lists(KEYS, min_size=2, max_size=4), data=st.data())
def test_searches_together_equal_searches_alone(tiny, several, data):
    model = tiny("mistral")
    tries = [build_trie(keys) for keys in several]
    options = SearchOptions(3, "beam", data.draw(st.sampled_from(SCORES)))
    tree = model.tree(PROMPT)
    nodes = tree.read_many([QUERY[place:] for place in range(len(tries))])
    together = search(
        tree,
        [SearchRequest(node, trie, TERMINATOR, None, options) for node, trie in zip(nodes, tries, strict=True)],
    )
    for place, trie in enumerate(tries):
        alone_tree = model.tree(PROMPT)
        node = alone_tree.read(QUERY[place:])
        (alone,) = search(alone_tree, [SearchRequest(node, trie, TERMINATOR, None, options)])
        assert [one.key for one in together[place]] == [one.key for one in alone]
        np.testing.assert_allclose([one.score for one in together[place]], [one.score for one in alone], atol=1e-3)


@HEAVY
@given(keys=KEYS, data=st.data())
def test_excluded_keys_make_room_for_others(tiny, keys, data):
    excluded = data.draw(st.sets(st.sampled_from(range(len(keys)))))
    trie = build_trie(keys)
    tree, node = start(tiny("llama"))
    request = SearchRequest(
        node, trie, TERMINATOR, None, SearchOptions(len(keys), "exact"), np.array(sorted(excluded), dtype=int)
    )
    (found,) = search(tree, [request])
    assert {one.key for one in found} == set(range(len(keys))) - excluded


def test_sampling_without_replacement_follows_the_model(tiny):
    keys = [(100,), (100, 101), (102, 103), (104,), (104, 100, 101)]
    trie = build_trie(keys)
    model = tiny("llama")
    probability = np.exp(brute_force(model, keys, "schema"))
    draws, pairs = 3000, np.zeros((5, 5))
    for first in range(0, draws, 100):
        tree, node = start(model)
        requests = [
            SearchRequest(node, trie, TERMINATOR, None, SearchOptions(2, "sample", "schema", seed=seed))
            for seed in range(first, first + 100)
        ]
        for found in search(tree, requests):
            pairs[found[0].key, found[1].key] += 1
    expected = np.zeros((5, 5))
    for first, second in itertools.permutations(range(5), 2):
        expected[first, second] = probability[first] * probability[second] / (1 - probability[first])
    deviation = 4 * np.sqrt(expected * (1 - expected) / draws) + 1e-3
    assert (np.abs(pairs / draws - expected) < deviation).all()


def test_a_short_key_keeps_its_place_beside_longer_ones(tiny):
    """The end of a key does not compete with open prefixes: width 1 finds a key that only its end makes likely."""
    keys = [(100,), *((100, other) for other in range(101, 141))]
    model = tiny("llama")
    expected = brute_force(model, keys, "base")
    tree, node = start(model)
    options = SearchOptions(1, "exact", "base")
    (found,) = search(tree, [SearchRequest(node, build_trie(keys), TERMINATOR, None, options)])
    assert found[0].key == int(expected.argmax())


def test_no_key_gives_nothing(tiny):
    tree, node = start(tiny("llama"))
    assert search(tree, [SearchRequest(node, build_trie([]), TERMINATOR)]) == [[]]


def test_same_seed_same_sample(tiny):
    keys = [(100 + first, 100 + second) for first in range(6) for second in range(6)]
    results = []
    for _ in range(2):
        tree, node = start(tiny("llama"))
        options = SearchOptions(5, "sample", "schema", seed=7)
        results.append(search(tree, [SearchRequest(node, build_trie(keys), TERMINATOR, None, options)]))
    assert results[0] == results[1]


def test_wrong_options_are_refused(tiny):
    with pytest.raises(InvalidInputError, match="width"):
        SearchOptions(0)
    with pytest.raises(InvalidInputError, match="calibration"):
        SearchOptions(calibration=-1)
    tree, node = start(tiny("llama"))
    with pytest.raises(InvalidInputError, match="neutral"):
        search(tree, [SearchRequest(node, build_trie([(1,)]), TERMINATOR, None, SearchOptions(calibration=0.5))])
