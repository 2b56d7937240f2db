"""Which stems occur in which documents, both ways: the arrays behind mentions and full-text scores."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Postings:
    """Stems by document and documents by stem, each in compressed sparse rows. Immutable.

    Attributes:
        vocabulary: Number of each stem; may hold stems that no document has any more.
        starts: Document ``d`` owns ``stems[starts[d]:starts[d + 1]]``, shape (documents + 1,).
        stems: Distinct stems of the documents, shape (postings,).
        counts: How often the document has each of them, shape (postings,).
        lengths: Stems of each document, repetitions included, shape (documents,).
        stem_starts: Stem ``s`` owns ``documents[stem_starts[s]:stem_starts[s + 1]]``, shape (stems + 1,).
        documents: The documents of each stem, ascending, shape (postings,).
        origins: Place in ``stems`` and ``counts`` of each of ``documents``, shape (postings,).
    """

    vocabulary: dict[str, int]
    starts: NDArray[np.int64]
    stems: NDArray[np.int32]
    counts: NDArray[np.int32]
    lengths: NDArray[np.int64]
    stem_starts: NDArray[np.int64]
    documents: NDArray[np.int32]
    origins: NDArray[np.int64]

    @classmethod
    def build(cls, documents: Iterable[Iterable[str]]) -> Postings:
        """Index documents given as stems; a document's number is its place."""
        none = np.zeros(0, dtype=np.int32)
        return _inverted({}, np.zeros(1, dtype=np.int64), none, none).extend(documents)

    def extend(self, documents: Iterable[Iterable[str]]) -> Postings:
        """New postings with further documents at the end."""
        vocabulary = dict(self.vocabulary)  # a copy: readers may still use the old postings
        rows: list[dict[int, int]] = []
        for stems in documents:
            row: dict[int, int] = {}
            for stem in stems:
                number = vocabulary.setdefault(stem, len(vocabulary))
                row[number] = row.get(number, 0) + 1
            rows.append(row)
        ends = self.starts[-1] + np.cumsum(np.fromiter(map(len, rows), dtype=np.int64))
        added = np.fromiter(chain.from_iterable(rows), dtype=np.int32)
        counts = np.fromiter(chain.from_iterable(row.values() for row in rows), dtype=np.int32)
        return _inverted(
            vocabulary,
            np.concatenate([self.starts, ends]),
            np.concatenate([self.stems, added]),
            np.concatenate([self.counts, counts]),
        )

    def select(self, kept: Sequence[int] | NDArray[np.integer]) -> Postings:
        """New postings of these documents, renumbered in this order."""
        numbers = np.asarray(kept, dtype=np.int64)
        sizes = np.diff(self.starts)[numbers]
        rows = _ranges(self.starts[numbers], sizes)
        starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)])
        return _inverted(self.vocabulary, starts, self.stems[rows], self.counts[rows])

    @property
    def document_count(self) -> int:
        """Number of documents."""
        return len(self.starts) - 1

    def known(self, stems: Collection[str]) -> NDArray[np.int64]:
        """Numbers of the stems that are in the vocabulary, shape (n,)."""
        numbers = (self.vocabulary.get(stem) for stem in stems)
        return np.fromiter((number for number in numbers if number is not None), dtype=np.int64)

    def places(self, stems: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where the postings of some stems stand in ``documents``, one stem after another, shape (n,)."""
        first = self.stem_starts[stems]
        return _ranges(first, self.stem_starts[stems + 1] - first)


def _ranges(starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """``start, …, start + size - 1`` of every row, one row after another, shape (Σ sizes,)."""
    ends = np.cumsum(sizes)
    ranges: NDArray[np.int64] = np.repeat(starts - (ends - sizes), sizes)
    return ranges + np.arange(len(ranges))


def _inverted(
    vocabulary: dict[str, int],
    starts: NDArray[np.int64],
    stems: NDArray[np.int32],
    counts: NDArray[np.int32],
) -> Postings:
    owners = np.repeat(np.arange(len(starts) - 1, dtype=np.int32), np.diff(starts))
    origins = np.argsort(stems, kind="stable")
    totals = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts, dtype=np.int64)])
    frequencies = np.bincount(stems, minlength=len(vocabulary))
    return Postings(
        vocabulary=vocabulary,
        starts=starts,
        stems=stems,
        counts=counts,
        lengths=totals[starts[1:]] - totals[starts[:-1]],
        stem_starts=np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(frequencies)]),
        documents=owners[origins],
        origins=origins,
    )
