"""Columns of keys against the keys one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core.decoding import KeyColumns
from shared_core.errors import InvalidInputError

KEY = st.lists(st.integers(0, 9), min_size=1, max_size=4).map(tuple)


@given(st.lists(st.tuples(st.none() | KEY, st.booleans(), st.booleans())))
def test_columns_are_the_keys_one_after_the_other(rows):
    keys = [key for key, _, _ in rows]
    neutral = [
        np.arange(len(key) + 1, dtype=np.float32) - place if known and key else None
        for place, (key, known, _) in enumerate(rows)
    ]
    wanted = np.array([one for _, _, one in rows], dtype=bool)
    whole = KeyColumns.of(keys, neutral)
    some = whole.take(wanted)
    for columns, places in ((whole, range(len(rows))), (some, np.flatnonzero(wanted).tolist())):
        assert len(columns) == len(places)
        assert columns.lengths.tolist() == [len(keys[place] or ()) for place in places]
        assert columns.known.tolist() == [neutral[place] is not None for place in places]
        assert columns.tokens.tolist() == [token for place in places for token in keys[place] or ()]
        for row, place in enumerate(places):
            low = columns.starts[row] + row
            if neutral[place] is not None:
                assert columns.neutral[low : low + len(keys[place]) + 1].tolist() == neutral[place].tolist()


@pytest.mark.parametrize(
    ("tokens", "starts", "neutral"), [(2, [0, 3], 4), (3, [0, 3], 3), (3, [0, 1, 3], 4), (0, [], 0)]
)
def test_columns_that_do_not_fit_together_are_refused(tokens, starts, neutral):
    with pytest.raises(InvalidInputError, match="do not fit together"):
        KeyColumns(
            np.zeros(tokens, np.int32), np.array(starts, np.int64), np.zeros(neutral, np.float32), np.zeros(1, bool)
        )
