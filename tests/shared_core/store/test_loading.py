"""Loading in long texts gives what the rows hold, in their order."""

import itertools
import json
import sqlite3

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text

from shared_core.entry import MemoryEntry
from shared_core.errors import StoreError
from shared_core.store import ConceptLink, EntryWrite, Store, loading
from tests.shared_core.store.conftest import FEW

NAMES = ("anna", "bert", "chris")
EXAMPLES = itertools.count()
# What the texts are joined with, what might be taken for it, and what SQL or UTF-8 might stumble over.
TEXTS = st.text(st.sampled_from("ab,;'\"%\x01\x1e\x1f\n\t \u00e9\u2028\ufeff\U0001f600"), min_size=1, max_size=4)
TEXTS = TEXTS.filter(str.strip)
WEIGHTS = st.sampled_from([1.0, 1, 0.3, 0.0, 1 - 2**-53, 2.5, 1e-40])
LINKS = st.builds(ConceptLink, TEXTS, TEXTS, WEIGHTS, st.sampled_from(["said", "generated"])) | st.builds(
    ConceptLink, TEXTS, TEXTS, WEIGHTS.filter(lambda weight: 0 < weight <= 1), st.just("inferred")
)
WRITES = st.tuples(
    st.sampled_from(NAMES), st.integers(0, 9).map(str), st.lists(LINKS, max_size=6, unique_by=lambda link: link.key)
)


@pytest.fixture(scope="module", autouse=True)
def small_pieces():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loading, "_CONCEPTS_TOGETHER", 3)
        yield


def rows_of(store, namespace, columns, table):
    """The rows as they are, in the order of their numbers."""
    name = json.dumps(namespace, ensure_ascii=False, separators=(",", ":"))
    theirs = "namespace = (SELECT number FROM namespaces WHERE name = :name)"
    query = text(f"SELECT {columns} FROM {table} WHERE {theirs} ORDER BY 1, 2")
    with store._access.reading() as connection:
        return connection.execute(query, {"name": name}).fetchall()


WRITTEN = given(st.lists(WRITES, max_size=12), st.lists(st.integers(0, 9).map(str), max_size=3))


@WRITTEN
def test_a_state_is_what_the_rows_hold(memory_store, writes, forgotten):
    check_rows(memory_store, writes, forgotten)


@FEW
@WRITTEN
def test_a_state_on_a_server_is_what_the_rows_hold(server_store, writes, forgotten):
    check_rows(server_store, writes, forgotten)


def check_rows(store, writes, forgotten):
    example = str(next(EXAMPLES))
    for name in NAMES:
        theirs = [
            EntryWrite(MemoryEntry(f"text {place}", id=id), tuple(links))
            for place, (of, id, links) in enumerate(writes)
            if of == name
        ]
        if theirs:
            store.write((name, example), theirs)
    if forgotten:  # leaves gaps in the numbers
        store.forget((NAMES[0], example), ids=forgotten)
    for namespace in ((name, example) for name in NAMES):
        state = store.load(namespace)
        concepts = rows_of(store, namespace, "number, key, surface", "concepts")
        assert state.concepts == [(key, surface) for _, key, surface in concepts]
        assert state.concept_number.tolist() == [number for number, _, _ in concepts]
        seqs = [one.seq for one in state.entries]
        assert seqs == [seq for seq, _ in rows_of(store, namespace, "seq, id", "entries")]
        entry = [seqs[place] for place in state.link_entry]
        concept = state.concept_number[state.link_concept].tolist()
        found = zip(entry, concept, state.link_weight.tolist(), state.link_origin.tolist(), strict=True)
        assert list(found) == [
            (seq, concept, float(np.float32(weight)), origin)
            for seq, concept, weight, origin in rows_of(store, namespace, "seq, concept, weight, origin", "links")
        ]
        kinds = [part.dtype for part in (state.link_entry, state.link_concept, state.link_weight, state.link_origin)]
        assert kinds == [np.int32, np.int32, np.float32, np.uint8]
        assert state.concept_number.dtype == np.int64


@pytest.mark.parametrize("change", ["concept = 'x'", "concept = '1,2'", "concept = 1.5", "weight = 'one'"])
def test_a_link_without_numbers_is_damage(path, change):
    with Store.open(path) as store:
        links = tuple(ConceptLink(key, key, 1.0, "said") for key in ("a", "b"))
        store.write(("anna",), [EntryWrite(MemoryEntry("a b", id="1"), links)])
    connection = sqlite3.connect(path)
    connection.execute(f"UPDATE links SET {change} WHERE concept = 0")
    connection.commit()
    connection.close()
    with Store.open(path) as store, pytest.raises(StoreError, match="damaged"):
        store.load(("anna",))
