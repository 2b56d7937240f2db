"""The unit of memory: one stored text with its source."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeAlias

from shared_core.errors import InvalidInputError

JSON: TypeAlias = "None | bool | int | float | str | Sequence[JSON] | Mapping[str, JSON]"

DEFAULT_NAMESPACE: tuple[str, ...] = ("default",)

MAX_ENTRY_BYTES = 16 * 2**20
"""Of an entry as JSON: what may be remembered. An import reads longer lines, for a line holds its concepts as well."""

_PLAIN = frozenset((str, type(None)))
_MAX_JSON_DEPTH = 32
_MAX_INTEGER_BITS = 14_284  # all of them are 4,300 digits at most, which Python reads without being told to
_MAX_NAMESPACE_CHARACTERS = 1024


@dataclass(frozen=True, slots=True)
class MemoryEntry:
    """A memory entry: a dialogue turn or a document, with where it came from.

    Attributes:
        text: What was said or written. May be empty where there is a caption; or where there is metadata: such an
            entry is silent, kept for the sake of its metadata, and has no concepts.
        id: The caller's id, unique within a namespace; ``None`` lets the memory generate one.
        speaker: Who said it.
        session: The conversation or document it belongs to. Neighbours in a session are an episode.
        occurred_at: When it was said. Naive times are kept naive: no time zone is assumed.
        caption: What an attached image shows; it counts as text of the entry.
        metadata: Any JSON object; copied, returned as JSON has it, and usable in filters.

    Raises:
        InvalidInputError: if a field has the wrong type, the text is empty, or it holds a
            NUL character or a lone surrogate (no database can store those faithfully).
    """

    text: str
    id: str | None = None
    speaker: str | None = None
    session: str | None = None
    occurred_at: datetime | None = None
    caption: str | None = None
    metadata: Mapping[str, JSON] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Written out, and cheap where there is nothing to look at: opening a large memory makes very many entries.
        check_text(self.text, "text")
        if self.id is not None:
            check_text(self.id, "id")
        if self.speaker is not None:
            check_text(self.speaker, "speaker")
        if self.session is not None:
            check_text(self.session, "session")
        if self.caption is not None:
            check_text(self.caption, "caption")
        if not {type(self.text), type(self.id), type(self.speaker), type(self.session), type(self.caption)} <= _PLAIN:
            self._make_plain()
        if self.id is not None and not self.id.strip():
            raise InvalidInputError("the id is empty: pass a non-empty id, or None to have one generated")
        if self.occurred_at is not None and not isinstance(self.occurred_at, datetime):
            raise InvalidInputError(f"occurred_at must be a datetime, not {type(self.occurred_at).__name__}")
        if type(self.metadata) is not dict or self.metadata:
            object.__setattr__(self, "metadata", plain_metadata(self.metadata))
        if not (self.caption or self.metadata or self.text.strip()):
            raise InvalidInputError("the text is empty: an entry needs some text, a caption or metadata")

    def _make_plain(self) -> None:
        """Keep, of texts of some other class, the texts themselves: databases take them as they like, or not at all."""
        for name in ("text", "id", "speaker", "session", "caption"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, str.__str__(value))

    @property
    def is_silent(self) -> bool:
        """Whether it says and shows nothing, so that there is nothing to distil."""
        return not (self.caption or self.text.strip())

    @property
    def content(self) -> str:
        """Text and caption together: what concepts are distilled from."""
        if not self.caption:
            return self.text
        return f"{self.text} [image: {self.caption}]".strip()

    @property
    def digest(self) -> str:
        """SHA-256 over every field but the id, to tell an update from a repetition (64 hex digits)."""
        body = self.to_dict()
        body.pop("id", None)
        canonical = json.dumps(body, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    def with_id(self, id: str) -> MemoryEntry:
        """The same entry under another id."""
        return replace(self, id=id)

    def to_dict(self) -> dict[str, Any]:
        """A JSON object; fields that are not set are left out."""
        body: dict[str, Any] = {"text": self.text}
        for name in ("id", "speaker", "session", "caption"):
            if getattr(self, name) is not None:
                body[name] = getattr(self, name)
        if self.occurred_at is not None:
            body["occurred_at"] = self.occurred_at.isoformat()
        if self.metadata:
            body["metadata"] = dict(self.metadata)
        return body

    @classmethod
    def from_dict(cls, body: Mapping[str, Any]) -> MemoryEntry:
        """Read what :meth:`to_dict` writes; unknown fields are refused.

        Raises:
            InvalidInputError: on unknown or missing fields, or a time that is not ISO 8601.
        """
        known = {"text", "id", "speaker", "session", "caption", "occurred_at", "metadata"}
        unknown = sorted(set(body) - known)
        if unknown:
            named = ", ".join(map(repr, unknown))
            raise InvalidInputError(f"unknown fields {named:.200}: put extra data under 'metadata'")
        if "text" not in body and not body.get("caption"):
            raise InvalidInputError("the field 'text' is missing")
        fields = {name: value for name, value in body.items() if value is not None}
        fields.setdefault("text", "")
        if "occurred_at" in fields:
            fields["occurred_at"] = parse_time(fields["occurred_at"])
        return cls(**fields)


def check_text(value: object, name: str) -> None:
    """Refuse what no store keeps faithfully.

    Raises:
        InvalidInputError: if ``value`` is not text, or holds a NUL or a lone surrogate.
    """
    if not isinstance(value, str):
        raise InvalidInputError(f"the {name} must be text, not {type(value).__name__}")
    if "\x00" in value:
        raise InvalidInputError(f"the {name} holds a NUL character: remove it first")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise InvalidInputError(f"the {name} holds a lone surrogate: decode the source as UTF-8") from None


def check_entries(what: object, source: Mapping[str, Any]) -> list[MemoryEntry]:
    """What is to be remembered, a text or one entry or many, as a list of entries, each small enough to be exported.

    Args:
        what: It.
        source: Of a text: fields of :class:`MemoryEntry`; those that are not given are ``None``.

    Raises:
        InvalidInputError: if it is none of these, or entries come with a source, or one is too large.
    """
    entries = _as_entries(what, source)
    for entry in entries:
        size = len(json.dumps(entry.to_dict(), ensure_ascii=False).encode())
        if size > MAX_ENTRY_BYTES:
            which = "" if entry.id is None else f" {entry.id!r:.80}"
            raise InvalidInputError(
                f"the entry{which} has {size:,} bytes, and {MAX_ENTRY_BYTES:,} are the most: store it in pieces, or "
                "keep it elsewhere and its address in the metadata"
            )
    return entries


def _as_entries(what: object, source: Mapping[str, Any]) -> list[MemoryEntry]:
    given = {name: value for name, value in source.items() if value is not None}
    if isinstance(what, str):
        return [MemoryEntry(what, **given)]
    if given:
        raise InvalidInputError("entries bring their own source: pass keyword arguments with a text only")
    if isinstance(what, MemoryEntry):
        return [what]
    if not isinstance(what, Iterable) or isinstance(what, Mapping | bytes | bytearray | memoryview):
        raise InvalidInputError(f"expected a text or MemoryEntry objects, not {type(what).__name__}")
    entries = list(what)
    for entry in entries:
        if not isinstance(entry, MemoryEntry):
            raise InvalidInputError(f"expected MemoryEntry objects, not {type(entry).__name__}")
    return entries


def check_ids(ids: object) -> list[str]:
    """Ids, or other texts that name things, in order, each once.

    Raises:
        InvalidInputError: if they are not a collection of texts.
    """
    if isinstance(ids, str):
        raise InvalidInputError("pass a list of ids, not one text: its characters would be taken for ids")
    if not isinstance(ids, Collection):
        raise InvalidInputError(f"ids must be a collection of texts, not {type(ids).__name__}: pass [id]")
    for id in ids:
        check_text(id, "id")
    return list(dict.fromkeys(ids))


def plain_metadata(metadata: object) -> dict[str, Any]:
    """Metadata as JSON carries it: dictionaries, lists, texts and numbers alone, none of them the caller's own object.

    Raises:
        InvalidInputError: if it is not an object of JSON values with text keys, or nests too deep.
    """
    if not isinstance(metadata, Mapping):
        raise InvalidInputError(f"metadata must be a JSON object, not {type(metadata).__name__}")
    try:
        plain: dict[str, Any] = _plain_json(metadata, "metadata", 0)
    except InvalidInputError:
        raise
    except Exception as error:  # a caller's own mapping may fail as it likes
        raise InvalidInputError(f"metadata cannot be read ({type(error).__name__}): pass a dictionary") from error
    return plain


def _plain_json(value: object, where: str, depth: int) -> Any:  # noqa: ANN401 - a JSON value
    if depth > _MAX_JSON_DEPTH:
        raise InvalidInputError(f"{where.split('.')[0]} nests deeper than {_MAX_JSON_DEPTH} levels")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        check_text(value, where)
        return str.__str__(value)  # of a subclass, such as an enumeration, the text itself
    if isinstance(value, int):
        if value.bit_length() > _MAX_INTEGER_BITS:
            raise InvalidInputError(f"{where} holds a whole number of more than 4,300 digits, which no reader takes")
        return int.__int__(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidInputError(f"{where} holds {float.__float__(value)}, which JSON cannot carry")
        return float.__float__(value)
    if isinstance(value, Mapping):
        plain: dict[str, Any] = {}
        for key, item in value.items():
            check_text(key, f"key in {where}")
            name = str.__str__(key)
            if name in plain:
                raise InvalidInputError(f"{where} holds the key {name!r:.80} twice")
            plain[name] = _plain_json(item, f"{where}.{name}", depth + 1)
        return plain
    if isinstance(value, list | tuple):
        return [_plain_json(item, where, depth + 1) for item in value]
    raise InvalidInputError(f"{where} holds a {type(value).__name__}, which JSON cannot carry")


def parse_time(value: object) -> datetime:
    """A time from ISO 8601 text (or a datetime, unchanged).

    Raises:
        InvalidInputError: if it cannot be read.
    """
    if isinstance(value, datetime):
        return value
    try:
        if not isinstance(value, str):
            raise ValueError
        return datetime.fromisoformat(value)
    except ValueError:
        raise InvalidInputError(f"{value!r:.80} is not an ISO 8601 time such as 2023-05-08T13:56") from None


def check_namespace(namespace: str | Sequence[str]) -> tuple[str, ...]:
    """A namespace as a tuple of parts: text is a single part; parts are never joined or split.

    Raises:
        InvalidInputError: if it is neither, is empty, has an empty part, or is unreasonably long.
    """
    parts = (namespace,) if isinstance(namespace, str) else _as_parts(namespace)
    if not parts:
        raise InvalidInputError("the namespace has no parts: pass for example ('anna',)")
    for part in parts:
        check_text(part, "namespace")
        if not part.strip():
            raise InvalidInputError(f"the namespace {parts!r:.80} has an empty part")
    if sum(map(len, parts)) > _MAX_NAMESPACE_CHARACTERS:
        raise InvalidInputError(f"the namespace is longer than {_MAX_NAMESPACE_CHARACTERS} characters")
    return parts


def _as_parts(namespace: object) -> tuple[str, ...]:
    if not isinstance(namespace, Sequence):  # a set has no order, and would name another memory each time
        raise InvalidInputError(f"the namespace must be text or a tuple of texts, not {type(namespace).__name__}")
    return tuple(namespace)
