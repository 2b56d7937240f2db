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
_JOINED = 4096
_END = "\x00"
_ASCII_TEXTS = re.compile(rf"{_END}|{_ASCII_WORD.pattern}")
_TEXTS = re.compile(rf"{_END}|{_WORD.pattern}")
_TO_SPACES = str.maketrans({chr(code): " " for code in range(1, 128) if not chr(code).isalnum()})
_INNER = "'.,+#"  # what may stand within a word or at its end
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

    Words are found in thousands of texts at once, and each distinct word is stemmed once.

    Args:
        texts: The texts.
        vocabulary: Number of each stem; new ones are added.

    Returns:
        The numbers, one text after another, shape (Σ stems,), and how many each text has, shape (texts,).
    """
    # Three kinds of texts, by how their words are found: at spaces, and by the patterns for ASCII and for all.
    kinds = np.fromiter(map(_kind, texts), np.int8, len(texts))
    sizes = np.zeros(len(texts), dtype=np.int64)
    found = []
    for kind, (find, parts) in enumerate(
        ((_plain_words, _ascii_parts), (_ascii_words, _ascii_parts), (_words, _parts))
    ):
        places = np.flatnonzero(kinds == kind)
        chosen = texts if len(places) == len(texts) else [texts[at] for at in places.tolist()]
        numbers, sizes[places] = _number(chosen, find, parts, vocabulary)
        found.append(numbers)
    numbers = np.empty(int(sizes.sum()), dtype=np.int32)
    owner_kind = np.repeat(kinds, sizes)
    for kind, of_kind in enumerate(found):
        numbers[owner_kind == kind] = of_kind
    return numbers, sizes


def function_numbers(vocabulary: Mapping[str, int]) -> NDArray[np.int64]:
    """Numbers of the stems that carry grammar rather than content, shape (n,)."""
    return np.array([vocabulary[stem] for stem in _FUNCTION_STEMS if stem in vocabulary], dtype=np.int64)


def _kind(text: str) -> int:
    if not text.isascii():
        return 2
    return int(any(mark in text for mark in _INNER))


def _number(
    texts: Sequence[str],
    find: Callable[[str], list[str]],
    parts: Callable[[str], Sequence[str]],
    vocabulary: dict[str, int],
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Numbers of the stems of texts, and how many each has.

    Args:
        texts: The texts.
        find: The words of texts that are joined, each text followed by :data:`_END`, which counts as a word.
        parts: The stems of a word.
        vocabulary: Number of each stem; new ones are added.
    """
    known: dict[str, int] = {_END: 0}  # numbers of words, which have a number of stems each
    stems: list[int] = [-1]
    sizes: list[int] = [1]
    pieces = [np.zeros(0, dtype=np.int32)]
    for start in range(0, len(texts), _JOINED):
        words = find(_END.join([*texts[start : start + _JOINED], ""]))
        # In the order of appearance, so that a stem's number does not depend on Python's hashing.
        for word in dict.fromkeys(words):
            if word not in known:
                known[word] = len(sizes)
                of_word = [vocabulary.setdefault(stem, len(vocabulary)) for stem in parts(word)]
                stems += of_word
                sizes.append(len(of_word))
        pieces.append(np.fromiter(map(known.__getitem__, words), np.int32, len(words)))
    found = np.concatenate(pieces)
    if len(stems) == len(sizes) and min(sizes) == 1:
        numbers = np.array(stems, dtype=np.int32)[found]
    else:
        counts = np.array(sizes, dtype=np.int64)
        numbers = np.array(stems, dtype=np.int32)[ranges((np.cumsum(counts) - counts)[found], counts[found])]
    ends = np.flatnonzero(numbers < 0)
    return numbers[numbers >= 0], np.diff(ends, prepend=-1) - 1


def _plain_words(joined: str) -> list[str]:
    return joined.translate(_TO_SPACES).lower().replace(_END, f" {_END} ").split()


def _ascii_words(joined: str) -> list[str]:
    return _ASCII_TEXTS.findall(joined.lower())


def _words(joined: str) -> list[str]:
    return _TEXTS.findall(_fold(joined))


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
        setattr(_own, language, stemmer)
    stem: str = stemmer.stemWord(word)
    return stem


_FUNCTION_STEMS = frozenset(stem for word in FUNCTION_WORDS for stem in word_stems(word))
