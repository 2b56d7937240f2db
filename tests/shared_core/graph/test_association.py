"""The associative graph against the concept sets that it was made of."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core.errors import InvalidInputError
from shared_core.graph import AssociativeGraph, Hop, Propagation

CONCEPTS = 7
KEYS = [f"concept {number}" for number in range(CONCEPTS)]
# Each entry: weight by concept. Powers of two, so that sums of products are exact in any order.
ENTRY = st.dictionaries(st.integers(0, CONCEPTS - 1), st.sampled_from([0.25, 0.5, 1.0]), max_size=5)
ENTRIES = st.lists(ENTRY, max_size=8)
SEEDS = st.lists(st.integers(0, CONCEPTS - 1), max_size=4)


def make(entries, order=None):
    links = [(concept, entry, weight) for entry, links in enumerate(entries) for concept, weight in links.items()]
    links = links if order is None else [links[place] for place in order]
    concepts, places, weights = zip(*links, strict=True) if links else ((), (), ())
    return AssociativeGraph.from_links(
        KEYS,
        np.array(concepts, dtype=np.int32),
        np.array(places, dtype=np.int32),
        np.array(weights, dtype=np.float32),
        len(entries),
    )


def naive_idf(entries, concept):
    frequency = sum(concept in links for links in entries)
    return math.log(1 + (len(entries) - frequency + 0.5) / (frequency + 0.5))


def naive_weight(entries, first, second):
    """Eq. 10, where a co-occurrence counts as the product of its links' weights."""
    count = sum(links[first] * links[second] for links in entries if first in links and second in links)
    return count * naive_idf(entries, first) * naive_idf(entries, second)


def naive_neighbours(entries, concept):
    return {
        other: naive_weight(entries, concept, other)
        for other in range(CONCEPTS)
        if other != concept and any(concept in links and other in links for links in entries)
    }


def naive_transitions(entries, concept, temperature):
    weights = naive_neighbours(entries, concept)
    if not weights:
        return {}
    highest = max(weights.values())
    mass = {other: math.exp((weight - highest) / temperature) for other, weight in weights.items()}
    return {other: share / sum(mass.values()) for other, share in mass.items()}


def naive_propagation(entries, seeds, options):
    """Level by level, from each concept its ``fan_out`` likeliest neighbours not reached before."""
    reached = set(seeds)
    level = [Hop(seed, seed, seed, 1.0, 0) for seed in dict.fromkeys(seeds)]
    found = []
    for length in range(1, options.hops + 1):
        best = {}
        for at in level:
            shares = naive_transitions(entries, at.concept, options.temperature)
            fresh = sorted((-round(share, 12), other) for other, share in shares.items() if other not in reached)
            for _, other in fresh[: options.fan_out]:
                hop = Hop(other, at.concept, at.seed, at.probability * shares[other], length)
                if other not in best or hop.probability > best[other].probability + 1e-12:
                    best[other] = hop
        level = list(best.values())
        reached |= set(best)
        found += level
    return found


def as_dict(hops):
    assert len({hop.concept for hop in hops}) == len(hops)
    return {hop.concept: (hop.source, hop.seed, pytest.approx(hop.probability), hop.hops) for hop in hops}


@given(ENTRIES)
def test_weights_are_counted_from_the_entries(entries):
    graph = make(entries)
    for concept in range(CONCEPTS):
        assert graph.frequency[concept] == sum(concept in links for links in entries)
        assert graph.idf[concept] == pytest.approx(naive_idf(entries, concept))
        others, weights = graph.neighbours(concept)
        assert (np.diff(others) > 0).all()
        assert dict(zip(others.tolist(), weights.tolist(), strict=True)) == pytest.approx(
            naive_neighbours(entries, concept)
        )


@given(ENTRIES)
def test_an_edge_weighs_the_same_from_both_ends(entries):
    graph = make(entries)
    for first, second in itertools.product(range(CONCEPTS), repeat=2):
        expected = 0.0 if first == second else naive_weight(entries, first, second)
        assert graph.weight(first, second) == pytest.approx(expected)
        assert graph.weight(first, second) == pytest.approx(graph.weight(second, first))


