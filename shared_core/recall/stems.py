"""Stems: the words of texts, reduced so that spellings and inflections of one word meet."""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np
import snowballstemmer
from numpy.typing import NDArray

from shared_core.graph import ranges
from shared_core.schema import EMOJI, FUNCTION_WORDS, HAN, HANGUL, MARKS, SPACELESS

_CODE_ENDING = r"(?:\+\+|#(?!\w))?"
_ASCII_WORD = re.compile(rf"\d+(?:[.,]\d+)+|[a-z0-9]+(?:'[a-z0-9]+)*{_CODE_ENDING}")
_LETTER = rf"(?:[^\W_{SPACELESS}]|[{MARKS}])"
_RUN = rf"[{SPACELESS}][{SPACELESS}{MARKS}]*"
_WORD = re.compile(
    rf"{_RUN}"
    rf"|{EMOJI}"
    rf"|[0-9]+(?:[.,][0-9]+)+|{_LETTER}+(?:['\u200c\u200d]{_LETTER}+)*{_CODE_ENDING}"
)
_RUN_START = re.compile(rf"[{SPACELESS}]")
_EMOJI_START = re.compile(EMOJI)
# Many texts at once, with a character between them that no text holds.
_JOINED = 1024
_END = "\x00"
_ASCII_TEXTS = re.compile(rf"{_END}|{_ASCII_WORD.pattern}")
_TEXTS = re.compile(rf"{_END}|{_WORD.pattern}")
_TO_SPACES = str.maketrans({chr(code): " " for code in range(1, 128) if not chr(code).isalnum()})
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
    return [stem for word in _WORD.findall(_fold(text)) for stem in _parts(word)]


def content_stems(text: str) -> list[str]:
    """The distinct stems that can be evidence: without function words, unless there is nothing else."""
    stems = list(dict.fromkeys(word_stems(text)))
    return [stem for stem in stems if stem not in _FUNCTION_STEMS] or stems


def number_stems(texts: Sequence[str], vocabulary: dict[str, int]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The stems of many texts as numbers, as :func:`word_stems` finds them.

    Words are found in thousands of texts at once, and each distinct word is stemmed once. What is ASCII once it is
    folded, as most text in Latin letters with an accent is, has its words found the quicker way.

    Args:
        texts: The texts.
        vocabulary: Number of each stem; new ones are added.

    Returns:
        The numbers, one text after another, shape (Σ stems,), and how many each text has, shape (texts,).
    """
    folded = _fold_many(texts)
    is_ascii = np.fromiter(map(str.isascii, folded), np.bool_, len(folded))
    sizes = np.zeros(len(folded), dtype=np.int64)
    found = []
    for kind, words in (
        (True, _Words(vocabulary, _ascii_words, _ascii_parts)),
        (False, _Words(vocabulary, _TEXTS.findall, _parts)),
    ):
        places = np.flatnonzero(is_ascii == kind)
        numbers, sizes[places] = words.number([folded[at] for at in places.tolist()])
        found.append(numbers)
    numbers = np.empty(int(sizes.sum()), dtype=np.int32)
    owner_is_ascii = np.repeat(is_ascii, sizes)
    numbers[owner_is_ascii], numbers[~owner_is_ascii] = found
    return numbers, sizes


def function_numbers(vocabulary: Mapping[str, int]) -> NDArray[np.int64]:
    """Numbers of the stems that carry grammar rather than content, shape (n,)."""
    return np.array([vocabulary[stem] for stem in _FUNCTION_STEMS if stem in vocabulary], dtype=np.int64)


class _Words(dict[str, int]):
    """Numbers of the words met so far, each with the numbers of its stems.

    Args:
        vocabulary: Number of each stem; new ones are added, in the order in which they are met.
        find: The words of texts that are joined, each text followed by :data:`_END`, which counts as a word.
        parts: The stems of a word.
    """

    def __init__(
        self,
        vocabulary: dict[str, int],
        find: Callable[[str], list[str]],
        parts: Callable[[str], Sequence[str]],
    ) -> None:
        super().__init__({_END: 0})
        self._vocabulary = vocabulary
        self._find = find
        self._parts = parts
        self._stems = [-1]
        self._starts = [0, 1]

    def __missing__(self, word: str) -> int:
        vocabulary = self._vocabulary
        self._stems += [vocabulary.setdefault(stem, len(vocabulary)) for stem in self._parts(word)]
        self._starts.append(len(self._stems))
        number = self[word] = len(self)
        return number

    def number(self, texts: Sequence[str]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The stems of texts, one text after another, shape (n,), and how many each has, shape (texts,)."""
        pieces = [np.zeros(0, dtype=np.int32)]
        for start in range(0, len(texts), _JOINED):
            words = self._find(_END.join([*texts[start : start + _JOINED], ""]))
            pieces.append(np.fromiter(map(self.__getitem__, words), np.int32, len(words)))
        found = np.concatenate(pieces)
        stems, starts = np.array(self._stems, dtype=np.int32), np.array(self._starts)
        numbers = stems[found] if len(stems) == len(self) else stems[ranges(starts[found], np.diff(starts)[found])]
        ends = np.flatnonzero(numbers < 0)
        return numbers[numbers >= 0], np.diff(ends, prepend=-1) - 1


def _ascii_words(joined: str) -> list[str]:
    joined = joined.lower()
    # Most marks end a clause. Where none is left that may stand in a word, words are cut at what is no letter or
    # digit, which takes a third of the time.
    spaced = joined
    for mark in ".,":
        spaced = spaced.replace(f"{mark} ", "  ").replace(f"{mark}{_END}", f" {_END}")
    if any(mark in spaced for mark in "'.,+#"):
        return _ASCII_TEXTS.findall(joined)
    return spaced.translate(_TO_SPACES).replace(_END, f" {_END} ").split()


def _ascii_parts(word: str) -> Sequence[str]:
    return (_stem(word),)


def _parts(word: str) -> Sequence[str]:
    """The stems of a word as :data:`_WORD` finds it."""
    if _RUN_START.match(word):
        return _run_stems(word)
    return (word if _EMOJI_START.match(word) else _stem(word),)


def _fold(text: str) -> str:
    folded = unicodedata.normalize("NFKD", text).casefold().replace("\u2019", "'")
    return unicodedata.normalize("NFC", _DROPPED.sub("", folded))


def _fold_many(texts: Sequence[str]) -> list[str]:
    """The texts, those that are not ASCII folded."""
    folded = list(texts)
    others = [at for at, text in enumerate(folded) if not text.isascii()]
    for start in range(0, len(others), _JOINED):
        some = others[start : start + _JOINED]
        for at, text in zip(some, _fold(_END.join([folded[at] for at in some])).split(_END), strict=True):
            folded[at] = text
    return folded


def _run_stems(run: str) -> list[str]:
    clusters = _CLUSTER.findall(run)
    if len(clusters) == 1:
        return clusters
    return [first + second for first, second in pairwise(clusters)] + _SYLLABLE.findall(run)


@lru_cache(maxsize=1 << 18)
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
        # PyStemmer, where it is installed, keeps 10,000 words and is many times slower once they are exceeded.
        stemmer.maxCacheSize = 0
        setattr(_own, language, stemmer)
    stem: str = stemmer.stemWord(word)
    return stem


_FUNCTION_STEMS = frozenset(stem for word in FUNCTION_WORDS for stem in word_stems(word))
