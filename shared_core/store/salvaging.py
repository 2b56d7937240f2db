"""Reading what can still be read of a file that is damaged: entries alone, for all else follows from them."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from shared_core.entry import MemoryEntry
from shared_core.errors import NotFoundError, StoreError
from shared_core.store.checking import decode_name
from shared_core.store.placing import companions
from shared_core.store.recovering import FIELDS, recover_entry, recovered_id

_COLUMNS: Final = ", ".join(("rowid", "namespace", "digest", *FIELDS))
_INDEXES: Final = {
    "sqlite_autoindex_entries_1": ("namespace", "seq"),
    "sqlite_autoindex_entries_2": ("namespace", "id"),
    "entries_by_digest": ("namespace", "digest"),
    "entries_by_change": ("namespace", "changed"),
}
_TOGETHER: Final = 256
_LEAST_ROW: Final = 64
"""Bytes that no entry's row stays below: the digest alone has as many."""
_LOWEST, _HIGHEST = -(2**63), 2**63 - 1


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
        for row in _rows(connection, path.stat().st_size // _LEAST_ROW):
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
                if entry.id is not None:
                    remarks.append("another entry has its id")
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
        yield connection


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


def _rows(connection: sqlite3.Connection, most: int) -> Iterator[tuple[Any, ...] | Lost]:
    """The rows of the table, as far as they can be read, in order.

    Read upwards until something is in the way, then downwards from the end. Between the two, rows are looked for one by
    one: those that the indexes name and, if no index is whole either, as many more as the file has room for.
    """
    first = _LOWEST
    try:
        for row in _scan(connection, _COLUMNS, first, _HIGHEST):
            yield row
            first = row[0] + 1
        return
    except sqlite3.DatabaseError:
        after = _readable_from(connection, first)
    known, whole = _known_rows(connection, first, after)
    start = max(first, 1)
    counted = range(start, start if whole else max(start, min(after, start + most)))
    below = [number for number in known if number < counted.start]
    above = [number for number in known if number >= counted.stop]
    yield from _joined(found for some in (below, counted, above) for found in _between(connection, some))
    yield from _scan(connection, _COLUMNS, after, _HIGHEST)


def _scan(
    connection: sqlite3.Connection, columns: str, low: int, high: int, order: str = "ASC"
) -> Iterator[tuple[Any, ...]]:
    """Rows in the order of their numbers, which come first; other orders are damage, and might never end."""
    if low > high:
        return
    query = f"SELECT {columns} FROM entries NOT INDEXED WHERE rowid BETWEEN ? AND ? ORDER BY rowid {order}"  # noqa: S608
    last = None
    for row in connection.execute(query, (low, high)):
        if last is not None and (row[0] > last) != (order == "ASC"):
            raise sqlite3.DatabaseError("its rows are out of order")
        last = row[0]
        yield row


def _readable_from(connection: sqlite3.Connection, low: int) -> int:
    """The lowest number from which on all rows can be read."""
    after = _HIGHEST + 1
    try:
        for row in _scan(connection, _COLUMNS, low, _HIGHEST, "DESC"):
            after = row[0]
    except sqlite3.DatabaseError:
        return after
    return after


def _known_rows(connection: sqlite3.Connection, low: int, after: int) -> tuple[list[int], bool]:
    """The numbers that the indexes name within bounds, ascending, and whether one of them could be read whole."""
    found: set[int] = set()
    whole = False
    for index, columns in _INDEXES.items():
        for order in ("ASC", "DESC"):  # from both ends, as far as it can be read
            sorting = ", ".join(f"{column} {order}" for column in columns)
            query = f"SELECT rowid FROM entries INDEXED BY {index} ORDER BY {sorting}"  # noqa: S608
            try:
                found.update(number for (number,) in connection.execute(query) if low <= number < after)
                whole = True
            except sqlite3.DatabaseError:
                continue
            break
    return sorted(found), whole


def _between(connection: sqlite3.Connection, numbers: Sequence[int]) -> Iterator[tuple[Any, ...] | Lost]:
    """Rows from the first to the last of some numbers, halving what cannot be read down to single ones."""
    for start in range(0, len(numbers), _TOGETHER):
        waiting = [numbers[start : start + _TOGETHER]]
        while waiting:
            some = waiting.pop()
            try:
                rows = list(_scan(connection, _COLUMNS, some[0], some[-1]))
            except sqlite3.DatabaseError as error:
                if len(some) == 1:
                    yield Lost(some[0], some[0], str(error))
                else:
                    waiting += [some[len(some) // 2 :], some[: len(some) // 2]]
            else:
                yield from rows


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
