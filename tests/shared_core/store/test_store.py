"""What each call of the store promises."""

import os
import sqlite3
import subprocess
import sys
from datetime import timedelta, timezone
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import event

from shared_core.entry import MemoryEntry
from shared_core.errors import InvalidInputError, StoreError, StoreUnavailableError
from shared_core.store import INFERRED, ConceptLink, EntryWrite, Erased, KeyScores, Known, Store, postgresql, sqlite

ANNA = ("anna",)
ROOT = Path(__file__).parents[3]


def said(key, surface=None, weight=1.0):
    return ConceptLink(key, surface or key, weight, "said")


def sizes(erased):
    return erased.entries, erased.concepts, erased.links


def inferred(key, weight=0.25):
    return ConceptLink(key, key, weight, "inferred")


def write(id, text="I adopted a puppy", *links, assimilated=True):
    return EntryWrite(MemoryEntry(text, id=id), links, assimilated)


def test_an_empty_namespace_loads_as_nothing(store):
    state = store.load(ANNA, "tiny")
    assert (state.generation, state.entries, state.concepts, state.scores) == (0, [], [], {})
    arrays = (state.link_entry, state.link_concept, state.link_weight, state.link_origin)
    assert [array.dtype.name for array in arrays] == ["int32", "int32", "float32", "uint8"]
    assert [array.shape for array in arrays] == [(0,)] * 4
    assert store.namespaces() == []


def test_reading_makes_no_namespace(store):
    assert store.known(ANNA, ["1"]) == {}
    assert store.find_duplicates(ANNA, ["0" * 64]) == {}
    assert store.get(ANNA, ["1"]) == []
    assert store.forget(ANNA, ids=["1"]) == store.clear(ANNA) == Erased(0, 0, 0)
    store.assimilate(ANNA, {"1": [inferred("puppy")]})
    store.save_scores(ANNA, "tiny", {"puppy": KeyScores(np.zeros(1, np.int32))})
    assert store.write(ANNA, []).ids == ()
    assert store.namespaces() == []


def test_load_gives_parallel_arrays_of_indices(store):
    store.write(ANNA, [write("1", "a", said("puppy", "Puppy", 0.5)), write("2", "b"), write("3", "c")])
    store.write(ANNA, [write("4", "d", said("lake"), inferred("puppy"))])
    store.forget(ANNA, ids=["2"])
    state = store.load(ANNA)
    assert [stored.seq for stored in state.entries] == [0, 2, 3]
    assert state.concepts == [("puppy", "Puppy"), ("lake", "lake")]
    links = zip(state.link_entry, state.link_concept, state.link_weight, state.link_origin, strict=True)
    assert sorted(links) == [(0, 0, 0.5, 0), (2, 0, 0.25, INFERRED), (2, 1, 1.0, 0)]
    arrays = (state.link_entry, state.link_concept, state.link_weight, state.link_origin)
    assert [array.dtype.name for array in arrays] == ["int32", "int32", "float32", "uint8"]


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)
TIMES = st.none() | st.datetimes(
    timezones=st.none() | st.integers(-1439, 1439).map(lambda m: timezone(timedelta(minutes=m)))
)


@given(
    text=TEXTS.filter(str.strip),
    id=TEXTS.filter(str.strip),
    fields=st.fixed_dictionaries({"speaker": st.none() | TEXTS, "session": st.none() | st.just("")}),
    caption=st.none() | TEXTS,
    time=TIMES,
    metadata=st.dictionaries(TEXTS, JSON, max_size=3),
)
def test_entries_come_back_as_they_went_in(shared_store, text, id, fields, caption, time, metadata):
    entry = MemoryEntry(text, id=id, caption=caption, occurred_at=time, metadata=metadata, **fields)
    shared_store.clear(ANNA)
    shared_store.write(ANNA, [EntryWrite(entry)])
    [stored] = shared_store.load(ANNA).entries
    assert stored.entry == entry
    assert stored.entry.digest == entry.digest  # the time's offset, too
    assert shared_store.get(ANNA, [id]) == [entry]
    assert shared_store.known(ANNA, [id]) == {id: Known(entry.digest, True)}
    assert shared_store.find_duplicates(ANNA, [entry.digest]) == {entry.digest: id}


