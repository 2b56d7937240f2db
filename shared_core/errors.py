"""Errors of the memory. Each message says what was wrong, what was kept, and what to do."""

from __future__ import annotations

from collections.abc import Mapping


class SCGError(Exception):
    """Base of every error raised on purpose by this project.

    Attributes:
        stored: Ids of the entries that a call which was to store some had stored before it failed.
        quoted: The part of the message that a server said, which may name users and machines; empty if there is none.
    """

    stored: tuple[str, ...] = ()
    quoted: str = ""


class InvalidInputError(SCGError, ValueError):
    """An argument, an entry or a query that cannot be used; nothing was stored."""


class UnsupportedError(InvalidInputError, NotImplementedError):
    """Something of a framework's interfaces that this memory cannot do; never ignored in silence."""


class FormatError(SCGError, ValueError):
    """A file to be read is missing, broken or of an unknown format; names the line where it can."""


class NotFoundError(SCGError, LookupError):
    """A named entry, namespace or conversation does not exist."""


class StoreError(SCGError):
    """The store could not be read or written; what was committed before stays as it was."""


class NotAMemoryError(StoreError):
    """The file exists but is not a memory of this project; it was left untouched."""


class StoreVersionError(StoreError):
    """The memory was written by a newer version of this project; it was left untouched."""


class StoreUnavailableError(StoreError):
    """The store cannot be written now: locked for too long, read-only, or out of space."""


class AccessError(SCGError):
    """A service refused: the key is missing, wrong, or not for this namespace."""


class ModelError(SCGError):
    """A language model could not be found, loaded or run."""


def refuse(unknown: Mapping[str, object], known: str) -> None:
    """Refuse keyword arguments that an interface lets through but nothing here would heed.

    Args:
        unknown: The arguments that are left.
        known: What may be passed, in words.

    Raises:
        UnsupportedError: if there are any.
    """
    if unknown:
        raise UnsupportedError(f"unsupported arguments: {', '.join(sorted(unknown))} (supported: {known})")
