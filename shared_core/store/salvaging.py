"""Reading what can still be read of a file that is damaged: entries alone, for all else follows from them."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from shared_core.entry import MemoryEntry
from shared_core.errors import NotFoundError, StoreError
from shared_core.store.checking import decode_name
from shared_core.store.placing import companions
from shared_core.store.recovering import FIELDS, recover_entry, recovered_id

_COLUMNS: Final = ("rowid", "namespace", "digest", *FIELDS)
_INDEXES: Final = {
    "INDEXED BY sqlite_autoindex_entries_1": ("namespace", "seq"),
    "INDEXED BY sqlite_autoindex_entries_2": ("namespace", "id"),
    "INDEXED BY entries_by_digest": ("namespace", "digest"),
    "INDEXED BY entries_by_change": ("namespace", "changed"),
    "NOT INDEXED": ("rowid",),
}
"""Where the numbers of all rows stand, and in which order."""
_TOGETHER: Final = 256
_LEAST_ROW: Final = 64
"""Bytes that no entry's row stays below: the digest alone has as many."""
_UNREAD: Final = b"\xff"
"""In place of a value that cannot be read: no text."""


@dataclass(frozen=True, slots=True)
class Lost:
    """Rows of entries that could not be read, or not as the entry that was stored.

    Attributes:
        first: The first row.
        last: The last one; rows in between need not all have been there.
        why: What went wrong.
    """

    first: int
    last: int
    why: str


def read_salvageable(path: Path, scratch: Path) -> Iterator[tuple[tuple[str, ...], MemoryEntry] | Lost]:
    """The entries of a damaged memory, each with its namespace, in the order they were stored; and what is lost.

    The file is not changed. A field other than the text that cannot be read is left out of its entry, and said; an id
    that cannot be read, or that an earlier entry has, is replaced by ``recovered-ROW``.

    Args:
        path: The file.
        scratch: A folder for a copy of it, which is made if it cannot be read where it is.

    Raises:
        NotFoundError: if there is no such file.
        StoreError: if not even its tables can be recognised.
    """
    if not path.is_file():
        raise NotFoundError(f"there is no memory at {path}: check the path")
    with _readable(path, scratch) as connection:
        names = _read_names(connection)
        taken: dict[tuple[str, ...], dict[str, str]] = {}
        for row in _rows(connection):
            if isinstance(row, Lost):
                yield row
                continue
            number, namespace, digest, *values = map(_decoded, row)
            assert isinstance(number, int)
            name = names.get(namespace, ("recovered", str(namespace)))
            entry, unread = recover_entry(dict(zip(FIELDS, values, strict=True)))
            remarks = [f"unreadable: {', '.join(unread)}"] if unread else []
            if entry is None:
                yield Lost(number, number, *remarks)
                continue
            if digest != entry.digest and not unread:
                remarks.append("not as it was stored: its digest differs")
            known = taken.setdefault(name, {})
            if entry.id is not None and known.get(entry.id) == entry.digest:
                continue  # the same one again: two pages of the file lead to it
            if entry.id is None or entry.id in known:
                remarks += [] if entry.id is None else ["another entry has its id"]
                entry = entry.with_id(recovered_id(number, known.__contains__))
                remarks.append(f"carried over as {entry.id}")
            assert entry.id is not None
            known[entry.id] = entry.digest
            if remarks:
                yield Lost(number, number, "; ".join(remarks))
            yield name, entry


@contextmanager
def _readable(path: Path, scratch: Path) -> Iterator[sqlite3.Connection]:
    """A connection to the file as it lies there, or else to a copy that is made readable."""
    try:
        connection = _connect(path, "ro")
    except (sqlite3.Error, UnicodeDecodeError):
        # Cut short, or on a file system that is read-only, where its log cannot be read in place.
        try:
            connection = _connect(_whole_copy(path, scratch), "rw")
        except (sqlite3.Error, UnicodeDecodeError, OSError) as error:
            raise StoreError(
                f"nothing can be read of {path} ({error}): the file was left as it is; restore a backup or an export"
            ) from error
    with closing(connection):
        try:
            yield connection
        except sqlite3.Error as error:
            raise StoreError(f"{path} cannot be read on ({error}): the file was left as it is") from error


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.as_uri()}?mode={mode}", uri=True)
    connection.text_factory = bytes
    try:
        connection.execute("SELECT 1 FROM entries LIMIT 0")
    except BaseException:
        connection.close()
        raise
    return connection


def _whole_copy(path: Path, scratch: Path) -> Path:
    """A copy of a file with its log, as long as its header says: SQLite reads nothing of one that is shorter."""
    copy = scratch / "damaged"
    shutil.copyfile(path, copy)
    for mine, its in zip(companions(copy), companions(path), strict=True):
        if its.exists():
            shutil.copyfile(its, mine)
    with copy.open("r+b") as file:
        header = file.read(100)
        size = int.from_bytes(header[16:18], "big")
        pages = int.from_bytes(header[28:32], "big")
        length = pages * (65536 if size == 1 else size)
        # Pages of zeros are no pages of a table, and no text holds a zero: nothing is read that was not there.
        if copy.stat().st_size < length:
            file.truncate(length)
    return copy


