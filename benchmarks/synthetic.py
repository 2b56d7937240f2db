"""A large memory made from a seed: phrase-like keys over a Zipf vocabulary, with entries that say them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from shared_core.entry import MemoryEntry
from shared_core.store import ConceptLink, EntryWrite, ScoreColumns

VOCABULARY = 60_000
_ONSETS = [*"bcdfghjklmnprstvw", "bl", "br", "ch", "cl", "dr", "fl", "gr", "pl", "qu", "sh", "sl", "sp", "st", "th"]
_VOWELS = ["a", "e", "i", "o", "u", "ai", "ea", "oo", "ou"]
_CODAS = ["", "", "b", "ck", "d", "l", "ll", "m", "n", "nd", "ng", "r", "rm", "s", "st", "t"]
_ENDINGS = ["", "", "", "s", "ed", "ing", "er", "ly", "ation", "ness"]
_GLUE = ["the", "a", "of", "and", "to", "in", "with", "for", "on", "at", "from", "about"]
_SESSION_TURNS = 20


@dataclass(frozen=True, slots=True)
class Size:
    """How large a memory is to be.

    Attributes:
        entries: Entries.
        keys: Distinct concepts over all of them.
    """

    entries: int
    keys: int


def make_words(count: int, random: np.random.Generator) -> list[str]:
    """Distinct pronounceable words, so that a stemmer has work to do."""
    words: dict[str, None] = {}
    while len(words) < count:
        syllables = [
            _ONSETS[onset] + _VOWELS[vowel] + _CODAS[coda]
            for onset, vowel, coda in zip(
                *(random.integers(0, len(part), random.integers(1, 4)) for part in (_ONSETS, _VOWELS)),
                random.integers(0, len(_CODAS), 3),
                strict=False,
            )
        ]
        words["".join(syllables) + _ENDINGS[random.integers(len(_ENDINGS))]] = None
    return list(words)


def make_writes(size: Size, seed: int = 0) -> Iterator[EntryWrite]:
    """Entries with their links: spans of their own words, new ones as far as the number of keys asks for.

    Every other entry is also linked, by inference, to a concept of an earlier one; a few words are not ASCII.
    """
    random = np.random.default_rng(seed)
    words = make_words(VOCABULARY, random)
    words[7::500] = [f"{word}é" for word in words[7::500]]
    chances = np.cumsum(1 / np.arange(1, VOCABULARY + 1))
    seen: dict[str, None] = {}
    keys: list[str] = []
    start = datetime(2024, 1, 1)
    for number in range(size.entries):
        wanted = (number + 1) * size.keys // size.entries - len(keys)
        length = max(8, wanted)
        said = [words[word] for word in np.searchsorted(chances, random.random(length) * chances[-1])]
        links: dict[str, ConceptLink] = {}
        for span in _spans(said, random):
            if wanted and span not in seen:
                seen[span] = None
                keys.append(span)
                wanted -= 1
                links[span] = ConceptLink(span, span.capitalize(), 1.0, "said")
        if number % 2 and (key := keys[int(random.integers(len(keys)))]) not in links:
            links[key] = ConceptLink(key, key, 0.3, "inferred")
        yield EntryWrite(
            MemoryEntry(
                _sentence(said, random),
                id=f"entry {number}",
                speaker=f"Speaker {number % 7}",
                session=f"session {number // _SESSION_TURNS}",
                occurred_at=start + timedelta(minutes=number),
            ),
            tuple(links.values()),
            assimilated=True,
        )


def make_columns(keys: Sequence[str], first: int = 0, seed: int = 0) -> ScoreColumns:
    """A token for each word, numbered in the order in which words come, and log-probabilities.

    Args:
        keys: All keys of a memory, in order; a key's concept is its place.
        first: The first key that is wanted.
        seed: Of the log-probabilities.
    """
    random = np.random.default_rng(seed)
    numbers: dict[str, int] = {}
    spelled = [[numbers.setdefault(word, len(numbers)) for word in key.split()] for key in keys][first:]
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum([len(tokens) for tokens in spelled])])
    total = int(starts[-1])
    return ScoreColumns(
        saved=0,
        concept=np.arange(first, len(keys), dtype=np.int32),
        starts=starts,
        tokens=np.fromiter((token for tokens in spelled for token in tokens), dtype=np.int32, count=total),
        neutral=-random.exponential(6, total + len(spelled)).astype(np.float32),
        known=np.ones(len(spelled), dtype=np.bool_),
    )


def _spans(said: list[str], random: np.random.Generator) -> list[str]:
    """All runs of two to four words, and a word now and then, shuffled."""
    spans = [" ".join(said[at : at + length]) for length in (2, 3, 4) for at in range(len(said) - length + 1)]
    spans.append(said[0])
    order: NDArray[np.int64] = random.permutation(len(spans))
    return [spans[at] for at in order]


def _sentence(said: list[str], random: np.random.Generator) -> str:
    glue = random.integers(0, 2 * len(_GLUE), len(said))
    parts = [f"{_GLUE[at]} {word}" if at < len(_GLUE) else word for at, word in zip(glue, said, strict=True)]
    return " ".join(parts).capitalize() + ("?" if glue[0] == 0 else ".")
