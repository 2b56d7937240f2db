"""What is written for people and programs: figures by name, and tables in the shape of the paper's Table 1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Column, Table

from benchmarks.locomo.answers.answering import BUDGETS, MODES
from benchmarks.locomo.answers.evaluation import AVERAGED, GROUPS, SCORES, Evaluation
from benchmarks.locomo.answers.writer import Spent
from benchmarks.locomo.dataset import CATEGORIES
from benchmarks.locomo.evaluation import Figure
from benchmarks.locomo.report import table

_NAMES = {str(number): name for number, name in CATEGORIES.items()} | {
    "1-4": "mean of 1-4",
    "paper": "mean of 1, 2, 4, 5",
}
_ABOUT_5 = {
    "locomo_f1": "adversarial: share of refusals",
    "amem_f1": "adversarial: against the answer that is wrong to give, as A-MEM has it",
    "amem_bleu1": "adversarial: against the answer that is wrong to give, as A-MEM has it",
}


def figures(evaluations: Mapping[str, Evaluation]) -> dict[str, Any]:
    """Every figure of every system, by name: ``MODE.SCORE.GROUP`` and ``coverage@BUDGET.GROUP``, intervals beside."""
    return {name: _system_figures(one) for name, one in evaluations.items()}


def _system_figures(one: Evaluation) -> dict[str, Any]:
    return {
        **{
            mode: {
                **{score: _means(groups) for score, groups in scores.items()},
                "intervals": {score: _ends(groups) for score, groups in scores.items()},
                "gap_closed": dict(one.gaps.get(mode, {})),
                "paired": {score: asdict(pairing) for score, pairing in one.pairings.get(mode, {}).items()},
                "answer": asdict(one.answering[mode]),
            }
            for mode, scores in one.figures.items()
        },
        **{f"coverage@{budget}": _means(groups) for budget, groups in one.coverage.items()},
        "coverage_intervals": {f"coverage@{budget}": _ends(groups) for budget, groups in one.coverage.items()},
        "write_a_turn": asdict(one.writing),
        "read_a_question": asdict(one.reading),
        "questions_trimmed": one.left_out,
    }


def _means(groups: Mapping[str, Figure]) -> dict[str, float]:
    return {group: figure.mean for group, figure in groups.items()}


def _ends(groups: Mapping[str, Figure]) -> dict[str, list[float]]:
    return {group: [figure.low, figure.high] for group, figure in groups.items()}


def markdown(evaluations: Mapping[str, Evaluation], questions: int, against: str) -> str:
    """Tables of answers in the shape of the paper's, of averages with intervals, of coverage, and of costs."""
    parts = [f"{questions:,} questions, the same for every system. Scores are percentages, intervals are of 95 %."]
    for mode in MODES:
        parts.append(f"## {mode.capitalize()} answers")
        parts.append("A-MEM's F1 and BLEU-1 (" + _ABOUT_5["amem_f1"] + "):\n\n" + table(_paper_rows(evaluations, mode)))
        parts.append(
            "LoCoMo's F1 (" + _ABOUT_5["locomo_f1"] + "):\n\n" + table(_category_rows(evaluations, mode, "locomo_f1"))
        )
        parts.append("Categories 1 to 4 on average:\n\n" + table(_average_rows(evaluations, mode)))
        parts.append(f"Beside `{against}`, question by question:\n\n" + table(_pairing_rows(evaluations, mode)))
    parts.append(
        "## Without an answering model\n\nShare of the gold answer's words in the first tokens of the context,"
        " categories 1 to 4:\n\n" + table(_coverage_rows(evaluations))
    )
    parts.append(
        "## Costs\n\nModel calls, tokens read and written, and seconds: for a turn written, for a question's context"
        " found, and for an answer. What was kept counts with what it took when it was made. Last, the share of"
        " questions whose context was trimmed to the model's window:\n\n" + table(_cost_rows(evaluations))
    )
    return "\n\n".join(parts) + "\n"


