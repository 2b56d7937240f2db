"""Figures by category, comparisons and costs, against sums over the outcomes one by one."""

from __future__ import annotations

import json
import statistics

import numpy as np
import pytest

from benchmarks.locomo.evaluation import GROUPS, evaluate
from benchmarks.locomo.experiment import Finished
from benchmarks.locomo.report import figures, markdown
from benchmarks.locomo.results import Outcome, Writing
from benchmarks.locomo.systems import Cost

SYSTEMS = ("one", "two")
CATEGORIES = (1, 1, 2, 4, 4, 4, 5)  # none of category 3


@pytest.fixture(scope="module")
def finished() -> Finished:
    rng = np.random.default_rng(0)

    def outcome(name: str, place: int, category: int) -> Outcome:
        ranks = {
            f"D1:{turn}": rank if rank <= 35 else None for turn, rank in enumerate(rng.integers(1, 45, 3).tolist())
        }
        cost = Cost(float(rng.random()), place, 10 * place)
        return Outcome(name, f"c/{place}", category, ranks, [], cost, "")

    return Finished(
        {name: [outcome(name, *one) for one in enumerate(CATEGORIES)] for name in SYSTEMS},
        {
            name: [Writing(name, "a", 10, Cost(5.0, 20, 40), ""), Writing(name, "b", 30, Cost(3.0, 20, 0), "")]
            for name in SYSTEMS
        },
    )


def recall(row: Outcome, cutoff: int) -> float:
    return sum(rank is not None and rank <= cutoff for rank in row.ranks.values()) / len(row.ranks)


def test_every_figure_is_the_mean_of_its_questions(finished: Finished):
    found = figures(evaluate(finished, "one", seed=0), "one")
    json.dumps(found)
    for name in SYSTEMS:
        for group, members in GROUPS.items():
            rows = [row for row in finished.outcomes[name] if row.category in members]
            if not rows:
                assert group not in found[name]["recall@5"]
                continue
            for cutoff in (5, 10, 20, 35):
                mean = statistics.mean(recall(row, cutoff) for row in rows)
                assert found[name][f"recall@{cutoff}"][group] == pytest.approx(mean)
                low, high = found[name]["intervals"][f"recall@{cutoff}"][group]
                assert low <= mean + 1e-9
                assert high >= mean - 1e-9
            firsts = [min((rank for rank in row.ranks.values() if rank), default=None) for row in rows]
            assert found[name]["mrr"][group] == pytest.approx(statistics.mean(1 / one if one else 0 for one in firsts))


def test_pairs_are_counted_beside_the_chosen_system(finished: Finished):
    found = figures(evaluate(finished, "one", seed=0), "one")
    assert "paired" not in found["one"]
    paired = found["two"]["paired"]
    assert (paired["against"], paired["measure"]) == ("one", "recall@10")
    ours, theirs = (
        [recall(row, 10) for row in finished.outcomes[name] if row.category != 5] for name in ("two", "one")
    )
    assert paired["1-4"]["wins"] == sum(mine > other for mine, other in zip(ours, theirs, strict=True))
    assert paired["1-4"]["losses"] == sum(mine < other for mine, other in zip(ours, theirs, strict=True))
    assert paired["1-4"]["difference"] == pytest.approx(statistics.mean(ours) - statistics.mean(theirs))


def test_costs_are_those_of_a_turn_and_of_a_question(finished: Finished):
    found = figures(evaluate(finished, "one", seed=0), "one")["two"]
    assert found["write"] == {"entries": 40, "seconds_mean": 0.2, "seconds_median": 0.3, "passes": 1, "tokens": 1}
    seconds = [row.cost.seconds for row in finished.outcomes["two"]]
    assert found["read"] == {
        "questions": 7,
        "seconds_mean": pytest.approx(statistics.mean(seconds)),
        "seconds_median": statistics.median(seconds),
        "passes": 3,
        "tokens": 30,
    }


def test_the_table_has_a_row_for_each_system(finished: Finished):
    evaluations = evaluate(finished, "one", seed=0)
    text = markdown(evaluations, "one", {"questions_asked": 7})
    assert text.count("| `one` |") == 3
    assert text.count("| `two` |") == 4
    assert f"{evaluations['two'].figures['recall@10']['1-4'].mean:.3f} (" in text
    widths = {len(line.split("|")) for line in text.splitlines() if line.startswith("| ")}
    assert widths == {8, 10, 7, 11}  # recall, categories, pairs and costs: no row is short of a cell
