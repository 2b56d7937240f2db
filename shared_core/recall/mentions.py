"""Mentions: the concepts whose words occur in the query, found without a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shared_core.recall.families import Families
from shared_core.recall.postings import Postings
from shared_core.recall.stems import content_stems, function_numbers, number_stems

MIN_COVERAGE = 0.75
"""Least share of a key's stems that must occur in the query: looser matches cost more than they find."""


def named(query: str, names: Sequence[str]) -> list[int]:
    """Indices of the names (of speakers) of which any word occurs in the query."""
    asked = set(content_stems(query))
    return [index for index, name in enumerate(names) if not asked.isdisjoint(content_stems(name))]


@dataclass(frozen=True, slots=True, eq=False)
class MentionIndex:
    """From stems to the concepts that have them. Immutable.

    Attributes:
        postings: The distinct content stems of each key.
        families: Keys with the same stems.
    """

    postings: Postings
    families: Families

    @classmethod
    def build(cls, keys: Sequence[str]) -> MentionIndex:
        """Index keys; a concept's number is its place."""
        return cls(Postings.empty(), Families.empty()).extend(keys)

    def extend(self, keys: Sequence[str]) -> MentionIndex:
        """A new index with further keys at the end; the others are not read again."""
        vocabulary = dict(self.postings.vocabulary)  # a copy: readers may still use the old postings
        stems, sizes = number_stems(keys, vocabulary)
        stems, sizes = _content(stems, sizes, vocabulary)
        postings = self.postings.extend(vocabulary, stems, sizes)
        return MentionIndex(postings, self.families.extend(stems, sizes))

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


def _content(
    stems: NDArray[np.int32], sizes: NDArray[np.int64], vocabulary: dict[str, int]
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The distinct content stems of every key, as :func:`content_stems` chooses them, and how many it has."""
    owners = np.repeat(np.arange(len(sizes)), sizes)
    bits = max(len(vocabulary), 1).bit_length()
    pairs = np.sort(owners << bits | stems)
    pairs = pairs[np.diff(pairs, prepend=-1) != 0]
    owners, stems = pairs >> bits, (pairs & ((1 << bits) - 1)).astype(np.int32)
    is_function = np.zeros(len(vocabulary), dtype=np.bool_)
    is_function[function_numbers(vocabulary)] = True
    content = ~is_function[stems]
    content |= (np.bincount(owners[content], minlength=len(sizes)) == 0)[owners]
    return stems[content], np.bincount(owners[content], minlength=len(sizes)).astype(np.int64)
