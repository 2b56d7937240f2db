"""A file that is put in the place of another is the new one, whole, whatever lay there and beside it."""

import os
import signal
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from shared_core.entry import MemoryEntry
from shared_core.errors import InvalidInputError, SCGError, StoreError, StoreUnavailableError
from shared_core.store import EntryWrite, Store, export_namespace, import_namespace, migrate_memory, placing
from shared_core.store import sqlite as sqlite_engine
from shared_core.upkeep import check_memory, repair_memory, salvage_memory

ANNA = ("anna",)
KILLED = """
import os, sys
from shared_core.entry import MemoryEntry
from shared_core.store import EntryWrite, Store
store = Store.open(sys.argv[1])
for number in range(30):
    store.write(("anna",), [EntryWrite(MemoryEntry(f"the old heron {number}", id=f"old {number}"))])
os.kill(os.getpid(), 9)
"""


def fill(path, count=40):
    with Store.open(path) as store:
        store.write(ANNA, [EntryWrite(MemoryEntry(f"the new fox {n}", id=f"new {n}")) for n in range(count)])
    return path


def ids(path):
    assert check_memory(path).faults == ()
    with Store.open(path, create=False) as store:
        return [one.entry.id for one in store.load(ANNA).entries]


def killed(path):
    """A memory whose last user was killed, so that its log is left beside it."""
    subprocess.run([sys.executable, "-c", KILLED, path], check=False, cwd=Path(__file__).parents[3])
    assert Path(f"{path}-wal").stat().st_size > 30_000
    return path


def back_up(source, target):
    with Store.open(source) as store:
        store.back_up(target)


def export(source, target):
    with Store.open(source) as store:
        export_namespace(store, ANNA, target)


WRITERS = {"back_up": back_up, "export": export, "migrate": migrate_memory, "salvage": salvage_memory}


@pytest.fixture
def source(tmp_path):
    return fill(tmp_path / "source.db")


def test_a_backup_over_a_memory_that_was_killed_is_the_new_one(source, tmp_path):
    old = killed(tmp_path / "copy.db")
    back_up(source, old)
    assert ids(old) == ids(source)


@pytest.mark.parametrize("moment", ["_remove_companions", "_sync", "replace"])
def test_a_backup_that_is_killed_leaves_the_old_memory_or_the_new_one(source, tmp_path, moment):
    old = killed(tmp_path / "copy.db")
    pid = os.fork()
    if pid == 0:
        owner = Path if moment == "replace" else placing
        setattr(owner, moment, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        back_up(source, old)
    os.waitpid(pid, 0)
    assert ids(old) == [f"old {number}" for number in range(30)]
    back_up(source, old)
    assert ids(old) == ids(source)


@pytest.mark.parametrize("writer", ["migrate", "salvage"])
@pytest.mark.parametrize("left", ["-wal", "-shm", "-journal"])
def test_nothing_new_is_put_beside_what_is_left_of_another(source, tmp_path, writer, left):
    old = killed(tmp_path / "copy.db")
    content = Path(f"{old}-wal").read_bytes()
    for suffix in ("", "-wal", "-shm"):
        Path(f"{old}{suffix}").unlink()
    Path(f"{old}{left}").write_bytes(content)
    with pytest.raises(InvalidInputError, match="delete it, or name a new file"):
        WRITERS[writer](source, old)
    assert not old.exists()
    back_up(source, old)  # which may replace what is there
    assert ids(old) == ids(source)


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("suffix", ["", "-wal", "-shm", "-journal"])
def test_the_files_of_a_memory_in_use_are_not_written_over(source, tmp_path, monkeypatch, writer, suffix):
    (tmp_path / "folder").symlink_to(tmp_path)
    (tmp_path / "link.db").symlink_to(source)
    monkeypatch.chdir(tmp_path)
    with Store.open(source) as store:
        store.write(ANNA, [EntryWrite(MemoryEntry("only in the log", id="late"))])
        its = Path(f"{source}{suffix}")
        names = [its, tmp_path / "folder" / its.name, its.name, Path(f"link.db{suffix}")]
        if its.exists():
            os.link(its, tmp_path / "hard")
            (tmp_path / "soft").symlink_to(its)
            names += [tmp_path / "hard", tmp_path / "soft"]
        for name in names:
            with pytest.raises(InvalidInputError):
                WRITERS[writer](source, name)
        for name in ("hard", "soft"):
            (tmp_path / name).unlink(missing_ok=True)
    assert ids(source)[-1] == "late"


@pytest.mark.parametrize("writer", ["back_up", "export"])
def test_a_memory_that_somebody_has_open_is_not_replaced(source, tmp_path, writer):
    other = fill(tmp_path / "other.db", 3)
    with Store.open(other) as store:
        store.write(ANNA, [EntryWrite(MemoryEntry("only in the log", id="late"))])
        with pytest.raises(StoreUnavailableError, match="open elsewhere"):
            WRITERS[writer](source, other)
        store.write(ANNA, [EntryWrite(MemoryEntry("later still", id="later"))])
    assert ids(other)[-2:] == ["late", "later"]
    WRITERS[writer](source, other)
    assert {file.name for file in tmp_path.iterdir()} == {"source.db", "other.db"}


def test_a_link_is_replaced_and_what_it_leads_to_stays(source, tmp_path):
    other = fill(tmp_path / "other.db", 3)
    (tmp_path / "link.db").symlink_to(other)
    back_up(source, tmp_path / "link.db")
    assert not (tmp_path / "link.db").is_symlink()
    assert (len(ids(tmp_path / "link.db")), len(ids(other))) == (40, 3)


def test_what_is_no_database_is_replaced(source, tmp_path):
    for content in (b"", b"Dear diary\n" * 100, b"SQLite format 3\x00" + bytes(90), source.read_bytes()[:5000]):
        (tmp_path / "other.db").write_bytes(content)
        (tmp_path / "other.db-wal").write_bytes(b"left over")
        back_up(source, tmp_path / "other.db")
        assert ids(tmp_path / "other.db") == ids(source)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o666])
