"""Full-text scores of entries: BM25 over stems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shared_core.entry import MemoryEntry
from shared_core.recall.postings import Postings
from shared_core.recall.stems import content_stems, number_stems

# Measured on dialogue turns: short texts want less length normalisation than the customary 0.75.
K1 = 1.2
B = 0.3

_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_QUESTION_MARKS = ("?", "\uff1f", "\u061f", "\u037e", "\u055e", "\u2047", "\u2048", "\u2049", "\u203d")


@dataclass(frozen=True, slots=True, eq=False)
class LexicalIndex:
    """BM25 over the full text of entries, in Lucene's form. Immutable.

    ``score = Σ idf · tf / (tf + k1 · (1 - b + b · length / mean length))`` over the distinct content stems of
    the query, with ``idf = ln(1 + (N - df + ½) / (df + ½))``.

    Summands are computed when they are asked for: each depends on the number and the mean length of all entries.

    Attributes:
        postings: The stems of the entries.
    """

    postings: Postings

    @classmethod
    def build(cls, texts: Sequence[str]) -> LexicalIndex:
        """Index texts (see :func:`searchable_text`); an entry's number is its place."""
        return cls(Postings.empty()).extend(texts)

    def extend(self, texts: Sequence[str]) -> LexicalIndex:
        """A new index with further texts at the end; the others are not read again."""
        vocabulary = dict(self.postings.vocabulary)  # a copy: readers may still use the old postings
        return LexicalIndex(self.postings.extend(vocabulary, *number_stems(texts, vocabulary)))

    def scores(self, query: str) -> NDArray[np.float32]:
        """Score of every entry, 0 where no word matches, shape (entries,)."""
        entries, impacts = self._impacts(self._stems(query))
        return np.bincount(entries, weights=impacts, minlength=self.postings.document_count).astype(np.float32)

    def group_scores(self, query: str, groups: NDArray[np.integer]) -> NDArray[np.float32]:
        """What each group of entries covers of the query: each stem once, where it scores best.

        Args:
            query: What is asked.
            groups: Group of each entry, numbered from 0, shape (entries,).

        Returns:
            A score for each group, shape (groups,).
        """
        totals = np.zeros(int(groups.max(initial=-1)) + 1, dtype=np.float32)
        for stem in self._stems(query):
            entries, impacts = self._impacts(np.array([stem]))
            best = np.zeros_like(totals)
            np.maximum.at(best, groups[entries], impacts)
            totals += best
        return totals

    def whole(self, query: str) -> float:
        """The score of a text of average length that has every word of the query once.

        Words that no entry has count as the rarest, so that ``scores / whole`` is the share of the query that an
        entry covers: about 1 at most, and small where hardly a word of the query is known.
        """
        stems = content_stems(query)
        size = self.postings.document_count
        known = self._stems(query)
        frequencies = np.zeros(len(stems))
        frequencies[: len(known)] = np.diff(self.postings.stem_starts)[known]
        return float(np.log1p((size - frequencies + 0.5) / (frequencies + 0.5)).sum()) / (1 + K1)

    def _stems(self, query: str) -> NDArray[np.int64]:
        return self.postings.known(content_stems(query))

    def _impacts(self, stems: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Entry and summand of every posting of some stems, each shape (n,)."""
        postings = self.postings
        places = postings.places(stems)
        frequency = postings.stem_starts[stems + 1] - postings.stem_starts[stems]
        size = postings.document_count
        idf = np.log1p((size - frequency + 0.5) / (frequency + 0.5))
        mean = float(postings.lengths.mean()) if size else 0.0
        entries, counts = postings.documents[places], postings.counts[places]
        relative = postings.lengths[entries] / max(mean, 1.0)
        impacts = np.repeat(idf, frequency) * counts / (counts + K1 * (1 - B + B * relative))
        return entries, impacts.astype(np.float32)


def searchable_text(entry: MemoryEntry) -> str:
    """All that an entry can be found by: who said it, what was said or shown, and the day in words."""
    parts = [entry.speaker, entry.text, entry.caption]
    if entry.occurred_at is not None:
        day = entry.occurred_at
        parts.append(f"{day.day} {_MONTHS[day.month - 1]} {day.year}")
    return " ".join(part for part in parts if part)


def asks(text: str) -> bool:
    """Whether a text ends in a question, so that the next turn is likely its answer."""
    return text.rstrip(" \t\r\n\"'\u201d\u2019\xbb)\u300d\u300f*_").endswith(_QUESTION_MARKS)
