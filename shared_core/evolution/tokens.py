"""Cutting a text into the tokens that phrases are made of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from shared_core.schema import EMOJI, FUNCTION_WORDS, HANGUL, MARKS, SPACELESS, word_set


class Kind(Enum):
    """What a token can do in a phrase."""

    WORD = 1  # a content word
    STOP = 2  # a word that separates phrases
    RUN = 3  # letters of a script without spaces
    TAG = 4  # a hashtag or a handle
    LINK = 5
    WHOLE = 6  # a phrase by itself: mail address, path, emoji


class Token(NamedTuple):
    """A token at ``text[start:end]``; ``parted`` when punctuation or a line end lies before it."""

    kind: Kind
    start: int
    end: int
    parted: bool


# Besides function words: fillers and interjections, which in dialogue are everywhere and name nothing.
_STOP_WORDS = FUNCTION_WORDS | word_set(
    """
    actually ah almost already alright although always another anybody anymore anyway anyways around aw
    away aww basically bye course definitely done enough especially etc even everybody exactly gonna
    gotta guess haha hello hey hi hmm however indeed instead kinda lemme lol mainly may maybe mine
    mostly much nah never nobody none nope nothing oh ok okay omg onto oops perhaps pretty probably
    quite rather really simply somebody somehow sometimes sure thank thanks therefore thus til till
    totally toward towards unless usually via wanna well whole wow y'all ya yay yeah yep yup ain't dont
    didnt doesnt isnt wasnt cant wont im ive thats youre theyre
    """
)
# In a text that is not English, besides every word of one or two letters.
_FOREIGN_STOP_WORDS = word_set(
    """
    als aber auch auf aus avec bei che com como con dal das dass dei del della dem den der des die dos
    ein eine einen einer elle est está esta este für gli habe hat ich ils ist les los las lui mais mas
    mit muy más nach não nicht noch non nos nous oder par para pas per pero por pour que qui sein sich
    sie sind sono sont sur tem uma una und une uno vom von vous war was wie wir zum zur über
    """
)
_BEFORE_MAY = word_set("by early in last late mid next of since this until")

_CONNECTED = r"(?:['\u2019&\u200c\u200d\u2010\u2011-]|::|__?|\.(?=[a-z0-9_]))"


def _pattern(letter: str, others: str) -> re.Pattern[str]:
    # Repetitions are bounded where a failed match would be tried anew from each of its characters.
    return re.compile(
        r"(?P<LINK>(?:https?://|www\.)[^\s<>\"'()\[\]{}]+)"
        r"|(?P<WHOLE>[A-Za-z0-9_.+-]{1,64}@[A-Za-z0-9-]{1,64}(?:\.[A-Za-z0-9-]{1,64})+"
        r"|(?<!\w)[~.]{0,2}(?:/[\w.-]{1,64}){2,}"
        rf"|{EMOJI})"
        rf"|(?P<TAG>(?<!\w)[#@]{letter}(?:{letter}|_)*)"
        r"|(?P<NUMBER>[$\u20ac\xa3\xa5\u20b9]?\d+(?:[.,:/-]\d+)*(?:\s?[ap]m\b|%|\s?\xb0[CF]?|[a-z]{1,3}\b)?(?![^\W_]))"
        rf"|(?P<WORD>{letter}+(?:{_CONNECTED}{letter}+)*(?:\+\+|#(?!\w)|\(\))?)" + others
    )


_ASCII_TOKEN = _pattern("[A-Za-z0-9]", "")
_TOKEN = _pattern(rf"(?:[^\W_{SPACELESS}]|[{MARKS}])", rf"|(?P<RUN>[{SPACELESS}][{SPACELESS}{MARKS}]*)")
_KOREAN = re.compile(f"[{HANGUL}]+")
_ABBREVIATION = re.compile(r"(?<![^\W_])(?:Dr|Mr|Mrs|Ms|St|Prof|Mt|Ft|No|[A-Z])\Z")
_YEAR = re.compile(r"(?:1\d|20)\d\d(?!\d)")
_LATIN_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*")
_SAMPLE = 2_000
_KINDS = {
    "WORD": Kind.WORD,
    "NUMBER": Kind.WORD,
    "RUN": Kind.RUN,
    "TAG": Kind.TAG,
    "LINK": Kind.LINK,
    "WHOLE": Kind.WHOLE,
}


def scan(text: str) -> Iterator[Token]:
    """The tokens of a text in order, in time linear in its length."""
    plain = text.isascii()
    english: bool | None = None
    end = 0
    before = ""
    for match in (_ASCII_TOKEN if plain else _TOKEN).finditer(text):
        start, surface = match.start(), match[0]
        parted = start != end and text[end:start] != " " and _parts(text, end, start)
        end = match.end()
        kind = _KINDS[match.lastgroup or "WHOLE"]
        if kind is Kind.WORD:
            word = surface.lower().replace("\u2019", "'")
            if word in _STOP_WORDS:
                if word != "may" or not _is_month(surface, before, text[end : end + 2]):
                    kind = Kind.STOP
            elif _is_foreign_stop(word):
                english = _is_english(text) if english is None else english
                kind = kind if english else Kind.STOP
            before = word
        elif kind is Kind.RUN and _KOREAN.fullmatch(surface):
            kind = Kind.WORD
        yield Token(kind, start, end, parted)


def _parts(text: str, end: int, start: int) -> bool:
    """Whether what stands between two tokens separates phrases: not so in "Dr. Ito" and "May 8, 2023"."""
    gap = text[end:start]
    if gap.isspace():
        return "\n" in gap
    if gap == ". ":
        return _ABBREVIATION.search(text, max(0, end - 5), end) is None
    return not (gap == ", " and text[end - 1].isdigit() and _YEAR.match(text, start))


def _is_month(surface: str, before: str, after: str) -> bool:
    return surface == "May" and (before in _BEFORE_MAY or before[:1].isdigit() or after[1:].isdigit())


def _is_english(text: str) -> bool:
    """Judged by function words, which make up a third of English; short texts pass."""
    words = _LATIN_WORD.findall(text[:_SAMPLE].lower())
    return len(words) < 4 or 8 * sum(word in _STOP_WORDS for word in words) >= len(words)


def _is_foreign_stop(word: str) -> bool:
    return (len(word) < 3 and word.isalpha()) or word in _FOREIGN_STOP_WORDS
