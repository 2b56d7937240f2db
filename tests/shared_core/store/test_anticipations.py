"""Anticipations: what was saved comes back by entry, whatever came between, and following equals reading anew."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core.entry import MemoryEntry
from shared_core.errors import InvalidInputError, StoreError
from shared_core.store import Anticipated, Anticipation, Anticipations, ConceptLink, EntryWrite, Store
from tests.shared_core.store.conftest import FEW

NAME, OTHER = ("mira",), ("tobi",)
IDS = "abcdef"
MODELS = ("tiny", "large")
TOKENS = st.dictionaries(st.integers(0, 2**24 - 1), st.floats(-60, 0, width=16), max_size=4)
EXPECTED = st.tuples(st.sampled_from(MODELS), st.dictionaries(st.sampled_from(IDS), TOKENS, max_size=4))

steps = st.one_of(
    st.tuples(st.just("assimilate"), EXPECTED),
    st.tuples(st.just("save"), EXPECTED),
    st.tuples(st.just("write"), st.dictionaries(st.sampled_from(IDS), st.sampled_from(["one", "two"]), min_size=1)),
    st.tuples(st.just("forget"), st.lists(st.sampled_from(IDS), max_size=2)),
    st.tuples(st.just("clear"), st.none()),
    st.tuples(st.just("elsewhere"), EXPECTED),
)


def anticipated(model, by_id):
    return Anticipated(model, {id: anticipation(tokens) for id, tokens in by_id.items()})


def anticipation(tokens):
    return Anticipation(np.array(list(tokens), dtype=np.int32), np.array(list(tokens.values()), dtype=np.float32))


def by_id(state, columns):
    """What is known of each entry, read by the documented layout."""
    assert columns.generation == state.generation
    assert columns.entry.tolist() == sorted(set(columns.entry.tolist()))
    assert (columns.entry.dtype, columns.starts.dtype) == (np.int32, np.int64)
    assert (columns.tokens.dtype, columns.logprobs.dtype) == (np.int32, np.float32)
    found = {}
    for row, entry in enumerate(columns.entry.tolist()):
        own = slice(columns.starts[row], columns.starts[row + 1])
        found[state.entries[entry].entry.id] = dict(
            zip(columns.tokens[own].tolist(), columns.logprobs[own].tolist(), strict=True)
        )
    return found


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """Two stores on one file, as two processes have them."""
    path = tmp_path_factory.mktemp("stores") / "memory.db"
    with Store.open(path) as one, Store.open(path) as other:
        yield one, other


@pytest.fixture(scope="module")
def server_stores(empty_database):
    """Two stores on one server."""
    url = empty_database()
    with Store.open(url) as one, Store.open(url) as other:
        yield one, other


HISTORIES = given(st.lists(st.tuples(st.booleans(), st.booleans(), steps), max_size=8))


@HISTORIES
def test_what_was_saved_is_what_is_loaded(stores, rounds):
    check_loaded(stores, rounds)


@FEW
@HISTORIES
def test_what_was_saved_on_a_server_is_what_is_loaded(server_stores, rounds):
    check_loaded(server_stores, rounds)


def check_loaded(stores, rounds):
    for name in (NAME, OTHER):
        stores[0].clear(name)
    texts, held = {}, {model: {} for model in MODELS}
    known = dict.fromkeys(MODELS)
    for by_other, looks, (kind, value) in rounds:
        store = stores[by_other]
        if kind == "write":
            store.write(NAME, [EntryWrite(MemoryEntry(text, id=id)) for id, text in value.items()])
            for id in [id for id, text in value.items() if texts.get(id) != text]:
                for model in MODELS:
                    held[model].pop(id, None)
            texts |= value
        elif kind == "forget":
            store.forget(NAME, ids=value)
            for id in value:
                texts.pop(id, None)
                for model in MODELS:
                    held[model].pop(id, None)
        elif kind == "clear":
            store.clear(NAME)
            texts, held = {}, {model: {} for model in MODELS}
        elif kind == "elsewhere":
            store.write(OTHER, [EntryWrite(MemoryEntry("elsewhere", id=id)) for id in IDS])
            store.save_anticipations(OTHER, anticipated(*value))
        else:
            model, expected = value
            if kind == "save":
                store.save_anticipations(NAME, anticipated(model, expected))
            else:
                store.assimilate(NAME, {id: [] for id in expected}, anticipated(model, expected))
            held[model] |= {id: tokens for id, tokens in expected.items() if id in texts}
        if looks:
            state = stores[0].load(NAME)
            for model in MODELS:
                known[model] = stores[0].load_anticipations(NAME, model, state, known[model])
                assert by_id(state, known[model]) == held[model]
    state = stores[0].load(NAME)
    for model in MODELS:
        assert by_id(state, stores[0].load_anticipations(NAME, model, state)) == held[model]
        assert by_id(state, stores[0].load_anticipations(NAME, model, state, known[model])) == held[model]


def test_of_a_state_that_is_behind_only_its_own_entries_are_told(store):
    store.write(NAME, [EntryWrite(MemoryEntry("one", id="a"))])
    store.save_anticipations(NAME, anticipated("tiny", {"a": {1: -1.0}}))
    before = store.load(NAME)
    first = store.load_anticipations(NAME, "tiny", before)
    store.write(NAME, [EntryWrite(MemoryEntry("two", id="b"))])
    store.save_anticipations(NAME, anticipated("tiny", {"b": {2: -2.0}}))
    assert by_id(before, store.load_anticipations(NAME, "tiny", before)) == {"a": {1: -1.0}}
    behind = store.load_anticipations(NAME, "tiny", before, first)
    assert by_id(before, behind) == {"a": {1: -1.0}}
    now = store.load(NAME)
    assert by_id(now, store.load_anticipations(NAME, "tiny", now, behind)) == {"a": {1: -1.0}, "b": {2: -2.0}}


def test_an_assimilation_lands_whole(store, monkeypatch):
    """Links, mark and anticipation of an entry are one transaction."""
    link = ConceptLink("bees", "Bees", 1.0, "said")
    store.write(
        NAME, [EntryWrite(MemoryEntry("Bees", id="a"), (link,)), EntryWrite(MemoryEntry("Hive", id="b"), (), False)]
    )

    def fail(*arguments):
        raise KeyboardInterrupt

    before = store.generation(NAME)
    inferred = {"b": [ConceptLink("bees", "Bees", 0.5, "inferred")]}
    with monkeypatch.context() as patch:
        patch.setattr("shared_core.store.writing.put_anticipations", fail)
        with pytest.raises(KeyboardInterrupt):
            store.assimilate(NAME, inferred, anticipated("tiny", {"b": {1: -1.0}}))
    assert store.generation(NAME) == before
    assert [one.assimilated for one in store.load(NAME).entries] == [True, False]
    store.assimilate(NAME, inferred, anticipated("tiny", {"b": {1: -1.0}}))
    state = store.load(NAME)
    assert [one.assimilated for one in state.entries] == [True, True]
    assert by_id(state, store.load_anticipations(NAME, "tiny", state)) == {"b": {1: -1.0}}


@pytest.mark.parametrize(
    "damage",
    # Too short; negative; beyond any vocabulary; no number; more than certain.
    [
        "logprobs = x'00'",
        "token_ids = x'ffffffff'",
        "token_ids = x'00000001'",
        "logprobs = x'007e'",
        "logprobs = x'003c'",
    ],
)
def test_columns_of_a_damaged_row_are_refused(filed, damage):
    store = filed
    store.write(NAME, [EntryWrite(MemoryEntry("one", id="a"))])
    store.save_anticipations(NAME, anticipated("tiny", {"a": {1: -1.0}}))
    with store._access.engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE anticipations SET {damage}")
    with pytest.raises(StoreError, match="damaged"):
        store.load_anticipations(NAME, "tiny", store.load(NAME))


def test_what_cannot_be_an_anticipation_is_refused(store):
    with pytest.raises(InvalidInputError, match="one length"):
        Anticipation(np.zeros(2, np.int32), np.zeros(3, np.float32))
    with pytest.raises(InvalidInputError, match="one axis"):
        Anticipation(np.zeros((1, 2), np.int32), np.zeros((1, 2), np.float32))
    with pytest.raises(InvalidInputError, match="fingerprint"):
        Anticipated(7, {})
    empty = Anticipations.empty(3)
    assert by_id(store.load(NAME), Anticipations.empty()) == {}
    assert empty.after(empty).generation == 3
