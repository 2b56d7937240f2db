"""Orders and runs of whole numbers against NumPy's and Python's own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core.graph import ranges, stable_order


@given(st.lists(st.one_of(st.integers(0, 3), st.integers(0, 2**17), st.integers(0, 2**40))))
def test_equal_numbers_keep_their_order(numbers):
    array = np.array(numbers, dtype=np.int64)
    assert stable_order(array).tolist() == sorted(range(len(numbers)), key=numbers.__getitem__)


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.uint8])
def test_any_kind_of_number_will_do(kind):
    assert stable_order(np.array([3, 0, 100, 3], dtype=kind)).tolist() == [1, 0, 3, 2]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4))))
def test_ranges_come_one_after_another(rows):
    starts, sizes = (np.array([row[at] for row in rows], dtype=np.int64) for at in (0, 1))
    assert ranges(starts, sizes).tolist() == [n for start, size in rows for n in range(start, start + size)]
