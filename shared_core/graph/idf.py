"""Inverse document frequency: how much a concept tells."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def inverse_document_frequency(frequency: NDArray[np.integer], entry_count: int) -> NDArray[np.float64]:
    """Inverse document frequency, ``ln(1 + (N - df + ½) / (df + ½))``, shape (n,).

    Smoothed as in BM25, so that even a concept of every entry weighs a little.

    Args:
        frequency: Entries that each concept occurs in, ``df``, shape (n,).
        entry_count: Number of entries, ``N``.
    """
    # There are far fewer frequencies than concepts, and reading a table is faster than a logarithm.
    possible = np.arange(int(frequency.max(initial=0)) + 1)
    idf: NDArray[np.float64] = np.log1p((entry_count - possible + 0.5) / (possible + 0.5))[frequency]
    return idf
