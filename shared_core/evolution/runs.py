"""Phrases in scripts that put no spaces between words, found without a dictionary."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from shared_core.schema import HAN, HIRAGANA, KATAKANA, MARKS, SOUTHEAST, word_set

_LONGEST_WHOLE = 8  # characters
_WINDOW = 6  # characters with their marks, of Southeast Asian text

_PIECE = re.compile(
    rf"(?P<solid>[{HAN}{KATAKANA}{MARKS}]+)|(?P<hiragana>[{HIRAGANA}{MARKS}]+)|(?P<southeast>[{SOUTHEAST}{MARKS}]+)"
)
_ONE_SCRIPT = re.compile(rf"(?P<han>[{HAN}{MARKS}]+)|[{KATAKANA}{MARKS}]+")
_HIRAGANA = re.compile(f"[{HIRAGANA}]")
_CLUSTER = re.compile(rf".[{MARKS}]*", re.DOTALL)

# Chinese characters that nearly always are grammar. Those that also build nouns (会, 能, 到, 个) stay.
_CHINESE_GRAMMAR = re.compile("[的了是在和与與及我你他她它们們吗嗎呢吧啊很也都就这這那把被]+")
_PARTICLES = re.compile("[をはがにでとのもへや]")
_JAPANESE_GRAMMAR = word_set(
    """
    ました します しました しまして ません ください でした でしょう ましょう という それから だから これから
    された される られた られる しない している
    """
)
# Thai grammar words of three letters and more; shorter ones stand inside other words too often.
_THAI_GRAMMAR = re.compile("(?<![เแโใไ])(?:ที่|และ|ของ|เป็น|ได้|ให้|กับ|ว่า|ไม่|แต่|หรือ|จาก|โดย|เพื่อ|ครับ|ค่ะ)")


def run_phrases(run: str) -> Iterator[str]:
    """The phrases of a run of letters: short pieces whole, and the character pairs of longer ones.

    Pieces end where the script changes and at characters of grammar. A Japanese compound of Han and katakana
    is also kept whole; hiragana, which is mostly inflection, gives only what stays between particles.
    """
    japanese = _HIRAGANA.search(run) is not None
    for piece in _PIECE.finditer(run):
        kind, letters = piece.lastgroup, piece[0]
        if kind == "southeast":
            yield from _southeast_phrases(letters)
        elif kind == "hiragana":
            inflection = piece.start() > 0  # what follows a stem directly
            yield from _hiragana_words(letters, inflection)
        else:
            yield from _solid_phrases(letters, japanese)


def _solid_phrases(letters: str, japanese: bool) -> Iterator[str]:
    parts = list(_ONE_SCRIPT.finditer(letters))
    if len(parts) > 1 and len(letters) <= _LONGEST_WHOLE:
        yield letters
    for part in parts:
        if part.lastgroup != "han":
            yield part[0]
        elif japanese:
            yield from _han_phrases(part[0])
        else:
            for words in _CHINESE_GRAMMAR.split(part[0]):
                yield from _han_phrases(words)


def _han_phrases(letters: str) -> Iterator[str]:
    if 0 < len(letters) <= _LONGEST_WHOLE:
        yield letters
    if len(letters) > 2:
        yield from (first + second for first, second in pairwise(letters))


def _hiragana_words(letters: str, inflection: bool) -> Iterator[str]:
    for word in _PARTICLES.split(letters)[inflection:]:
        if 3 <= len(word) <= _LONGEST_WHOLE and word not in _JAPANESE_GRAMMAR:
            yield word


def _southeast_phrases(letters: str) -> Iterator[str]:
    for words in _THAI_GRAMMAR.split(letters):
        clusters = _CLUSTER.findall(words)
        if 2 <= len(clusters) <= 2 * _WINDOW:
            yield words
        elif len(clusters) > 2 * _WINDOW:
            for start in range(0, len(clusters) - _WINDOW // 2, _WINDOW // 2):
                yield "".join(clusters[start : start + _WINDOW])