def test_more_ids_than_one_statement_takes(store):
    entries = [write(str(n), f"text {n}", said(f"key {n % 1200}")) for n in range(1300)]
    ids = [entry.id for entry in entries]
    assert store.write(ANNA, iter(entries)).added == 1300
    assert store.known(ANNA, [*ids, *ids, "none"]).keys() == set(ids)
    assert [entry.id for entry in store.get(ANNA, ids[::-1])] == ids[::-1]
    digests = [entry.entry.digest for entry in entries]
    assert store.find_duplicates(ANNA, digests) == dict(zip(digests, ids, strict=True))
    store.assimilate(ANNA, {id: [inferred("key 0")] for id in ids})
    assert len(store.load(ANNA).link_entry) == 1300 + 1298  # two entries say it
    # Keys 50 to 99 are said again by the last 50 entries; key 0 dies, and so do the inferred links to it.
    assert sizes(store.forget(ANNA, ids=ids[:1250])) == (1250, 1150, 1250 + 1298)
    assert len(store.load(ANNA).link_entry) == 50


@pytest.mark.parametrize("count", [1, 12, 500])
def test_concepts_are_looked_up_by_their_index(filed, path, count):
    """Whatever SQLite guesses of the size of a namespace: reading all of it for each write is slow at a million."""
    store = filed
    store.write(ANNA, [write("1", "one", *(said(f"key {n}") for n in range(600)))])
    statements = []

    def note(connection, cursor, statement, parameters, context, executemany):
        if "wanted" in statement:
            statements.append((statement, parameters))

    event.listen(store._access.engine, "before_cursor_execute", note)
    store.write(ANNA, [write("2", "two", *(said(f"key {n}") for n in range(count)))])
    [(statement, parameters)] = statements
    with sqlite3.connect(path) as connection:
        plan = " ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", parameters))
    connection.close()
    assert "(namespace=? AND key=?)" in plan


def test_get_keeps_the_order_asked_for(store):
    store.write(ANNA, [write(id, f"text {id}") for id in "abc"])
    assert [entry.id for entry in store.get(ANNA, ["c", "none", "a", "c"])] == ["c", "a"]


def test_the_earliest_duplicate_is_named(store):
    store.write(ANNA, [write("2"), write("1"), write("3")])
    digest = MemoryEntry("I adopted a puppy").digest
    assert store.find_duplicates(ANNA, [digest]) == {digest: "2"}


def test_the_same_content_again_changes_nothing(store):
    store.write(ANNA, [write("1", "one", said("puppy"), assimilated=False)])
    generation = store.generation(ANNA)
    outcome = store.write(ANNA, [write("1", "one", said("lake"), assimilated=True)])
    assert (outcome.added, outcome.updated, outcome.unchanged) == (0, 0, 1)
    state = store.load(ANNA)
    assert state.generation == generation
    assert state.concepts == [("puppy", "puppy")]
    assert not state.entries[0].assimilated


def test_an_update_keeps_the_place_and_replaces_the_links(store):
    store.write(ANNA, [write("1", "one", said("puppy")), write("2", "two")])
    assert store.write(ANNA, [write("1", "new", said("lake"))]).updated == 1
    state = store.load(ANNA)
    assert [(stored.seq, stored.entry.text) for stored in state.entries] == [(0, "new"), (1, "two")]
    assert state.concepts == [("lake", "lake")]


def test_places_are_not_given_twice(store):
    store.write(ANNA, [write("1"), write("2")])
    store.forget(ANNA, ids=["1", "2"])
    store.write(ANNA, [write("1")])
    assert [stored.seq for stored in store.load(ANNA).entries] == [2]


def test_one_write_is_as_its_entries_one_by_one(store):
    outcome = store.write(ANNA, [write("1", "a", said("puppy")), write("1", "b", said("lake")), write("1", "b")])
    assert (outcome.added, outcome.updated, outcome.unchanged) == (1, 1, 1)
    state = store.load(ANNA)
    assert [stored.entry.text for stored in state.entries] == ["b"]
    assert state.concepts == [("lake", "lake")]


def test_going_back_to_the_stored_content_takes_the_last_links(store):
    store.write(ANNA, [write("1", "a", said("puppy"))])
    store.write(ANNA, [write("1", "b"), write("1", "a", said("lake"))])
    state = store.load(ANNA)
    assert [stored.entry.text for stored in state.entries] == ["a"]
    assert state.concepts == [("lake", "lake")]


def test_an_inferred_link_finds_a_concept_of_a_later_entry(store):
    filler = [write(f"f{n}", f"filler {n}") for n in range(1000)]
    waiting = [write("1", "a", inferred("puppy"), inferred("nothing")), write("2", "b", inferred("puppy"))]
    replaced = [write("2", "c"), write("last", "d", said("puppy"))]
    store.write(ANNA, [*waiting, *filler, *replaced])
    state = store.load(ANNA)
    assert state.concepts == [("puppy", "puppy")]
    ids = [state.entries[entry].entry.id for entry in state.link_entry]
    linked = set(zip(ids, state.link_origin.tolist(), strict=True))
    assert linked == {("1", INFERRED), ("last", 0)}


