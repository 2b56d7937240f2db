"""Errors as answers: a status and ``{"error": kind, "message": text}``, with ``"stored": ids`` where some were."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response

from shared_core.errors import (
    AccessError,
    FormatError,
    InvalidInputError,
    NotFoundError,
    SCGError,
    StoreError,
)

_STATUSES: tuple[tuple[type[SCGError], int], ...] = (
    (AccessError, 403),
    (NotFoundError, 404),
    (InvalidInputError, 422),
    (FormatError, 422),
    (SCGError, 503),  # store and model: what was asked may be right, and may work later
)
_MOST_SHOWN = 3
_MOST_CHARACTERS = 300


def refusal(
    error: SCGError,
    status: int | None = None,
    headers: Mapping[str, str] | None = None,
    hidden: Sequence[tuple[str, str]] = (),
) -> Response:
    """The answer that says an error.

    Args:
        error: The error.
        status: The status; ``None`` for the one of its kind.
        headers: More headers.
        hidden: Texts that may not be told, and what is told instead.
    """
    if status is None:
        status = next(number for kind, number in _STATUSES if isinstance(error, kind))
    message = str(error)
    for what, instead in hidden:
        message = message.replace(what, instead)
    return told(type(error).__name__, message, status, headers, error.stored)


def told(
    kind: str, message: str, status: int, headers: Mapping[str, str] | None = None, stored: Sequence[str] = ()
) -> Response:
    """An answer that says what went wrong, and the ids of what was stored nevertheless, if anything was."""
    body = {"error": kind, "message": message, **({"stored": list(stored)} if stored else {})}
    # As ASCII: what is wrong with an input may be that it holds half a character, and messages quote it.
    return Response(json.dumps(body), status, headers, "application/json")


def unreadable(errors: Sequence[Mapping[str, Any]]) -> InvalidInputError:
    """What is wrong with a body or a parameter, from pydantic's errors; the input is not repeated."""
    parts = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}"[:_MOST_CHARACTERS] for one in errors[:_MOST_SHOWN]]
    return InvalidInputError(f"the request cannot be used: {'; '.join(parts)}")


def failed() -> Response:
    """The answer to what nobody foresaw."""
    return told(StoreError.__name__, "the service failed at this request; its log names the kind of error", 500)
