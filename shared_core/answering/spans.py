"""What an entry can give as an answer: spans of its own words, and the dates it names or means."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from typing import Literal, NamedTuple, TypeAlias

from shared_core.answering.dates import explicit_dates, relative_dates, write_date
from shared_core.schema import FUNCTION_WORDS, MARKS, SPACELESS, word_set

Kind: TypeAlias = Literal["date", "told", "number", "name", "phrase", "verdict"]
"""``date``: a time that the entry names or means. ``told``: the day on which it was said. ``number``: words with an
amount in them. ``name``: capitalised words. ``phrase``: any others. ``verdict``: yes or no, which no entry need say."""

LONGEST = 8
"""Words of a span at most."""

WORD = re.compile(rf"[{SPACELESS}][{MARKS}]*|[^\s{SPACELESS}]+")
"""A word; a character of a script without spaces is one of its own."""

_OUTER = "\"'“”‘’「」『』()[]{}*…-–—,.;:!?~、"
_BREAKS = re.compile(r"[.!?;:…](?=\s|$)|[\n()\[\]。！？；]|\s[-–—]\s")
_NUMBER = re.compile(
    r"\d|^(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|once|twice|dozens?|hundreds?|several|few|"
    r"couple|many|every|daily|weekly|monthly)$",
    re.IGNORECASE,
)
# What no answer begins or ends with. Articles may begin one, and so may "in", "with" or "to".
_NO_START = word_set("and but or so then of because that which who when while if than as is was are were be been")
_NO_END = word_set(
    """
    a an the and but or so of to in on at for with from by my your our their his its i we you he she they is was are
    were be been am have has had that which who when while if than as because about into really very just i'm it's
    we're you're they're i've we've that's can could would will
    """
)


class Span(NamedTuple):
    """A candidate answer."""

    text: str
    kind: Kind


def spans(text: str, said: date | None) -> list[Span]:
    """The candidate answers of an entry, distinct.

    Args:
        text: Its text.
        said: The day on which it was said, if that is known.
    """
    found: dict[str, Kind] = {}
    line = " ".join(text.split())  # as the prompt has it: "last" and "week" may stand on two lines
    if said:
        for dated in relative_dates(line, said):
            found.setdefault(dated.meaning, "date")
    for dated in explicit_dates(line):
        found.setdefault(dated.meaning, "date")
    if said:
        found.setdefault(write_date(said), "told")
    for words in _segments(text):
        for first, start in enumerate(words):
            if start[0].lower() in _NO_START:
                continue
            for last in words[first : first + LONGEST]:
                if last[0].lower().strip(_OUTER) not in _NO_END:
                    span = " ".join(text[start.start() : last.end()].split()).strip(_OUTER + " ")
                    if span and span.lower() not in FUNCTION_WORDS:
                        found.setdefault(span, _kind(span.split()))
    return [Span(span, kind) for span, kind in found.items()]


def _segments(text: str) -> Iterator[list[re.Match[str]]]:
    """The words of each sentence."""
    start = 0
    for found in _BREAKS.finditer(text):
        yield list(WORD.finditer(text, start, found.start()))
        start = found.end()
    yield list(WORD.finditer(text, start))


def _kind(words: list[str]) -> Kind:
    if any(_NUMBER.search(word.strip(_OUTER)) for word in words):
        return "number"
    if all(word[:1].isupper() or word in ("of", "the", "and") for word in words):
        return "name"
    return "phrase"
