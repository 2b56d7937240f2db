"""Rank and select against counting."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from shared_core.schema.marks import Marks


@given(st.lists(st.booleans(), max_size=300))
@example([True] * 64)
@example([False] * 128 + [True])
@example([])
def test_marks_are_counted(marked):
    marks = Marks(np.array(marked, dtype=bool))
    places = np.arange(len(marked))
    has, before = marks.rank(places)
    assert has.tolist() == marked
    assert before.tolist() == [sum(marked[:place]) for place in places]
    assert [marks.find(place) for place in range(len(marked))] == [
        sum(marked[:place]) if one else -1 for place, one in enumerate(marked)
    ]
    assert marks.select(np.arange(sum(marked))).tolist() == np.flatnonzero(marked).tolist()
    assert marks.rank(np.array([len(marked)]))[1].tolist() == [sum(marked)]


def test_a_place_takes_about_one_and_a_half_bits():
    assert Marks(np.ones(64_000, dtype=bool)).nbytes * 8 / 64_000 < 1.51
