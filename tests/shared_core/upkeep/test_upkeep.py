"""A check finds what does not fit together, a repair mends it, and what is damaged beyond that is carried over."""

import contextlib
import os
import random
import shutil
import sqlite3
import tempfile
import threading
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shared_core.config import SCGConfig
from shared_core.entry import MemoryEntry
from shared_core.errors import InvalidInputError, NotFoundError, StoreError
from shared_core.evolution import said_concepts
from shared_core.store import Anticipated, Anticipation, ConceptLink, EntryWrite, KeyScores, Store, migrate_memory
from shared_core.store.tables import schema
from shared_core.upkeep import check_memory, rebuild_memory, repair_memory, salvage_memory

ANNA, BEN = ("anna",), ("ben",)
ENTRIES = 12
"""In each of the two namespaces."""


@pytest.fixture(scope="module")
def made(tmp_path_factory, turns):
    """A memory of two namespaces with everything in it that a memory has."""
    turns = turns[:ENTRIES]
    path = tmp_path_factory.mktemp("made") / "memory.db"
    with Store.open(path) as store:
        for name in (ANNA, BEN):
            store.write(name, [EntryWrite(turn, tuple(said_concepts(turn)), assimilated=False) for turn in turns])
            keys = [key for key, _ in store.load(name).concepts]
            store.assimilate(name, {"t01": [ConceptLink(key, key, 0.5, "inferred") for key in keys[-3:]]})
            scores = {
                key: KeyScores(np.array([number, 7], np.int32), np.full(3, -1, np.float32))
                for number, key in enumerate(keys)
            }
            store.save_scores(name, "tiny", scores)
            expected = Anticipation(np.array([7, 9], np.int32), np.array([-1, -2], np.float32))
            store.save_anticipations(name, Anticipated("tiny", {turn.id: expected for turn in turns}))
    return path


@pytest.fixture
def path(made, tmp_path):
    return shutil.copy(made, tmp_path / "memory.db")


def change(path, *statements):
    """Change rows behind the store's back."""
    connection = sqlite3.connect(path)
    with connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def content(path):
    with Store.open(path, create=False) as store:
        return {
            info.name: [(one.entry, one.links) for one in list(scanned)]
            for info in store.namespaces()
            for _, scanned in [_scan(store, info.name)]
        }


def _scan(store, name):
    with store.scan(name) as (count, scanned):
        return count, list(scanned)


def test_a_sound_memory_is_sound(made):
    checked = check_memory(made)
    assert checked.faults == ()
    assert (checked.namespaces, checked.entries) == (2, 2 * ENTRIES)
    assert checked.concepts > 50
    assert repair_memory(made).done == ()


