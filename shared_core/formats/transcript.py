"""Plain transcripts: lines of "Name: text", as people write them down."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime

from shared_core.entry import MemoryEntry
from shared_core.formats.source import Draft, Source

# Longer lines are text: no heading is that long, and the patterns below are not linear in the length.
_MAX_HEADER_CHARACTERS = 200

_DATE = r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?"
_HEADER = re.compile(r"#{1,6}\s+(?P<title>.+?)\s*#*")
_DATE_LINE = re.compile(rf"\[?(?P<date>{_DATE})\]?:?")
_DATE_IN_TITLE = re.compile(rf"(?P<before>.*?)[\s,(\[–-]*(?P<date>{_DATE})[)\]]?")
_SESSION_WORD = re.compile(r"^session(?:\s+|$)", re.IGNORECASE)
# A name is up to four words; the later ones have to look like names too ("Anna Lee", "Dr. de Vries" but
# not "she said to me: no"), and a space must follow an ASCII colon ("http://…" is no turn).
_TURN = re.compile(
    rf"(?:\[(?P<date>{_DATE})\]\s*)?"
    r"(?P<name>[^\W\d_][\w.'’-]{0,39}(?:[ ](?:(?:de|da|di|du|van|von|der|den|la|le|el|bin|al)\b|[^\W\d_a-z])"
    r"[\w.'’-]{0,39}){0,3})\s?"
    r"(?::(?:\s+|$)|\uff1a\s*)(?P<text>.*)"
)


@dataclass
class _Turn:
    line: int
    speaker: str | None
    session: str
    occurred_at: datetime | None
    lines: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Session:
    name: str
    occurred_at: datetime | None


def read_transcript(source: Source) -> Iterator[Draft]:
    """Turns of "Name: text", with sessions and dates where the file has them.

    * "Name: text" begins a turn; "[2024-05-08 13:56] Name: text" gives it a time of its own. Any other
      line continues the turn above it. Begin a line with a space to keep "Word: …" from being a name.
    * A blank line ends the turn: text after it without a name is a new turn of the same speaker. So prose
      without names is read paragraph by paragraph. A blank line never starts a session.
    * A header ("# Session 2", "## Lunch, 2024-05-08") starts a session and names it, here "2" and "Lunch".
      A date at its end is the time of the session's turns. A line that is only a date starts a session as
      well, named by that line. Before any header the session is the file's name without its suffix.

    Dates are ISO 8601 and stay without a time zone.

    Raises:
        FormatError: on a date that does not exist or text that cannot be stored.
    """
    for turn in _turns(source):
        text = "\n".join(turn.lines).strip()
        if not text:
            continue

        def make(turn: _Turn = turn, text: str = text) -> MemoryEntry:
            return MemoryEntry(text=text, speaker=turn.speaker, session=turn.session, occurred_at=turn.occurred_at)

        yield source.entry(turn.line, make)


def _turns(source: Source) -> Iterator[_Turn]:
    session = _Session(source.path.stem, None)
    turn = _Turn(1, None, session.name, None)
    for number, line in source.lines():
        header = _read_header(source, number, line)
        if header is not None:
            yield turn
            session = header
            turn = _Turn(number, None, session.name, session.occurred_at)
        elif match := _TURN.fullmatch(line):
            yield turn
            own_time = _read_date(source, number, match["date"])
            turn = _Turn(number, match["name"].strip(), session.name, own_time or session.occurred_at, [match["text"]])
        elif line.strip():
            if not turn.lines:
                turn.line = number
            turn.lines.append(line.strip())
        elif any(turn.lines):
            yield turn
            turn = replace(turn, lines=[])
    yield turn


def _read_header(source: Source, number: int, line: str) -> _Session | None:
    if len(line) > _MAX_HEADER_CHARACTERS:
        return None
    if match := _DATE_LINE.fullmatch(line.strip()):
        return _Session(match["date"], _read_date(source, number, match["date"]))
    header = _HEADER.fullmatch(line.rstrip())
    if header is None:
        return None
    title, date = header["title"], None
    if match := _DATE_IN_TITLE.fullmatch(title):
        title, date = match["before"], match["date"]
    name = _SESSION_WORD.sub("", title)
    return _Session(name or date or title, _read_date(source, number, date))


def _read_date(source: Source, number: int, date: str | None) -> datetime | None:
    if date is None:
        return None
    try:
        return datetime.fromisoformat(date)
    except ValueError:
        raise source.error(f"the date {date!r:.200} does not exist", number) from None
