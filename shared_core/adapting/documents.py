"""Texts with free metadata, as frameworks have them, and memory entries: one translation, both ways."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from datetime import datetime
from typing import Any

from shared_core.entry import MemoryEntry, parse_time
from shared_core.errors import InvalidInputError


def document_entry(content: str, id: str | None, given: Mapping[str, Any]) -> MemoryEntry:
    """The memory entry of a text with metadata.

    The metadata is kept whole. ``speaker``, ``session`` (text or a whole number) and ``occurred_at`` (a ``datetime``
    or ISO 8601 text) become the entry's source, which ranking and filters use; where they are something else, they
    are metadata like any other.

    A text that is empty is one of an entry which nothing recalls, but which is kept, where there is metadata.

    Args:
        content: The text; one that ends as entries show the ``caption`` of the metadata has it as caption.
        id: Its id.
        given: Its metadata.

    Raises:
        InvalidInputError: if it cannot be stored: with neither text nor metadata, or with metadata that JSON cannot
            carry.
    """
    metadata = dict(given)
    if isinstance(metadata.get("occurred_at"), datetime):
        metadata["occurred_at"] = metadata["occurred_at"].isoformat()
    text, caption = _uncaptioned(content, metadata.get("caption"))
    entry = MemoryEntry(
        text,
        id,
        name_of(metadata.get("speaker")),
        name_of(metadata.get("session")),
        _time(metadata.get("occurred_at")),
        caption,
        metadata if not text.strip() else {},  # a page without words is kept for what is known of it
    )
    # What the entry's own fields give back unchanged is not kept twice.
    known = _source(entry)
    rest = {name: value for name, value in metadata.items() if name not in known or known[name] != value}
    return replace(entry, metadata=deepcopy(metadata if entry.is_silent and not rest else rest))


def document_metadata(entry: MemoryEntry) -> dict[str, Any]:
    """The metadata of an entry's text: its source, the time as ISO 8601 text, and what else was given."""
    return {**_source(entry), **deepcopy(dict(entry.metadata))}


def name_of(value: object) -> str | None:
    """A speaker or session by name; numbers become text, and what names nothing is ``None``."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) else None


def _uncaptioned(content: str, caption: object) -> tuple[str, str | None]:
    """Text and caption of an entry by its content, if it has the caption."""
    ending = f"[image: {caption}]"
    if not isinstance(caption, str) or not caption or not content.endswith(ending):
        return content, None
    if content == ending:
        return "", caption
    text = content.removesuffix(f" {ending}")
    return (content, None) if text == content else (text, caption)


def _time(value: object) -> datetime | None:
    try:
        return parse_time(value)
    except InvalidInputError:
        return None


def _source(entry: MemoryEntry) -> dict[str, Any]:
    """The fields of an entry that are metadata of its text."""
    fields = entry.to_dict()
    return {name: fields[name] for name in ("speaker", "session", "occurred_at", "caption") if name in fields}