def _read_names(connection: sqlite3.Connection) -> dict[object, tuple[str, ...]]:
    """The namespaces by their numbers; they stand in the table and, once more, in the index of their names."""
    names: dict[object, tuple[str, ...]] = {}
    for place in ("INDEXED BY sqlite_autoindex_namespaces_1", "NOT INDEXED"):
        try:
            for number, encoded in connection.execute(f"SELECT number, name FROM namespaces {place}"):  # noqa: S608
                name = decode_name(_decoded(encoded))
                if name is not None:
                    names[number] = name
        except sqlite3.DatabaseError:
            continue
    return names


def _rows(connection: sqlite3.Connection) -> Iterator[tuple[Any, ...] | Lost]:
    """The rows of the table, as far as they can be read: in order up to where something is in the way.

    From there on rows are looked for by their numbers: those that the indexes name, or the table's end, and, if none of
    these is whole, as many more as the file has room for.
    """
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    most = pages * size // _LEAST_ROW
    seen: set[int] = set()
    try:
        for row in connection.execute(f"SELECT {', '.join(_COLUMNS)} FROM entries NOT INDEXED"):  # noqa: S608
            seen.add(row[0])
            yield row
            if len(seen) > most:
                raise sqlite3.DatabaseError("more rows than there is room for")
        return
    except sqlite3.DatabaseError:
        known, whole = _known_rows(connection)
    known -= seen
    counted = range(0 if whole else most + 1)
    others = sorted(number for number in known if number not in counted)
    for numbers in (counted, others):
        found = _look_up(connection, numbers, known)
        yield from _joined(one for one in found if (one.first if isinstance(one, Lost) else one[0]) not in seen)


def _known_rows(connection: sqlite3.Connection) -> tuple[set[int], bool]:
    """The numbers that the indexes and the table itself name, and whether one of them could be read whole."""
    found: set[int] = set()
    whole = False
    for index, columns in _INDEXES.items():
        for order in ("ASC", "DESC"):  # from both ends, as far as it can be read
            sorting = ", ".join(f"{column} {order}" for column in columns)
            try:
                rows = connection.execute(f"SELECT rowid FROM entries {index} ORDER BY {sorting}")  # noqa: S608
                found.update(number for (number,) in rows)
            except sqlite3.DatabaseError:
                continue
            whole = True
            break
    return found, whole


def _look_up(
    connection: sqlite3.Connection, numbers: Sequence[int], known: Collection[int]
) -> Iterator[tuple[Any, ...] | Lost]:
    """Rows from the first to the last of some numbers, halving what cannot be read down to single ones."""
    query = f"SELECT {', '.join(_COLUMNS)} FROM entries NOT INDEXED WHERE rowid BETWEEN ? AND ?"  # noqa: S608
    for start in range(0, len(numbers), _TOGETHER):
        waiting = [numbers[start : start + _TOGETHER]]
        while waiting:
            some = waiting.pop()
            try:
                rows = connection.execute(query, (some[0], some[-1])).fetchall()
            except sqlite3.DatabaseError as error:
                if len(some) == 1:
                    yield _in_parts(connection, some[0]) or Lost(some[0], some[0], str(error))
                else:
                    waiting += [some[len(some) // 2 :], some[: len(some) // 2]]
                continue
            yield from rows
            there = {row[0] for row in rows}
            yield from (Lost(one, one, "not where it should be") for one in some if one in known and one not in there)


def _in_parts(connection: sqlite3.Connection, number: int) -> tuple[Any, ...] | None:
    """A row of which some columns lie on a page that cannot be read; ``None`` if too little is left."""
    parts: list[Any] = []
    for column in _COLUMNS:
        query = f"SELECT {column} FROM entries NOT INDEXED WHERE rowid = ?"  # noqa: S608
        try:
            parts += connection.execute(query, (number,)).fetchone() or (_UNREAD,)
        except sqlite3.DatabaseError:
            parts.append(_UNREAD)
    found = dict(zip(_COLUMNS, parts, strict=True))
    return None if _UNREAD in (found["rowid"], found["namespace"], found["text"]) else tuple(parts)


def _joined(found: Iterable[tuple[Any, ...] | Lost]) -> Iterator[tuple[Any, ...] | Lost]:
    """Losses that follow one another as one."""
    waiting = None
    for one in found:
        if isinstance(one, Lost) and waiting is not None and waiting.why == one.why:
            waiting = Lost(waiting.first, one.last, one.why)
            continue
        if waiting is not None:
            yield waiting
        waiting = one if isinstance(one, Lost) else None
        if waiting is None:
            yield one
    if waiting is not None:
        yield waiting


def _decoded(value: object) -> object:
    """Text as such, anything else as it is."""
    try:
        return value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError:
        return value
