"""Scores in columns: what was saved comes back, whatever came between, and only what is newer when asked so."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared_core.entry import MemoryEntry
from shared_core.store import ConceptLink, EntryWrite, KeyScores, ScoreColumns, scoring
from tests.shared_core.store.conftest import FEW

NAME = ("anna",)
KEYS = [f"key {number}" for number in range(9)]


def write(id, keys):
    return EntryWrite(MemoryEntry(f"text {id}", id=id), tuple(ConceptLink(key, key, 1.0, "said") for key in keys))


# Of a key: its tokens, and whether their log-probabilities are known.
scores = st.tuples(st.lists(st.integers(0, 2**31 - 1), max_size=3), st.booleans())
steps = st.one_of(
    st.tuples(st.just("columns"), st.dictionaries(st.integers(0, len(KEYS) - 1), scores, max_size=5)),
    st.tuples(st.just("keys"), st.dictionaries(st.sampled_from(KEYS), scores, max_size=4)),
    st.tuples(st.just("write"), st.lists(st.sampled_from(KEYS), min_size=1, max_size=4, unique=True)),
    st.tuples(st.just("forget"), st.integers(0, 9)),
    st.tuples(st.just("clear"), st.none()),
    st.tuples(st.just("load"), st.none()),
)


def neutral_of(tokens, known):
    return tuple(float(np.float32(-value / 7)) for value in [*tokens, len(tokens)]) if known else None


def columns_of(found):
    """Columns from tokens and knowledge by concept."""
    concept = sorted(found)
    tokens = [found[at][0] for at in concept]
    neutral = [neutral_of(*found[at]) or (0.0,) * (len(found[at][0]) + 1) for at in concept]
    return ScoreColumns(
        saved=0,
        concept=np.array(concept, dtype=np.int32),
        starts=np.cumsum([0, *map(len, tokens)]).astype(np.int64),
        tokens=np.array([token for some in tokens for token in some], dtype=np.int32),
        neutral=np.array([value for some in neutral for value in some], dtype=np.float32),
        known=np.array([found[at][1] for at in concept], dtype=np.bool_),
    )


def by_key(state, columns):
    """Tokens and log-probabilities of each key, read by the documented layout."""
    assert columns.concept.tolist() == sorted(set(columns.concept.tolist()))
    found = {}
    for row, concept in enumerate(columns.concept.tolist()):
        low, high = columns.starts[row], columns.starts[row + 1]
        values = columns.neutral[low + row : high + row + 1]
        assert columns.known[row] or np.isnan(values).all()
        known = tuple(values.tolist()) if columns.known[row] else None
        found[state.concepts[concept][0]] = (columns.tokens[low:high].tolist(), known)
    kinds = {"concept": np.int32, "starts": np.int64, "tokens": np.int32, "neutral": np.float32, "known": np.bool_}
    for field, kind in kinds.items():
        assert getattr(columns, field).dtype == kind
    return found


HISTORIES = given(st.lists(steps, max_size=10), st.sampled_from([2, 256]))


@settings(max_examples=60)
@HISTORIES
def test_columns_are_what_was_saved_last(memory_store, history, block):
    check_columns(memory_store, history, block)


@FEW
@HISTORIES
def test_columns_on_a_server_are_what_was_saved_last(server_store, history, block):
    check_columns(server_store, history, block)


def check_columns(store, history, block):
    store.clear(NAME)
    expected = {}  # by key: tokens, log-probabilities
    alive = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scoring, "BLOCK", block)
        state = store.load(NAME)  # of an earlier moment, except just after a load
        followed = None
        for turn, (kind, value) in enumerate(history):
            if kind == "columns":
                found = {at: one for at, one in value.items() if at < len(state.concepts)}
                store.save_columns(NAME, "tiny", state, columns_of(found))
                for at, (tokens, known) in found.items():
                    key = state.concepts[at][0]
                    if key in set().union(*alive.values()) and (known or key not in expected):
                        expected[key] = (tokens, neutral_of(tokens, known))
            elif kind == "keys":
                given_scores = {
                    key: KeyScores(
                        np.array(tokens, np.int32),
                        np.array(neutral_of(tokens, True), np.float32) if known else None,
                    )
                    for key, (tokens, known) in value.items()
                }
                store.save_scores(NAME, "tiny", given_scores)
                for key, (tokens, known) in value.items():
                    if key in set().union(*alive.values()):
                        expected[key] = (tokens, neutral_of(tokens, known))
            elif kind == "write":
                store.write(NAME, [write(str(turn), value)])
                alive[str(turn)] = value
            elif kind == "load":
                state, followed = store.load(NAME), None
            elif kind == "forget":
                store.forget(NAME, ids=[str(value)])
                alive.pop(str(value), None)
            else:
                store.clear(NAME)
                alive = {}
            expected = {key: one for key, one in expected.items() if key in set().union(*alive.values())}
            now = store.load(NAME, "tiny")
            assert by_key(now, store.load_scores(NAME, "tiny", now)) == expected
            assert {key: one.token_ids.tolist() for key, one in now.scores.items()} == {
                key: tokens for key, (tokens, _) in expected.items()
            }
            keys = {key for key, _ in state.concepts}
            whole = store.load_scores(NAME, "tiny", state)
            assert by_key(state, whole) == {key: one for key, one in expected.items() if key in keys}
            if store.changes(NAME, state) is None:  # something was erased: reading starts anew
                followed = None
                continue
            later = store.load_scores(NAME, "tiny", state, followed)
            followed = later if followed is None else followed.after(later)
            assert by_key(state, followed) == by_key(state, whole)


def test_following_reads_what_is_newer_and_misses_nothing(store):
    store.write(NAME, [write("1", [f"key {number}" for number in range(600)])])
    early = store.load(NAME)
    store.save_columns(NAME, "tiny", early, columns_of({at: ([at], True) for at in range(600)}))
    store.write(NAME, [write("2", ["late"])])
    late = store.load(NAME)
    store.save_columns(NAME, "tiny", late, columns_of({600: ([7], False)}))
    first = store.load_scores(NAME, "tiny", early)
    assert len(first.concept) == 600
    # "late" was not in the early state, so it is read again with the later one.
    then = store.load_scores(NAME, "tiny", late, first)
    assert 600 in then.concept.tolist()
    followed = first.after(then)
    store.save_columns(NAME, "tiny", late, columns_of({0: ([9, 9], True)}))
    newer = store.load_scores(NAME, "tiny", late, followed)
    assert 0 < len(newer.concept) <= scoring.BLOCK
    assert by_key(late, followed.after(newer)) == by_key(late, store.load_scores(NAME, "tiny", late))
    assert len(store.load_scores(NAME, "tiny", late, followed.after(newer)).concept) == 0


def test_ids_alone_do_not_replace_log_probabilities(store):
    store.write(NAME, [write("1", ["puppy", "lake"])])
    state = store.load(NAME)
    store.save_columns(NAME, "tiny", state, columns_of({0: ([4], True)}))
    store.save_columns(NAME, "tiny", state, columns_of({0: ([5, 5], False), 1: ([6], False)}))
    assert by_key(state, store.load_scores(NAME, "tiny", state)) == {
        "puppy": ([4], neutral_of([4], True)),
        "lake": ([6], None),
    }
    generation = store.generation(NAME)
    assert generation == state.generation
