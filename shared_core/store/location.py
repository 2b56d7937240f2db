"""Where a memory is: what people may pass to open one."""

from __future__ import annotations

import os
import re
from pathlib import Path

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from shared_core.entry import check_text
from shared_core.errors import InvalidInputError

# Also with one slash, as a path has it that was made of a URL.
_DATABASE = re.compile(r"\s*postgres[a-z0-9+]*:/", re.IGNORECASE)
_DRIVERS = ("postgresql", "postgresql+psycopg", "postgres")


def parse_location(path_or_url: str | Path) -> Path | URL | None:
    """The file, or the PostgreSQL database, that is meant; ``None`` for a memory that is kept nowhere.

    Raises:
        InvalidInputError: if it is neither a path nor the URL of a database this version writes to.
    """
    if isinstance(path_or_url, str):
        check_text(path_or_url, "path")
        if path_or_url == ":memory:":
            return None
        if "://" in path_or_url:
            return _parse_url(path_or_url)
        if not path_or_url.strip():
            raise InvalidInputError('the path is empty: pass the path of a file, or ":memory:"')
    return check_path(path_or_url)


def check_path(path: str | Path) -> Path:
    """The absolute path that is meant.

    Raises:
        InvalidInputError: if no file can be named so.
    """
    if not isinstance(path, str | os.PathLike):
        raise InvalidInputError(f"the path must be a text or a Path, not {type(path).__name__}")
    try:
        name = os.fsencode(path)
    except UnicodeEncodeError:
        raise InvalidInputError("the path holds a lone surrogate: decode its source as UTF-8") from None
    if not name.strip():
        raise InvalidInputError("the path is empty: pass the path of a file")
    if _DATABASE.match(os.fsdecode(name)):
        # Not repeated: it may hold a password.
        raise InvalidInputError("the address of a database stands where a file is meant: pass the path of a file")
    if b"\x00" in name:
        raise InvalidInputError("the path holds a NUL character: remove it first")
    return Path(os.fsdecode(name)).absolute()


def shown_location(path_or_url: str | Path) -> str:
    """A location as it may be shown to anyone: without the password of a URL."""
    try:
        place = parse_location(path_or_url)
    except InvalidInputError:
        return "the memory"
    return shown_url(place) if isinstance(place, URL) else str(path_or_url)


def shown_url(url: URL) -> str:
    """A URL without what is secret in it."""
    return url.difference_update_query(("password", "sslpassword")).render_as_string(hide_password=True)


def _parse_url(text: str) -> Path | URL | None:
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        # The cause would quote the URL, and perhaps its password.
        raise InvalidInputError(
            "the database URL cannot be read: write it as sqlite:///memory.db or "
            "postgresql+psycopg://user:password@host/database"
        ) from None
    if "@" in (url.host or ""):
        raise InvalidInputError(
            "the database URL has several @: write one that belongs to the user or the password as %40, a slash as "
            "%2F, a colon as %3A"
        )
    if url.drivername in _DRIVERS:
        if not url.database:
            raise InvalidInputError("the database URL names no database: postgresql+psycopg://user@host/database")
        return url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() != "sqlite":
        raise InvalidInputError(
            f"a memory cannot be kept with {url.drivername}: pass a path, or a URL that begins with sqlite:/// or "
            "postgresql+psycopg://"
        )
    if url.query:
        raise InvalidInputError("the database URL has options, which are not supported: leave them out")
    return None if url.database in (None, "", ":memory:") else Path(url.database).absolute()
