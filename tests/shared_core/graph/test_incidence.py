"""Incidence rows against dictionaries of lists."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from shared_core.graph import Incidence

ROWS = 6
LINKS = st.lists(st.tuples(st.integers(0, ROWS - 1), st.integers(0, 9), st.sampled_from([0.25, 0.5, 1.0])), max_size=30)


def make(links, row_count=ROWS):
    rows = np.array([row for row, _, _ in links], dtype=np.int32)
    members = np.array([member for _, member, _ in links], dtype=np.int32)
    weights = np.array([weight for _, _, weight in links], dtype=np.float32)
    return Incidence.from_links(rows, members, weights, row_count)


@settings(max_examples=50)
@given(LINKS)
def test_a_row_holds_its_links_in_the_order_given(links):
    incidence = make(links)
    assert incidence.row_count == ROWS
    for row in range(ROWS):
        members, weights = incidence.row(row)
        expected = [(member, weight) for other, member, weight in links if other == row]
        assert list(zip(members.tolist(), weights.tolist(), strict=True)) == expected


@settings(max_examples=50)
@given(LINKS, st.lists(st.integers(0, ROWS - 1), max_size=8))
def test_several_rows_are_their_rows_one_after_another(links, rows):
    incidence = make(links)
    positions, sizes = incidence.rows(np.array(rows, dtype=np.int64))
    singles = [incidence.row(row) for row in rows]
    assert sizes.tolist() == [len(members) for members, _ in singles]
    assert incidence.members[positions].tolist() == [member for members, _ in singles for member in members]
    assert incidence.weights[positions].tolist() == [weight for _, weights in singles for weight in weights]


def test_nothing_has_no_rows():
    incidence = make([], row_count=0)
    assert incidence.row_count == 0
    positions, sizes = incidence.rows(np.zeros(0, dtype=np.int64))
    assert positions.tolist() == sizes.tolist() == []
