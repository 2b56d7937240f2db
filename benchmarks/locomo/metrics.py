"""Evidence recall and mean reciprocal rank, their intervals, and comparisons in pairs. Arrays only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

CUTOFFS = (5, 10, 20, 35)
DEPTH = max(CUTOFFS)
"""Turns that a system is asked for."""

MEASURES = (*(f"recall@{cutoff}" for cutoff in CUTOFFS), "mrr")

_RESAMPLES = 5_000
_TOGETHER = 500
_LEVEL = 0.95


def measure(ranks: Sequence[Sequence[int | None]]) -> Floats:
    """Evidence recall at each cutoff, and the reciprocal rank of the first gold turn.

    Args:
        ranks: For each question the rank of each of its gold turns, from 1, ``None`` where it did not come back. Every
            question has a gold turn.

    Returns:
        A row for each question, in the order of :data:`MEASURES`, shape (questions, 5). A reciprocal rank is 0 if no
        gold turn came back.
    """
    sizes = np.array([len(own) for own in ranks], dtype=np.int64)
    if not len(sizes):
        return np.zeros((0, len(MEASURES)))
    if not sizes.all():
        raise ValueError("a question without gold turns has no recall")
    flat = np.array([np.inf if rank is None else rank for own in ranks for rank in own])
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    within = np.add.reduceat((flat[:, None] <= np.array(CUTOFFS)).astype(np.float64), starts) / sizes[:, None]
    first = 1 / np.minimum.reduceat(flat, starts)
    return np.column_stack([within, first])


def intervals(values: Floats, seed: int) -> Floats:
    """Bootstrap intervals (95 %, percentiles) of the means of columns, over questions.

    All columns are resampled together, so that a column of differences gives a paired interval.

    Args:
        values: shape (questions, columns), with at least one question.
        seed: Of the resampling.

    Returns:
        Lower and upper ends, shape (2, columns).
    """
    count = len(values)
    rng = np.random.default_rng(seed)
    means = np.concatenate(
        [
            rng.multinomial(count, np.full(count, 1 / count), size=_TOGETHER).astype(np.float64) @ values / count
            for _ in range(_RESAMPLES // _TOGETHER)
        ]
    )
    tail = 100 * (1 - _LEVEL) / 2
    ends: Floats = np.percentile(means, [tail, 100 - tail], axis=0)
    return ends


@dataclass(frozen=True, slots=True)
class Pairing:
    """One system beside another, question by question.

    Attributes:
        wins: Questions on which it is better.
        losses: On which the other is.
        ties: The rest.
        difference: Mean of the differences.
        interval: Its 95 % interval.
    """

    wins: int
    losses: int
    ties: int
    difference: float
    interval: tuple[float, float]


def pair(mine: Floats, other: Floats, seed: int) -> Pairing:
    """Compare two systems on the same questions, shape (questions,) each, with at least one question."""
    # Shares of one number of gold turns are equal or apart by far more than rounding.
    differences = mine - other
    wins, losses = int((differences > 1e-9).sum()), int((differences < -1e-9).sum())
    low, high = intervals(differences[:, None], seed)[:, 0].tolist()
    return Pairing(wins, losses, len(mine) - wins - losses, float(differences.mean()), (low, high))
