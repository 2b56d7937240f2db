"""What is particular to SQLite: opening and recognising files, transactions, erasure, error codes.

A memory file carries an application id and a version in its header. Both are read through an ``immutable``
connection before anything else, because that is the one way SQLite looks at a file without changing it or
the files beside it. (Reading the header with ``open()`` would not do: closing that file drops the POSIX locks
that other connections of this process hold on it.)
"""

from __future__ import annotations

import os
import re
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import QueuePool, StaticPool

from shared_core.errors import (
    NotAMemoryError,
    NotFoundError,
    StoreError,
    StoreUnavailableError,
    StoreVersionError,
)
from shared_core.store import migrations
from shared_core.store.placing import left_beside

APPLICATION_ID: Final = 0x5343474D  # "SCGM", at byte 68 of the file

# Errors are told apart by SQLite's texts: Python 3.10 does not pass on its codes.
_LOCKED: Final = re.compile("locked|locking protocol")
_NOT_SQLITE: Final = "file is not a database"
_DAMAGED: Final = re.compile(f"malformed|{_NOT_SQLITE}|decode to UTF-8")

BUSY_SECONDS = 30.0
_PATIENCE_SECONDS: Final = 0.25
_WIPE_SECONDS = 10.0


def open_engine(path: Path | None, *, create: bool) -> Engine:
    """Connect to the memory at ``path`` (``None``: in memory only), making or migrating its tables first.

    Raises:
        NotFoundError: if there is no memory and ``create`` is false, or the folder does not exist.
        NotAMemoryError: if the file is something else; it is left untouched.
        StoreVersionError: if the file is newer than this code; it is left untouched.
        StoreUnavailableError: if the file or its folder cannot be written or is locked.
        StoreError: if the file is damaged.
    """
    if path is None:
        engine = _engine(lambda: _connect(":memory:"), shared=True)
        _migrate(engine, ":memory:")
        return engine
    with translated(str(path)):
        is_new = _inspect(path)
        if is_new and not create:
            raise NotFoundError(f"there is no memory at {path}: check the path; remembering something makes one")
        if is_new:
            _connect(f"{path.as_uri()}?mode=rwc").close()
    # mode=rw: if the file is deleted under an open store, later connections fail instead of starting it anew.
    engine = _engine(lambda: _connect(f"{path.as_uri()}?mode=rw"), shared=False)
    try:
        _migrate(engine, str(path))
        with translated(str(path)):
            _use_wal(engine, path)
        wipe(engine, patience=1.0)
    except BaseException:
        engine.dispose()
        raise
    return engine


@contextmanager
def reading(engine: Engine, location: str) -> Iterator[Connection]:
    """One read transaction: everything in it sees the same moment."""
    with translated(location), engine.begin() as connection:
        connection.exec_driver_sql("BEGIN")
        yield connection


@contextmanager
def writing(engine: Engine, location: str) -> Iterator[Connection]:
    """One write transaction, which waits for other writers before it starts: it is never refused halfway."""
    with translated(location), engine.begin() as connection:
        _begin_writing(_driver(connection))
        yield connection


def _begin_writing(connection: sqlite3.Connection) -> None:
    """Wait for the file as long as other writers get on; give up when nothing was committed for a while.

    SQLite polls for its lock and serves nobody in turn: on a busy machine eight processes that did nothing but write
    kept one of them waiting for more than 30 s, though none held the lock for long. Its pauses grow with every try up
    to 100 ms; with a short timeout they begin anew each time, so that who waits longest does not ask most rarely.
    """
    deadline = time.monotonic() + BUSY_SECONDS
    seen = None
    try:
        connection.execute(f"PRAGMA busy_timeout = {round(min(BUSY_SECONDS, _PATIENCE_SECONDS) * 1000)}")
        while True:
            try:
                connection.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                if not _LOCKED.search(str(error)):
                    raise
                (commits,) = connection.execute("PRAGMA data_version").fetchone()
                if commits != seen:
                    seen, deadline = commits, time.monotonic() + BUSY_SECONDS
                elif time.monotonic() > deadline:
                    raise
    finally:
        connection.execute(f"PRAGMA busy_timeout = {round(BUSY_SECONDS * 1000)}")


def check_version(connection: Connection, location: str) -> None:
    """Refuse a file that another version of this code has changed since it was opened.

    Raises:
        NotAMemoryError: if it is no memory.
        StoreVersionError: if its tables are not those that this code works with.
    """
    version = _check_header(_driver(connection), location)
    if version != migrations.newest():
        raise StoreVersionError(f"the memory {location} has version {version}: open it again")