def console_table(evaluations: Mapping[str, Evaluation]) -> Table:
    """Averages, for the console."""
    shown = Table(
        Column("system", overflow="fold"),
        *(f"{mode} {score}" for mode in MODES for score in SCORES),
        title="Categories 1 to 4",
    )
    for name, one in evaluations.items():
        shown.add_row(name, *(_percent(one.figures[mode][score], AVERAGED) for mode in MODES for score in SCORES))
    return shown


def _percent(groups: Mapping[str, Figure], group: str) -> str:
    return f"{100 * groups[group].mean:.1f}" if group in groups else ""


def _with_ends(groups: Mapping[str, Figure], group: str) -> str:
    if group not in groups:
        return ""
    one = groups[group]
    return f"{100 * one.mean:.1f} ({100 * one.low:.1f} to {100 * one.high:.1f})"


def _paper_rows(evaluations: Mapping[str, Evaluation], mode: str) -> Iterator[Sequence[str]]:
    yield ["system", *(f"{_NAMES[group]} {score}" for group in GROUPS for score in ("F1", "BLEU-1"))]
    for name, one in evaluations.items():
        scores = one.figures[mode]
        yield [
            f"`{name}`",
            *(_percent(scores[score], group) for group in GROUPS for score in ("amem_f1", "amem_bleu1")),
        ]


def _category_rows(evaluations: Mapping[str, Evaluation], mode: str, score: str) -> Iterator[Sequence[str]]:
    yield ["system", *(_NAMES[group] for group in GROUPS)]
    for name, one in evaluations.items():
        yield [f"`{name}`", *(_percent(one.figures[mode][score], group) for group in GROUPS)]


def _average_rows(evaluations: Mapping[str, Evaluation], mode: str) -> Iterator[Sequence[str]]:
    yield ["system", *(part for score in SCORES for part in (score, "gap closed"))]
    for name, one in evaluations.items():
        cells = []
        for score in SCORES:
            gap = one.gaps.get(mode, {}).get(score)
            cells += [_with_ends(one.figures[mode][score], AVERAGED), "" if gap is None else f"{100 * gap:.0f} %"]
        yield [f"`{name}`", *cells]


def _pairing_rows(evaluations: Mapping[str, Evaluation], mode: str) -> Iterator[Sequence[str]]:
    yield ["system", *(f"{score} {what}" for score in SCORES[:2] for what in ("better", "worse", "difference"))]
    for name, one in evaluations.items():
        pairings = one.pairings.get(mode, {})
        cells = []
        for score in SCORES[:2]:
            if score in pairings:
                found = pairings[score]
                low, high = (100 * end for end in found.interval)
                difference = f"{100 * found.difference:+.1f} ({low:+.1f} to {high:+.1f})"
                cells += [str(found.wins), str(found.losses), difference]
        if cells:
            yield [f"`{name}`", *cells]


def _coverage_rows(evaluations: Mapping[str, Evaluation]) -> Iterator[Sequence[str]]:
    yield ["system", *(f"{budget:,} tokens" for budget in BUDGETS)]
    for name, one in evaluations.items():
        yield [f"`{name}`", *(_with_ends(one.coverage[str(budget)], AVERAGED) for budget in BUDGETS)]


def _cost_rows(evaluations: Mapping[str, Evaluation]) -> Iterator[Sequence[str]]:
    what = ("calls", "read", "written", "s")
    steps = ("turn", "context", *(f"{mode} answer" for mode in MODES))
    yield ["system", *(f"{step} {one}" for step in steps for one in what), "trimmed"]
    for name, one in evaluations.items():
        spent = [one.writing, one.reading, *(one.answering[mode] for mode in MODES)]
        yield [f"`{name}`", *(cell for each in spent for cell in _spent_cells(each)), f"{100 * one.left_out:.0f} %"]


def _spent_cells(spent: Spent) -> list[str]:
    return [f"{spent.calls:.2g}", f"{spent.read:.0f}", f"{spent.written:.0f}", f"{spent.seconds:.2g}"]
