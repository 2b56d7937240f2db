"""The comparison of anticipations against the formula written out, and its following of a memory."""

from math import exp, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core import MemoryEntry, SchemaMemory
from shared_core.recall import AnticipationIndex
from shared_core.store import Anticipation, Anticipations

TOKENS = st.dictionaries(st.integers(0, 9), st.floats(-20, 0, width=32), max_size=6)


def columns(memory):
    """Columns of anticipations by entry."""
    known = sorted(memory)
    return Anticipations(
        0,
        np.array(known, dtype=np.int32),
        np.cumsum([0, *(len(memory[entry]) for entry in known)]).astype(np.int64),
        np.array([token for entry in known for token in memory[entry]], dtype=np.int32),
        np.array([value for entry in known for value in memory[entry].values()], dtype=np.float32),
    )


def anticipation(tokens):
    return Anticipation(np.array(list(tokens), dtype=np.int32), np.array(list(tokens.values()), dtype=np.float32))


def by_the_book(memory, query, entries):
    def mean(token):
        return sum(exp(own[token]) for own in memory.values() if token in own) / max(len(memory), 1) + 3e-5

    def lifts(tokens):
        return {token: max(value - log(mean(token)), 0.0) for token, value in tokens.items()}

    def length(lifted):
        return sqrt(sum(value * value for value in lifted.values()))

    asked = lifts(query)
    scores = []
    for entry in range(entries):
        own = lifts(memory.get(entry, {}))
        product = sum(own[token] * asked[token] for token in own.keys() & asked.keys())
        scores.append(product / (length(own) * length(asked)) if product else 0.0)
    return scores


@given(st.dictionaries(st.integers(0, 5), TOKENS, max_size=6), TOKENS, st.integers(0, 3))
def test_similarities_equal_the_formula_written_out(memory, query, beyond):
    entries = max(memory, default=0) + beyond + 1
    index = AnticipationIndex.build(columns(memory))
    found = index.similarities(anticipation(query), entries)
    np.testing.assert_allclose(found, by_the_book(memory, query, entries), atol=1e-5)
    assert ((found >= 0) & (found <= 1 + 1e-9)).all()


def test_expecting_what_no_entry_does_makes_the_query_less_like_all_of_them():
    index = AnticipationIndex.build(columns({0: {3: -1.0}, 1: {3: -2.0}}))
    assert index.similarities(anticipation({7: -0.5}), 2).tolist() == [0.0, 0.0]
    assert index.similarities(anticipation({3: -0.1}), 2)[0] == pytest.approx(1.0)
    assert 0 < index.similarities(anticipation({7: -0.5, 3: -0.1}), 2)[0] < 0.9


def test_what_is_hardly_likely_says_nothing():
    index = AnticipationIndex.build(columns({0: {3: -1.0, 5: -15.0}, 1: {3: -1.0}}))
    assert index.similarities(anticipation({5: -0.1}), 2).tolist() == [0.0, 0.0]


def test_it_finds_what_shares_no_word_with_the_query(embedded):
    """Concepts and words put aside, what the model expects alone tells the entries apart."""
    entries = [
        MemoryEntry("The vet says Rex needs his shots next week.", id="animals"),
        MemoryEntry("We spent the weekend painting the kitchen green.", id="house"),
        MemoryEntry("My train to Lyon leaves at seven on Monday.", id="travel"),
        MemoryEntry("She sings in the cathedral choir every Sunday.", id="music"),
    ]
    with SchemaMemory.open(":memory:", model=embedded) as memory:
        memory.remember(entries)
        for query, wanted in [
            ("Which pets does she keep?", "animals"),
            ("How did the renovation of the flat go?", "house"),
            ("When is the journey to France?", "travel"),
            ("Does anybody play an instrument?", "music"),
        ]:
            parts = {one.entry.id: one.parts["anticipation"] for one in memory.recall(query).entries}
            assert max(parts, key=parts.get) == wanted
