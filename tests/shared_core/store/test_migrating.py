"""A memory that is migrated is the same in its new place, and nothing is there if that fails."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared_core.entry import MemoryEntry
from shared_core.errors import InvalidInputError, NotFoundError, StoreError, StoreUnavailableError
from shared_core.store import (
    Anticipated,
    Anticipation,
    ConceptLink,
    EntryWrite,
    KeyScores,
    Store,
    copying,
    migrate_memory,
)
from tests.conftest import HEAVY

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=12)
WORDS = TEXTS.filter(str.strip)
LINKS = st.lists(
    st.builds(ConceptLink, WORDS, WORDS, st.floats(0, 3e38), st.sampled_from(["said", "generated"]))
    | st.builds(ConceptLink, WORDS, WORDS, st.floats(0, 1, exclude_min=True), st.just("inferred")),
    max_size=4,
    unique_by=lambda link: link.key,
).map(tuple)
NUMBERS = st.integers(-(10**30), 10**30) | st.floats(allow_nan=False, allow_infinity=False)
ENTRIES = st.builds(
    MemoryEntry,
    WORDS,
    id=WORDS,
    speaker=st.none() | TEXTS,
    occurred_at=st.none() | st.datetimes(),
    metadata=st.dictionaries(TEXTS, st.none() | TEXTS | NUMBERS, max_size=3),
)
HISTORIES = st.lists(
    st.tuples(
        st.sampled_from([("anna",), ("ben", "work"), ("\u00e9\U0001f600",)]),
        st.lists(st.builds(EntryWrite, ENTRIES, LINKS, st.booleans()), min_size=1, max_size=4),
        st.lists(st.integers(0, 3), max_size=2),
    ),
    min_size=2,
    max_size=5,
)


def fill(store, history):
    for name, writes, forgotten in history:
        store.write(name, writes)
        store.forget(name, ids=[writes[at].id for at in forgotten if at < len(writes)])
        keys = [key for key, _ in store.load(name).concepts]
        store.save_scores(name, "tiny", {key: KeyScores(np.arange(3, dtype=np.int32)) for key in keys[::2]})
        expected = Anticipation(np.array([7, 9], np.int32), np.array([-1, -2], np.float32))
        store.save_anticipations(name, Anticipated("tiny", {writes[-1].id: expected}))
        store.touch(name, [writes[0].id], 0.1 + len(keys))


def content(store):
    """Everything that can be read of a memory."""
    found = {}
    for info in store.namespaces():
        state = store.load(info.name, "tiny")
        expected = store.load_anticipations(info.name, "tiny", state)
        arrays = (state.concept_number, state.link_entry, state.link_concept, state.link_weight, state.link_origin)
        found[info.name] = (
            state.generation,
            state.entries,
            state.concepts,
            [array.tolist() for array in (*arrays, expected.entry, expected.tokens, expected.logprobs)],
            {key: one.token_ids.tolist() for key, one in state.scores.items()},
            [held.touched for held in store.page(info.name)],
        )
    return found


@settings(HEAVY, max_examples=3)
@given(HISTORIES)
def test_a_memory_is_the_same_on_either_engine_and_goes_on_there(empty_database, tmp_path_factory, history):
    folder, url = tmp_path_factory.mktemp("migrating"), empty_database()
    with Store.open(folder / "one.db") as store:
        fill(store, history)
        before = content(store)
    there = migrate_memory(folder / "one.db", url)
    back = migrate_memory(url, folder / "two.db")
    assert there == back
    assert [one.name for one in there] == list(before)
    assert [one.entries for one in there] == [len(entries) for _, entries, *_ in before.values()]
    assert sorted(file.name for file in folder.iterdir()) == ["one.db", "two.db"]
    with Store.open(url) as server, Store.open(folder / "two.db") as file:
        assert content(server) == content(file) == before
        assert server.back_up(folder / "three.db") == folder / "three.db"
        with Store.open(folder / "three.db") as copy:
            assert content(copy) == before
        for store in (server, file):
            seen = {store.generation(name) for name in before}
            new = EntryWrite(MemoryEntry("new", id="a new one"), (ConceptLink("new", "new", 1.0, "said"),))
            for name in [*before, ("a new one",)]:
                state = store.load(name)
                assert store.write(name, [new]).added == 1
                assert store.generation(name) > max(seen, default=0)
                if name in before:
                    assert [one.entry.id for one in store.changes(name, state).entries] == ["a new one"]
            store.save_scores(("a new one",), "another model", {"new": KeyScores(np.zeros(1, np.int32))})
            assert store.check() == []


@pytest.fixture
def filled(path):
    with Store.open(path) as store:
        link = ConceptLink("puppy", "Puppy", 1.0, "said")
        store.write(("anna",), [EntryWrite(MemoryEntry("I adopted a puppy", id="1"), (link,))])
    return path


def test_where_something_is_nothing_is_migrated(filled, empty_database, tmp_path):
    url = empty_database()
    (tmp_path / "taken").write_text("mine")
    for target in (tmp_path / "taken", filled, tmp_path):
        with pytest.raises(InvalidInputError, match="exists already"):
            migrate_memory(filled, target)
    with pytest.raises(InvalidInputError, match="kept nowhere"):
        migrate_memory(filled, ":memory:")
    with pytest.raises(NotFoundError):
        migrate_memory(tmp_path / "none.db", url)
    with pytest.raises(StoreUnavailableError, match="cannot be written"):
        migrate_memory(filled, tmp_path / "none" / "new.db")
    assert (tmp_path / "taken").read_text() == "mine"
    migrate_memory(filled, url)
    with pytest.raises(InvalidInputError, match="holds a memory already"):
        migrate_memory(filled, url)
    with Store.open(url) as store:
        assert [info.name for info in store.namespaces()] == [("anna",)]


def test_a_copy_that_fails_or_differs_leaves_nothing(filled, postgres, tmp_path, monkeypatch):
    """Not even tables."""
    name = postgres.database()
    pieces = copying._pieces

    def one_row_short(connection, table):
        for rows in pieces(connection, table):
            yield rows[:-1] if table.name == "links" and read.append(table) is None and len(read) == 1 else rows

    def broken(connection, table):
        if table.name == "links":
            raise KeyboardInterrupt
        return pieces(connection, table)

    for target in (postgres.url(name), tmp_path / "new.db"):
        for fault, error in ((one_row_short, StoreError), (broken, KeyboardInterrupt)):
            read = []
            with monkeypatch.context() as patch:
                patch.setattr(copying, "_pieces", fault)
                with pytest.raises(error):
                    migrate_memory(filled, target)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["memory.db"]
    with postgres.connect(name) as connection:
        assert connection.execute("SELECT to_regnamespace('scg_memory')").fetchone() == (None,)


def test_a_memory_that_does_not_fit_together_is_not_migrated(filled, empty_database):
    url = empty_database()
    with Store.open(filled) as store:
        with store._access.engine.begin() as connection:
            connection.exec_driver_sql("UPDATE entries SET text = 'changed'")
        with pytest.raises(StoreError, match="scg repair"):
            migrate_memory(filled, url)
    with Store.open(url) as server:
        assert server.namespaces() == []
