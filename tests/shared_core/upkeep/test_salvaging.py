"""Of a damaged file every entry that can be read is carried over, once, word for word, and what is lost is told."""

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from shared_core.entry import MemoryEntry
from shared_core.errors import StoreError, StoreUnavailableError
from shared_core.store import EntryWrite, Store
from shared_core.upkeep import check_memory, repair_memory, salvage_memory
from tests.child import in_a_child

ANNA, BEN = ("anna",), ("ben",)
ENTRIES = 60
"""In each of the two namespaces."""
NOBODY = 65534
KILLED = """
import os, sys
from shared_core.entry import MemoryEntry
from shared_core.store import EntryWrite, Store
Store.open(sys.argv[1]).write(("anna",), [EntryWrite(MemoryEntry("only in the log", id="late"))])
os.kill(os.getpid(), 9)
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    path = tmp_path_factory.mktemp("made") / "memory.db"
    chance = random.Random(0)
    words = ["river", "heron", "garden", "puppy", "kitchen", "bridge", "train", "monday", "jam", "quince", "bowl"]
    with Store.open(path) as store:
        for name in (ANNA, BEN):
            texts = [f"Entry {n}: {' '.join(chance.choices(words, k=1 + n % 40))}" for n in range(ENTRIES)]
            texts[30] *= 40  # over several pages
            entries = [MemoryEntry(text, id=f"e{n}", metadata={"n": n}) for n, text in enumerate(texts)]
            store.write(name, [EntryWrite(entry) for entry in entries])
    return path


@pytest.fixture
def path(made, tmp_path):
    return Path(shutil.copy(made, tmp_path / "memory.db"))


def change(path, *statements):
    connection = sqlite3.connect(path)
    with connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def texts(path):
    """Every text, by namespace and id."""
    assert check_memory(path).faults == ()
    with Store.open(path, create=False) as store:
        return {
            (info.name, one.entry.id): one.entry.text
            for info in store.namespaces()
            for one in store.load(info.name).entries
        }


BAD_IDS = ["''", "'  '", "x'ff'", "x''", "'a' || char(0)"]


@pytest.mark.parametrize("id", BAD_IDS)
def test_an_entry_without_an_id_is_kept_under_a_new_one(made, path, tmp_path, id):
    change(path, f"UPDATE entries SET id = {id} WHERE seq = 3", "UPDATE entries SET id = 'recovered-3' WHERE seq = 4")
    salvaged = salvage_memory(path, tmp_path / "new.db")
    assert salvaged.entries == 2 * ENTRIES
    assert len(salvaged.lost) == 2
    assert all("carried over as recovered-" in one.why for one in salvaged.lost)
    assert any("recovered-3-2" in what for what in repair_memory(path).done)
    expected = texts(made)
    for copy in (path, tmp_path / "new.db"):
        found = texts(copy)
        for name in (ANNA, BEN):
            [given] = {one for place, one in found if place == name} - {f"e{n}" for n in range(60)} - {"recovered-3"}
            assert given.startswith("recovered-")
            assert found[name, given] == expected[name, "e3"]
        assert sorted(found.values()) == sorted(expected.values())


def test_entries_whose_ids_became_equal_are_both_kept(made, path, tmp_path):
    damaged = bytearray(path.read_bytes())
    at = damaged.index(b"Entry 3:") - 64 - 1  # an id of two characters, a digest, the text
    assert damaged[at - 1 : at + 1] == b"e3"
    damaged[at] = ord("7")
    path.write_bytes(damaged)
    salvaged = salvage_memory(path, tmp_path / "new.db")
    assert salvaged.entries == 2 * ENTRIES
    [told] = salvaged.lost
    assert "another entry has its id" in told.why
    assert sorted(texts(tmp_path / "new.db").values()) == sorted(texts(made).values())


def test_a_text_that_is_not_what_was_stored_is_told(path, tmp_path):
    change(path, "UPDATE entries SET text = 'I planted weeds' WHERE namespace = 1 AND seq = 3")
    salvaged = salvage_memory(path, tmp_path / "new.db")
    assert [(one.first, one.why) for one in salvaged.lost] == [(4, "not as it was stored: its digest differs")]


@pytest.mark.parametrize("percent", [99, 90, 70, 50, 30, 10, 1])
def test_of_a_file_cut_short_whatever_is_there_is_carried_over(made, path, tmp_path, percent):
    os.truncate(path, path.stat().st_size * percent // 100)
    before = path.read_bytes()
    if len(before) < 4096:  # not even the names of the tables
        with pytest.raises(StoreError, match="nothing can be read"):
            salvage_memory(path, tmp_path / "new.db")
        assert not (tmp_path / "new.db").exists()
        return
    salvaged = salvage_memory(path, tmp_path / "new.db")
    assert path.read_bytes() == before
    expected, found = texts(made), texts(tmp_path / "new.db")
    assert salvaged.entries == len(found)
    assert found.items() <= expected.items()
    # Of the rest, row by row, not one can be read of the file with its missing pages.
    whole = path.with_name("whole.db")
    whole.write_bytes(before + bytes(made.stat().st_size - len(before)))
    connection = sqlite3.connect(whole)
    readable = set()
    for row in range(1, 2 * ENTRIES + 1):
        try:
            readable.update(connection.execute("SELECT text FROM entries NOT INDEXED WHERE rowid = ?", (row,)))
        except sqlite3.DatabaseError:
            continue
    connection.close()
    assert {text for (text,) in readable if "\x00" not in text} == set(found.values())
    lost = sum(one.last - one.first + 1 for one in salvaged.lost)
    assert lost >= 2 * ENTRIES - len(found)


@pytest.mark.parametrize("row", [-(2**63), -5, 0, 2**40, 2**63 - 1])
@pytest.mark.parametrize("damaged", [False, True])
def test_the_numbers_of_rows_do_not_matter(made, path, tmp_path, row, damaged):
    change(path, f"UPDATE entries SET rowid = {row} WHERE namespace = 1 AND seq = 3")
    expected = texts(made)
    if damaged:  # the page of some entries in the middle
        content = bytearray(path.read_bytes())
        page = content.index(b"Entry 50:") // 4096
        content[page * 4096 : page * 4096 + 4096] = bytes(4096)
        path.write_bytes(content)
    salvaged = salvage_memory(path, tmp_path / "new.db")
    found = texts(tmp_path / "new.db")
    assert found.items() <= expected.items()
    assert found[ANNA, "e3"] == expected[ANNA, "e3"]
    lost = sum(one.last - one.first + 1 for one in salvaged.lost)
    # A row that was moved leaves a number behind, which may be among those that are told as lost.
    assert len(found) + lost in (2 * ENTRIES, 2 * ENTRIES + 1)
    assert (len(found) < 2 * ENTRIES) == damaged


def test_names_are_read_of_their_index_where_their_table_is_gone(made, path, tmp_path):
    content = bytearray(path.read_bytes())
    connection = sqlite3.connect(path)
    (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'namespaces'").fetchone()
    connection.close()
    content[(root - 1) * 4096 : root * 4096] = bytes(4096)
    path.write_bytes(content)
    salvage_memory(path, tmp_path / "new.db")
    assert texts(tmp_path / "new.db") == texts(made)


def test_a_salvage_that_is_killed_leaves_nothing_and_can_be_done_again(path, tmp_path, monkeypatch):
    write, calls = Store.write, []

    def killed(store, *args, **options):
        calls.append(write(store, *args, **options))
        os.kill(os.getpid(), signal.SIGKILL)

    pid = os.fork()
    if pid == 0:
        Store.write = killed
        salvage_memory(path, tmp_path / "new.db")
    os.waitpid(pid, 0)
    assert not (tmp_path / "new.db").exists()
    assert salvage_memory(path, tmp_path / "new.db").entries == 2 * ENTRIES


def test_a_salvage_onto_a_full_disk_leaves_nothing(path, tmp_path):
    told = in_a_child(lambda: salvage_memory(path, tmp_path / "new.db").entries, limit=30_000)
    assert told.startswith(StoreUnavailableError.__name__)
    assert [file.name for file in tmp_path.iterdir()] == ["memory.db"]


@pytest.mark.parametrize("cut", [False, True])
def test_what_may_only_be_read_is_carried_over_with_its_log(path, tmp_path, cut):
    place = tmp_path / "read only"
    place.mkdir()
    memory = place / "memory.db"
    path.rename(memory)
    subprocess.run([sys.executable, "-c", KILLED, memory], check=False, cwd=Path(__file__).parents[3])
    Path(f"{memory}-shm").unlink()
    if cut:
        os.truncate(memory, memory.stat().st_size - 4096)
    for file in place.iterdir():
        file.chmod(0o444)
    place.chmod(0o555)
    for folder in [place, *place.parents[:4]]:
        folder.chmod(folder.stat().st_mode | 0o055)
    target = tmp_path / "open"
    target.mkdir()
    target.chmod(0o777)
    before = {file.name: file.read_bytes() for file in place.iterdir()}
    try:
        told = in_a_child(lambda: Store.open(memory).close(), user=NOBODY)
        assert told.startswith(StoreUnavailableError.__name__)
        assert "read-only" in told
        carried = in_a_child(lambda: salvage_memory(memory, target / "new.db").entries, user=NOBODY)
    finally:
        place.chmod(0o755)
    assert {file.name: file.read_bytes() for file in place.iterdir()} == before
    assert carried == 2 * ENTRIES + 1 if not cut else carried > ENTRIES
    assert texts(target / "new.db")[ANNA, "late"] == "only in the log"


@pytest.mark.parametrize("seed", range(12))
def test_nothing_is_lost_or_altered_without_a_word(made, path, tmp_path, seed):
    """Bits turned over, pages overwritten: what is not carried over word for word is named."""
    chance = random.Random(seed)
    content = bytearray(path.read_bytes())
    for _ in range(chance.choice([1, 5, 40])):
        content[chance.randrange(4096, len(content))] ^= 1 << chance.randrange(8)
    for _ in range(seed % 3):
        page = chance.randrange(1, len(content) // 4096) * 4096
        content[page : page + 4096] = chance.choice([bytes(4096), chance.randbytes(4096)])
    path.write_bytes(content[: len(content) - seed % 4 * 3000])
    try:
        salvaged = salvage_memory(path, tmp_path / "new.db")
    except StoreError:
        assert not (tmp_path / "new.db").exists()
        return
    expected, found = sorted(texts(made).values()), texts(tmp_path / "new.db").values()
    assert salvaged.entries == len(found)
    altered = [text for text in found if text not in expected]
    told = sum(one.last - one.first + 1 for one in salvaged.lost)
    assert told >= len(altered) + max(0, 2 * ENTRIES - len(found))
