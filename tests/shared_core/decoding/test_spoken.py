"""A spoken schema that grows and learns, against one made anew."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared_core.decoding import KeyColumns, SpokenSchema
from shared_core.decoding.spoken import UNKNOWN_END, UNKNOWN_FIRST, UNKNOWN_LATER
from shared_core.errors import InvalidInputError
from shared_core.schema import growth

KEY = st.lists(st.integers(0, 3), min_size=1, max_size=4).map(tuple)
KEYS = st.lists(st.tuples(KEY, st.booleans(), st.booleans()), max_size=14, unique_by=lambda row: row[0])
SCORES = ("base", "schema")


def neutral_of(key):
    """A log-probability of each token after what is before it, and of the end; in another key a little different."""
    prefixes = [key[: length + 1] for length in range(len(key))]
    noise = (hash((*key, 13)) % 7) * 2e-6
    return np.array([-1 - noise - (hash((*one, 7)) % 997) / 100 for one in [*prefixes, (*key, 99)]], dtype=np.float32)


def columns(rows):
    """Columns of (key, whether it can be spelled, whether it is known)."""
    keys = [key if sayable else None for key, sayable, _ in rows]
    return KeyColumns.of(
        keys, [neutral_of(key) if key and known else None for key, (_, _, known) in zip(keys, rows, strict=True)]
    )


def assert_same(one: SpokenSchema, other: SpokenSchema):
    assert list(one.trie) == list(other.trie)
    assert one.concept.tolist() == other.concept.tolist()
    assert one.known.tolist() == other.known.tolist()
    assert one.concepts == other.concepts
    np.testing.assert_array_equal(one.prior.total, other.prior.total)
    for nodes, *_ in one.trie.levels():
        there = [other.trie.walk(one.trie.path(node)) for node in nodes.tolist()]
        np.testing.assert_array_equal(one.prior.prefix[nodes], other.prior.prefix[there])
        np.testing.assert_array_equal(one.prior.best[nodes], other.prior.best[there])


@given(KEYS)
def test_what_is_known_counts_and_the_rest_has_stand_ins(rows):
    spoken = SpokenSchema.from_columns(columns(rows), "base")
    said = [(key, known) for key, sayable, known in rows if sayable]
    weighed = {key[:length] for key, known in said if known for length in range(1, len(key) + 1)}
    assert list(spoken.trie) == [key for key, _ in said]
    for place, (key, known) in enumerate(said):
        steps = [
            neutral_of(key)[depth] if key[: depth + 1] in weighed else (UNKNOWN_LATER if depth else UNKNOWN_FIRST)
            for depth in range(len(key))
        ]
        expected = sum(steps) + (neutral_of(key)[-1] if known else UNKNOWN_END)
        assert spoken.prior.total[place] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("score", SCORES)
@settings(max_examples=60)
@given(rows=KEYS, cuts=st.lists(st.integers(0, 14), max_size=4), merging=st.booleans())
def test_an_extended_schema_is_as_made_anew(score, rows, cuts, merging):
    bounds = sorted({0, len(rows), *(min(cut, len(rows)) for cut in cuts)})
    parts = [rows[low:high] for low, high in itertools.pairwise(bounds)]
    with pytest.MonkeyPatch.context() as patch:
        if merging:
            patch.setattr(growth, "_SMALLEST_MERGED", 3)
            patch.setattr(growth, "_MERGED_PER_ROOT", 0)
        spoken = SpokenSchema.from_columns(columns([]), score)
        seen = []
        for part in parts:
            seen.append((spoken, spoken.prior.total.copy(), list(spoken.trie), spoken.prior.prefix.copy()))
            spoken = spoken.extended(columns(part))
    assert_same(spoken, SpokenSchema.from_columns(columns(rows), score))
    for before, totals, keys, prefix in seen:
        np.testing.assert_array_equal(before.prior.total, totals)
        np.testing.assert_array_equal(before.prior.prefix, prefix)
        assert list(before.trie) == keys


@pytest.mark.parametrize("score", SCORES)
@settings(max_examples=60)
@given(rows=KEYS, data=st.data())
def test_what_is_learned_later_counts_as_if_known_before(score, rows, data):
    spoken = SpokenSchema.from_columns(columns(rows), score)
    numbers = sorted(data.draw(st.sets(st.sampled_from(range(spoken.trie.key_count))))) if len(spoken.known) else []
    flat = [neutral_of(spoken.trie.tokens_of(number)) for number in numbers]
    before = spoken.prior.total.copy(), spoken.known.copy()
    learned = spoken.learned(np.array(numbers, dtype=np.int64), np.concatenate([np.zeros(0, np.float32), *flat]))
    concepts = {int(spoken.concept[number]) for number in numbers}
    now = [(key, sayable, known or place in concepts) for place, (key, sayable, known) in enumerate(rows)]
    assert_same(learned, SpokenSchema.from_columns(columns(now), score))
    np.testing.assert_array_equal(spoken.prior.total, before[0])
    np.testing.assert_array_equal(spoken.known, before[1])


def test_what_does_not_fit_is_refused():
    spoken = SpokenSchema.from_columns(columns([((1, 2), True, False)]), "base")
    with pytest.raises(InvalidInputError, match="3 log-probabilities are needed, not 2"):
        spoken.learned(np.array([0]), np.zeros(2, dtype=np.float32))
    with pytest.raises(InvalidInputError, match="twice"):
        spoken.extended(columns([((1, 2), True, False)]))
