"""What the answers say of each system and each way to answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.locomo.answers.answering import BUDGETS, MODES
from benchmarks.locomo.answers.run import Answered, Finished
from benchmarks.locomo.answers.writer import Spent
from benchmarks.locomo.evaluation import Figure
from benchmarks.locomo.metrics import Floats, Pairing, intervals, pair

GROUPS: Mapping[str, tuple[int, ...]] = {
    **{str(category): (category,) for category in range(1, 6)},
    "1-4": (1, 2, 3, 4),
    "paper": (1, 2, 4, 5),
}
"""Categories by the name of their group; the paper leaves out category 3."""

SCORES = ("locomo_f1", "amem_f1", "amem_bleu1")
AVERAGED = "1-4"
FLOOR, CEILING = "nothing", "oracle"


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One system.

    Attributes:
        figures: By mode, score and group; groups without questions are left out.
        gaps: By mode and score: the share of the gap between no memory and the gold evidence that it closes, over
            categories 1 to 4; empty unless both were run.
        pairings: By mode and score, over categories 1 to 4, against the system compared with.
        coverage: By token budget and group.
        writing: What one turn takes.
        reading: What finding the context of one question takes.
        answering: What one answer takes, by mode.
        left_out: Share of the questions for whose context there was no room in full.
    """

    figures: Mapping[str, Mapping[str, Mapping[str, Figure]]]
    gaps: Mapping[str, Mapping[str, float]]
    pairings: Mapping[str, Mapping[str, Pairing]]
    coverage: Mapping[str, Mapping[str, Figure]]
    writing: Spent
    reading: Spent
    answering: Mapping[str, Spent]
    left_out: float


def evaluate(finished: Finished, against: str, seed: int) -> dict[str, Evaluation]:
    """Evaluate every system, on the same questions for all.

    Args:
        finished: The answers.
        against: The system that the others are compared with.
        seed: Of the bootstrap.
    """
    by_mode = {
        name: {mode: [row for row in rows if row.mode == mode] for mode in MODES}
        for name, rows in finished.answered.items()
    }
    means = {
        (name, mode, measured): _mean(_values(rows, measured), _members(rows, AVERAGED))
        for name, modes in by_mode.items()
        for mode, rows in modes.items()
        for measured in SCORES
    }
    return {
        name: Evaluation(
            {mode: {one: _figures(rows, _values(rows, one), seed) for one in SCORES} for mode, rows in modes.items()},
            _gaps(name, means) if {FLOOR, CEILING} <= by_mode.keys() else {},
            {} if name == against else _pairings(modes, by_mode[against], seed),
            {str(budget): _figures(modes[MODES[0]], _covered(modes[MODES[0]], budget), seed) for budget in BUDGETS},
            sum((one.spent for one in finished.written[name]), Spent()).share(
                sum(one.turns for one in finished.written[name])
            ),
            sum((row.reading for row in modes[MODES[0]]), Spent()).share(len(modes[MODES[0]])),
            {mode: sum((row.answering for row in rows), Spent()).share(len(rows)) for mode, rows in modes.items()},
            float(np.mean([row.left_out > 0 for row in modes[MODES[0]]])),
        )
        for name, modes in by_mode.items()
    }


def _values(rows: Sequence[Answered], measured: str) -> Floats:
    """A score of each answer, NaN where there is none."""
    return np.array([getattr(row.scores, measured) for row in rows], dtype=np.float64)


def _covered(rows: Sequence[Answered], budget: int) -> Floats:
    return np.array([row.coverage[str(budget)] for row in rows], dtype=np.float64)


def _members(rows: Sequence[Answered], group: str) -> np.ndarray:
    return np.isin([row.category for row in rows], GROUPS[group])


def _mean(values: Floats, members: np.ndarray) -> float:
    chosen = values[members & ~np.isnan(values)]
    return float(chosen.mean()) if len(chosen) else float("nan")


def _figures(rows: Sequence[Answered], values: Floats, seed: int) -> dict[str, Figure]:
    figures = {}
    for group in GROUPS:
        chosen = values[_members(rows, group) & ~np.isnan(values)]
        if len(chosen):
            low, high = intervals(chosen[:, None], seed)[:, 0]
            figures[group] = Figure(float(chosen.mean()), float(low), float(high))
    return figures


def _gaps(name: str, means: Mapping[tuple[str, str, str], float]) -> dict[str, dict[str, float]]:
    return {
        mode: {
            one: (means[name, mode, one] - means[FLOOR, mode, one])
            / ((means[CEILING, mode, one] - means[FLOOR, mode, one]) or float("nan"))
            for one in SCORES
        }
        for mode in MODES
    }


def _pairings(
    mine: Mapping[str, Sequence[Answered]], other: Mapping[str, Sequence[Answered]], seed: int
) -> dict[str, dict[str, Pairing]]:
    pairings: dict[str, dict[str, Pairing]] = {}
    for mode in MODES:
        chosen = _members(mine[mode], AVERAGED) & ~np.isnan(_values(mine[mode], SCORES[0]))
        if chosen.any():
            pairings[mode] = {
                one: pair(_values(mine[mode], one)[chosen], _values(other[mode], one)[chosen], seed) for one in SCORES
            }
    return pairings
