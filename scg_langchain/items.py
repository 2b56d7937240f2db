"""An item of a LangGraph store as an entry of the memory.

The entry's text is what the item can be found by; an item without such a text is a silent entry. The value is kept
as JSON text in the metadata, so that it survives whole, however deep, and with every character.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from langgraph.store.base import Item, SearchItem, get_text_at_path

from scg_langchain.spelling import cleaned, read, spell
from shared_core import MemoryEntry
from shared_core.errors import InvalidInputError
from shared_core.store import HeldEntry

WHOLE = "$"
"""The path of the whole value."""


@dataclass(frozen=True, slots=True)
class StoredItem:
    """An item as it is kept.

    Attributes:
        key: Its key.
        value: Its value, as JSON text.
        created_at: When it was first put.
        updated_at: When it was last put.
        ttl: Minutes it lives after it was last put or read; ``None``: for ever.
        touched: When it was last read, in seconds since 1970, if that was noted.
    """

    key: str
    value: str
    created_at: datetime
    updated_at: datetime
    ttl: float | None = None
    touched: float | None = None

    def to_entry(self, text: str) -> MemoryEntry:
        """The entry that keeps the item, found by a text."""
        metadata: dict[str, Any] = {
            "value": self.value,
            "created_at": self.created_at.isoformat(),
            "updated_at": self.updated_at.isoformat(),
        }
        if self.ttl is not None:
            metadata["ttl"] = self.ttl
        return MemoryEntry(text, spell(self.key), metadata=metadata)

    @classmethod
    def from_entry(cls, entry: MemoryEntry) -> StoredItem:
        """The item that an entry keeps."""
        metadata: Mapping[str, Any] = entry.metadata
        return cls(
            read(str(entry.id)),
            metadata["value"],
            datetime.fromisoformat(metadata["created_at"]),
            datetime.fromisoformat(metadata["updated_at"]),
            metadata.get("ttl"),
        )

    @classmethod
    def from_held(cls, held: HeldEntry) -> StoredItem:
        """The item that an entry keeps, with what the store notes of it."""
        return replace(cls.from_entry(held.entry), touched=held.touched)

    def is_expired(self, now: datetime) -> bool:
        """Whether its time is over."""
        if self.ttl is None:
            return False
        last = max(self.updated_at.timestamp(), self.touched or 0.0)
        return now.timestamp() >= last + 60 * self.ttl

    def load(self) -> dict[str, Any]:
        """The value."""
        value: dict[str, Any] = json.loads(self.value)
        return value

    def to_item(self, namespace: tuple[str, ...]) -> Item:
        """The item as LangGraph hands it out."""
        return Item(
            value=self.load(),
            key=self.key,
            namespace=namespace,
            created_at=self.created_at,
            updated_at=self.updated_at,
        )

    def to_search_item(self, namespace: tuple[str, ...], score: float | None = None) -> SearchItem:
        """The item as LangGraph hands it out from a search."""
        return SearchItem(namespace, self.key, self.load(), self.created_at, self.updated_at, score)


def new_item(key: str, value: object, ttl: float | None, earlier: StoredItem | None = None) -> StoredItem:
    """An item that is put now.

    Args:
        key: Its key.
        value: Its value.
        ttl: Minutes it lives.
        earlier: What was kept under the key.

    Raises:
        InvalidInputError: if the value is no JSON object that comes back as it is.
    """
    now = datetime.now(UTC)
    return StoredItem(key, _dump(key, value), earlier.created_at if earlier else now, now, ttl)


def searchable_text(value: Mapping[str, Any], paths: Sequence[str]) -> str:
    """What an item can be found by: the parts of its value at some paths; empty if there are none."""
    parts: list[str] = []
    for path in paths:
        parts += _outline(value) if path == WHOLE else get_text_at_path(value, path)
    return cleaned("\n".join(parts)).strip()


def _dump(key: str, value: object) -> str:
    if not isinstance(value, Mapping):
        raise InvalidInputError(f"the value of {key!r:.200} must be a JSON object, not {type(value).__name__}")
    try:
        _check_keys(value)
        return json.dumps(dict(value), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(f"the value of {key!r:.200} is not JSON ({error}): nothing was stored") from error


def _check_keys(value: object) -> None:
    pending: list[tuple[object, int]] = [(value, 0)]
    while pending:
        part, depth = pending.pop()
        if depth > 900:
            raise ValueError("it is nested too deep")
        if isinstance(part, Mapping):
            wrong = [name for name in part if not isinstance(name, str)]
            if wrong:
                raise TypeError(f"the field name {wrong[0]!r:.200} is not text")
            pending += ((inner, depth + 1) for inner in part.values())
        elif isinstance(part, list | tuple):
            pending += ((inner, depth + 1) for inner in part)


def _outline(value: object) -> Iterator[str]:
    """Every text, number and truth value in a value with the names of the fields that lead to it, one a line."""
    pending: list[tuple[str, object]] = [("", value)]
    while pending:
        name, part = pending.pop()
        if isinstance(part, Mapping):
            inner = [(f"{name} {field}".strip(), one) for field, one in part.items()]
            pending += reversed(inner)
        elif isinstance(part, list | tuple):
            pending += ((name, one) for one in reversed(part))
        elif part is not None:
            text = part if isinstance(part, str) else json.dumps(part)
            yield f"{name}: {text}" if name else text
