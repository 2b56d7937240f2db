"""Reading entries without their concepts: by id, page by page, and with when they were last read."""

from __future__ import annotations

import sqlite3

from hypothesis import given
from hypothesis import strategies as st

from shared_core.entry import MemoryEntry
from shared_core.store import ConceptLink, EntryWrite, Store, reading
from tests.shared_core.store.conftest import FEW

ANNA, BEN = ("anna",), ("ben",)
labels = st.sampled_from(["a", "b", '"', ",", "-", "]", "[", "\\", "ü", "a,b", 'a","b', "+", ".", "\U0001f600"])
names = st.lists(labels, min_size=1, max_size=3).map(tuple)


def said(id, text="tea"):
    return EntryWrite(MemoryEntry(text, id), (ConceptLink(text, text, 1.0, "said"),))


NAMED = given(st.lists(names, unique=True, max_size=12), names)


@NAMED
def test_names_under_a_name_are_those_that_begin_with_its_labels(memory_store, stored, under):
    check_names(memory_store, stored, under)


@FEW
@NAMED
def test_names_on_a_server_are_those_that_begin_with_its_labels(server_store, stored, under):
    check_names(server_store, stored, under)


def check_names(store, stored, under):
    for info in store.namespaces():
        store.clear(info.name)
    for name in stored:
        store.write(name, [said("1")])
    assert store.names(under) == [name for name in stored if name[: len(under)] == under]


def test_a_namespace_without_entries_has_no_name(store):
    store.write(ANNA, [said("1")])
    store.forget(ANNA, ids=["1"])
    assert store.names(ANNA) == []
    store.write(ANNA, [said("2")])
    assert store.names(ANNA) == [ANNA]


def test_pages_add_up_to_all_entries_in_their_order(place):
    count = 2 * reading.CHUNK + 3
    with Store.open(place) as store:
        store.write(ANNA, [said(str(number)) for number in range(count)])
        store.write(BEN, [said("other")])
        store.forget(ANNA, ids=["7"])
        store.write(ANNA, [said("3", "coffee")])
        seen, page = [], store.page(ANNA)
        while page:
            seen += page
            page = store.page(ANNA, page[-1].seq)
        assert [one.entry.id for one in seen] == [str(number) for number in range(count) if number != 7]
        assert seen[3].entry.text == "coffee"
        assert store.page(("nobody",)) == store.held(("nobody",), ["3"]) == []
        assert store.held(ANNA, ["8", "7", "3"]) == [seen[7], seen[3]]


def test_when_an_entry_was_read_is_noted_and_changes_nothing_else(place):
    with Store.open(place) as store:
        store.write(ANNA, [said("1"), said("2")])
        store.write(BEN, [said("1")])
        before = store.generation(ANNA), store.get(ANNA, ["1", "2"])
        store.touch(ANNA, ["2", "nobody"], 12.5)
        store.touch(("nobody",), ["2"], 3.0)
        assert [one.touched for one in store.page(ANNA)] == [None, 12.5]
        assert [one.touched for one in store.page(BEN)] == [None]
        assert (store.generation(ANNA), store.get(ANNA, ["1", "2"])) == before
    with Store.open(place) as store:
        assert [one.touched for one in store.held(ANNA, ["2"])] == [12.5]


def test_a_file_of_version_2_gets_the_column(path):
    with Store.open(path) as store:
        store.write(ANNA, [said("1")])
    connection = sqlite3.connect(path)
    connection.execute("DROP TABLE anticipations")
    connection.execute("ALTER TABLE entries DROP COLUMN touched")
    connection.execute("ALTER TABLE entries DROP COLUMN grounds")
    connection.execute("PRAGMA user_version = 2")
    connection.commit()
    connection.close()
    with Store.open(path) as store:
        assert [one.touched for one in store.page(ANNA)] == [None]
        store.touch(ANNA, ["1"], 1.0)
        assert [one.touched for one in store.page(ANNA)] == [1.0]