def test_a_concept_is_worded_as_in_its_earliest_entry(store):
    store.write(ANNA, [write("1", "a"), write("2", "b", said("puppy", "Puppy")), write("3", "c", said("puppy"))])
    assert store.load(ANNA).concepts == [("puppy", "Puppy")]
    store.write(ANNA, [write("1", "d", said("puppy", "PUPPY"))])
    assert store.load(ANNA).concepts == [("puppy", "PUPPY")]
    store.forget(ANNA, ids=["1", "2"])
    assert store.load(ANNA).concepts == [("puppy", "puppy")]


def test_what_a_write_raises_undoes_all_of_it(store):
    def writes():
        for n in range(700):
            yield write(str(n), f"text {n}", said(f"key {n}"))
        raise KeyError("source")

    with pytest.raises(KeyError, match="source"):
        store.write(ANNA, writes())
    assert store.namespaces() == []
    store.write(ANNA, [write("1")])
    assert store.generation(ANNA) > 0


def test_a_write_from_inside_a_write_fails_and_undoes_both(somewhere, monkeypatch):
    for engine in (sqlite, postgresql):
        monkeypatch.setattr(engine, "BUSY_SECONDS", 0.05)

    def writes():
        for n in range(501):
            yield write(str(n), f"text {n}")
        store.write(ANNA, [write("inner")])

    with Store.open(somewhere) as store:
        with pytest.raises(StoreUnavailableError, match="another call"):
            store.write(ANNA, writes())
        assert store.namespaces() == []
        assert store.write(ANNA, [write("1")]).added == 1


def test_assimilation_marks_entries_and_skips_what_is_gone(store):
    store.write(ANNA, [write("1", "a", said("puppy"), assimilated=False), write("2", "b", assimilated=False)])
    store.assimilate(ANNA, {"2": [inferred("puppy"), inferred("gone")], "none": [inferred("puppy")], "1": []})
    state = store.load(ANNA)
    assert [stored.assimilated for stored in state.entries] == [True, True]
    assert state.concepts == [("puppy", "puppy")]
    assert state.link_origin.tolist() == [0, INFERRED]


def test_assimilation_leaves_existing_links_alone(store):
    store.write(ANNA, [write("1", "a", said("puppy"))])
    store.assimilate(ANNA, {"1": [inferred("puppy"), inferred("puppy")]})
    state = store.load(ANNA)
    assert (state.link_weight.tolist(), state.link_origin.tolist()) == ([1.0], [0])


def test_assimilation_takes_inferred_links_only(store):
    store.write(ANNA, [write("1", "a", said("puppy"), assimilated=False)])
    with pytest.raises(InvalidInputError, match="inferred"):
        store.assimilate(ANNA, {"1": [said("lake")]})
    assert not store.load(ANNA).entries[0].assimilated


def test_scores_belong_to_a_model_and_leave_with_their_concept(store):
    store.write(ANNA, [write("1", "a", said("puppy"), said("lake")), write("2", "b", said("lake"))])
    generation = store.generation(ANNA)
    ids = np.array([2**31 - 1, 0, 7], dtype=np.int32)
    neutral = np.array([-1.5, -0.0, -30.25, -1e-7], dtype=np.float32)
    store.save_scores(ANNA, "tiny", {"puppy": KeyScores(ids, neutral), "gone": KeyScores(ids)})
    store.save_scores(ANNA, "large", {"lake": KeyScores(ids[:2])})
    assert store.generation(ANNA) == generation
    tiny, large = store.load(ANNA, "tiny").scores, store.load(ANNA, "large").scores
    assert (tiny.keys(), large.keys()) == ({"puppy"}, {"lake"})
    assert np.array_equal(tiny["puppy"].token_ids, ids)
    assert tiny["puppy"].neutral.tobytes() == neutral.tobytes()
    assert large["lake"].neutral is None
    assert store.load(ANNA, "none").scores == store.load(ANNA).scores == {}
    store.save_scores(ANNA, "tiny", {"puppy": KeyScores(ids[:1])})
    assert store.load(ANNA, "tiny").scores["puppy"].token_ids.tolist() == [2**31 - 1]
    store.forget(ANNA, ids=["1"])
    store.write(ANNA, [write("1", "a", said("puppy"))])
    assert store.load(ANNA, "tiny").scores == {}
    assert store.load(ANNA, "large").scores.keys() == {"lake"}


def test_a_namespace_made_again_shows_no_old_generation(store):
    store.write(ANNA, [write("1")])
    seen = {0, store.generation(ANNA)}
    for _ in range(3):
        store.clear(ANNA)
        assert store.generation(ANNA) == 0
        store.write(ANNA, [write("1")])
        assert store.generation(ANNA) not in seen
        seen.add(store.generation(ANNA))


