"""What this adapter refuses."""

from __future__ import annotations

from collections.abc import Mapping

from shared_core.errors import InvalidInputError


class UnsupportedError(InvalidInputError, NotImplementedError):
    """Something of LangChain's interfaces that this memory cannot do; never ignored in silence."""


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