def is_in_use(engine: Engine) -> bool:
    """Whether a transaction on a file is under way."""
    return isinstance(engine.pool, QueuePool) and engine.pool.checkedout() > 0


def wipe(engine: Engine, *, patience: float | None = None) -> bool:
    """Leave no byte of erased content in the file or its log; does nothing if nothing was erased.

    ``secure_delete`` zeroes deleted cells, but rebalancing a B-tree page leaves copies of the cells it moved
    in the page's unused gap, and those outlive the row (of 2,000 deleted random keys, in 40 transactions,
    about 20 stayed readable). Only ``VACUUM`` writes every page afresh. It takes time in proportion to the
    file, about a second for 60 MB; the checkpoint then empties the write-ahead log.

    Returns:
        False if another connection prevented it for ``patience`` seconds, or the disk did. The file remembers
        that it is due.
    """
    try:
        with closing(engine.raw_connection()) as pooled:
            connection = pooled.driver_connection
            assert isinstance(connection, sqlite3.Connection)
            return _wipe(connection, _WIPE_SECONDS if patience is None else patience)
    except sqlite3.Error:
        return False


@contextmanager
def translated(location: str) -> Iterator[None]:
    """Turn errors of SQLAlchemy and sqlite3 into errors of this project."""
    try:
        yield
    except DBAPIError as error:
        raise _translation(error.orig, location) from error
    except (sqlite3.Error, SQLAlchemyError) as error:
        raise _translation(error, location) from error


def _translation(error: BaseException | None, location: str) -> StoreError:
    what = str(error)
    kept = "nothing of this write was stored, and what was stored before is kept"
    if _LOCKED.search(what):
        return StoreUnavailableError(
            f"the memory {location} was locked by another process, which stored nothing for {BUSY_SECONDS:g} s: "
            f"{kept}; try again"
        )
    if "readonly" in what:
        return StoreUnavailableError(
            f"the memory {location} is read-only: {kept}; allow writing to the file and its folder"
        )
    if "disk is full" in what:
        return StoreUnavailableError(f"no space is left for the memory {location}: {kept}; free some space")
    if "disk I/O" in what:
        return StoreUnavailableError(
            f"the disk refused to read or write the memory {location} ({what}): {kept}; check the disk, its quota and "
            "the limits of this process"
        )
    if "unable to open" in what and _may_only_read(location):
        return StoreUnavailableError(
            f"the memory {location} is read-only, and to read it needs writing, too: allow writing to the file and its "
            "folder, or copy both the file and its -wal file to where it is allowed"
        )
    if "unable to open" in what:
        return StoreUnavailableError(
            f"the memory {location} cannot be opened: check that the file exists, and that it and its folder "
            "may be read and written"
        )
    if _DAMAGED.search(what):
        return damaged(location, what)
    return StoreError(f"the memory {location} could not be read or written ({what}): {kept}")


def _may_only_read(location: str) -> bool:
    path = Path(location)
    return path.is_file() and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))


def damaged(location: str, what: str) -> StoreError:
    """The error of a file whose content does not hold together."""
    return StoreError(
        f"the memory {location} is damaged ({what}): the file was left as it is; restore a backup in its place "
        "and delete the -wal and -shm files beside it, or import an export into a new file"
    )


def _engine(connect: Callable[[], sqlite3.Connection], *, shared: bool) -> Engine:
    if shared:
        return create_engine("sqlite://", creator=connect, poolclass=StaticPool, hide_parameters=True)
    # No upper bound on connections: a burst of threads waits for SQLite's lock, not for the pool's timeout.
    return create_engine("sqlite://", creator=connect, poolclass=QueuePool, max_overflow=-1, hide_parameters=True)


def _connect(database: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        database,
        timeout=BUSY_SECONDS,
        isolation_level=None,  # transactions begin where this module says so, not where the driver guesses
        check_same_thread=False,
        uri=database.startswith("file:"),
    )
    try:
        for pragma in (
            "foreign_keys = ON",
            "synchronous = FULL",
            "secure_delete = ON",
            "temp_store = MEMORY",  # a statement journal holds erased content, which must not reach the disk
            "cell_size_check = ON",
            "trusted_schema = OFF",
        ):
            connection.execute(f"PRAGMA {pragma}")
    except UnicodeDecodeError as error:
        connection.close()  # SQLite's message quotes the damaged table definition
        raise sqlite3.DatabaseError("malformed database schema") from error
    except BaseException:
        connection.close()
        raise
    return connection