def test_a_change_is_not_seen_in_another_namespace(store):
    store.write(ANNA, [write("1")])
    store.write(("ben",), [write("1")])
    before = store.generation(ANNA)
    store.write(("ben",), [write("1", "new")])
    store.forget(("ben",), ids=["1"])
    assert store.generation(ANNA) == before


def test_scan_streams_what_was_written(store, place):
    writes = [write(str(n), f"text {n}", said(f"key {n}", f"Key {n}")) for n in range(1100)]
    store.write(ANNA, writes)
    with store.scan(ANNA) as (count, scanned):
        # Another thread's write comes too late for the scan.
        other = Store.open(place)
        other.write(ANNA, [write("late", "late")])
        other.close()
        assert list(scanned) == writes
        assert count == 1100
    with store.scan(("none",)) as (count, scanned):
        assert (count, list(scanned)) == (0, [])


@pytest.mark.parametrize("ids", ["12", ["1", 2], ["\ud800"], ["\x00"]])
def test_ids_that_are_none_are_refused(store, ids):
    store.write(ANNA, [write("1"), write("2")])
    for call in (
        lambda: store.forget(ANNA, ids=ids),
        lambda: store.get(ANNA, ids),
        lambda: store.known(ANNA, ids),
        lambda: store.find_duplicates(ANNA, ids),
    ):
        with pytest.raises(InvalidInputError):
            call()
    assert len(store.load(ANNA).entries) == 2


def test_a_closed_store_says_so(somewhere):
    store = Store.open(somewhere)
    store.write(ANNA, [write("1")])
    store.close()
    store.close()
    for call in (
        lambda: store.load(ANNA),
        lambda: store.write(ANNA, [write("2")]),
        lambda: store.generation(ANNA),
        store.namespaces,
    ):
        with pytest.raises(StoreError, match="closed"):
            call()


def test_texts_do_not_show_in_errors(filed, path):
    store = filed
    store.write(ANNA, [write("1")])
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE links")
    connection.close()
    with pytest.raises(StoreError) as caught:
        store.write(ANNA, [write("2", "a secret", said("a secret"))])
    error = caught.value
    while error is not None:
        assert "secret" not in str(error)
        error = error.__cause__


def run(program, path):
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    arguments = [sys.executable, "-c", program, str(path)]
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=True, timeout=100)
    return done.stdout.split("\n")


def test_a_forked_child_loses_nothing_when_its_parent_closes(place):
    program = """
import os, signal, sys
from shared_core.entry import MemoryEntry
from shared_core.store import EntryWrite, Store

def write(id):
    store.write(("anna",), [EntryWrite(MemoryEntry(f"text {id}", id=id))])

store, idle = Store.open(sys.argv[1]), Store.open(sys.argv[1])
write("before")
closed, tell = os.pipe()
child = os.fork()
if child == 0:
    signal.alarm(60)
    write("child")
    os.close(tell)
    os.read(closed, 1)
    write("child, after the parent closed")
    os._exit(0)
write("parent")
store.close()
idle.close()
os.close(tell)
_, status = os.waitpid(child, 0)
store = Store.open(sys.argv[1])
print(status, *sorted(stored.entry.id for stored in store.load(("anna",)).entries), sep="\\n")
"""
    assert run(program, place)[:-1] == ["0", "before", "child", "child, after the parent closed", "parent"]


@pytest.mark.parametrize("work", ["store.write(('anna',), slow())", "scan()"])
@pytest.mark.parametrize("location", ["file", "memory"])
def test_a_child_forked_in_the_middle_of_a_call_says_so(path, work, location):
    program = f"""
import os, signal, sys, threading
from shared_core.entry import MemoryEntry
from shared_core.errors import StoreError
from shared_core.store import EntryWrite, Store

def slow():
    for n in range(501):
        yield EntryWrite(MemoryEntry(f"text {{n}}", id=str(n)))
    under_way.set()
    forked.wait()

def scan():
    with store.scan(("anna",)):
        under_way.set()
        forked.wait()

store = Store.open(sys.argv[1])
under_way, forked = threading.Event(), threading.Event()
thread = threading.Thread(target=lambda: {work})
thread.start()
under_way.wait()
child = os.fork()
if child == 0:
    signal.alarm(60)
    try:
        store.load(("anna",))
    except StoreError as error:
        os._exit(7 if "forked" in str(error) else 1)
    os._exit(2)
forked.set()
thread.join()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), len(store.load(("anna",)).entries))
"""
    entries = 501 if "write" in work else 0
    assert run(program, path if location == "file" else ":memory:") == [f"7 {entries}", ""]
