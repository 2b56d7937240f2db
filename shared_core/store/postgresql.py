"""What is particular to PostgreSQL: opening a memory, transactions, what became of a cut-off one, error codes.

A memory is the schema ``scg_memory`` of a database, which holds nothing else; its version stands in a table of it.
No connection has a state that outlives a transaction, so that a pooler may stand between this project and the server.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psycopg
from psycopg import errors as codes
from sqlalchemy import (
    URL,
    Column,
    Connection,
    Engine,
    Integer,
    MetaData,
    Table,
    create_engine,
    insert,
    inspect,
    select,
    text,
    update,
)
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.schema import CreateSchema

from shared_core.errors import (
    InvalidInputError,
    NotAMemoryError,
    NotFoundError,
    SCGError,
    StoreError,
    StoreUnavailableError,
    StoreVersionError,
)
from shared_core.store import migrations
from shared_core.store.location import shown_url
from shared_core.store.reading import encode_name
from shared_core.store.tables import namespaces
from shared_core.store.tables import schema as tables

SCHEMA: Final = "scg_memory"

BUSY_SECONDS = 30.0
_CONNECT_SECONDS: Final = 10
_POOLED: Final = 5
_MOST_CONNECTIONS: Final = 15
_OLDEST_SERVER: Final = 130_000  # pg_xact_status of 64 bits

_PATH: Final = f"SET LOCAL search_path TO {SCHEMA}"
_READING: Final = f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {_PATH}"
# Not repeatable read: that would see the moment before the wait for other writers.
_WRITING: Final = f"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; {_PATH}"
# The locks that a writer needs, and the number of its transaction.
_LOCK_ALL: Final = "SELECT pg_advisory_xact_lock(%s), pg_current_xact_id()::text"
_LOCK_ONE: Final = "SELECT pg_advisory_xact_lock_shared(%s), pg_advisory_xact_lock(%s), pg_current_xact_id()::text"

_memory_version = Table("memory_version", MetaData(), Column("version", Integer, nullable=False), schema=SCHEMA)
_LOOK: Final = text(
    "SELECT current_setting('server_encoding'), CAST(current_setting('server_version_num') AS integer), "
    "EXISTS (SELECT FROM pg_class WHERE relnamespace = to_regnamespace(:schema)), "
    "to_regclass(:version) IS NOT NULL"
)
_VERSION: Final = "SELECT version FROM memory_version"
_END: Final = text(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_xid = CAST(CAST(:number AS xid8) AS xid)"
)
_STATUS: Final = text("SELECT pg_xact_status(CAST(:number AS xid8))")


def open_engine(url: URL, *, create: bool) -> Engine:
    """Connect to the memory in a database, making or migrating its tables first.

    Raises:
        InvalidInputError: if the URL has options that are none.
        NotFoundError: if there is no memory and ``create`` is false.
        NotAMemoryError: if the schema is something else's; it is left untouched.
        StoreVersionError: if the memory is newer than this code; it is left untouched.
        StoreUnavailableError: if the server is gone or refuses.
    """
    location = shown_url(url)
    engine = connect(url)
    try:
        with translated(location), connected(engine) as connection:
            version = read_version(connection, location)
        if version == 0 and not create:
            raise NotFoundError(f"there is no memory in {location}: check the URL; remembering something makes one")
        if version < migrations.newest():
            with writing(engine, location, None) as connection:
                migrate(connection, location)
    except BaseException:
        engine.dispose()
        raise
    return engine


def connect(url: URL) -> Engine:
    """A pool of connections, none of which is made yet."""
    options = {"connect_timeout": _CONNECT_SECONDS, "application_name": "scg-mem", **url.query}
    return create_engine(
        url.set(query={}),
        # Transactions begin where this module says so; and nothing is prepared, which poolers do not pass on.
        isolation_level="AUTOCOMMIT",
        connect_args={**options, "client_encoding": "utf8", "prepare_threshold": None},
        use_native_hstore=False,
        pool_pre_ping=True,  # a server that was restarted meanwhile is noticed before anything is asked of it
        pool_size=_POOLED,
        max_overflow=_MOST_CONNECTIONS - _POOLED,
        pool_timeout=BUSY_SECONDS,
        hide_parameters=True,
    )


@contextmanager
def reading(engine: Engine, location: str) -> Iterator[Connection]:
    """One read transaction: everything in it sees the same moment."""
    with translated(location), connected(engine) as connection:
        _driver(connection).execute(_READING)
        yield connection


@contextmanager
def writing(
    engine: Engine, location: str, namespace: tuple[str, ...] | None, version: int | None = None
) -> Iterator[Connection]:
    """One write transaction, alone in its namespace or, with ``None``, in the memory; others' writes come first.

    Args:
        engine: The connections.
        location: What to call the memory.
        namespace: What to be alone in.
        version: What the memory has to have when it is this writer's turn; ``None`` for any, or for no memory at all.

    Raises:
        StoreVersionError: if it has another one.

    Where the connection is lost while the transaction is being committed, the server is asked what became of it: the
    block ends without an error only if all of it was stored.
    """
    with translated(location), connected(engine) as connection:
        driver = _driver(connection)
        number = _begin_writing(driver, namespace)
        if version is not None:
            _check_written(driver, version, location)
        yield connection
        try:
            ended = driver.execute("COMMIT").statusmessage
        except psycopg.OperationalError:
            if not driver.closed:
                raise
            fate = _fate(engine, number)
            if fate == "committed":
                return
            if fate is None:
                raise StoreUnavailableError(
                    f"the server of the memory {location} went away while this call was being stored: whether it was "
                    "is not known; make the same call again, with the same ids, when the server is back"
                ) from None
            raise
        if ended != "COMMIT":
            raise StoreUnavailableError(
                f"the server of the memory {location} undid this call: nothing of it was stored"
            )


def vacuum(engine: Engine) -> None:
    """Give the space of what was erased free to be written over; passes over what is in use, and any failure."""
    names = ", ".join(f"{SCHEMA}.{table.name}" for table in tables.sorted_tables)
    try:
        with connected(engine) as connection:
            connection.exec_driver_sql(f"VACUUM (SKIP_LOCKED) {names}")
    except (SQLAlchemyError, psycopg.Error):
        return


def read_version(connection: Connection, location: str) -> int:
    """The version of the memory in a database; 0 if there is none.

    Raises:
        NotAMemoryError, StoreVersionError: see :func:`open_engine`.
        StoreError: if the server or the database cannot hold a memory.
    """
    looked_for = {"schema": SCHEMA, "version": f"{SCHEMA}.{_memory_version.name}"}
    encoding, server, used, versioned = connection.execute(_LOOK, looked_for).one()
    if server < _OLDEST_SERVER:
        raise StoreError(f"the server of the memory {location} is older than PostgreSQL 13: use a newer one")
    if encoding != "UTF8":
        raise StoreError(
            f"the database {location} holds texts as {encoding}, which not every text can be written in: make one "
            "with CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0"
        )
    if not versioned:
        if used:
            raise NotAMemoryError(f"the schema {SCHEMA} of {location} is not a memory: it was left untouched")
        return 0
    version: int = connection.execute(select(_memory_version.c.version)).scalar_one()
    if version > migrations.newest():
        raise StoreVersionError(
            f"the memory {location} has version {version}, and this code reads up to {migrations.newest()}: "
            "it was left untouched; upgrade this package"
        )
    return version


def migrate(connection: Connection, location: str) -> None:
    """Make the tables, or bring those of an older version to the newest, inside a write transaction."""
    version = read_version(connection, location)  # another process may have migrated while this one waited
    if version == 0:
        # Not IF NOT EXISTS: that needs the right to make one even where its owner has made it.
        if not inspect(connection).has_schema(SCHEMA):
            connection.execute(CreateSchema(SCHEMA))
        _memory_version.create(connection)
        connection.execute(insert(_memory_version).values(version=0))
        connection.exec_driver_sql("CREATE SEQUENCE moments")
    migrations.upgrade(connection, version)
    connection.execute(update(_memory_version).values(version=migrations.newest()))


@contextmanager
def new_memory(url: URL) -> Iterator[Connection]:
    """A write transaction on a memory that has nothing in it; if it is undone, the tables it made are as well.

    Raises:
        InvalidInputError: if something is there.
        StoreError: see :func:`open_engine`.
    """
    location, engine = shown_url(url), connect(url)
    try:
        with writing(engine, location, None) as connection:
            migrate(connection, location)
            if connection.execute(select(namespaces.c.number).limit(1)).first() is not None:
                raise InvalidInputError(f"{location} holds a memory already: name a database without one")
            yield connection
    finally:
        engine.dispose()


@contextmanager
def connected(engine: Engine) -> Iterator[Connection]:
    """A connection of the pool, which takes it back with nothing under way, or throws it away if it is broken."""
    with engine.connect() as connection:
        driver = _driver(connection)
        try:
            yield connection
        finally:
            if driver.closed:
                connection.invalidate()


def _begin_writing(driver: psycopg.Connection, namespace: tuple[str, ...] | None) -> str:
    """Wait for one's turn as long as those in front get on; returns the transaction's number.

    The lock belongs to the transaction: it ends with it, however it ends. A killed writer's transaction is undone by
    the server as soon as that notices.
    """
    locks, keys = _LOCK_ALL, [_key("")]
    if namespace is not None:
        locks, keys = _LOCK_ONE, [_key(""), _key(encode_name(namespace))]
    seconds = BUSY_SECONDS / 2
    begin = f"{_WRITING}; SET LOCAL lock_timeout TO '{round(seconds * 1000)}ms'"
    seen = None
    while True:
        try:
            driver.execute(begin)
            [*_, number] = driver.execute(locks, keys).fetchone() or [""]
            # For rows and tables that somebody else has locked, who takes no such turns.
            driver.execute(f"SET LOCAL lock_timeout TO '{round(BUSY_SECONDS * 1000)}ms'")
            return str(number)
        except codes.LockNotAvailable:
            driver.rollback()
            holders = _holders(driver, namespace)
            if holders == seen:
                raise
            seen = holders


def _check_written(driver: psycopg.Connection, version: int, location: str) -> None:
    # Only now: another process may have changed the tables while this one waited.
    [found] = driver.execute(_VERSION).fetchone() or [0]
    if found != version:
        raise StoreVersionError(
            f"the memory {location} has version {found} by now, and this process opened it with version {version}: "
            "nothing of this write was stored; open it again"
        )


def _holders(driver: psycopg.Connection, namespace: tuple[str, ...] | None) -> list[tuple[object, ...]]:
    """The transactions that keep a writer waiting."""
    keys = [_key("")] if namespace is None else [_key(""), _key(encode_name(namespace))]
    modes = ["ExclusiveLock"] if namespace is not None else ["ExclusiveLock", "ShareLock"]
    query = (
        "SELECT virtualtransaction FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1 "
        "AND mode = ANY (%s) AND (classid::bigint << 32) | objid::bigint = ANY (%s) ORDER BY 1"
    )
    return driver.execute(query, (modes, keys)).fetchall()


def _key(name: str) -> int:
    """The number of an advisory lock: of a namespace's name, or of all together (``""``). Two may share one."""
    digest = hashlib.sha256(f"{SCHEMA} {name}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def _fate(engine: Engine, number: str) -> str | None:
    """Whether a transaction that was cut off was ``committed`` or ``aborted``; ``None`` if the server does not say."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            with connected(engine) as connection:
                # Should the server still wait for the connection that was lost, nothing more can come from there.
                connection.execute(_END, {"number": number})
                status = connection.execute(_STATUS, {"number": number}).scalar()
            if status in ("committed", "aborted"):
                return str(status)
        except (SQLAlchemyError, psycopg.Error) as error:
            if isinstance(_cause(error), codes.InvalidParameterValue):
                return "aborted"  # the server never wrote down that there was such a transaction
        if time.monotonic() > deadline:
            return None
        time.sleep(0.2)


@contextmanager
def translated(location: str) -> Iterator[None]:
    """Turn errors of SQLAlchemy and psycopg into errors of this project.

    They are not chained: PostgreSQL's details quote rows.
    """
    try:
        yield
    except (SQLAlchemyError, psycopg.Error) as error:
        cause = _cause(error)
        translation = _translation(cause, location)
        translation.quoted = _said(cause)
        raise translation from None


def _said(error: BaseException) -> str:
    """What the server says of an error."""
    if not isinstance(error, psycopg.Error):
        return ""
    return " ".join((error.diag.message_primary or str(error)).split())[:300]


def _cause(error: BaseException) -> BaseException:
    return error.orig if isinstance(error, DBAPIError) and error.orig is not None else error


def _translation(error: BaseException, location: str) -> SCGError:
    kept = "nothing of this write was stored, and what was stored before is kept"
    if isinstance(error, PoolTimeoutError):
        return StoreUnavailableError(
            f"all {_MOST_CONNECTIONS} connections of this process to the memory {location} were in use for "
            f"{BUSY_SECONDS:g} s: {kept}; make fewer calls at once"
        )
    if not isinstance(error, psycopg.Error):
        return StoreError(f"the memory {location} could not be read or written ({type(error).__name__}): {kept}")
    what = _said(error)
    if isinstance(error, codes.LockNotAvailable | codes.DeadlockDetected | codes.SerializationFailure):
        return StoreUnavailableError(
            f"the memory {location} was locked by another call, which did not end for {BUSY_SECONDS:g} s: "
            f"{kept}; try again"
        )
    if isinstance(error, codes.ProgramLimitExceeded):
        return InvalidInputError(
            f"an id, a concept or the name of a namespace is too long for PostgreSQL, which takes about 2,600 bytes "
            f"({what}): {kept}"
        )
    if isinstance(error, codes.ReadOnlySqlTransaction):
        return StoreUnavailableError(f"the memory {location} is read-only ({what}): {kept}; use the primary server")
    if isinstance(error, codes.DiskFull):
        return StoreUnavailableError(f"no space is left for the memory {location}: {kept}; free some space")
    if isinstance(error, codes.UndefinedTable | codes.UndefinedColumn):
        return damaged(location, what)
    if isinstance(error, psycopg.ProgrammingError) and error.sqlstate is None:
        return InvalidInputError(f"the database URL cannot be used ({what})")
    if isinstance(error, codes.InsufficientPrivilege):
        return StoreUnavailableError(
            f"the server of the memory {location} does not let this user do that ({what}): {kept}; give it the right"
        )
    if isinstance(error, psycopg.OperationalError):
        return StoreUnavailableError(
            f"the server of the memory {location} is gone or refuses ({what}): {kept}; check that it runs and lets "
            "this user in. The next call connects anew"
        )
    return StoreError(f"the memory {location} could not be read or written ({what}): {kept}")


def damaged(location: str, what: str) -> StoreError:
    """The error of a memory whose content does not hold together."""
    return StoreError(
        f"the memory {location} is damaged ({what}): it was left as it is; restore a backup of the database"
    )


def _driver(connection: Connection) -> psycopg.Connection:
    driver = connection.connection.driver_connection
    assert isinstance(driver, psycopg.Connection)
    return driver
