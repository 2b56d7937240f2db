"""What opening does with every kind of file, and what the disk may do to an open store."""

import os
import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import Engine, event, text

from shared_core.entry import MemoryEntry
from shared_core.errors import (
    InvalidInputError,
    NotAMemoryError,
    NotFoundError,
    StoreError,
    StoreUnavailableError,
    StoreVersionError,
)
from shared_core.store import (
    ConceptLink,
    EntryWrite,
    KeyScores,
    Store,
    export_namespace,
    migrations,
    sqlite,
    tables,
)

ANNA = ("anna",)


def write(id, content="I adopted a puppy"):
    link = ConceptLink(f"key {id}", f"Key {id}", 1.0, "said")
    return EntryWrite(MemoryEntry(content, id=id, metadata={"n": 1}), (link,))


def fill(path, count=3):
    with Store.open(path) as store:
        store.write(ANNA, [write(str(n), f"text {n} " * 20) for n in range(count)])
        scores = {f"key {n}": KeyScores(np.arange(3, dtype=np.int32)) for n in range(count)}
        store.save_scores(ANNA, "tiny", scores)
    return path


def folder(path):
    return {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in path.parent.iterdir()}


@pytest.fixture
def pragma():
    """Sets a pragma on every connection made from then on; SQLite then fails as on a bad disk."""
    settings = []

    def listen(connection, record):
        for setting in settings:
            connection.execute(f"PRAGMA {setting}")

    event.listen(Engine, "connect", listen)
    yield settings.append
    event.remove(Engine, "connect", listen)


def test_what_was_written_is_there_after_opening_again(path):
    fill(path)
    for location in (path, str(path), f"sqlite:///{path}"):
        with Store.open(location, create=False) as store:
            assert store.path == path
            assert [stored.entry.id for stored in store.load(ANNA).entries] == ["0", "1", "2"]


def test_every_connection_is_durable_and_guarded(path):
    engine = sqlite.open_engine(path, create=True)
    with engine.connect() as first, engine.connect() as second:
        for connection in (first, second):
            values = {
                name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
                for name in ("journal_mode", "synchronous", "foreign_keys", "secure_delete", "busy_timeout")
            }
            assert values == {
                "journal_mode": "wal",
                "synchronous": 2,  # full
                "foreign_keys": 1,
                "secure_delete": 1,
                "busy_timeout": 30_000,
            }
    engine.dispose()


def test_a_relative_path_stays_where_it_was(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Store.open("memory.db") as store:
        monkeypatch.chdir("/")
        store.write(ANNA, [write("1")])
        assert store.path == tmp_path / "memory.db"


@pytest.mark.parametrize(
    "name", ["with space.db", "100%.db", "a?b=c.db", "a#b.db", "\u00e9\u4e2d.db", "file:x.db", "-.db"]
)
def test_any_file_name_will_do(tmp_path, name):
    fill(tmp_path / name)
    assert [file.name for file in tmp_path.iterdir()] == [name]
    with Store.open(tmp_path / name, create=False) as store:
        assert len(store.load(ANNA).entries) == 3


def test_a_memory_without_a_file_is_gone_when_closed():
    with Store.open(":memory:") as store, Store.open("sqlite://") as other:
        store.write(ANNA, [write("1")])
        assert store.path is None
        assert other.namespaces() == []
    with Store.open(":memory:") as store:
        assert store.namespaces() == []


def test_a_missing_memory_is_made_only_when_asked(path):
    with pytest.raises(NotFoundError, match="remembering something makes one"):
        Store.open(path, create=False)
    assert not path.exists()
    Store.open(path).close()
    Store.open(path, create=False).close()


def test_an_empty_file_becomes_a_memory(path):
    path.touch()
    with pytest.raises(NotFoundError):
        Store.open(path, create=False)
    assert path.stat().st_size == 0
    assert len(Store.open(fill(path)).load(ANNA).entries) == 3


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(NotFoundError, match="none"):
        Store.open(tmp_path / "none" / "memory.db")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "location",
    [
        "",
        "  ",
        "a\x00b",
        "mysql://localhost/memory",
        "postgresql://localhost",
        "sqlite:///memory.db?mode=ro",
        "nonsense://",
    ],
)
def test_locations_that_are_none_are_refused(location, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInputError):
        Store.open(location)
    assert list(tmp_path.iterdir()) == []


def test_a_url_with_a_password_does_not_show_it():
    for location in (
        "mysql://anna:secret@localhost/memory",
        "postgresql://anna:secret@localhost:none/memory",
        "postgresql://anna:my@secret@localhost/memory",
        "postgresql+psycopg:/anna:secret@localhost/memory",
        Path("postgresql+psycopg://anna:secret@localhost/memory"),
    ):
        with pytest.raises(InvalidInputError) as caught:
            Store.open(location)
        assert "secret" not in str(caught.value)


