"""Chat messages as the model APIs exchange them: a role and a content."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from shared_core.entry import MemoryEntry, parse_time
from shared_core.errors import InvalidInputError
from shared_core.formats.source import Draft, Place, Source

# Instructions and tool traffic are no part of what was said, and may hold what a memory injected:
# remembering that again would fill the memory with its own output.
_UNSAID_ROLES = frozenset({"system", "developer", "tool", "function"})


def is_chat(document: object) -> bool:
    """Whether a parsed JSON value looks like chat messages, or like a single one."""
    if isinstance(document, Mapping):
        return "role" in document or isinstance(document.get("messages"), list)
    return isinstance(document, list) and bool(document) and is_chat(document[0])


def read_chat(source: Source) -> Iterator[Draft]:
    """A list of messages, an object with ``messages``, or JSON Lines of messages.

    ``content`` is text, or a list of parts of which those with text count. ``name`` (else the role) is the
    speaker; ``timestamp`` (ISO 8601, or seconds since 1970 UTC) the time; ``id`` the id; the file's name
    without its suffix the session. Messages without text (a bare tool call) and those of the roles system,
    developer, tool and function are left out; other fields are ignored.

    Raises:
        FormatError: if the file has none of these shapes, or on the first broken message.
    """
    for ordinal, (place, message) in enumerate(_messages(source), start=1):
        draft = _read_message(source, place, message, f"message {ordinal}")
        if draft is not None:
            yield draft


def _messages(source: Source) -> Iterator[tuple[Place, object]]:
    if source.first_object is not None and "role" in source.first_object:
        yield from source.objects()
        return
    document = source.document
    prefix: tuple[str, ...] = ()
    if isinstance(document, Mapping):
        prefix = ("messages",)
        document = document.get("messages")
    if not isinstance(document, list):
        raise source.error("expected a list of chat messages, or an object with such a list as 'messages'")
    for index, message in enumerate(document):
        yield (*prefix, index), message


def _read_message(source: Source, place: Place, message: object, what: str) -> Draft | None:
    if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
        raise source.error(f"{what} is not an object with a 'role' and a 'content'", place)
    if message["role"] in _UNSAID_ROLES:
        return None
    text = _text_of(message.get("content"))
    if text is None:
        raise source.error(f"{what}: 'content' must be text or a list of parts", place)
    if not text.strip():
        return None

    def make() -> MemoryEntry:
        return MemoryEntry(
            text=text,
            id=message.get("id"),
            speaker=message["role"] if message.get("name") is None else message["name"],
            session=source.path.stem,
            occurred_at=_time_of(message.get("timestamp")),
        )

    return source.entry(place, make, what)


def _text_of(content: object) -> str | None:
    """The text of a content; "" if it has none, ``None`` if it is no content at all."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return None
    parts = [part.get("text") if isinstance(part, Mapping) else part for part in content]
    return "\n".join(part for part in parts if isinstance(part, str))


def _time_of(timestamp: object) -> datetime | None:
    if timestamp is None:
        return None
    if isinstance(timestamp, int | float) and not isinstance(timestamp, bool):
        try:
            return datetime.fromtimestamp(timestamp, UTC)
        except (OverflowError, OSError, ValueError):
            raise InvalidInputError(f"the timestamp {timestamp} is not in seconds since 1970") from None
    return parse_time(timestamp)
