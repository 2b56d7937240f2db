"""Mentions: the concepts whose words occur in the query, found without a model."""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
import snowballstemmer
from numpy.typing import NDArray

from shared_core.recall.postings import Postings
from shared_core.schema import EMOJI, FUNCTION_WORDS, HAN, HANGUL, MARKS, SPACELESS

MIN_COVERAGE = 0.75
"""Least share of a key's stems that must occur in the query: looser matches cost more than they find."""

_CODE_ENDING = r"(?:\+\+|#(?!\w))?"
_ASCII_WORD = re.compile(rf"\d+(?:[.,]\d+)+|[a-z0-9]+(?:'[a-z0-9]+)*{_CODE_ENDING}")
_LETTER = rf"(?:[^\W_{SPACELESS}]|[{MARKS}])"
_WORD = re.compile(
    rf"(?P<run>[{SPACELESS}][{SPACELESS}{MARKS}]*)"
    rf"|(?P<emoji>{EMOJI})"
    rf"|[0-9]+(?:[.,][0-9]+)+|{_LETTER}+(?:['\u200c\u200d]{_LETTER}+)*{_CODE_ENDING}"
)
_CLUSTER = re.compile(rf".[{MARKS}]*", re.DOTALL)
_SYLLABLE = re.compile(rf"[{HAN}{HANGUL}]")
# Dropped before matching: invisible characters, emoji styles, and marks that writers leave out (Latin, Greek
# and Cyrillic accents, Hebrew points, Arabic vowel signs and tatweel). Indic vowel signs count as letters.
_DROPPED = re.compile(
    "[\u00ad\u0300-\u036f\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u200b\u200e\u200f"
    "\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U0001f3fb-\U0001f3ff]"
)
_ELISION = re.compile(r"(?:[cdjlmnst]|qu|dell|nell|all|un)'(?=\w{2})")

_STEMMERS = (  # first and last letter of a script, and the language whose stemmer it gets; English otherwise
    ("\u0370", "\u03ff", "greek"),
    ("\u0400", "\u052f", "russian"),
    ("\u0530", "\u058f", "armenian"),
    ("\u0600", "\u06ff", "arabic"),
    ("\u0900", "\u097f", "hindi"),
    ("\u0b80", "\u0bff", "tamil"),
)
_own = threading.local()  # a Snowball stemmer holds the word it works on, so each thread has its own


def word_stems(text: str) -> list[str]:
    """The words of a text in order, reduced so that spellings and inflections of one word meet.

    Case, accents and inflection are folded. Runs of scripts without spaces give their character pairs, and
    the single characters of Han and Hangul, where one is often a word. Emoji count as words.
    """
    if text.isascii():
        return [_stem(word) for word in _ASCII_WORD.findall(text.lower())]
    stems: list[str] = []
    for match in _WORD.finditer(_fold(text)):
        if match.lastgroup == "run":
            stems.extend(_run_stems(match[0]))
        elif match.lastgroup == "emoji":
            stems.append(match[0])
        else:
            stems.append(_stem(match[0]))
    return stems


def content_stems(text: str) -> list[str]:
    """The distinct stems that can be evidence: without function words, unless there is nothing else."""
    stems = list(dict.fromkeys(word_stems(text)))
    return [stem for stem in stems if stem not in _FUNCTION_STEMS] or stems


def named(query: str, names: Sequence[str]) -> list[int]:
    """Indices of the names (of speakers) of which any word occurs in the query."""
    asked = set(content_stems(query))
    return [index for index, name in enumerate(names) if not asked.isdisjoint(content_stems(name))]


@dataclass(frozen=True, slots=True, eq=False)
class MentionIndex:
    """From stems to the concepts that have them. Immutable.

    Attributes:
        postings: The distinct content stems of each key, both ways.
    """

    postings: Postings

    @classmethod
    def build(cls, keys: Iterable[str]) -> MentionIndex:
        """Index keys; a concept's number is its place."""
        return cls(Postings.build(map(content_stems, keys)))

    def extend(self, keys: Iterable[str]) -> MentionIndex:
        """A new index with further keys at the end; the others are not read again."""
        return MentionIndex(self.postings.extend(map(content_stems, keys)))

    def select(self, kept: Sequence[int] | NDArray[np.integer]) -> MentionIndex:
        """A new index of these keys, renumbered in this order."""
        return MentionIndex(self.postings.select(kept))

    def find(self, query: str) -> list[tuple[int, float]]:
        """The mentioned concepts, ascending, each with the share of its stems that occur in the query.

        A share is at least :data:`MIN_COVERAGE` and at most 1.
        """
        postings = self.postings
        hits = postings.documents[postings.places(postings.known(content_stems(query)))]
        concepts, counts = np.unique(hits, return_counts=True)
        coverage = counts / postings.lengths[concepts]
        found = coverage >= MIN_COVERAGE
        return list(zip(concepts[found].tolist(), coverage[found].tolist(), strict=True))

    def families(self) -> NDArray[np.int32]:
        """Family of each concept, numbered from 0, shape (concepts,): those with the same stems share one.

        "paint" and "painted" are a family; how rare a word is shows in the family, not in one spelling.
        """
        families: dict[frozenset[int], int] = {}
        stems = self.postings.stems.tolist()
        members = [
            families.setdefault(frozenset(stems[start:end]), len(families))
            for start, end in pairwise(self.postings.starts.tolist())
        ]
        return np.array(members, dtype=np.int32)


def _fold(text: str) -> str:
    folded = unicodedata.normalize("NFKD", text).casefold().replace("\u2019", "'")
    return unicodedata.normalize("NFC", _DROPPED.sub("", folded))


def _run_stems(run: str) -> list[str]:
    clusters = _CLUSTER.findall(run)
    if len(clusters) == 1:
        return clusters
    return [first + second for first, second in pairwise(clusters)] + _SYLLABLE.findall(run)


@lru_cache(maxsize=1 << 16)
def _stem(word: str) -> str:
    first = word[0]
    if not first.isalpha():
        return word.replace(",", "") if first.isdigit() else word
    word = _ELISION.sub("", word, count=1) if "'" in word else word
    language = "english"
    if first > "\u036f":
        language = next((name for low, high, name in _STEMMERS if low <= first <= high), language)
    stemmer = getattr(_own, language, None)
    if stemmer is None:
        stemmer = snowballstemmer.stemmer(language)
        setattr(_own, language, stemmer)
    stem: str = stemmer.stemWord(word)
    return stem


_FUNCTION_STEMS = frozenset(stem for word in FUNCTION_WORDS for stem in word_stems(word))
