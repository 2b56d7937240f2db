"""Which documents have which stems: the arrays behind mentions and full-text scores."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shared_core.graph import ranges


@dataclass(frozen=True, slots=True, eq=False)
class Postings:
    """Documents by stem, in compressed sparse rows. Immutable.

    Attributes:
        vocabulary: Number of each stem.
        lengths: Stems of each document, repetitions included, shape (documents,).
        stem_starts: Stem ``s`` owns ``documents[stem_starts[s]:stem_starts[s + 1]]``, shape (stems + 1,).
        documents: The documents of each stem, ascending, shape (postings,).
        counts: How often the document has the stem, shape (postings,).
    """

    vocabulary: dict[str, int]
    lengths: NDArray[np.int64]
    stem_starts: NDArray[np.int64]
    documents: NDArray[np.int32]
    counts: NDArray[np.int32]

    @classmethod
    def empty(cls) -> Postings:
        """No documents."""
        none = np.zeros(0, dtype=np.int32)
        return cls({}, np.zeros(0, dtype=np.int64), np.zeros(1, dtype=np.int64), none, none)

    def extend(self, vocabulary: dict[str, int], stems: NDArray[np.integer], sizes: NDArray[np.integer]) -> Postings:
        """New postings with further documents at the end.

        Args:
            vocabulary: That of these postings, with the new stems after the old.
            stems: Numbers of the documents' stems, one document after another, shape (Σ sizes,).
            sizes: How many stems each has, shape (n,).
        """
        documents, numbers, counts = _by_stem(stems, sizes)
        starts = np.full(len(vocabulary) + 1, self.stem_starts[-1])
        starts[: len(self.stem_starts)] = self.stem_starts
        # Later documents have higher numbers, so they go to the end of each stem's row.
        places = starts[numbers + 1]
        starts[1:] += np.cumsum(np.bincount(numbers, minlength=len(vocabulary)))
        return Postings(
            vocabulary,
            np.concatenate([self.lengths, sizes.astype(np.int64)]),
            starts,
            np.insert(self.documents, places, documents + len(self.lengths)) if self.document_count else documents,
            np.insert(self.counts, places, counts) if self.document_count else counts,
        )

    @property
    def document_count(self) -> int:
        """Number of documents."""
        return len(self.lengths)

    def known(self, stems: Collection[str]) -> NDArray[np.int64]:
        """Numbers of the stems that are in the vocabulary, shape (n,)."""
        numbers = (self.vocabulary.get(stem) for stem in stems)
        return np.fromiter((number for number in numbers if number is not None), dtype=np.int64)

    def places(self, stems: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where the postings of some stems stand in ``documents``, one stem after another, shape (n,)."""
        first = self.stem_starts[stems]
        return ranges(first, self.stem_starts[stems + 1] - first)


def _by_stem(
    stems: NDArray[np.integer], sizes: NDArray[np.integer]
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int32]]:
    """Document, stem and count of every distinct pair, by stem, then by document, each shape (pairs,)."""
    owners = np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)
    bits = len(sizes).bit_length()  # shifting is many times faster than dividing
    pairs = stems.astype(np.int64) << bits
    pairs |= owners
    pairs.sort()
    firsts = np.flatnonzero(np.diff(pairs, prepend=-1))
    counts = np.diff(firsts, append=len(pairs)).astype(np.int32)
    pairs = pairs[firsts]
    return (pairs & ((1 << bits) - 1)).astype(np.int32), pairs >> bits, counts