def test_no_file_is_written_where_a_database_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    url = "postgresql+psycopg://anna:secret@localhost/memory"
    with Store.open(":memory:") as store:
        for call in (store.back_up, lambda place: export_namespace(store, ("anna",), place)):
            for place in (url, Path(url)):
                with pytest.raises(InvalidInputError, match="where a file is meant") as caught:
                    call(place)
                assert "secret" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def foreign_database(path):
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE notes (text)")
        connection.execute("INSERT INTO notes VALUES ('mine')")
    connection.close()


def foreign_application(path):
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA application_id = 77")
    connection.close()


def foreign_log(path):
    """A database whose content is in its write-ahead log only, as after a crash."""
    connection = sqlite3.connect(path.with_suffix(".live"))
    connection.execute("PRAGMA journal_mode = WAL")
    with connection:
        connection.execute("CREATE TABLE notes (text)")
    for suffix in ("", "-wal"):
        shutil.copy(f"{path.with_suffix('.live')}{suffix}", f"{path}{suffix}")
    connection.close()
    path.with_suffix(".live").unlink()


def foreign_text(path):
    path.write_text("Dear diary, today I adopted a puppy.\n" * 100)


def foreign_short(path):
    path.write_bytes(b"x")


def foreign_header_only(path):
    path.write_bytes(b"SQLite format 3\x00")


def foreign_noise(path):
    path.write_bytes(random.Random(0).randbytes(10_000))


@pytest.mark.parametrize(
    "make",
    [
        foreign_database,
        foreign_application,
        foreign_log,
        foreign_text,
        foreign_short,
        foreign_header_only,
        foreign_noise,
    ],
)
def test_what_is_not_a_memory_is_refused_untouched(path, make):
    make(path)
    before = folder(path)
    for create in (True, False):
        with pytest.raises(NotAMemoryError, match="untouched"):
            Store.open(path, create=create)
    assert folder(path) == before


def test_what_is_not_a_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(NotAMemoryError, match="not a file"):
            Store.open(path)


def test_a_newer_version_is_refused_untouched(path):
    fill(path)
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {migrations.newest() + 1}")
    connection.close()
    before = folder(path)
    with pytest.raises(StoreVersionError, match="untouched"):
        Store.open(path)
    assert folder(path) == before


def test_what_another_version_changed_meanwhile_is_not_written(path):
    fill(path)
    with Store.open(path) as store:
        before = store.namespaces()
        for version, told in ((migrations.newest() + 1, "upgrade"), (migrations.newest() - 1, "open it again")):
            with closing(sqlite3.connect(path)) as connection:
                connection.execute(f"PRAGMA user_version = {version}")
            with pytest.raises(StoreVersionError, match=told):
                store.forget(ANNA, ids=["1"])
            with pytest.raises(StoreVersionError, match=told):
                store.clear(ANNA)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(f"PRAGMA user_version = {migrations.newest()}")
        assert store.namespaces() == before
        assert store.clear(ANNA).entries


def test_the_migrations_end_in_the_tables(path, tmp_path):
    fill(path)
    engine = sqlite.open_engine(tmp_path / "other.db", create=True)
    with engine.begin() as connection:
        tables.schema.drop_all(connection)
        tables.schema.create_all(connection)
    engine.dispose()
    made = []
    for file in (path, tmp_path / "other.db"):
        connection = sqlite3.connect(file)
        rows = connection.execute("SELECT type, name, coalesce(sql, '') FROM sqlite_master ORDER BY 1, 2").fetchall()
        made.append([(kind, name, " ".join(sql.split())) for kind, name, sql in rows])
        connection.close()
    assert made[0] == made[1]
    assert len(made[0]) > 10


def test_an_older_version_is_migrated_whole_or_not_at_all(path, monkeypatch):
    fill(path)

    def widen(connection):
        connection.execute(text("ALTER TABLE entries ADD COLUMN mood TEXT"))

    def fail(connection):
        raise RuntimeError("half way")

    released = migrations.MIGRATIONS
    monkeypatch.setattr(migrations, "MIGRATIONS", (*released, widen, fail))
    with pytest.raises(RuntimeError, match="half way"):
        Store.open(path)
    monkeypatch.setattr(migrations, "MIGRATIONS", released)
    Store.open(path).close()  # still the old version
    monkeypatch.setattr(migrations, "MIGRATIONS", (*released, widen))
    with Store.open(path) as store:
        assert len(store.load(ANNA).entries) == 3
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA user_version").fetchone() == (len(released) + 1,)
    assert "mood" in [row[1] for row in connection.execute("PRAGMA table_info(entries)")]
    connection.close()