@given(st.lists(ENTRY, min_size=1, max_size=8), st.data())
def test_nothing_remains_of_a_removed_entry(entries, data):
    gone = data.draw(st.integers(0, len(entries) - 1))
    whole = make(entries)
    concepts = np.repeat(np.arange(CONCEPTS), whole.frequency)
    kept = whole.by_concept.members != gone
    places = whole.by_concept.members[kept]
    removed = AssociativeGraph.from_links(
        KEYS, concepts[kept], places - (places > gone), whole.by_concept.weights[kept], len(entries) - 1
    )
    rest = make(entries[:gone] + entries[gone + 1 :])
    np.testing.assert_array_equal(removed.idf, rest.idf)
    for concept in range(CONCEPTS):
        for got, expected in zip(removed.neighbours(concept), rest.neighbours(concept), strict=True):
            np.testing.assert_array_equal(got, expected)


@given(ENTRIES, st.data())
def test_the_order_of_links_does_not_matter(entries, data):
    order = data.draw(st.permutations(range(sum(map(len, entries)))))
    one, other = make(entries), make(entries, order)
    for concept in range(CONCEPTS):
        for got, expected in zip(one.neighbours(concept), other.neighbours(concept), strict=True):
            np.testing.assert_array_equal(got, expected)


@given(ENTRIES, st.integers(0, CONCEPTS - 1), st.sampled_from([0.01, 0.5, 1.0, 20.0]))
def test_transitions_are_a_softmax_over_the_edges(entries, concept, temperature):
    others, shares = make(entries).transitions(concept, temperature)
    expected = naive_transitions(entries, concept, temperature)
    assert dict(zip(others.tolist(), shares.tolist(), strict=True)) == pytest.approx(expected)
    if expected:
        assert shares.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("temperature", [1e-9, 1.0, 1e9])
def test_transitions_stay_finite_for_huge_weights(temperature):
    count = 50_000
    everywhere = np.repeat(np.arange(count), 2)
    concepts = np.concatenate([np.tile([0, 1], count), [0, 2]])
    entries = np.concatenate([everywhere, [count, count]])
    graph = AssociativeGraph.from_links(KEYS[:3], concepts, entries, np.full(len(entries), 1e3), 100 * count)
    assert graph.weight(0, 1) > 1e10
    others, shares = graph.transitions(0, temperature)
    assert others.tolist() == [1, 2]
    assert np.isfinite(shares).all()
    assert shares.sum() == pytest.approx(1.0)
    assert shares[0] > shares[1] or temperature == 1e9


@given(ENTRIES, SEEDS, st.integers(0, 4), st.integers(0, 4), st.sampled_from([0.3, 1.0, 5.0]))
def test_propagation_takes_the_likeliest_neighbours(entries, seeds, hops, fan_out, temperature):
    options = Propagation(hops=hops, fan_out=fan_out, temperature=temperature)
    found = make(entries).propagate(seeds, options)
    assert as_dict(found) == as_dict(naive_propagation(entries, seeds, options))


@given(ENTRIES, SEEDS, st.integers(0, 4), st.integers(0, 4), st.booleans(), st.integers(0, 5))
def test_context_hangs_together_and_holds_no_seed(entries, seeds, hops, fan_out, sample, seed):
    graph = make(entries)
    options = Propagation(hops=hops, fan_out=fan_out, sample=sample, seed=seed)
    found = graph.propagate(seeds, options)
    assert graph.propagate(seeds, options) == found
    by_concept = {hop.concept: hop for hop in found}
    assert len(by_concept) == len(found)
    assert not set(seeds) & set(by_concept)
    for hop in found:
        assert 1 <= hop.hops <= hops
        above = by_concept.get(hop.source, Hop(hop.seed, hop.seed, hop.seed, 1.0, 0))
        others, shares = graph.transitions(hop.source)
        assert (above.concept, above.seed, above.hops) == (hop.source, hop.seed, hop.hops - 1)
        assert hop.probability == pytest.approx(above.probability * shares[others.tolist().index(hop.concept)])
    drawn = Counter(hop.source for hop in found)
    assert max(drawn.values(), default=0) <= fan_out


@given(ENTRIES, SEEDS, st.integers(0, 4), st.booleans())
def test_context_is_listed_by_seed_most_probable_first(entries, seeds, hops, sample):
    found = make(entries).propagate(seeds, Propagation(hops=hops, fan_out=3, sample=sample))
    order = list(dict.fromkeys(seeds))
    listed = [(order.index(hop.seed), -hop.probability) for hop in found]
    assert listed == sorted(listed)


