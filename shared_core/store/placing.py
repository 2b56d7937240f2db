"""Files put in the place of others, whole or not at all, and never beside a log that is not theirs.

SQLite knows a log by its name alone: whatever lies at ``NAME-wal`` is replayed into whatever lies at ``NAME``. So an
old database that is replaced takes its log into itself first, under a lock that nobody else has, and only then the new
one comes. Killed at any moment, there is the old content or the new.
"""

from __future__ import annotations

import os
import re
import sqlite3
import stat
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Final

from shared_core.errors import InvalidInputError, StoreUnavailableError

COMPANIONS: Final = ("-wal", "-shm", "-journal")
"""How the files that SQLite keeps beside a database are named, after its own name."""

_LOCKED: Final = re.compile("locked|locking protocol")
_PATIENCE_SECONDS: Final = 1.0


@contextmanager
def draft(
    target: Path, what: str = "the memory", *, source: Path | None, new: bool = False, database: bool = True
) -> Iterator[Path]:
    """Where to write a file that takes its place when it is whole, readable for nobody who may not read its source.

    Args:
        target: Its place, absolute.
        what: What it is, for messages.
        source: The file of the memory it is made from; ``None`` if that is in none.
        new: Refuse to replace anything.
        database: Whether it is one, so that no log may be left beside it. Anything else only its owner may read.

    Raises:
        InvalidInputError: if the place is not one for such a file.
        StoreUnavailableError: if it cannot be written; an older one is kept.
    """
    unwritten = f"{what} cannot be written to {target}: an older file there is kept"
    try:
        _check_place(target, source, new=new)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as folder:
            written = Path(folder) / target.name
            try:
                yield written
                if any(one.exists() and one.stat().st_size for one in companions(written)):
                    raise StoreUnavailableError("its log could not be taken into it")
                _limit_rights(written, source if database else None)
                _sync(written)
            except StoreUnavailableError as error:
                raise StoreUnavailableError(f"{unwritten} ({error})") from error
            _check_place(target, source, new=new)  # it may have changed meanwhile
            with _old_alone(target):
                if database:
                    _remove_companions(target)
                written.replace(target)
            _sync(target.parent)
    except OSError as error:
        raise StoreUnavailableError(f"{unwritten} ({error.strerror})") from error


def companions(database: Path) -> list[Path]:
    """Where SQLite keeps what belongs to a database, which it looks for beside the file that a link leads to."""
    real = Path(os.path.realpath(database))
    return [real.with_name(real.name + suffix) for suffix in COMPANIONS]


def left_beside(database: Path) -> list[Path]:
    """The files that SQLite would take for its own, if a database came to that place.

    Raises:
        OSError: if they cannot be looked for: the name may be too long for them.
    """
    left = []
    for one in companions(database):
        try:
            one.lstat()
        except FileNotFoundError:
            continue
        left.append(one)
    return left


def _check_place(target: Path, source: Path | None, *, new: bool) -> None:
    if new and os.path.lexists(target):
        raise InvalidInputError(f"{target} exists already: name a new file")
    if target.exists() and not target.is_file():
        raise InvalidInputError(f"{target} is not a file: pass the path of a file to write to")
    if source is not None and _is_same(target, source):
        raise InvalidInputError(f"{target} is the memory itself: name another file")
    for suffix in COMPANIONS:
        database = target.with_name(target.name.removesuffix(suffix) or target.name)
        if database != target and database.exists():
            raise InvalidInputError(f"{target} belongs to the database {database}: name another file")
    if source is not None and any(_is_same(target, one) for one in companions(source)):
        raise InvalidInputError(f"{target} belongs to the memory {source}: name another file")
    left = left_beside(target)
    if new and left:
        raise InvalidInputError(f"{left[0]} is left of a database that was at {target}: delete it, or name a new file")


def _is_same(one: Path, other: Path) -> bool:
    return one.exists() and other.exists() and one.samefile(other)


@contextmanager
def _old_alone(target: Path) -> Iterator[None]:
    """Keep others from the database that is to be replaced, its log taken into it; anything else is left as it is.

    Raises:
        StoreUnavailableError: if somebody has it open.
    """
    # A link is replaced, and what it leads to stays; an empty file has nothing that a log could belong to.
    if target.is_symlink() or not target.exists() or not target.stat().st_size:
        yield
        return
    old = _take(target)
    # Closing what was replaced leaves the files beside it alone: it has no log any more.
    with nullcontext() if old is None else closing(old):
        yield


def _take(database: Path) -> sqlite3.Connection | None:
    """A connection that has a database for itself, with no log beside it; ``None`` if it is none, or damaged."""
    connection = None
    try:
        connection = sqlite3.connect(
            f"{database.as_uri()}?mode=rw", uri=True, isolation_level=None, timeout=_PATIENCE_SECONDS
        )
        # This needs the file for itself: whoever has a database with a write-ahead log open holds a lock on it.
        connection.execute("PRAGMA journal_mode = DELETE").fetchall()
        connection.execute("BEGIN EXCLUSIVE")
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        if connection is not None:
            connection.close()
        if _LOCKED.search(str(error)):
            raise StoreUnavailableError(
                f"{database} is open elsewhere, so it is not replaced: close it there, or name another file"
            ) from error
        return None
    return connection


def _remove_companions(database: Path) -> None:
    left = [one for suffix in COMPANIONS if (one := database.with_name(database.name + suffix)).exists()]
    for one in left:
        one.unlink()
    if left:
        _sync(database.parent)  # gone for good before another database comes


def _limit_rights(written: Path, source: Path | None) -> None:
    """Let nobody read a copy who may not read the original."""
    if source is None:
        written.chmod(0o600)
        return
    copy, original = written.stat(), source.stat()
    rights = stat.S_IMODE(copy.st_mode & original.st_mode) | 0o600
    written.chmod(rights if copy.st_gid == original.st_gid else rights & ~0o070)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