def test_no_copy_is_readable_for_more_than_the_original(source, tmp_path, mode):
    connection = sqlite3.connect(source)
    connection.execute("UPDATE namespaces SET next_seq = 0")
    connection.commit()
    connection.close()
    source.chmod(mode)
    kept = repair_memory(source).kept
    copies = {writer: tmp_path / writer for writer in WRITERS}
    for writer, target in copies.items():
        WRITERS[writer](source, target)
    for copy in (kept, *copies.values()):
        assert stat.S_IMODE(copy.stat().st_mode) == (mode & 0o644 if copy.name != "export" else 0o600), copy
    with Store.open(":memory:") as store:
        assert stat.S_IMODE(store.back_up(tmp_path / "kept").stat().st_mode) == 0o600


BAD = ["a\x00b", "", "  ", "a\ud800", None, 5, b"bytes", "b" * 250, "b" * 500, "none/x", "."]


@pytest.mark.parametrize("path", BAD, ids=lambda path: repr(path)[:20])
def test_a_path_that_is_none_is_refused_everywhere(source, tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    with Store.open(source) as store:
        calls = {
            "back_up": lambda: store.back_up(path),
            "export": lambda: export_namespace(store, ANNA, path),
            "import": lambda: import_namespace(store, ANNA, path),
            "open": lambda: Store.open(path),
            "migrate": lambda: migrate_memory(source, path),
            "salvage": lambda: salvage_memory(source, path),
            "salvage of": lambda: salvage_memory(path, tmp_path / "new.db"),
        }
        for call in calls.values():
            with pytest.raises(SCGError):
                call()
    assert [file.name for file in tmp_path.iterdir()] == ["source.db"]
    with pytest.raises(InvalidInputError):
        Store.open(Path("a\x00b"))


def test_a_memory_whose_file_is_gone_is_not_begun_anew_over_its_log(tmp_path):
    """SQLite would throw the log away, with what was acknowledged."""
    old = killed(tmp_path / "memory.db")
    log = Path(f"{old}-wal")
    content = log.read_bytes()
    for happen in (lambda: os.truncate(old, 0), old.unlink):
        happen()
        for create in (True, False):
            with pytest.raises(StoreError, match="log"):
                Store.open(old, create=create)
        assert {fault.kind for fault in check_memory(old).faults} == {"file"}
        assert log.read_bytes() == content
    log.unlink()
    Store.open(old).close()


def test_a_memory_that_is_replaced_while_it_is_opened_is_not_used(source, tmp_path, monkeypatch):
    """The connection would be to the old file, and its log would lie beside the new one."""
    other = fill(tmp_path / "other.db", 3)
    open_engine = sqlite_engine.open_engine

    def replaced(path, **options):
        engine = open_engine(path, **options)
        other.replace(path)
        return engine

    monkeypatch.setattr(sqlite_engine, "open_engine", replaced)
    with pytest.raises(StoreUnavailableError, match="open it again"):
        Store.open(source)
    monkeypatch.undo()
    assert len(ids(source)) == 3


def test_a_place_that_no_entry_has_is_refused(source):
    with Store.open(source) as store:
        for after in (2**70, 2**63, -(2**70), "1", None, 0.5, True):
            with pytest.raises(InvalidInputError, match="whole number"):
                store.page(ANNA, after)
        assert len(store.page(ANNA, -1)) == 40
