"""When something happened, from how a text says it and the day on which it was said.

"Yesterday" means the day before its own entry's, never the day on which it is read.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterator
from datetime import date, timedelta
from typing import NamedTuple

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8}
_NUMBERS |= {"nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15}
_NUMBERS |= {"sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19, "a couple of": 2, "couple of": 2}
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_ONES = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
for _ten, _name in enumerate(_TENS, 2):
    _NUMBERS |= {_name: 10 * _ten}
    _NUMBERS |= {f"{_name}{mark}{one}": 10 * _ten + add for mark in "- " for add, one in enumerate(_ONES, 1)}

# Spaces in a verbose expression are escaped.
_WORDS = "|".join(sorted(_NUMBERS, key=len, reverse=True)).replace(" ", r"\ ")
# The whole of "1.5", "1,000" and "3-4": their last digits alone would be another number.
_COUNT = rf"(?P<count>\d{{1,3}}(?:[.,/–-]\d{{1,3}})*|(?:a\ )?few|several|half\ an?|{_WORDS})"
_DAY = "(?:" + "|".join(f"{day[:3]}(?:{day[3:]})?" for day in _DAYS) + "|tues|thurs)"
_MONTH = "(?:" + "|".join(f"{month[:3]}(?:{month[3:]})?" if month != "may" else "may" for month in _MONTHS) + "|sept)"
_SEASON = r"(?:spring|summer|fall|autumn|winter)"

_EXPRESSION = re.compile(
    rf"""\b(?:
    (?P<before_yesterday>(?:the\ )?day\ before\ yesterday)
    |(?P<yesterday>yesterday|last\ night)
    |(?P<today>today|tonight|this\ (?:morning|afternoon|evening))
    |(?P<after_tomorrow>(?:the\ )?day\ after\ tomorrow)
    |(?P<tomorrow>tomorrow)
    |(?P<within>in\ )?(?:about\ |around\ )?{_COUNT}\ (?P<unit>day|week|weekend|month|year)s?
     (?:(?P<past>\ (?:ago|back))|(?!\ or\b))
    |(?P<which>last|this\ past|past|this|next|the\ other|on|previous)
     \ (?P<of>week|weekend|month|year|{_SEASON}|{_DAY}|{_MONTH})
    )(?![\w-])""",
    re.IGNORECASE | re.VERBOSE,
)
# What part of a sentence speaks of what is to come, and what of what has been: "on Monday" may be either.
_AHEAD = re.compile(
    r"\b(?:will|won['’]t|shall|gonna|going to|plan(?:s|ning)?|hop(?:e|es|ing)|upcoming|looking forward|can['’]t wait"
    r"|leaves?|starts?|begins?|opens?|arrives?|departs?|ends?|(?:am|is|are) (?:\w+ )?\w+ing)\b"
    r"|['’]ll\b|(?:['’](?:m|re)|\b(?:he|she|it|who)['’]s) (?:\w+ )?\w+ing\b",
    re.IGNORECASE,
)
_BEHIND = re.compile(
    r"\b(?:was|were|had|did|got|went|won|met|saw|took|made|came|bought|gave|found|ate|ran|[a-z]{2,}ed)\b", re.IGNORECASE
)
_SENTENCE = re.compile(r"[.!?;\n]")
_NEAR = {"before_yesterday": -2, "yesterday": -1, "today": 0, "tomorrow": 1, "after_tomorrow": 2}
# "The week before 25 May" is not 25 May.
_BESIDE = r"(?:(?:the\ )?(?:day|night|week|weekend|month|year)\ (?:before|after)\ )?"
_EXPLICIT = re.compile(
    rf"""\b{_BESIDE}(?:
    \d{{1,2}}(?:st|nd|rd|th)?\ (?:of\ )?{_MONTH}(?:,?\ \d{{4}})?
    |{_MONTH}\ \d{{1,2}}(?:st|nd|rd|th)?(?:,?\ \d{{4}})?
    |{_MONTH},?\ \d{{4}}
    |(?:19|20)\d\d
    )(?!\w)""",
    re.IGNORECASE | re.VERBOSE,
)


class Dated(NamedTuple):
    """An expression of time at ``text[start:end]``, and what it means, such as ``the week before 9 June 2023``."""

    start: int
    end: int
    meaning: str


def write_date(day: date) -> str:
    """A date as answers write it: ``7 May 2023``."""
    return f"{day.day} {day:%B} {day.year}"


def relative_dates(text: str, said: date) -> Iterator[Dated]:
    """The expressions of a text that are relative to the day on which it was said, in order, with their meaning.

    What names a day becomes that day, what names a week or a weekend is put beside the day it was said, and what names
    a month or a year becomes that month or year. "On Monday" is the one before, unless the sentence speaks of what is
    to come ("my train leaves on Monday"), and "in two weeks" is a time only then. Expressions that name no more than a
    direction ("soon") are passed over, and so are days that the calendar does not reach.
    """
    for match in _EXPRESSION.finditer(text):
        try:
            meaning = _meaning(match, said)
        except (OverflowError, ValueError):  # before the year 1 or after 9999
            continue
        if meaning:
            yield Dated(match.start(), match.end(), meaning)


def explicit_dates(text: str) -> Iterator[Dated]:
    """The dates that a text names by itself, as it writes them: a day, a month with its year, a year.

    What is said to lie before or after such a date goes with it: ``the week before 25 May``.
    """
    for match in _EXPLICIT.finditer(text):
        yield Dated(match.start(), match.end(), match[0])


def _meaning(match: re.Match[str], said: date) -> str:
    for name, days in _NEAR.items():
        if match[name]:
            return write_date(said + timedelta(days=days))
    if match["unit"]:
        direction = -1 if match["past"] else 1
        # "In a day" may say how long something takes.
        if bool(match["past"]) == bool(match["within"]) or (direction == 1 and not _is_ahead(match)):
            return ""
        return _far(match["count"].lower(), match["unit"].lower(), said, direction)
    return _neighbour(match, said)


def _is_ahead(match: re.Match[str]) -> bool:
    """Whether what stands around an expression speaks of what is to come."""
    before, after = match.string[: match.start()], match.string[match.end() :]
    around = f"{_SENTENCE.split(before)[-1]} {_SENTENCE.split(after)[0]}"
    return bool(_AHEAD.search(around)) and not _BEHIND.search(around)


def _far(count: str, unit: str, said: date, direction: int) -> str:
    number = int(count) if count.isdigit() else _NUMBERS.get(count)
    beside = f"{'before' if direction < 0 else 'after'} {write_date(said)}"
    if number is None:  # "a few days ago", "1.5 years ago", "half a year ago"
        several = "" if count.startswith("half") else "s"
        return f"{count.removeprefix('a ')} {unit}{several} {beside}"
    if unit == "day":
        return write_date(said + timedelta(days=direction * number))
    if unit == "month":
        return _write_month(said, direction * number)
    if unit == "year":
        return str(date(said.year + direction * number, 1, 1).year)
    return f"{count if number > 1 else 'the'} {unit}{'s' * (number > 1)} {beside}"


def _neighbour(match: re.Match[str], said: date) -> str:
    which, of = match["which"].lower(), match["of"].lower()
    direction = {"this": 0, "next": 1, "on": 1 if _is_ahead(match) else -1}.get(which, -1)
    if of in ("week", "weekend"):
        return f"the {of} {('before', 'of', 'after')[direction + 1]} {write_date(said)}"
    if of == "month":
        return _write_month(said, direction)
    if of == "year":
        return str(date(said.year + direction, 1, 1).year)
    if re.fullmatch(_SEASON, of):
        return f"{of} {date(said.year + direction, 1, 1).year}"
    day = next((place for place, name in enumerate(_DAYS) if name.startswith(of[:3])), None)
    if day is not None:
        if direction == 1:
            return f"the {_DAYS[day].capitalize()} after {write_date(said)}"
        return "" if which == "this" else f"the {_DAYS[day].capitalize()} before {write_date(said)}"
    if match["of"] == "may":  # "this may be"
        return ""
    month = next(place for place, name in enumerate(_MONTHS, 1) if name.startswith(of[:3]))
    if which not in ("last", "this past", "past", "previous", "this", "next"):
        return ""
    year = said.year + (direction == 1 and month <= said.month) - (direction == -1 and month >= said.month)
    return f"{_MONTHS[month - 1].capitalize()} {date(year, month, 1).year}"


def _write_month(said: date, months: int) -> str:
    year, month = divmod(said.year * 12 + said.month - 1 + months, 12)
    day = date(year, month + 1, min(said.day, monthrange(year, month + 1)[1]))
    return f"{day:%B} {day.year}"
