"""LoCoMo, the benchmark of very long conversations (Maharana et al., ACL 2024), in both published shapes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shared_core.entry import MemoryEntry
from shared_core.errors import InvalidInputError, NotFoundError
from shared_core.formats.source import Draft, Place, Source

_SESSION = re.compile(r"session_([1-9]\d*)", re.ASCII)
_TIME = re.compile(r"(\d{1,2}):(\d\d) ?([ap])m on (\d{1,2}) ([a-z]+),? (\d{4})", re.ASCII | re.IGNORECASE)
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)


@dataclass(frozen=True)
class _Conversation:
    """One conversation: the object with its sessions, and the way to it in the document."""

    name: str
    body: Mapping[str, object]
    place: tuple[str | int, ...]


def is_locomo(document: object) -> bool:
    """Whether a parsed JSON value looks like one conversation or a list of them."""
    if isinstance(document, Mapping):
        return isinstance(document.get("conversation"), Mapping) or any(map(_SESSION.fullmatch, document))
    return isinstance(document, list) and bool(document) and is_locomo(document[0])


def read_locomo(source: Source, conversation: str | None) -> Iterator[Draft]:
    """The turns of one conversation: the ``locomo10.json`` list, or a file with the sessions at top level.

    A turn's ``dia_id`` is its entry's id, its session's number the session, its session's date the time,
    its ``blip_caption`` the caption. Dates without a session, sessions without a date, and turns with neither
    text nor caption are tolerated. Everything else in the file (questions, summaries) is ignored.

    Args:
        source: The file.
        conversation: Its ``sample_id``; where that is missing, the file's name without its suffix, or the
            position in the list.

    Raises:
        FormatError: if the file is broken, or has several conversations and none is chosen.
        NotFoundError: if it has no such conversation.
    """
    chosen = _choose(source, _conversations(source), conversation)
    sessions = [(int(match[1]), key) for key in chosen.body if (match := _SESSION.fullmatch(key))]
    for number, key in sorted(sessions):
        yield from _read_session(source, chosen, str(number), key)


def _conversations(source: Source) -> list[_Conversation]:
    document = source.document
    if isinstance(document, Mapping):
        return [_conversation(source, document, (), source.path.stem)]
    if not isinstance(document, list):
        raise source.error("expected a LoCoMo conversation or a list of them")
    return [_conversation(source, sample, (index,), str(index + 1)) for index, sample in enumerate(document)]


def _conversation(source: Source, sample: object, place: tuple[str | int, ...], name: str) -> _Conversation:
    if not isinstance(sample, Mapping) or not is_locomo(sample):
        raise source.error("expected a LoCoMo conversation: an object with 'session_1', …", place)
    sample_id = sample.get("sample_id")
    if isinstance(sample_id, str | int):
        name = str(sample_id)
    nested = sample.get("conversation")
    if isinstance(nested, Mapping):
        return _Conversation(name, nested, (*place, "conversation"))
    return _Conversation(name, sample, place)


def _choose(source: Source, conversations: list[_Conversation], name: str | None) -> _Conversation:
    names = ", ".join(conversation.name for conversation in conversations)
    if name is None:
        if len(conversations) != 1:
            raise source.error(f"choose one of the {len(conversations)} conversations of the file: {names}")
        return conversations[0]
    for conversation in conversations:
        if conversation.name == name:
            return conversation
    raise NotFoundError(f"{source.path} has no conversation {name!r:.80}; it has: {names}")


def _read_session(source: Source, conversation: _Conversation, number: str, key: str) -> Iterator[Draft]:
    turns = conversation.body[key]
    place = (*conversation.place, key)
    if turns is None:
        return
    if not isinstance(turns, list):
        raise source.error(f"{conversation.name}, {key}: expected a list of turns", place)
    date_key = f"{key}_date_time"
    occurred_at = _read_time(source, conversation, date_key) if date_key in conversation.body else None
    for index, turn in enumerate(turns):
        what = f"{conversation.name}, {key}, turn {index + 1}"
        if not isinstance(turn, Mapping):
            raise source.error(f"{what} is not an object", (*place, index))
        draft = _read_turn(source, (*place, index), what, turn, number, occurred_at)
        if draft is not None:
            yield draft


def _read_turn(
    source: Source,
    place: Place,
    what: str,
    turn: Mapping[str, Any],
    session: str,
    occurred_at: datetime | None,
) -> Draft | None:
    # The older files have the words of some turns under 'clean_text' alone.
    text = turn.get("text") or turn.get("clean_text") or ""
    caption = turn.get("blip_caption") or None
    if text == "" and caption is None:
        return None

    def make() -> MemoryEntry:
        return MemoryEntry(
            text=text,
            id=turn.get("dia_id"),
            speaker=turn.get("speaker"),
            session=session,
            occurred_at=occurred_at,
            caption=caption,
        )

    return source.entry(place, make, what)


def _read_time(source: Source, conversation: _Conversation, key: str) -> datetime | None:
    value = conversation.body[key]
    if value is None or value == "":
        return None
    try:
        return _parse_time(value)
    except InvalidInputError as error:
        raise source.error(f"{conversation.name}, {key}: {error}", (*conversation.place, key)) from None


def _parse_time(value: object) -> datetime:
    """A time such as "1:56 pm on 8 May, 2023"; not by strptime, whose month names follow the locale."""
    match = _TIME.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise InvalidInputError(f"{value!r:.80} is not a time such as '1:56 pm on 8 May, 2023'")
    hour, minute, half, day, month, year = match.groups()
    try:
        if not 1 <= int(hour) <= 12:
            raise ValueError
        return datetime(
            int(year),
            _month_number(month),
            int(day),
            int(hour) % 12 + (12 if half.lower() == "p" else 0),
            int(minute),
        )
    except ValueError:
        raise InvalidInputError(f"the time {value!r:.80} does not exist") from None


def _month_number(name: str) -> int:
    """1 to 12 for a month's English name, in full or its first letters (three or more)."""
    for number, month in enumerate(_MONTHS, start=1):
        if len(name) >= 3 and month.startswith(name.lower()):
            return number
    raise ValueError
