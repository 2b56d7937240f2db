"""Making an entry of a row of which not every field can be read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from shared_core.entry import MemoryEntry, parse_time

FIELDS: Final = ("id", "text", "speaker", "session", "caption", "occurred_at", "metadata")
"""The columns that hold an entry."""


def recover_entry(row: Mapping[str, object]) -> tuple[MemoryEntry | None, list[str]]:
    """What can be read of a row's :data:`FIELDS`.

    Returns:
        The entry, without an id if that cannot be read, and the fields that cannot; ``None`` if nothing is left that
        an entry could hold.
    """
    body: dict[str, Any] = {}
    unread = []
    for name in FIELDS:
        value = row[name]
        if value is None and name not in ("id", "text"):
            continue
        try:
            body[name] = _decode(name, value)
        except (ValueError, TypeError, RecursionError):
            unread.append(name)
    try:
        return MemoryEntry(**{"text": "", **body}), unread
    except ValueError:
        return None, unread or ["text"]


def recovered_id(number: int, is_taken: Callable[[str], bool]) -> str:
    """A new id for the entry in a row or place whose own cannot be used."""
    id, tries = f"recovered-{number}", 1
    while is_taken(id):
        tries += 1
        id = f"recovered-{number}-{tries}"
    return id


def _decode(name: str, value: object) -> object:
    """A field as an entry has it.

    Raises:
        ValueError, TypeError, RecursionError: if no entry can have it.
    """
    if not isinstance(value, str):
        raise ValueError(f"the {name} is no text")
    found: Any = value
    if name == "metadata":
        found = json.loads(value)
    elif name == "occurred_at":
        found = parse_time(value)
    MemoryEntry(**{"text": "some", "caption": "some", name: found})
    return found