def use(path):
    """Everything one can do with a store."""
    with Store.open(path) as store:
        state = store.load(ANNA, "tiny")
        assert len(state.link_entry) == len(state.link_concept)
        store.get(ANNA, [str(n) for n in range(60)])
        store.namespaces()
        with store.scan(ANNA) as (_, scanned):
            list(scanned)
        store.write(ANNA, [write("new"), write("3", "other")])
        store.forget(ANNA, ids=["5", "new"])
        store.clear(ANNA)


def test_a_file_cut_short_is_damaged(path):
    whole = fill(path, 60).read_bytes()
    assert len(whole) > 30_000
    for length in (50, 100, 512, 4095, 4096, 8192, 20_000, len(whole) - 4096, len(whole) - 3072):
        path.write_bytes(whole[:length])
        with pytest.raises(StoreError):
            use(path)


def test_damage_anywhere_gives_a_store_error_or_nothing(path):
    whole = fill(path, 60).read_bytes()
    chance = random.Random(1)
    errors = 0
    for trial in range(40):
        damaged = bytearray(whole)
        start = chance.randrange(len(whole)) if trial % 2 else chance.randrange(len(whole) // 4096) * 4096
        size = chance.choice([1, 4, 64, 4096])
        damaged[start : start + size] = chance.randbytes(len(damaged[start : start + size]))
        path.write_bytes(damaged)
        try:
            use(path)
        except StoreError:
            errors += 1
        for suffix in ("-wal", "-shm"):
            Path(f"{path}{suffix}").unlink(missing_ok=True)
    assert errors > 10


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("entries", "metadata = '{'"),
        ("entries", "metadata = '[]'"),
        ("entries", "occurred_at = 'yesterday'"),
        ("entries", "text = x'ff'"),
        ("entries", "text = cast(x'ff' as text)"),
        ("entries", "text = '', metadata = NULL"),
        ("concepts", "key = x'00'"),
        ("links", "origin = 7"),
        ("links", "weight = 'heavy'"),
        ("links", "weight = 9e999"),
        ("links", "seq = 99"),
        ("links", "concept = 99"),
        ("scores", "token_ids = x'00'"),
        ("scores", "neutral = x'00000000'"),
        ("scores", "sizes = x'ffffffff'"),
        ("scores", "concepts = x'00'"),
        ("scores", "known = x''"),
    ],
)
def test_values_that_cannot_be_are_damage(path, table, change):
    fill(path)
    with sqlite3.connect(path) as connection:
        number = {"entries": "seq", "concepts": "number", "scores": "block"}.get(table, "concept")
        assert connection.execute(f"UPDATE {table} SET {change} WHERE {number} = 0").rowcount == 1
    connection.close()
    with Store.open(path) as store, pytest.raises(StoreError, match="damaged"):
        store.load(ANNA, "tiny")


def test_a_read_only_memory_can_be_read(path, pragma):
    fill(path)
    before = path.read_bytes()
    pragma("query_only = ON")
    with Store.open(path) as store:
        for call in (
            lambda: store.write(ANNA, [write("new")]),
            lambda: store.forget(ANNA, ids=["1"]),
            lambda: store.clear(ANNA),
        ):
            with pytest.raises(StoreUnavailableError, match="read-only"):
                call()
        assert len(store.load(ANNA).entries) == 3
    assert path.read_bytes() == before


def test_a_path_that_cannot_be_opened_is_unavailable(tmp_path):
    with pytest.raises(StoreUnavailableError):
        Store.open(tmp_path / ("x" * 300))


def test_a_full_disk_keeps_what_was_there(path, pragma):
    fill(path)
    pragma("max_page_count = 1")  # as many pages as there are
    with Store.open(path) as store:
        before = store.load(ANNA)
        with pytest.raises(StoreUnavailableError, match="space"):
            store.write(ANNA, [write(f"new {n}", "long text " * 500) for n in range(20)])
        after = store.load(ANNA)
        assert after.generation == before.generation
        assert after.entries == before.entries
        assert store.forget(ANNA, ids=["1"]).entries == 1
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


def test_a_locked_memory_is_unavailable_until_it_is_free(path, monkeypatch):
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.05)
    fill(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with Store.open(path) as store:
        with pytest.raises(StoreUnavailableError, match="locked"):
            store.write(ANNA, [write("new")])
        assert len(store.load(ANNA).entries) == 3
        other.execute("ROLLBACK")
        assert store.write(ANNA, [write("new")]).added == 1
    other.close()


def test_a_deleted_file_is_not_started_anew(path):
    fill(path)
    store = Store.open(path)
    store.close()
    with Store.open(path) as store:
        path.unlink()
        store._access.engine.dispose()
        with pytest.raises(StoreUnavailableError):
            store.load(ANNA)
    assert not path.exists()


def test_two_stores_of_one_process_share_a_file(path):
    with Store.open(path) as one, Store.open(path) as other:
        one.write(ANNA, [write("1")])
        other.write(ANNA, [write("2")])
        assert one.load(ANNA).entries == other.load(ANNA).entries
        assert one.generation(ANNA) == 2
