"""What a disk, a clock or another program may do to a memory: a clear error, and nothing acknowledged is lost."""

import os
import shutil
import signal
import sqlite3
import time
from datetime import datetime
from pathlib import Path

import pytest

from shared_core import MemoryEntry, SCGConfig, SchemaMemory
from shared_core.errors import InvalidInputError, StoreUnavailableError
from shared_core.store import ConceptLink, EntryWrite, Store
from shared_core.upkeep import check_memory, check_store
from tests.child import in_a_child

ANNA = ("anna",)
NOBODY = 65534


@pytest.fixture
def path(tmp_path):
    """A sound memory of three entries."""
    path = tmp_path / "memory.db"
    with Store.open(path) as store:
        store.write(ANNA, [write(str(number)) for number in range(3)])
    return path


def write(id, size=1):
    said = ConceptLink(f"key {id}", f"Key {id}", 1.0, "said")
    return EntryWrite(MemoryEntry(f"text {id} " * size, id=id), (said,))


def ids_in(path):
    with Store.open(path, create=False) as store:
        assert check_store(store).faults == ()
        return [one.entry.id for one in store.load(ANNA).entries]


def until_refused(path):
    """Write more and more; gives the ids that were acknowledged, and the refusal."""
    acknowledged = []
    with Store.open(path) as store:
        for number in range(3, 400):
            try:
                store.write(ANNA, [write(str(number), 300)])
            except StoreUnavailableError as error:
                left = [one.entry.id for one in store.load(ANNA).entries]
                return acknowledged, str(error), left
            acknowledged.append(str(number))
    raise AssertionError("it was never refused")


def test_a_file_that_may_not_grow_keeps_what_was_acknowledged(path):
    """A quota, or a limit of the process: the write fails in the middle of a commit."""
    acknowledged, told, left = in_a_child(lambda: until_refused(path), limit=400_000)
    assert len(acknowledged) > 3
    assert "disk" in told
    assert left == ids_in(path) == ["0", "1", "2", *acknowledged]


