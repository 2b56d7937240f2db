"""Where a memory is: what people may pass to open one."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from shared_core.entry import check_text
from shared_core.errors import InvalidInputError


def parse_location(path_or_url: str | Path) -> Path | None:
    """The file that a path or URL means; ``None`` for a memory that is kept nowhere.

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
    return Path(path_or_url).absolute()


def _parse_url(text: str) -> Path | None:
    try:
        url = make_url(text)
    except (ArgumentError, ValueError) as error:
        raise InvalidInputError("the database URL cannot be read: write it as sqlite:///memory.db") from error
    if url.get_backend_name() != "sqlite":
        raise InvalidInputError(
            f"a memory cannot be kept in {url.get_backend_name()} yet: pass a path or a sqlite:/// URL"
        )
    if url.query:
        raise InvalidInputError("the database URL has options, which are not supported: leave them out")
    return None if url.database in (None, "", ":memory:") else Path(url.database).absolute()
