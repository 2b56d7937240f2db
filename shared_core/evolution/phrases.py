"""Accommodation without a model: every informative phrase of a text becomes a candidate concept.

Generous on purpose. Measured on dialogues, indexing every phrase of a turn recalls far better than any small
selection of them: a phrase too many costs little, because inverse document frequency weighs it down.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from shared_core.evolution.runs import run_phrases
from shared_core.evolution.tokens import Kind, Token, scan
from shared_core.schema import HANGUL, MAX_KEY_CHARACTERS, fits_bounds, normalise_key, word_set

MAX_PHRASES = 2_000
"""Most phrases kept of one text: all of some 3,000 words of prose.

Of a longer one the repeated phrases and an even spread of the others; its full text stays searchable.
"""

_LONGEST_GRAM = 3
_LONGEST_SEGMENT = 5
_LONGEST_NAME = 6

_QUOTED = re.compile('["“«「『《]([^\n"“”«»「」『』《》]{2,80})["”»」』》]')
_CONNECTORS = word_set("& al bin da das de del della den der des di do dos du el la las le los of the van von")
_HUMP = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\dA-Z_]+|\d+")
_PARTICLE = re.compile(
    f"(?<=[{HANGUL}])(?:에서|에게|한테|까지|부터|으로|하고|처럼|보다|이랑)\\Z"
    f"|(?<=[{HANGUL}]{{2}})[은는이가을를에의도로와과만]\\Z"
)


class Phrase(NamedTuple):
    """A candidate concept: its normalised key, and how the text writes it.

    ``normalise_key(surface) == key``.
    """

    key: str
    surface: str


def extract_phrases(text: str, *, speaker: str | None = None) -> list[Phrase]:
    """All informative phrases of a text, in any script, in order of appearance.

    Words, groups of up to three neighbouring words, and short whole segments between stop words and
    punctuation; quoted titles, names with small words inside ("Bank of America"), amounts, times and dates,
    hashtags, links, paths and identifiers, emoji. Scripts without spaces give short runs and character
    pairs. Takes time linear in the length of the text.

    Args:
        text: What was said or written.
        speaker: Who said it: their own name, as in a transcript's margin, is no concept.

    Returns:
        At most :data:`MAX_PHRASES` phrases with distinct keys within the bounds of a key.
    """
    if not unicodedata.is_normalized("NFC", text):
        text = unicodedata.normalize("NFC", text)
    own_name = normalise_key(speaker) if speaker else ""
    surfaces: dict[str, str] = {}
    counts: dict[str, int] = {}
    for key, surface in _candidates(text):
        if key in surfaces:
            counts[key] += 1
        elif key != own_name and fits_bounds(key):
            surfaces[key], counts[key] = surface, 1
    kept = surfaces if len(surfaces) <= MAX_PHRASES else _most_telling(counts)
    return [Phrase(key, surfaces[key]) for key in kept]


def _most_telling(counts: dict[str, int]) -> list[str]:
    """The most repeated keys, and an even spread of those that occur once, in their order."""
    repeated = [key for key, count in counts.items() if count > 1]
    often = sorted(repeated, key=lambda key: -counts[key])[:MAX_PHRASES]
    once = [key for key, count in counts.items() if count == 1]
    room = min(MAX_PHRASES - len(often), len(once))
    chosen = {*often, *(once[place * len(once) // room] for place in range(room))}
    return [key for key in counts if key in chosen]


def _candidates(text: str) -> Iterator[tuple[str, str]]:
    for quoted in _QUOTED.finditer(text):
        yield _named(quoted[1])
    segment: list[Token] = []
    name: list[Token] = []
    for token in scan(text):
        word = token.kind is Kind.WORD
        if segment and (token.parted or not word):
            yield from _groups(text, segment)
            segment = []
        if name and (token.parted or not _continues_name(text, token)):
            yield from _full_name(text, name)
            name = []
        if word:
            segment.append(token)
        if word or token.kind is Kind.STOP:
            if name or (word and text[token.start].isupper()):
                name.append(token)
        else:
            yield from _special(token.kind, text[token.start : token.end])
    yield from _groups(text, segment)
    yield from _full_name(text, name)


def _groups(text: str, segment: list[Token]) -> Iterator[tuple[str, str]]:
    """Every one to three neighbouring words, and a short segment whole."""
    size = len(segment)
    ends = [_bare_end(text, token) for token in segment]
    for first, token in enumerate(segment):
        start = token.start
        if ends[first] - start > 1 or not text[start].isascii():
            yield _named(text[start : ends[first]])
        for last in range(first + 1, min(size, first + _LONGEST_GRAM)):
            yield _named(text[start : ends[last]])
    if _LONGEST_GRAM < size <= _LONGEST_SEGMENT:
        yield _named(text[segment[0].start : ends[-1]])


def _bare_end(text: str, token: Token) -> int:
    """Where a word ends without its possessive or its Korean particle."""
    end = token.end
    last = text[end - 1]
    if last == "s" and end - token.start > 2 and text[end - 2] in "'\u2019":
        return end - 2
    if last >= "\u1100" and (particle := _PARTICLE.search(text, token.start, end)):
        return particle.start()
    return end


def _continues_name(text: str, token: Token) -> bool:
    if text[token.start].isupper():
        return token.kind is Kind.WORD
    return text[token.start : token.end] in _CONNECTORS


def _full_name(text: str, name: list[Token]) -> Iterator[tuple[str, str]]:
    """A name with small words inside: capitalised at both ends."""
    while name and not text[name[-1].start].isupper():
        name = name[:-1]
    if len(name) <= _LONGEST_NAME and any(not text[token.start].isupper() for token in name):
        yield _named(text[name[0].start : _bare_end(text, name[-1])])


def _special(kind: Kind, surface: str) -> Iterator[tuple[str, str]]:
    if kind is Kind.RUN:
        for phrase in run_phrases(surface):
            yield _named(phrase)
    elif kind is Kind.TAG:
        yield _named(" ".join(_HUMP.findall(surface)) or surface)
    elif kind is Kind.LINK:
        address = surface.rpartition("://")[2].removeprefix("www.").rstrip(".,;:!?")
        host, _, path = address.partition("/")
        yield _named(host)
        yield _named(address)
        yield _named(" ".join(re.findall(r"[^\W_]+", path.split("?")[0].rpartition("/")[2])))
    else:
        yield _named(surface)


def _named(surface: str) -> tuple[str, str]:
    """Key and display form; too long a surface names nothing."""
    if len(surface) > 2 * MAX_KEY_CHARACTERS:
        return "", ""
    return normalise_key(surface), " ".join(surface.split())