def test_samples_follow_the_transitions_without_replacement():
    # Concept 0 with four neighbours of different weight.
    entries = [{0: 1.0, 1: 1.0}, {0: 1.0, 2: 1.0}, {0: 1.0, 2: 1.0}, {0: 1.0, 3: 1.0, 4: 0.5}, {0: 1.0, 3: 0.25}]
    graph = make(entries)
    others, shares = graph.transitions(0)
    probability = dict(zip(others.tolist(), shares.tolist(), strict=True))
    draws = 3000
    firsts, pairs = Counter(), Counter()
    for seed in range(draws):
        (first,) = graph.propagate([0], Propagation(fan_out=1, sample=True, seed=seed))
        firsts[first.concept] += 1
        pairs[frozenset(hop.concept for hop in graph.propagate([0], Propagation(sample=True, seed=seed)))] += 1
    for concept, expected in probability.items():
        deviation = 4 * math.sqrt(expected * (1 - expected) / draws)
        assert firsts[concept] / draws == pytest.approx(expected, abs=deviation)
    for one, other in itertools.combinations(probability, 2):
        p, q = probability[one], probability[other]
        expected = p * q / (1 - p) + q * p / (1 - q)
        deviation = 4 * math.sqrt(expected * (1 - expected) / draws)
        assert pairs[frozenset((one, other))] / draws == pytest.approx(expected, abs=deviation)


def test_a_seed_that_is_sampled_around_leaves_the_shares_of_the_rest():
    """Neighbours that are seeds themselves are not drawn; the others keep their relative chances."""
    entries = [{0: 1.0, 1: 1.0}, {0: 1.0, 2: 1.0}, {0: 1.0, 2: 1.0}, {0: 1.0, 3: 1.0}]
    graph = make(entries)
    others, shares = graph.transitions(0)
    probability = dict(zip(others.tolist(), shares.tolist(), strict=True))
    draws, drawn = 2000, Counter()
    for seed in range(draws):
        found = graph.propagate([0, 2], Propagation(fan_out=1, sample=True, seed=seed))
        drawn[found[0].concept] += 1
    expected = probability[1] / (probability[1] + probability[3])
    assert drawn[1] / draws == pytest.approx(expected, abs=4 * math.sqrt(expected * (1 - expected) / draws))
    assert drawn[1] + drawn[3] == draws


@given(ENTRIES)
def test_the_networkx_view_agrees(entries):
    graph = make(entries)
    view = graph.to_networkx()
    assert list(view.nodes) == KEYS
    for first, key in enumerate(KEYS):
        assert view.nodes[key] == {"frequency": graph.frequency[first], "idf": pytest.approx(graph.idf[first])}
        others, weights = graph.neighbours(first)
        assert {KEYS[other]: pytest.approx(weight) for other, weight in zip(others, weights, strict=True)} == {
            other: edge["weight"] for other, edge in view[key].items()
        }
        for other, edge in view[key].items():
            second = KEYS.index(other)
            both = [links for links in entries if first in links and second in links]
            assert edge["count"] == pytest.approx(sum(links[first] * links[second] for links in both))


def test_an_empty_graph_has_no_context():
    graph = AssociativeGraph.from_links([], *(np.zeros(0, dtype=kind) for kind in (np.int32, np.int32, np.float32)), 0)
    assert graph.propagate([], Propagation(hops=3)) == []
    assert len(graph.idf) == len(graph.to_networkx()) == 0


def test_an_entry_without_concepts_counts_for_rarity_only():
    with_it, without = make([{0: 1.0, 1: 1.0}, {}]), make([{0: 1.0, 1: 1.0}])
    assert with_it.idf[0] > without.idf[0]
    assert with_it.neighbours(0)[0].tolist() == [1]
    assert with_it.neighbours(5)[0].tolist() == []
    assert with_it.propagate([5], Propagation()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hops": -1}, "negative"),
        ({"fan_out": -1}, "negative"),
        ({"temperature": 0.0}, "temperature"),
        ({"temperature": float("nan")}, "temperature"),
    ],
)
def test_impossible_propagation_is_refused(options, message):
    with pytest.raises(InvalidInputError, match=message):
        Propagation(**options)
