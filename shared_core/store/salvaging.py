"""Reading what can still be read of a file that is damaged: entries alone, for all else follows from them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from shared_core.entry import MemoryEntry
from shared_core.errors import InvalidInputError, NotFoundError, StoreError
from shared_core.store.checking import decode_name

_FIELDS: Final = ("id", "text", "speaker", "session", "caption", "occurred_at", "metadata")
_TOGETHER: Final = 256
_LEAST_ROW: Final = 64
"""Bytes that no entry's row stays below: the digest alone has as many."""


@dataclass(frozen=True, slots=True)
class Lost:
    """Rows of entries that could not be read, or not as an entry.

    Attributes:
        first: The first row.
        last: The last one; rows in between need not all have been there.
        why: What went wrong.
    """

    first: int
    last: int
    why: str


def read_salvageable(path: Path) -> Iterator[tuple[tuple[str, ...], MemoryEntry] | Lost]:
    """The entries of a damaged memory, each with its namespace, in the order they were stored; and what is lost.

    The file is not changed. A field other than the text that cannot be read is left out of its entry, and said.

    Raises:
        NotFoundError: if there is no such file.
        StoreError: if not even its tables can be recognised.
    """
    if not path.is_file():
        raise NotFoundError(f"there is no memory at {path}: check the path")
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        connection.text_factory = bytes
        try:
            connection.execute("SELECT 1 FROM entries LIMIT 0")
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise StoreError(
                f"nothing can be read of {path} ({error}): the file was left as it is; restore a backup or an export"
            ) from error
        names = _read_names(connection)
        for found in _ranges(connection, _last_row(connection, path)):
            if isinstance(found, Lost):
                yield found
                continue
            for row in found:
                entry, unread = _read_entry(row[2:])
                if unread:
                    yield Lost(row[0], row[0], f"unreadable: {', '.join(unread)}")
                if entry is not None:
                    yield names.get(row[1], ("recovered", str(row[1]))), entry


def _read_names(connection: sqlite3.Connection) -> dict[int, tuple[str, ...]]:
    names = {}
    try:
        for number, encoded in connection.execute("SELECT number, name FROM namespaces NOT INDEXED"):
            name = decode_name(_as_text(encoded))
            if name is not None:
                names[number] = name
    except sqlite3.DatabaseError:
        return names
    return names


def _last_row(connection: sqlite3.Connection, path: Path) -> int:
    most = path.stat().st_size // _LEAST_ROW
    try:
        (last,) = connection.execute("SELECT max(rowid) FROM entries NOT INDEXED").fetchone()
    except sqlite3.DatabaseError:
        return most
    return min(last, 2**40) if isinstance(last, int) else most if last is not None else 0


def _ranges(connection: sqlite3.Connection, last: int) -> Iterator[list[Any] | Lost]:
    """Rows as far as they can be read, halving what cannot down to single rows."""
    waiting = [(low, min(low + _TOGETHER - 1, last)) for low in range(1, last + 1, _TOGETHER)][::-1]
    query = f"SELECT rowid, namespace, {', '.join(_FIELDS)} FROM entries NOT INDEXED WHERE rowid BETWEEN ? AND ?"  # noqa: S608
    while waiting:
        low, high = waiting.pop()
        try:
            yield connection.execute(query, (low, high)).fetchall()
        except sqlite3.DatabaseError as error:
            if low == high:
                yield Lost(low, high, str(error))
                continue
            middle = (low + high) // 2
            waiting += [(middle + 1, high), (low, middle)]


def _read_entry(values: tuple[Any, ...]) -> tuple[MemoryEntry | None, list[str]]:
    """The entry, if it has one, and the fields that cannot be read."""
    body: dict[str, Any] = {}
    unread = []
    for name, value in zip(_FIELDS, values, strict=True):
        if value is None:
            continue
        try:
            text = _as_text(value)
            body[name] = json.loads(text) if name == "metadata" else text
            if name not in ("id", "text"):
                MemoryEntry.from_dict({"text": "x", name: body[name]})
        except (ValueError, TypeError, RecursionError):
            body.pop(name, None)
            unread.append(name)
    try:
        if "id" not in body:
            raise InvalidInputError("no id")
        return MemoryEntry.from_dict({"text": "", **body}), unread
    except (ValueError, TypeError, RecursionError):
        return None, unread or ["text"]


def _as_text(value: object) -> str:
    if not isinstance(value, bytes):
        raise ValueError("not text")
    return value.decode()
