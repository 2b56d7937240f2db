"""A copy of a whole memory, while it is in use."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from sqlalchemy import Engine

from shared_core.errors import InvalidInputError, StoreUnavailableError
from shared_core.store import sqlite


def back_up(engine: Engine, source: Path | None, path: str | Path) -> Path:
    """Write a memory as of one moment to a new file, which appears whole or not at all.

    The copy holds the memory's rows and nothing else: no unused page, so no byte of what was erased before. Readers
    and writers go on meanwhile. It is a memory like any other: open it, or put it in the place of the old one while
    nobody has that open (and remove that one's ``-wal`` and ``-shm`` files, which belong to no other).

    Args:
        engine: Connects to the memory.
        source: The memory's file; ``None`` if it is kept nowhere.
        path: The file to write. An older one there is replaced.

    Returns:
        The path of the copy.

    Raises:
        InvalidInputError: if ``path`` is the memory itself, or not a file.
        StoreUnavailableError: if the file cannot be written; an older one is kept.
        StoreError: if the memory is damaged.
    """
    target = Path(path).absolute()
    if target.exists() and not target.is_file():
        raise InvalidInputError(f"{target} is not a file: pass the path of a file to back up to")
    if source is not None and target.exists() and target.samefile(source):
        raise InvalidInputError(f"{target} is the memory itself: back up to another file")
    unwritten = f"the backup cannot be written to {target}: an older file there is kept"
    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as folder:
            draft = Path(folder) / target.name
            try:
                with sqlite.translated(str(source)):
                    _copy(engine, draft)
                _sync(draft)
            except StoreUnavailableError as error:
                raise StoreUnavailableError(f"{unwritten} ({error})") from error
            draft.replace(target)
            _sync(target.parent)
    except OSError as error:
        raise StoreUnavailableError(f"{unwritten} ({error.strerror})") from error
    return target


def _copy(engine: Engine, draft: Path) -> None:
    with closing(engine.raw_connection()) as pooled:
        connection = pooled.driver_connection
        assert isinstance(connection, sqlite3.Connection)
        connection.execute("VACUUM INTO ?", (str(draft),))


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