def _inspect(path: Path) -> bool:
    """Whether there is no memory at ``path`` yet; refuses what is neither a memory nor empty."""
    try:
        status = path.stat()
    except FileNotFoundError:
        if not path.parent.is_dir():
            raise NotFoundError(f"the folder {path.parent} does not exist: create it first") from None
        _check_no_log(path)
        return True
    except OSError as error:
        raise StoreUnavailableError(f"the memory {path} cannot be reached: {error.strerror}") from error
    if not stat.S_ISREG(status.st_mode):
        raise NotAMemoryError(f"{path} is not a file: pass the path of a memory file")
    if status.st_size == 0:
        _check_no_log(path)
        return True
    with closing(sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True)) as connection:
        try:
            version = _check_header(connection, str(path))
        except sqlite3.DatabaseError as error:
            if _NOT_SQLITE in str(error):
                raise _not_a_memory(str(path)) from error
            if not _DAMAGED.search(str(error)):
                raise
            # After a crash within a checkpoint the main file may look cut short; with its log it is whole.
            return False
    # Not one of ours, although it looks empty: its tables are in its log only, or it is a single byte.
    if version == 0:
        raise _not_a_memory(str(path))
    return False


def _check_no_log(path: Path) -> None:
    """Refuse to begin a memory where there was one: SQLite would throw its log away without a word.

    A first opening that was killed leaves an empty file at most, never a log: that comes only after the tables.
    """
    try:
        logs = [one for one in left_beside(path) if one.name.endswith("-wal")]
    except OSError as error:
        raise StoreUnavailableError(f"no memory can be made at {path}: {error.strerror}") from error
    # Another process may be making the memory right now.
    if logs and not (path.exists() and path.stat().st_size):
        what = "is empty" if path.exists() else "is gone"
        raise StoreError(
            f"the memory {path} {what}, and its log {logs[0]} is still there: nothing was changed; put the file back, "
            "or delete the log and restore a backup, or delete both to begin a new memory"
        )


def _check_header(connection: sqlite3.Connection, location: str) -> int:
    """The version of the file; 0 while it is empty."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION_ID:
        if application or version or connection.execute("SELECT 1 FROM sqlite_master").fetchone():
            raise _not_a_memory(location)
        return 0
    if version > migrations.newest():
        raise StoreVersionError(
            f"the memory {location} has version {version}, and this code reads up to {migrations.newest()}: "
            "the file was left untouched; upgrade this package"
        )
    return int(version)


def _wipe(connection: sqlite3.Connection, patience: float) -> bool:
    (due,) = connection.execute("SELECT coalesce(max(unwiped), 0) FROM memory_state").fetchone()
    if not due:
        return True
    try:
        connection.execute(f"PRAGMA busy_timeout = {round(patience * 1000)}")
        connection.execute("PRAGMA temp_store = FILE")  # the copy VACUUM makes may not fit in memory
        connection.execute("VACUUM")
        (busy, *_) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            return False
        # Another process may have erased more since; that one stays due.
        connection.execute("UPDATE memory_state SET unwiped = 0 WHERE unwiped <= ?", (due,))
        return True
    finally:
        connection.execute(f"PRAGMA busy_timeout = {round(BUSY_SECONDS * 1000)}")
        connection.execute("PRAGMA temp_store = MEMORY")


def _not_a_memory(location: str) -> NotAMemoryError:
    return NotAMemoryError(f"{location} is not a memory: the file was left untouched; choose another path")


def _migrate(engine: Engine, location: str) -> None:
    with reading(engine, location) as connection:
        version = _check_header(_driver(connection), location)
    if version == migrations.newest():
        return
    with writing(engine, location) as connection:
        # Another process may have migrated while this one waited.
        version = _check_header(_driver(connection), location)
        migrations.upgrade(connection, version)
        connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.exec_driver_sql(f"PRAGMA user_version = {migrations.newest()}")


def _use_wal(engine: Engine, path: Path) -> None:
    """Switch to write-ahead logging, which the file remembers.

    Done after the tables are committed, so that the header is in the main file and never only in the log.
    The switch needs the file for itself for a moment and does not wait for it, hence the loop.
    """
    deadline = time.monotonic() + BUSY_SECONDS
    with closing(engine.raw_connection()) as pooled:
        connection = pooled.driver_connection
        assert isinstance(connection, sqlite3.Connection)
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if not _LOCKED.search(str(error)) or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)


def _driver(connection: Connection) -> sqlite3.Connection:
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    return driver
