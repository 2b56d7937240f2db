"""Whole memories copied, while they are in use: a file to a file, and row by row from one engine to the other."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, Engine, Table, select

from shared_core.errors import StoreError
from shared_core.store import sqlite
from shared_core.store.checking import decode_name
from shared_core.store.dialect import dialect_of
from shared_core.store.location import check_path
from shared_core.store.placing import draft
from shared_core.store.reading import CHUNK
from shared_core.store.tables import memory_state, namespaces, schema

_TABLES: Final = tuple(table for table in schema.sorted_tables if table is not memory_state)


@dataclass(frozen=True, slots=True)
class CopiedNamespace:
    """A namespace that was copied, and that was found to be in the copy what it is in the original.

    Attributes:
        name: Its name.
        entries: Number of entries.
        rows: Number of rows of all kinds.
        digest: SHA-256 over every value of every row (64 hex digits).
    """

    name: tuple[str, ...]
    entries: int
    rows: int
    digest: str


def back_up(engine: Engine, source: Path | None, path: str | Path) -> Path:
    """Write a memory that is in a file, as of one moment, to a new file.

    The copy holds the memory's rows and nothing else: no unused page, so no byte of what was erased before.

    Args:
        engine: Connects to the memory.
        source: The memory's file; ``None`` if it is kept nowhere.
        path: The file to write.

    Raises:
        InvalidInputError, StoreUnavailableError: see :meth:`.Store.back_up`.
        StoreError: if the memory is damaged.
    """
    target = check_path(path)
    with (
        draft(target, source=source) as copy,
        sqlite.translated(str(source)),
        closing(engine.raw_connection()) as pooled,
    ):
        connection = pooled.driver_connection
        assert isinstance(connection, sqlite3.Connection)
        connection.execute("VACUUM INTO ?", (str(copy),))
    return target


@contextmanager
def new_file(target: Path, *, source: Path | None = None, new: bool = False) -> Iterator[Connection]:
    """A write transaction on a new memory file, which appears whole when it ends, or not at all.

    Args:
        target: The file.
        source: The file of the memory that is copied; ``None`` if it is in none.
        new: Refuse to replace an older file.

    Raises:
        InvalidInputError, StoreUnavailableError: see :func:`.placing.draft`.
    """
    with draft(target, source=source, new=new) as copy:
        engine = sqlite.open_engine(copy, create=True)
        try:
            with sqlite.writing(engine, str(target)) as connection:
                yield connection
        finally:
            engine.dispose()  # the last connection leaves no log beside the file


def copy_rows(source: Connection, target: Connection) -> list[CopiedNamespace]:
    """Copy every row of a memory into an empty one, numbers and all, and hold the copy against the original.

    Args:
        source: A read transaction.
        target: A write transaction; it must be undone if this raises.

    Raises:
        StoreError: if the copy is not what the original is.
    """
    dialect = dialect_of(target)
    for table in _TABLES:
        for rows in _pieces(source, table):
            dialect.insert_rows(target, table, rows)
    dialect.go_on_numbering(target)
    dialect.set_clock(target, dialect_of(source).clock(source) or 0)
    copied = _digests(source)
    if _digests(target) != copied:
        raise StoreError("the copy is not what the original is: it was undone; check the original with 'scg check'")
    return [one for one in copied if isinstance(one, CopiedNamespace)]


def _pieces(connection: Connection, table: Table) -> Iterator[Sequence[tuple[Any, ...]]]:
    query = select(table).order_by(*table.primary_key)
    found = connection.execute(query, execution_options={"yield_per": CHUNK})
    for rows in found.partitions():
        yield [tuple(row) for row in rows]


def _digests(connection: Connection) -> list[CopiedNamespace | str]:
    """What each namespace amounts to, in the order of their numbers, and the digest of the models' rows."""
    names = {row.number: decode_name(row.name) or () for row in connection.execute(select(namespaces))}
    digests = {number: hashlib.sha256() for number in names}
    rows, entries = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    models = hashlib.sha256()
    for table in _TABLES:
        for row in (row for piece in _pieces(connection, table) for row in piece):
            value = repr((table.name, *row)).encode()
            if table.name == "models":
                models.update(value)
                continue
            # The first column of all others is the number of the namespace.
            digests[row[0]].update(value)
            rows[row[0]] += 1
            entries[row[0]] += table.name == "entries"
    found: list[CopiedNamespace | str] = [
        CopiedNamespace(names[number], entries[number], rows[number], digests[number].hexdigest())
        for number in sorted(names)
    ]
    return [*found, models.hexdigest()]