def test_a_full_disk_keeps_what_was_acknowledged(path, tmp_path):
    """A real one, where this user may make one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if os.system(f"mount -t tmpfs -o size=600k tmpfs {disk} 2>/dev/null"):
        test_a_file_that_may_not_grow_keeps_what_was_acknowledged(path)  # not allowed to: this comes nearest
        return
    try:
        shutil.copy(path, disk / "memory.db")
        acknowledged, told, left = until_refused(disk / "memory.db")
        assert len(acknowledged) > 5
        assert "space" in told
        assert left == ["0", "1", "2", *acknowledged]
        with Store.open(disk / "memory.db") as store, pytest.raises(StoreUnavailableError, match="older file"):
            store.back_up(disk / "copy.db")
        assert sorted(file.name for file in disk.iterdir() if "copy" in file.name) == []
        assert os.system(f"mount -o remount,size=8m {disk}") == 0  # space is freed
        with Store.open(disk / "memory.db") as store:
            erased = store.forget(ANNA, ids=acknowledged)
            assert (erased.entries, erased.wiped) == (len(acknowledged), True)
        assert ids_in(disk / "memory.db") == ["0", "1", "2"]
    finally:
        os.system(f"umount -l {disk}")


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_memory_without_the_right_to_write_says_so(path, what):
    folder = path.parent
    for place in [folder, *folder.parents[:3]]:
        place.chmod(place.stat().st_mode | 0o055)
    (path if what == "file" else folder).chmod(0o444 if what == "file" else 0o555)
    before = path.read_bytes()

    def use():
        with Store.open(path) as store:
            store.write(ANNA, [write("new")])
        return "stored"

    told = in_a_child(use, user=NOBODY)
    folder.chmod(0o755)
    assert told.startswith("StoreUnavailableError")
    assert "allow writing" in told or "may be read and written" in told
    assert path.read_bytes() == before


def replaced(path):
    other = path.with_name("other.db")
    with Store.open(other) as store:
        store.write(ANNA, [write("other")])
    other.replace(path)


@pytest.mark.parametrize(("happen", "told"), [(Path.unlink, "deleted"), (replaced, "replaced")])
def test_a_file_that_goes_away_under_an_open_memory_takes_no_more(path, happen, told):
    """The connection would go on writing to a file that nobody can find."""
    with Store.open(path) as store:
        store.load(ANNA)
        happen(path)
        here = path.read_bytes() if path.exists() else None
        for call in (
            lambda: store.write(ANNA, [write("new")]),
            lambda: store.load(ANNA),
            lambda: store.forget(ANNA, ids=["1"]),
            lambda: store.back_up(path.with_name("copy.db")),
            store.check,
        ):
            with pytest.raises(StoreUnavailableError, match=f"{told}.*open the memory again"):
                call()
    assert (path.read_bytes() if path.exists() else None) == here


def test_a_file_that_goes_away_during_a_write_is_not_acknowledged(path):
    def one():
        path.unlink()
        yield write("new")

    with Store.open(path) as store, pytest.raises(StoreUnavailableError, match="deleted"):
        store.write(ANNA, one())


def test_a_moved_memory_can_be_opened_where_it_is_now(path):
    with Store.open(path) as store:
        store.write(ANNA, [write("3")])
        for file in path.parent.glob("memory.db*"):
            file.rename(file.with_name(file.name.replace("memory", "moved")))
        with pytest.raises(StoreUnavailableError):
            store.load(ANNA)
    assert ids_in(path.with_name("moved.db")) == ["0", "1", "2", "3"]


def test_a_truncated_or_overwritten_page_is_told_by_the_check(path):
    whole = path.read_bytes()
    for damage in (whole[: len(whole) - 4096], whole[:8192] + bytes(4096) + whole[12288:]):
        path.write_bytes(damage)
        checked = check_memory(path)
        assert {fault.kind for fault in checked.faults} == {"file"}
        path.write_bytes(whole)
    assert check_memory(path).faults == ()


@pytest.mark.parametrize("years", [-40, 40])
def test_a_clock_that_jumps_changes_nothing(path, monkeypatch, years):
    """Order and generations are counted, not read off a clock."""
    with Store.open(path) as store:
        before = store.generation(ANNA)
        now = time.time() + years * 365 * 86400
        monkeypatch.setattr(time, "time", lambda: now)
        monkeypatch.setattr(time, "time_ns", lambda: int(now * 1e9))
        store.write(ANNA, [write("later")])
        assert store.generation(ANNA) > before
        assert store.forget(ANNA, ids=["1"]).wiped
        assert [one.entry.id for one in store.load(ANNA).entries] == ["0", "2", "later"]
        assert check_store(store).faults == ()


def test_a_backup_is_whole_while_others_write_and_erase(path):
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.alarm(100)
        with Store.open(path) as store:
            for number in range(3, 100_000):
                # Always three at once: a copy from the middle of a write would show it.
                store.write(ANNA, [write(f"{number} {part}") for part in range(3)])
                if number % 5 == 0:
                    store.forget(ANNA, ids=[f"{number} {part}" for part in range(3)])
                if number == 4:
                    os.write(write_end, b"x")
    try:
        os.read(read_end, 1)
        with Store.open(path) as store:
            for number in range(6):
                copy = store.back_up(path.with_name(f"copy{number % 2}.db"))
                checked = check_memory(copy)
                assert checked.faults == ()
                assert checked.entries % 3 == 0
                assert checked.entries > 3
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    assert {file.name for file in path.parent.iterdir()} - {"memory.db-wal", "memory.db-shm"} == {
        "memory.db",
        "copy0.db",
        "copy1.db",
    }


def test_a_backup_is_a_memory_like_any_other(path, tmp_path):
    with Store.open(path) as store:
        for bad in (path, tmp_path):
            with pytest.raises(InvalidInputError):
                store.back_up(bad)
        with pytest.raises(StoreUnavailableError, match="cannot be written"):
            store.back_up(tmp_path / "none" / "copy.db")
        copy = store.back_up(tmp_path / "copy.db")
        store.clear(ANNA)
    assert ids_in(copy) == ["0", "1", "2"]
    copy.replace(path)  # the restoring that is documented
    assert ids_in(path) == ["0", "1", "2"]
    with Store.open(":memory:") as store:
        store.write(ANNA, [write("1")])
        assert ids_in(store.back_up(tmp_path / "kept.db")) == ["1"]


def test_a_log_that_was_deleted_under_an_open_memory_is_carried_over_when_it_is_closed(path):
    with Store.open(path) as store:
        store.write(ANNA, [write("3")])
        Path(f"{path}-wal").unlink()
        store.write(ANNA, [write("4")])
    assert ids_in(path) == ["0", "1", "2", "3", "4"]


def test_an_error_of_the_disk_is_told_as_one(path, monkeypatch):
    with Store.open(path) as store:

        def fail(*args):
            raise sqlite3.OperationalError("disk I/O error")

        monkeypatch.setattr("shared_core.store.reading.find_namespace", fail)
        with pytest.raises(StoreUnavailableError, match="disk"):
            store.known(ANNA, ["1"])


def test_what_is_remembered_long_ago_and_far_ahead_is_kept(tmp_path):
    with SchemaMemory.open(tmp_path / "m.db", config=SCGConfig(assimilate=0)) as memory:
        times = [datetime.min, datetime.max, datetime(2024, 2, 29, 23, 59, 59, 999_999)]
        memory.remember([MemoryEntry(f"kettle {n}", str(n), occurred_at=t) for n, t in enumerate(times)])
        assert [entry.occurred_at for entry in memory.entries] == times
