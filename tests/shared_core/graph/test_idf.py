"""Inverse document frequency against its formula."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core.graph import inverse_document_frequency

COUNT = 40
FREQUENCIES = st.lists(st.integers(0, COUNT), max_size=8)


def naive(frequency, count):
    return math.log(1 + (count - frequency + 0.5) / (frequency + 0.5))


@given(FREQUENCIES, st.integers(COUNT, 10**6))
def test_it_follows_the_formula(frequencies, count):
    idf = inverse_document_frequency(np.array(frequencies, dtype=np.int64), count)
    assert idf.tolist() == pytest.approx([naive(frequency, count) for frequency in frequencies])


@given(FREQUENCIES)
def test_rarer_concepts_tell_more_and_every_concept_tells_something(frequencies):
    ordered = sorted(frequencies)
    idf = inverse_document_frequency(np.array(ordered, dtype=np.int64), COUNT)
    assert (np.diff(idf) <= 0).all()
    assert (idf > 0).all()
