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


@given(LINKS)
def test_a_row_holds_its_links_in_the_order_given(links):
    incidence = make(links)
    assert incidence.row_count == ROWS
    for row in range(ROWS):
        members, weights = incidence.row(row)
        expected = [(member, weight) for other, member, weight in links if other == row]
        assert list(zip(members.tolist(), weights.tolist(), strict=True)) == expected


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


PAIRS = st.dictionaries(st.tuples(st.integers(0, ROWS - 1), st.integers(0, 9)), st.sampled_from([0.25, 1.0]))


@settings(max_examples=100)
@given(PAIRS, PAIRS, st.integers(0, 3))
def test_further_links_are_as_if_they_had_been_there(old, new, more_rows):
    new = {(row + (more_rows if row > 3 else 0), member): weight for (row, member), weight in new.items()}
    new = {pair: weight for pair, weight in new.items() if pair not in old}
    before = make([(*pair, weight) for pair, weight in sorted(old.items())])
    rows, members = (np.array([pair[at] for pair in sorted(new)], dtype=np.int32) for at in (0, 1))
    weights = np.array([new[pair] for pair in sorted(new)], dtype=np.float32)
    after = before.insert(before.places(rows, members), rows, members, weights, ROWS + more_rows)
    expected = make([(*pair, weight) for pair, weight in sorted({**old, **new}.items())], ROWS + more_rows)
    for field in ("starts", "members", "weights"):
        np.testing.assert_array_equal(getattr(after, field), getattr(expected, field))
        assert getattr(after, field).dtype == getattr(expected, field).dtype
