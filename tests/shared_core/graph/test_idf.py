"""Inverse document frequency against its formula, counted from sets."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared_core.graph import Incidence, inverse_document_frequency

CONCEPTS = 6
ENTRIES = st.lists(st.sets(st.integers(0, CONCEPTS - 1), max_size=4), max_size=8)


def by_concept(entries):
    links = [(concept, entry) for entry, concepts in enumerate(entries) for concept in sorted(concepts)]
    rows = np.array([concept for concept, _ in links], dtype=np.int32)
    members = np.array([entry for _, entry in links], dtype=np.int32)
    return Incidence.from_links(rows, members, np.ones(len(links)), CONCEPTS)


def naive(frequency, count):
    return math.log(1 + (count - frequency + 0.5) / (frequency + 0.5))


@settings(max_examples=50)
@given(ENTRIES)
def test_it_follows_the_formula(entries):
    idf = inverse_document_frequency(by_concept(entries), len(entries))
    for concept in range(CONCEPTS):
        frequency = sum(concept in concepts for concepts in entries)
        assert idf[concept] == pytest.approx(naive(frequency, len(entries)))


@settings(max_examples=50)
@given(ENTRIES, st.lists(st.integers(0, 3), min_size=CONCEPTS, max_size=CONCEPTS))
def test_a_family_counts_entries_with_any_of_it(entries, families):
    idf = inverse_document_frequency(by_concept(entries), len(entries), np.array(families))
    for concept in range(CONCEPTS):
        family = {other for other in range(CONCEPTS) if families[other] == families[concept]}
        frequency = sum(bool(concepts & family) for concepts in entries)
        assert idf[concept] == pytest.approx(naive(frequency, len(entries)))


@settings(max_examples=50)
@given(ENTRIES)
def test_rarer_concepts_tell_more_and_every_concept_tells_something(entries):
    incidence = by_concept(entries)
    idf = inverse_document_frequency(incidence, len(entries))
    order = np.argsort(np.diff(incidence.starts), kind="stable")
    assert (np.diff(idf[order]) <= 0).all()
    assert (idf > 0).all()