FAULTS = {
    "a text that was changed": ("entry", "UPDATE entries SET text = 'I planted weeds' WHERE seq = 3"),
    "metadata that is no JSON": ("entry", "UPDATE entries SET metadata = '{' WHERE seq = 3"),
    "a time that is none": ("entry", "UPDATE entries SET occurred_at = 'yesterday' WHERE seq = 3"),
    "an entry newer than its namespace": ("entry", "UPDATE entries SET changed = 999 WHERE seq = 3"),
    "a concept that nothing says": ("concept", "INSERT INTO concepts VALUES (1, 9999, 'ghost', 'ghost')"),
    "a concept worded as nobody does": ("concept", "UPDATE concepts SET surface = 'ghost' WHERE number = 3"),
    "a concept with another key": ("link", "UPDATE concepts SET key = 'ghost' WHERE namespace = 1 AND number = 3"),
    "keys that are all other ones": ("link", "UPDATE concepts SET key = 'x' || key"),
    "links that are all gone": ("link", "DELETE FROM links", "DELETE FROM scores", "DELETE FROM concepts"),
    "a link of a shared concept that is gone": (
        "link",
        (
            "DELETE FROM links WHERE (namespace, concept, seq) IN (SELECT namespace, concept, max(seq) FROM links "
            "WHERE namespace = 1 AND origin = 0 GROUP BY concept HAVING count(*) > 1)"
        ),
    ),
    "links that weigh too much": ("link", "UPDATE links SET weight = 999 WHERE namespace = 1 AND seq = 3"),
    "links that weigh less": ("link", "UPDATE links SET weight = 0.5 WHERE namespace = 1 AND seq = 3"),
    "an inferred link that weighs too much": ("link", "UPDATE links SET weight = 1.5 WHERE origin = 1"),
    "an inferred link of no weight": ("link", "UPDATE links SET weight = 0 WHERE origin = 1"),
    "links that were not said": ("link", "UPDATE links SET origin = 2 WHERE namespace = 1 AND seq = 3"),
    "links that were not inferred": ("link", "UPDATE links SET origin = 0, surface = 'ghost' WHERE origin = 1"),
    "links worded otherwise": ("link", "UPDATE links SET surface = 'ghost' WHERE seq = 3 AND origin = 0"),
    "a link that nobody made": (
        "link",
        (
            "INSERT INTO links SELECT 1, 3, number, 1.0, 0, surface FROM concepts WHERE namespace = 1 "
            "AND number NOT IN (SELECT concept FROM links WHERE namespace = 1 AND seq = 3) LIMIT 1"
        ),
    ),
    "an index of links that is gone": ("schema", "DROP INDEX links_by_concept"),
    "an index of entries that is gone": ("schema", "DROP INDEX entries_by_digest"),
    "an index that is another one": (
        "schema",
        "DROP INDEX entries_by_change",
        "CREATE INDEX entries_by_change ON entries (changed)",
    ),
    "an index that refuses": ("schema", "CREATE UNIQUE INDEX foreign_one ON entries (namespace, text)"),
    "a trigger": ("schema", "CREATE TRIGGER foreign_one AFTER UPDATE ON namespaces BEGIN DELETE FROM links; END"),
    "a concept without a key": ("concept", "UPDATE concepts SET key = ' ' WHERE number = 3"),
    "a concept that is no text": ("value", "UPDATE concepts SET key = x'00' WHERE number = 3"),
    "a concept that is gone": ("link", "DELETE FROM concepts WHERE namespace = 1 AND number = 3"),
    "an entry that is gone": ("link", "DELETE FROM entries WHERE namespace = 1 AND seq = 3"),
    "a link of no origin": ("link", "UPDATE links SET origin = 7 WHERE seq = 3"),
    "a link of no weight": ("value", "UPDATE links SET weight = 9e999 WHERE seq = 3"),
    "a said link without words": ("link", "UPDATE links SET surface = NULL WHERE seq = 3 AND origin = 0"),
    "scores that do not fit": ("scores", "UPDATE scores SET sizes = x'ffffffff'"),
    "scores of a concept that is gone": ("scores", "UPDATE scores SET concepts = zeroblob(length(concepts))"),
    "an expectation that cannot be read": ("scores", "UPDATE anticipations SET logprobs = x'00' WHERE seq = 3"),
    "an expectation that is no blob": ("value", "UPDATE anticipations SET token_ids = '12345678' WHERE seq = 3"),
    "an expectation beyond certainty": ("scores", "UPDATE anticipations SET logprobs = x'003c003c' WHERE seq = 3"),
    "an expectation of an entry that is gone": ("scores", "INSERT INTO anticipations VALUES (1, 999, 1, x'', x'')"),
    "a model that is gone": ("link", "DELETE FROM models"),
    "a number that would be given again": ("counter", "UPDATE namespaces SET next_seq = 3, next_concept = 3"),
    "a generation ahead of the clock": ("counter", "UPDATE namespaces SET generation = 999"),
    "a name that cannot be read": ("counter", "UPDATE namespaces SET name = 'anna' WHERE number = 1"),
    "a clock that is gone": ("counter", "DELETE FROM memory_state"),
    "an erasure that was cut off": ("erasure", "UPDATE memory_state SET unwiped = 5"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_and_mended(path, name):
    kind, *statements = FAULTS[name]
    change(path, *statements)
    if kind == "erasure":  # opening finishes it
        assert check_memory(path).faults == ()
        return
    faults = check_memory(path).faults
    assert kind in {fault.kind for fault in faults}
    text = " ".join(fault.what for fault in faults)
    assert not any(word in text for word in ("carrot", "planted", "ghost"))  # a report may be shown to anyone
    mended = repair_memory(path)
    assert mended.done
    assert check_memory(path).faults == ()
    # As it was before is kept beside it.
    assert {fault.kind for fault in check_memory(mended.kept).faults} >= {kind} - {"counter"}
    with Store.open(path) as store:
        names = {info.name for info in store.namespaces()}
        first = ("recovered", "1") if name == "a name that cannot be read" else ANNA
        assert names == {first, BEN}
        assert len(store.load(first).entries) == ENTRIES - (name == "an entry that is gone")


VALUES = (
    st.none()
    | st.sampled_from(
        ["", "abc", " 7", "1e5", "\x00", "a\x00b", '["anna"]', "[]", "null", b"", b"abc", b"\xff", b"\x00" * 8]
    )
    | st.sampled_from([-(2**63), -1, 0, 1, 3, 7, 255, 2**31, 2**53, 2**53 + 1, 2**62, 2**63 - 1])
    | st.sampled_from([0.5, -1.0, 1e300, float("inf"), float("-inf")])
)
COLUMNS = st.sampled_from([column for table in schema.sorted_tables for column in table.columns])


@given(st.lists(st.tuples(COLUMNS, VALUES, st.sampled_from([0, 1, 3, None])), min_size=1, max_size=3))
@example([(schema.tables["entries"].c.seq, "abc", 3)])
@example([(schema.tables["entries"].c.text, b"caf\xc3\xa9", 3)])
@example([(schema.tables["entries"].c.id, b"\xff", 3)])
@example([(schema.tables["links"].c.seq, "abc", 3)])
@example([(schema.tables["namespaces"].c.generation, 2**63 - 1, None)])
@example([(schema.tables["scores"].c.saved, 2**63 - 1, None)])
@example([(schema.tables["entries"].c.id, b"", 1), (schema.tables["entries"].c.namespace, -(2**63), 1)])
@example([(schema.tables["memory_state"].c.generation, 2**53, None)])
@example([(schema.tables["entries"].c.seq, 2**53, 3), (schema.tables["concepts"].c.number, 2**53, 1)])
@pytest.mark.timeout(400)  # a failure is looked for in its smallest form, which takes longer than the test
@settings(max_examples=int(os.environ.get("FUZZ_EXAMPLES", "12")), deadline=None)
def test_a_value_of_any_kind_in_any_column_is_found_and_mended(made, changes):
    """What is written there is in one row, or in all of the table. Texts that were not written over stay."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(shutil.copy(made, folder))
        for column, value, row in changes:
            where = "" if row is None else f" WHERE ({keys(column.table)}) = (SELECT {keys(column.table)} FROM "
            where += "" if row is None else f"{column.table.name} ORDER BY {keys(column.table)} LIMIT 1 OFFSET {row})"
            connection = sqlite3.connect(path)
            with contextlib.suppress(sqlite3.IntegrityError, OverflowError), connection:
                connection.execute(f"UPDATE {column.table.name} SET {column.name} = ?{where}", (value,))
            connection.close()
        before = texts(path)
        faults = check_memory(path).faults
        assert not any(fault.kind == "file" for fault in faults), faults
        mended = repair_memory(path)
        assert check_memory(path).faults == (), (faults, mended)
        assert bool(mended.done) == bool(faults)
        assert texts(path) >= before
        with Store.open(path) as store:
            for info in store.namespaces():
                entry = MemoryEntry("a purple bicycle", id="new")
                assert store.write(info.name, [EntryWrite(entry, tuple(said_concepts(entry)))]).added == 1
                state = store.load(info.name)
                assert {"purple bicycle"} <= {key for key, _ in state.concepts}
                assert store.load_scores(info.name, "tiny", state) is not None
                store.forget(info.name, ids=["new"])
        assert check_memory(path).faults == ()


def keys(table):
    return ", ".join(column.name for column in table.primary_key)


def texts(path):
    """The texts of entries that can be read as such."""
    connection = sqlite3.connect(path)
    found = Counter(
        text.replace("\x00", "")
        for (text,) in connection.execute("SELECT CAST(text AS TEXT) FROM entries WHERE CAST(text AS TEXT) != x'ff'")
        if text.strip("\x00 ")
    )
    connection.close()
    return found


def test_what_a_model_expects_of_other_entries_outlives_a_repair(path):
    change(path, "UPDATE anticipations SET logprobs = x'00' WHERE namespace = 1 AND seq = 3")
    assert repair_memory(path).done == ("dropped what models expected of 1 entries in namespace ('anna',)",)
    with Store.open(path) as store:
        for name, known in ((ANNA, [0, 1, 2, *range(4, ENTRIES)]), (BEN, [*range(ENTRIES)])):
            assert store.load_anticipations(name, "tiny", store.load(name)).entry.tolist() == known


def test_the_model_completes_a_memory_that_was_repaired_rebuilt_or_carried_over(open_memory, tmp_path, turns):
    """What it computed is there again as it was: concepts, links, and what it expects of each entry."""
    path, new = tmp_path / "memory.db", tmp_path / "new.db"

    def computed(place):
        with open_memory(place) as memory:
            memory.consolidate()
            [fingerprint], state = memory.store.fingerprints(), memory.store.load(memory.namespace)
            expected = memory.store.load_anticipations(memory.namespace, fingerprint, state)
            with memory.store.scan(memory.namespace) as (_, writes):
                links = [(write.entry, set(write.links)) for write in writes]
            return links, [column.tolist() for column in (expected.entry, expected.tokens)]

    with open_memory("memory.db") as memory:
        memory.remember(turns[:4])
    before = computed("memory.db")
    assert before[1][0] == [*range(4)]
    assert check_memory(path).faults == ()
    change(path, "UPDATE anticipations SET token_ids = x'ff'")
    assert repair_memory(path).done
    assert computed("memory.db") == before
    assert rebuild_memory(path).waiting == 4
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM anticipations").fetchone() == (0,)
    connection.close()
    assert check_memory(path).faults == ()
    assert computed("memory.db") == before
    assert salvage_memory(path, new).entries == 4
    assert check_memory(new).faults == ()
    assert computed("new.db") == before
    assert check_memory(new).faults == check_memory(path).faults == ()


def test_what_is_derived_comes_back_as_it_was(path, made):
    change(path, "DELETE FROM concepts WHERE namespace = 1", "UPDATE links SET origin = 9 WHERE namespace = 2")
    mended = repair_memory(path)
    assert mended.waiting == 2 * ENTRIES
    expected = {
        name: [(entry, {link for link in links if link.is_grounding}) for entry, links in entries]
        for name, entries in content(made).items()
    }
    found = {name: [(entry, set(links)) for entry, links in entries] for name, entries in content(path).items()}
    assert found == expected
    with Store.open(path) as store:
        assert not any(one.assimilated for one in store.load(ANNA).entries)


def test_everything_derived_is_rebuilt_when_asked(path, made):
    change(path, "DELETE FROM links WHERE origin = 1")  # what a model inferred, only a model can know
    assert check_memory(path).faults == ()
    mended = rebuild_memory(path)
    assert mended.waiting == 2 * ENTRIES
    assert mended.kept.is_file()
    found, expected = content(path), content(made)
    assert [entry for entry, _ in found[ANNA]] == [entry for entry, _ in expected[ANNA]]
    for (_, links), (_, before) in zip(found[BEN], expected[BEN], strict=True):
        assert set(links) == {link for link in before if link.is_grounding}
    assert check_memory(path).faults == ()


@pytest.mark.parametrize(
    "config",
    [
        SCGConfig(),
        SCGConfig.paper(),
        SCGConfig(accommodation="spans", gate="perplexity", batch=4),
        SCGConfig(accommodation="generate", grounded=False),
        SCGConfig(assimilate=0, inferred_weight=0.1),
    ],
)
def test_a_sound_memory_is_sound_whatever_its_settings(open_memory, tmp_path, turns, config):
    """Also when the entries that grounded others' concepts are forgotten, replaced or imported."""
    path, other = tmp_path / "memory.db", tmp_path / "other.db"
    with open_memory(config=config) as memory:
        memory.remember(turns[:6])
        memory.remember(turns[6:9], use_model=False)
        memory.consolidate()
        assert check_memory(path).faults == ()
        memory.remember(MemoryEntry("Other bees", id="t02"))
        memory.forget(ids=["t01", "t03", "t07"])
        assert check_memory(path).faults == ()
        memory.export(tmp_path / "exported.jsonl")
        with open_memory(other, config=config) as imported:
            imported.import_file(tmp_path / "exported.jsonl")
    assert check_memory(path).faults == check_memory(other).faults == ()
    assert repair_memory(path).done == ()


@pytest.mark.parametrize(
    ("statements", "entries"),
    [
        (["DELETE FROM scores", "DELETE FROM links", "DELETE FROM concepts"], 2 * ENTRIES),
        (["UPDATE concepts SET key = 'x' || key"], 2 * ENTRIES),
        (["UPDATE links SET surface = 'other words' WHERE namespace = 1 AND seq = 3"], 1),
    ],
)
def test_of_what_an_earlier_version_stored_what_cannot_be_is_found(path, made, statements, entries):
    """It did not note which links an entry was stored with."""
    change(path, "UPDATE entries SET grounds = NULL")
    assert check_memory(path).faults == ()
    change(path, *statements)
    assert "link" in {fault.kind for fault in check_memory(path).faults}
    mended = repair_memory(path)
    assert mended.waiting == entries
    assert check_memory(path).faults == ()
    found, expected = content(path), content(made)
    for (entry, links), (before, earlier) in zip(found[ANNA], expected[ANNA], strict=True):
        assert entry == before
        assert {link for link in links if link.is_grounding} == {link for link in earlier if link.is_grounding}


def test_a_memory_is_checked_while_others_write(path):
    """All of it is looked at as of one moment, so it is neither refused nor found to be at odds with itself."""
    written, stop = [], threading.Event()

    def work():
        with Store.open(path) as store:
            while not stop.is_set():
                entry = MemoryEntry(f"purple bicycle {len(written)}", id=f"w{len(written)}")
                store.write(ANNA, [EntryWrite(entry, tuple(said_concepts(entry)))])
                written.append(entry)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(5):
            before = len(written)
            checked = check_memory(path)
            assert checked.faults == ()
            assert 2 * ENTRIES + before <= checked.entries <= 2 * ENTRIES + len(written) + 1
    finally:
        stop.set()
        thread.join()
    assert written


def test_an_index_that_lies_is_rebuilt(path):
    change(
        path,
        "PRAGMA writable_schema = ON",
        "CREATE TABLE t AS SELECT 1",
        "DROP TABLE t",
    )
    connection = sqlite3.connect(path)
    root = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'entries_by_digest'").fetchone()[0]
    connection.close()
    whole = bytearray(path.read_bytes())
    page = whole[(root - 1) * 4096 : root * 4096]
    at = page.find(b"t0", 8)
    assert at < 0  # the index holds digests, not ids
    # A byte of a digest in the index: the row it stands for is not found by it any more.
    place = (root - 1) * 4096 + 4096 - 20
    whole[place] = ord("0") if whole[place] != ord("0") else ord("1")
    path.write_bytes(whole)
    assert {fault.kind for fault in check_memory(path).faults} == {"file"}
    with pytest.raises(StoreError, match="repair --into"):
        repair_memory(path)
    assert salvage_memory(path, path.with_name("new.db")).entries == 2 * ENTRIES


def test_every_entry_is_carried_over_from_a_file_without_its_concepts(path, tmp_path, made):
    with Store.open(path) as store:
        store.write(ANNA, [EntryWrite(MemoryEntry("only in the log", id="late"))])
        shutil.copy(path, tmp_path / "live.db")
        shutil.copy(f"{path}-wal", tmp_path / "live.db-wal")
    change(
        tmp_path / "live.db",
        "DELETE FROM concepts",
        "DELETE FROM scores",
        "DELETE FROM anticipations",
        "UPDATE entries SET metadata = '{' WHERE seq = 3",
    )
    salvaged = salvage_memory(tmp_path / "live.db", tmp_path / "new.db")
    assert salvaged.entries == 2 * ENTRIES + 1
    assert [one.why for one in salvaged.lost] == ["unreadable: metadata"] * 2
    checked = check_memory(tmp_path / "new.db")
    assert (checked.entries, checked.faults) == (2 * ENTRIES + 1, ())
    found, expected = content(tmp_path / "new.db"), content(made)
    assert [entry.text for entry, _ in found[BEN]] == [entry.text for entry, _ in expected[BEN]]
    with pytest.raises(InvalidInputError, match="exists"):
        salvage_memory(path, tmp_path / "new.db")


def test_of_a_damaged_file_whatever_can_be_read_is_carried_over(path, tmp_path):
    whole = path.read_bytes()
    chance = random.Random(0)
    carried = []
    for number in range(8):
        damaged = bytearray(whole)
        for _ in range(2):
            page = chance.randrange(1, len(whole) // 4096)
            damaged[page * 4096 : page * 4096 + 4096] = chance.randbytes(4096)
        path.write_bytes(damaged)
        new = tmp_path / f"new{number}.db"
        try:
            carried.append(salvage_memory(path, new).entries)
        except StoreError:
            assert not new.exists()
            continue
        assert path.read_bytes() == damaged
        checked = check_memory(new)
        assert (checked.entries, checked.faults) == (carried[-1], ())
    assert max(carried) >= 20
    assert len(carried) > 4


def test_what_is_no_memory_is_not_repaired(tmp_path):
    for call in (check_memory, repair_memory, rebuild_memory):
        with pytest.raises(NotFoundError):
            call(tmp_path / "none.db")
    with pytest.raises(NotFoundError):
        salvage_memory(tmp_path / "none.db", tmp_path / "new.db")
    (tmp_path / "noise.db").write_bytes(random.Random(0).randbytes(9000))
    with pytest.raises(StoreError, match="left as it is"):
        salvage_memory(tmp_path / "noise.db", tmp_path / "new.db")
    assert not (tmp_path / "new.db").exists()


def test_what_a_server_lets_go_wrong_is_found_and_mended_there(made, postgres):
    name = postgres.database()
    url = postgres.url(name)
    migrate_memory(made, url)
    assert check_memory(url).faults == ()
    assert check_memory(url) == check_memory(made)
    before = content(url)
    with postgres.connect(name) as connection:
        connection.execute(
            "SET search_path TO scg_memory;"
            "UPDATE concepts SET surface = 'ghost' WHERE number = 3;"
            "UPDATE links SET weight = 'NaN' WHERE seq = 4;"
            "UPDATE links SET surface = NULL WHERE seq = 5 AND origin = 0;"
            "UPDATE namespaces SET next_seq = 3, generation = 999;"
            "UPDATE anticipations SET logprobs = '\\x00' WHERE seq = 3;"
            "UPDATE scores SET sizes = '\\xffffffff';"
            "UPDATE links SET origin = 2 WHERE namespace = 1 AND seq = 6;"
            "UPDATE links SET weight = 999 WHERE namespace = 1 AND seq = 7;"
            "DELETE FROM links WHERE namespace = 1 AND seq = 8;"
            "UPDATE concepts SET key = 'ghost' WHERE namespace = 2 AND number = 5;"
            "UPDATE entries SET changed = -5, touched = 'NaN' WHERE namespace = 2 AND seq = 2;"
            "DROP INDEX links_by_concept; DROP INDEX entries_by_digest"
        )
    assert {fault.kind for fault in check_memory(url).faults} == {"schema", "value"}
    with postgres.connect(name) as connection:
        connection.execute(
            "SET search_path TO scg_memory; UPDATE entries SET changed = 0, touched = 0 WHERE seq = 2;"
            "UPDATE links SET weight = 7 WHERE seq = 4"
        )
    found = {fault.kind for fault in check_memory(url).faults}
    assert found >= {"schema", "concept", "link", "counter", "scores"}
    with postgres.connect(name) as connection:
        connection.execute("SET search_path TO scg_memory; UPDATE entries SET changed = -5 WHERE seq = 2")
    mended = repair_memory(url)
    assert mended.done
    assert mended.kept is None
    assert check_memory(url).faults == ()
    after = content(url)
    assert {name: [entry for entry, _ in entries] for name, entries in after.items()} == {
        name: [entry for entry, _ in entries] for name, entries in before.items()
    }
    assert rebuild_memory(url).waiting == 2 * ENTRIES
    with pytest.raises(InvalidInputError, match="restore"):
        salvage_memory(url, made.with_name("new.db"))
