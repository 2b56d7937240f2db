"""Measures against cases worked out by hand and against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.locomo.metrics import CUTOFFS, MEASURES, intervals, measure, pair


def test_a_case_worked_out_by_hand():
    assert MEASURES == ("recall@5", "recall@10", "recall@20", "recall@35", "mrr")
    found = measure([[5, 6, None, 35], [None], [1]])
    assert found.tolist() == [[0.25, 0.5, 0.5, 0.75, 0.2], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1]]


RANKS = st.lists(st.lists(st.none() | st.integers(1, 40), min_size=1, max_size=4), max_size=8)


@given(RANKS)
def test_measures_equal_brute_force(ranks: list[list[int | None]]):
    expected = [
        [sum(rank is not None and rank <= cutoff for rank in own) / len(own) for cutoff in CUTOFFS]
        + [max((1 / rank for rank in own if rank is not None), default=0.0)]
        for own in ranks
    ]
    np.testing.assert_allclose(measure(ranks), np.array(expected).reshape(len(ranks), len(MEASURES)), rtol=1e-12)


def test_a_question_without_gold_is_never_scored():
    with pytest.raises(ValueError, match="gold"):
        measure([[1], []])


def test_intervals_equal_those_of_resampling_one_by_one():
    rng = np.random.default_rng(3)
    values = np.column_stack([rng.random(60), rng.random(60) < 0.2]).astype(np.float64)
    means = np.array([values[rng.integers(0, 60, 60)].mean(axis=0) for _ in range(4000)])
    np.testing.assert_allclose(intervals(values, 0), np.percentile(means, [2.5, 97.5], axis=0), atol=0.015)


def test_intervals_follow_the_seed_and_hold_the_mean():
    values = np.random.default_rng(5).random((40, 2))
    low, high = intervals(values, 1)
    assert (low < values.mean(axis=0)).all()
    assert (values.mean(axis=0) < high).all()
    np.testing.assert_array_equal(intervals(values, 1), intervals(values, 1))
    assert (intervals(values, 1) != intervals(values, 2)).any()
    np.testing.assert_allclose(intervals(np.full((9, 1), 0.5), 0), 0.5)


def test_columns_are_resampled_together():
    one = np.random.default_rng(7).random(50)
    low, high = intervals(np.column_stack([one, one + 0.25]), 0)
    np.testing.assert_allclose(low[1] - low[0], 0.25)
    np.testing.assert_allclose(high[1] - high[0], 0.25)


def test_pairs_are_counted_by_question():
    mine = np.array([1.0, 0.5, 0.0, 1 / 3, 1.0])
    other = np.array([0.0, 0.5, 1.0, 1 / 3 + 1e-16, 0.5])
    found = pair(mine, other, seed=0)
    assert (found.wins, found.losses, found.ties) == (2, 1, 2)
    assert found.difference == pytest.approx(0.1)
    assert found.interval[0] < 0.1 < found.interval[1]
    turned = pair(other, mine, seed=0)
    assert (turned.wins, turned.losses, turned.ties) == (1, 2, 2)
