"""Inverse document frequency: how much a concept tells."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shared_core.graph.incidence import Incidence


def inverse_document_frequency(
    by_concept: Incidence, entry_count: int, families: NDArray[np.integer] | None = None
) -> NDArray[np.float64]:
    """Inverse document frequency of every concept, ``ln(1 + (N - df + ½) / (df + ½))``, shape (concepts,).

    Smoothed as in BM25, so that even a concept of every entry weighs a little.

    Args:
        by_concept: Entries of each concept, each entry once.
        entry_count: Number of entries, ``N``.
        families: Family of each concept, shape (concepts,): ``df`` then counts entries with any of a family,
            so that spellings of one word ("paint", "painted") are as common as the word.
    """
    frequency = np.diff(by_concept.starts)
    if families is not None:
        owners = np.repeat(families.astype(np.int64), frequency)
        pairs = np.sort(owners * max(entry_count, 1) + by_concept.members)  # many times faster than np.unique
        pairs = pairs[np.diff(pairs, prepend=-1) != 0]
        frequency = np.bincount(pairs // max(entry_count, 1), minlength=by_concept.row_count)[families]
    idf: NDArray[np.float64] = np.log1p((entry_count - frequency + 0.5) / (frequency + 0.5))
    return idf
