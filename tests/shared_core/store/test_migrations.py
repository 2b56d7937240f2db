"""A memory that an earlier version wrote is upgraded where it lies, with all it holds."""

import sqlite3
from pathlib import Path

import numpy as np
import pytest

from shared_core.entry import MemoryEntry
from shared_core.store import INFERRED, ConceptLink, EntryWrite, KeyScores, Store, migrations, sqlite

ANNA, BEN = ("anna",), ("ben",)


@pytest.fixture
def first_version(path):
    """What version 1 wrote: ``version_1.sql`` is the dump of a file that its code made."""
    connection = sqlite3.connect(path)
    connection.executescript(Path(__file__).with_name("version_1.sql").read_text())
    connection.execute(f"PRAGMA application_id = {sqlite.APPLICATION_ID}")
    connection.execute("PRAGMA user_version = 1")
    connection.close()
    return path


def test_a_file_of_version_1_keeps_all_it_holds(first_version):
    with Store.open(first_version) as store:
        state = store.load(ANNA, "tiny")
        assert [(one.seq, one.entry.id, one.assimilated) for one in state.entries] == [(0, "1", True), (1, "2", False)]
        assert state.entries[0].entry.occurred_at.isoformat() == "2023-05-08T13:56:00"
        assert state.entries[1].entry.metadata == {"mood": ["glad", 1]}
        assert state.concepts == [("puppy", "a puppy"), ("adopt", "adopted"), ("rex", "Rex"), ("pet", "pet")]
        links = zip(state.link_entry.tolist(), state.link_concept.tolist(), state.link_origin.tolist(), strict=True)
        assert list(links) == [(0, 0, 0), (0, 1, 0), (0, 2, INFERRED), (1, 0, 0), (1, 2, 0), (1, 3, 2)]
        assert state.scores.keys() == {"puppy", "pet"}
        assert state.scores["puppy"].neutral.tolist() == [-1, -2.5, -0.25]
        assert state.scores["pet"].neutral is None
        assert store.load(ANNA, "large").scores["rex"].token_ids.tolist() == [1, 2, 3]
        assert store.load(BEN, "tiny").scores["canoe"].token_ids.tolist() == [8]
        assert state.generation == store.generation(ANNA) > 0
    connection = sqlite3.connect(first_version)
    assert connection.execute("PRAGMA user_version").fetchone() == (migrations.newest(),)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    connection.close()


def test_an_upgraded_file_is_followed_and_written(first_version):
    with Store.open(first_version) as store:
        state = store.load(ANNA)
        columns = store.load_scores(ANNA, "tiny", state)
        assert columns.concept.tolist() == [0, 3]
        store.write(ANNA, [EntryWrite(MemoryEntry("More", id="4"), (ConceptLink("pet", "Pet", 1.0, "said"),))])
        store.assimilate(ANNA, {"2": [ConceptLink("adopt", "adopt", 0.3, "inferred")]})
        change = store.changes(ANNA, state)
        assert [(one.entry.id, one.assimilated) for one in change.entries] == [("2", True), ("4", True)]
        assert list(zip(change.link_entry.tolist(), change.link_concept.tolist(), strict=True)) == [(1, 1), (2, 3)]
        store.save_scores(ANNA, "tiny", {"rex": KeyScores(np.array([9], np.int32))})
        later = store.load_scores(ANNA, "tiny", state, columns)
        assert columns.after(later).concept.tolist() == [0, 2, 3]
        store.forget(ANNA, ids=["2"])
        assert store.changes(ANNA, state) is None
        assert store.load(ANNA, "large").scores == {}


def test_damaged_scores_are_left_behind(first_version):
    connection = sqlite3.connect(first_version)
    with connection:
        connection.execute("UPDATE scores SET neutral = x'00' WHERE neutral IS NOT NULL")
    connection.close()
    with Store.open(first_version) as store:
        assert store.load(ANNA, "tiny").scores.keys() == {"pet"}
        assert store.load(BEN, "tiny").scores == {}
