"""Where the memories of the benchmark are: files, or databases of a PostgreSQL server."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import psutil  # type: ignore[import-untyped]
import psycopg
from sqlalchemy import make_url

from shared_core.store.tables import schema
from tests.postgres import PostgresServer

ENGINES = ("sqlite", "postgresql")
_TABLES = tuple(table.name for table in schema.sorted_tables)


@dataclass(frozen=True, slots=True)
class Size:
    """What a memory takes.

    Attributes:
        bytes: On the disk: of the file, or of all tables with their indexes.
        table_bytes: The same by table; empty where SQLite was built without ``dbstat``.
        rows: Rows by table.
    """

    bytes: int
    table_bytes: Mapping[str, int]
    rows: Mapping[str, int]


class Places(Protocol):
    """Memories of one engine; all are gone when they are closed."""

    def new(self) -> str:
        """Where a memory can be made."""
        ...

    def copy(self, place: str) -> str:
        """A copy of a memory that nobody has open."""
        ...

    def drop(self, place: str) -> None:
        """Remove a memory that nobody has open."""
        ...

    def size(self, place: str) -> Size:
        """What a memory takes that nobody has open."""
        ...

    def server_seconds(self) -> float | None:
        """Processor seconds of the server so far; 0 where there is none, ``None`` if it is not to be known."""
        ...

    def close(self) -> None:
        """Remove all."""
        ...


class Files:
    """Memories in SQLite files.

    Args:
        folder: Where to.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0

    def new(self) -> str:
        """See :class:`Places`."""
        self._count += 1
        return str(self._folder / f"{self._count}.db")

    def copy(self, place: str) -> str:
        """See :class:`Places`."""
        return shutil.copy(place, self.new())

    def drop(self, place: str) -> None:
        """See :class:`Places`."""
        for end in ("", "-wal", "-shm"):
            Path(place + end).unlink(missing_ok=True)

    def size(self, place: str) -> Size:
        """See :class:`Places`."""
        with closing(sqlite3.connect(place)) as connection:
            rows = {name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in _TABLES}  # noqa: S608
            pages = "SELECT tbl_name, sum(pgsize) FROM dbstat JOIN sqlite_master USING (name) GROUP BY tbl_name"
            try:
                found = dict(connection.execute(pages).fetchall())
            except sqlite3.OperationalError:  # this SQLite was built without dbstat
                found = {}
        return Size(Path(place).stat().st_size, {name: found[name] for name in _TABLES if name in found}, rows)

    def server_seconds(self) -> float | None:
        """See :class:`Places`."""
        return 0.0

    def close(self) -> None:
        """See :class:`Places`."""


class Databases:
    """Memories in databases of a server, whose user may make databases.

    Args:
        url: Of one of its databases.
        pid: Of its process, if it runs on this machine and for this alone.
        after: Called at the end.
    """

    def __init__(self, url: str, pid: int | None = None, after: Callable[[], None] = lambda: None) -> None:
        self._url = make_url(url).set(drivername="postgresql")
        self._process = psutil.Process(pid) if pid is not None else None
        self._after = after
        self._made: list[str] = []
        self._count = 0

    def new(self) -> str:
        """See :class:`Places`."""
        return self._make("ENCODING 'UTF8' TEMPLATE template0")

    def copy(self, place: str) -> str:
        """See :class:`Places`."""
        return self._make(f"TEMPLATE {_database(place)}")

    def drop(self, place: str) -> None:
        """See :class:`Places`."""
        self._run(f"DROP DATABASE {_database(place)} WITH (FORCE)")
        self._made.remove(place)

    def size(self, place: str) -> Size:
        """See :class:`Places`."""
        rows, table_bytes = {}, {}
        with self._connect(_database(place)) as connection:
            connection.execute("VACUUM ANALYZE")
            for name in _TABLES:
                table = f"scg_memory.{name}"
                [rows[name]] = connection.execute(f"SELECT count(*) FROM {table}").fetchone() or (0,)  # noqa: S608
                [taken] = connection.execute("SELECT pg_total_relation_size(%s)", [table]).fetchone() or (0,)
                table_bytes[name] = int(taken)
        return Size(sum(table_bytes.values()), table_bytes, rows)

    def server_seconds(self) -> float | None:
        """See :class:`Places`."""
        if self._process is None:
            return None
        own = self._process.cpu_times()
        seconds = own.user + own.system + own.children_user + own.children_system
        for child in self._process.children(recursive=True):
            try:
                times = child.cpu_times()
            except psutil.NoSuchProcess:  # it ended meanwhile, and its parent counts it
                continue
            seconds += times.user + times.system
        return float(seconds)

    def close(self) -> None:
        """See :class:`Places`."""
        for place in list(self._made):
            self.drop(place)
        self._after()

    def _make(self, how: str) -> str:
        self._count += 1
        name = f"scg_scale_{psutil.Process().pid}_{self._count}"
        self._run(f"CREATE DATABASE {name} {how}")
        self._made.append(self._place(name))
        return self._made[-1]

    def _place(self, database: str) -> str:
        url = self._url.set(drivername="postgresql+psycopg", database=database)
        return url.render_as_string(hide_password=False)

    def _connect(self, database: str | None = None) -> psycopg.Connection:
        url = self._url if database is None else self._url.set(database=database)
        return psycopg.connect(url.render_as_string(hide_password=False), autocommit=True)

    def _run(self, statement: str) -> None:
        with self._connect() as connection:
            connection.execute(statement)


def open_places(engine: str, folder: Path, database: str | None) -> Places:
    """Places of an engine; a server is started if none is named."""
    if engine == "sqlite":
        return Files(folder)
    if database is not None:
        return Databases(database)
    server = PostgresServer(fsync="on", autovacuum="on", shared_buffers="128MB")
    return Databases(server.url("postgres"), server.pid, server.remove)


def _database(place: str) -> str:
    return str(make_url(place).database)
