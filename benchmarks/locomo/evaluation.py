"""What the outcomes say of each system, by categories."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.locomo.experiment import Finished
from benchmarks.locomo.metrics import MEASURES, Floats, Pairing, intervals, measure, pair
from benchmarks.locomo.results import Outcome, Writing

GROUPS: Mapping[str, tuple[int, ...]] = {
    **{str(category): (category,) for category in range(1, 6)},
    "1-4": (1, 2, 3, 4),
    "all": (1, 2, 3, 4, 5),
}
"""Categories by the name of their group."""

PAIRED = "recall@10"


@dataclass(frozen=True, slots=True)
class Figure:
    """A mean over questions with its 95 % interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Spent:
    """What a call takes.

    Attributes:
        calls: Calls it is taken over.
        mean: Seconds.
        median: Seconds.
        passes: Forward passes of a model, mean.
        tokens: Tokens forwarded, mean.
    """

    calls: int
    mean: float
    median: float
    passes: float
    tokens: float


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One system.

    Attributes:
        figures: By measure and group of categories; groups without questions are left out.
        pairings: By group, at :data:`PAIRED`, beside the system compared against; empty for that one itself.
        write: What writing one turn takes. The median is that of the conversations' means.
        read: What answering one question takes.
    """

    figures: Mapping[str, Mapping[str, Figure]]
    pairings: Mapping[str, Pairing]
    write: Spent
    read: Spent


def evaluate(finished: Finished, against: str, seed: int) -> dict[str, Evaluation]:
    """Evaluate every system, on the same questions for all.

    Args:
        finished: The outcomes.
        against: The system that the others are compared with.
        seed: Of the bootstrap.
    """
    values = {name: measure([list(row.ranks.values()) for row in rows]) for name, rows in finished.outcomes.items()}
    categories = np.array([row.category for row in finished.outcomes[against]], dtype=np.int64)
    members = {group: np.isin(categories, own) for group, own in GROUPS.items()}
    members = {group: chosen for group, chosen in members.items() if chosen.any()}
    figures: dict[str, dict[str, dict[str, Figure]]] = {name: {one: {} for one in MEASURES} for name in values}
    for group, chosen in members.items():
        # All systems are resampled together.
        columns = np.hstack([own[chosen] for own in values.values()])
        low, high = intervals(columns, seed)
        names = [(name, measured) for name in values for measured in MEASURES]
        for (name, measured), *ends in zip(names, columns.mean(axis=0), low, high, strict=True):
            figures[name][measured][group] = Figure(*map(float, ends))
    return {
        name: Evaluation(
            figures[name],
            {} if name == against else _pairings(own, values[against], members, seed),
            _writing(finished.writings[name]),
            _reading(finished.outcomes[name]),
        )
        for name, own in values.items()
    }


def _pairings(mine: Floats, other: Floats, members: Mapping[str, np.ndarray], seed: int) -> dict[str, Pairing]:
    column = MEASURES.index(PAIRED)
    return {group: pair(mine[chosen, column], other[chosen, column], seed) for group, chosen in members.items()}


def _writing(rows: Sequence[Writing]) -> Spent:
    entries = sum(row.entries for row in rows)
    return Spent(
        entries,
        sum(row.cost.seconds for row in rows) / entries,
        statistics.median(row.cost.seconds / row.entries for row in rows),
        sum(row.cost.passes for row in rows) / entries,
        sum(row.cost.tokens for row in rows) / entries,
    )


def _reading(rows: Sequence[Outcome]) -> Spent:
    seconds = [row.cost.seconds for row in rows]
    return Spent(
        len(rows),
        statistics.mean(seconds),
        statistics.median(seconds),
        statistics.mean(row.cost.passes for row in rows),
        statistics.mean(row.cost.tokens for row in rows),
    )
