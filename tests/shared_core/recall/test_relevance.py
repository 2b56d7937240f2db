"""Relevance against its definition, and what it promises."""

from math import exp, log
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core.decoding import DecodedKey
from shared_core.recall import RELEVANT, RankingWeights, generated_evidence, relevances
from shared_core.recall.ranking import EntryScores

NONE = np.zeros(0)
TOTALS = st.lists(st.floats(0, 30), max_size=6).map(np.array)
EVIDENCE = st.floats(-60, 60)


def scores(total):
    return EntryScores(np.asarray(total, dtype=float), *[NONE] * 7)


@given(TOTALS, TOTALS, EVIDENCE)
def test_it_is_what_its_description_says(total, held, evidence):
    found = relevances(scores(total), scores(held), RankingWeights(), evidence)
    best = max(total, default=0)
    whole = (1 + 4.0) * (1 + 0.7 + 0.2)  # concepts and words, with passage and session
    for score, relevance in zip(total, found, strict=True):
        expected = score / best / (1 + exp(4 - evidence / 2 - 3 * (max(held, default=0) / whole) ** 2)) if best else 0
        assert relevance == pytest.approx(expected)


@given(TOTALS, EVIDENCE)
def test_it_is_in_its_range_and_ranks_as_the_scores_do(total, evidence):
    found = relevances(scores(total), scores(total), RankingWeights(), evidence)
    assert np.all((found >= 0) & (found <= 1))
    order = np.argsort(total)
    assert np.all(np.diff(found[order]) >= 0)


@given(st.floats(0.1, 30), st.floats(0.01, 5), EVIDENCE, st.floats(0.01, 5))
def test_more_evidence_and_a_better_best_entry_raise_it(score, better, evidence, more):
    def best(score, evidence):
        return relevances(scores([score]), scores([score]), RankingWeights(), evidence)[0]

    assert best(score, evidence) <= best(score, evidence + more)
    assert best(score, evidence) <= best(score + better, evidence)


def test_the_ranking_of_the_paper_leaves_it_to_the_generated_concepts():
    weights = RankingWeights(lexical=0, anticipation=0, answer=0, passage=0, session=0, speaker=0)
    one = scores([1.0])
    assert relevances(one, one, weights, 5.0)[0] > RELEVANT
    assert relevances(one, one, weights, -5.0)[0] < RELEVANT


def test_evidence_is_the_best_lift_less_what_chance_explains():
    spoken = SimpleNamespace(
        prior=SimpleNamespace(total=np.array([-9.0, -20.0, -3.0])), trie=SimpleNamespace(key_count=3)
    )
    decoded = [DecodedKey(2, -1.0, 0.0), DecodedKey(0, -4.0, 0.0), DecodedKey(1, -18.0, 0.0)]
    assert generated_evidence(decoded, spoken) == pytest.approx(5 - log(3))
    assert generated_evidence([], spoken) == 0.0
