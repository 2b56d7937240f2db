"""Which entries are meant: a condition on where they come from."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Any

from shared_core.entry import JSON, MemoryEntry, check_text, parse_time, plain_metadata
from shared_core.errors import InvalidInputError, UnsupportedError


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition on entries; an entry must meet every part that is given.

    Attributes:
        session: The entry's session, or a collection of sessions it may have. Compared exactly.
        speaker: The entry's speaker, or a collection of speakers. Compared exactly.
        after: The entry is of this time or later.
        before: The entry is earlier than this time. Naive times count as UTC, on both sides. Entries
            without a time meet neither condition.
        metadata: Each of these fields is in the entry's metadata with an equal JSON value. ``true`` and ``1``
            differ; ``1`` and ``1.0`` are equal.

    Raises:
        InvalidInputError: if a part has the wrong type, or no time can lie between ``after`` and ``before``.
    """

    session: str | Collection[str] | None = None
    speaker: str | Collection[str] | None = None
    after: datetime | None = None
    before: datetime | None = None
    metadata: Mapping[str, JSON] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("session", "speaker"):
            object.__setattr__(self, name, _check_choice(getattr(self, name), name))
        for name in ("after", "before"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, datetime):
                raise InvalidInputError(f"{name} must be a datetime, not {type(value).__name__}")
        if self.after and self.before and instant(self.after) >= instant(self.before):
            raise InvalidInputError(f"no time is after {self.after} and before {self.before}: swap them")
        object.__setattr__(self, "metadata", plain_metadata(self.metadata))

    @property
    def is_empty(self) -> bool:
        """Whether no condition is given, so that every entry matches."""
        parts = (self.session, self.speaker, self.after, self.before)
        return all(part is None for part in parts) and not self.metadata

    def to_dict(self) -> dict[str, Any]:
        """A JSON object; parts that are not given are left out.

        Raises:
            UnsupportedError: if it is of a subclass, whose condition only its own code knows.
        """
        if type(self) is not Filter:
            raise UnsupportedError(
                f"a condition of type {type(self).__name__} cannot be sent to another process: pass a Filter"
            )
        body: dict[str, Any] = {}
        for name in ("session", "speaker"):
            value = getattr(self, name)
            if value is not None:
                body[name] = value if isinstance(value, str) else sorted(value)
        for name in ("after", "before"):
            if getattr(self, name) is not None:
                body[name] = getattr(self, name).isoformat()
        if self.metadata:
            body["metadata"] = dict(self.metadata)
        return body

    @classmethod
    def from_dict(cls, body: Mapping[str, Any]) -> Filter:
        """Read what :meth:`to_dict` writes.

        Raises:
            InvalidInputError: if it is no filter.
        """
        unknown = sorted(set(body) - {one.name for one in fields(cls)})
        if unknown:
            raise InvalidInputError(f"a filter has no parts {', '.join(map(repr, unknown))}")
        parts: dict[str, Any] = {name: value for name, value in body.items() if value is not None}
        for name in ("after", "before"):
            if name in parts:
                parts[name] = parse_time(parts[name])
        return cls(**parts)

    def matches(self, entry: MemoryEntry) -> bool:
        """Whether the entry meets every condition."""
        return (
            _is_chosen(entry.session, self.session)
            and _is_chosen(entry.speaker, self.speaker)
            and self._matches_time(entry.occurred_at)
            and all(
                name in entry.metadata and _same_json(entry.metadata[name], value)
                for name, value in self.metadata.items()
            )
        )

    def _matches_time(self, time: datetime | None) -> bool:
        if self.after is None and self.before is None:
            return True
        if time is None:
            return False
        moment = instant(time)
        return (self.after is None or instant(self.after) <= moment) and (
            self.before is None or moment < instant(self.before)
        )


def check_filter(where: object) -> None:
    """Refuse what is given for a filter and is none.

    Raises:
        InvalidInputError: if it is neither a filter nor ``None``.
    """
    if where is not None and not isinstance(where, Filter):
        raise InvalidInputError(f"where must be a Filter, not {type(where).__name__}")


def _check_choice(value: object, name: str) -> str | frozenset[str] | None:
    if value is None:
        return None
    if isinstance(value, str):
        check_text(value, name)
        return value
    if not isinstance(value, Collection) or isinstance(value, Mapping):
        kind = type(value).__name__
        raise InvalidInputError(f"the {name} must be text or a collection of texts, not {kind}")
    for item in value:
        check_text(item, name)
    return frozenset(value)


def _is_chosen(value: str | None, choice: str | Collection[str] | None) -> bool:
    if choice is None:
        return True
    return value == choice if isinstance(choice, str) else value in choice


def instant(time: datetime) -> datetime:
    """A time that compares with every other: a naive one counts as UTC."""
    return time.replace(tzinfo=UTC) if time.utcoffset() is None else time


def _same_json(left: JSON, right: JSON) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(_same_json(left[name], right[name]) for name in left)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(_same_json, left, right))
    return left == right
