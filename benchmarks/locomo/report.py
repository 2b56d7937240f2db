"""What is written for people and programs: figures under plain names, and a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Column, Table

from benchmarks.locomo.dataset import CATEGORIES
from benchmarks.locomo.evaluation import GROUPS, PAIRED, Evaluation, Spent
from benchmarks.locomo.metrics import CUTOFFS

_PUBLISHED = "1-4"
"""The group that published figures are of, most of them."""


def figures(evaluations: Mapping[str, Evaluation], against: str) -> dict[str, Any]:
    """Every figure of every system, by name: ``recall@K`` and ``mrr`` by group of categories, intervals beside."""
    return {name: _system_figures(one, against) for name, one in evaluations.items()}


def _system_figures(one: Evaluation, against: str) -> dict[str, Any]:
    means = {
        measured: {group: figure.mean for group, figure in groups.items()} for measured, groups in one.figures.items()
    }
    ends = {
        measured: {group: [figure.low, figure.high] for group, figure in groups.items()}
        for measured, groups in one.figures.items()
    }
    paired = {group: asdict(pairing) for group, pairing in one.pairings.items()}
    return {
        **means,
        "intervals": ends,
        **({"paired": {"against": against, "measure": PAIRED, **paired}} if paired else {}),
        "write": _spent_figures(one.write, "entries"),
        "read": _spent_figures(one.read, "questions"),
    }


def _spent_figures(spent: Spent, calls: str) -> dict[str, float]:
    return {
        calls: spent.calls,
        "seconds_mean": spent.mean,
        "seconds_median": spent.median,
        "passes": spent.passes,
        "tokens": spent.tokens,
    }


def markdown(evaluations: Mapping[str, Evaluation], against: str, counts: Mapping[str, int]) -> str:
    """Tables of recall, of comparisons and of costs."""
    asked = f"{counts['questions_asked']:,} questions"
    parts = [
        f"Evidence recall, {asked}, with 95 % intervals over questions. Categories 1 to 4:\n\n"
        + table(_recall_rows(evaluations)),
        f"{PAIRED} by category "
        f"({', '.join(f'{number} {name}' for number, name in CATEGORIES.items())}):\n\n"
        + table(_category_rows(evaluations)),
        f"{PAIRED} beside `{against}`, question by question, categories 1 to 4:\n\n"
        + table(_pairing_rows(evaluations)),
        "Seconds, forward passes and tokens forwarded for each turn written and each question. Kept memories and"
        " decodes count with what they took when they were made:\n\n" + table(_cost_rows(evaluations)),
        "The data: " + ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in counts.items()) + ".",
    ]
    return "\n\n".join(parts) + "\n"


def console_table(evaluations: Mapping[str, Evaluation]) -> Table:
    """Recall, for the console."""
    head, *rows = _recall_rows(evaluations)
    shown = Table(Column(head[0], overflow="fold"), *head[1:], title="Evidence recall, categories 1 to 4")
    for row in rows:
        shown.add_row(*row)
    return shown


def table(rows: Iterator[Sequence[str]]) -> str:
    """A Markdown table; the first row is its head."""
    head, *rest = rows
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rest]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _recall_rows(evaluations: Mapping[str, Evaluation]) -> Iterator[Sequence[str]]:
    yield ["system", *(f"recall@{cutoff}" for cutoff in CUTOFFS), "mrr"]
    for name, one in evaluations.items():
        cells = [groups[_PUBLISHED] for groups in one.figures.values() if _PUBLISHED in groups]
        yield [f"`{name}`", *(f"{cell.mean:.3f} ({cell.low:.3f} to {cell.high:.3f})" for cell in cells)]


def _category_rows(evaluations: Mapping[str, Evaluation]) -> Iterator[Sequence[str]]:
    yield ["system", *GROUPS]
    for name, one in evaluations.items():
        groups = one.figures[PAIRED]
        yield [f"`{name}`", *(f"{groups[group].mean:.3f}" if group in groups else "" for group in GROUPS)]


def _pairing_rows(evaluations: Mapping[str, Evaluation]) -> Iterator[Sequence[str]]:
    yield ["system", "better", "worse", "equal", "difference"]
    for name, one in evaluations.items():
        pairing = one.pairings.get(_PUBLISHED)
        if pairing is not None:
            low, high = pairing.interval
            difference = f"{pairing.difference:+.3f} ({low:+.3f} to {high:+.3f})"
            yield [f"`{name}`", str(pairing.wins), str(pairing.losses), str(pairing.ties), difference]


def _cost_rows(evaluations: Mapping[str, Evaluation]) -> Iterator[Sequence[str]]:
    yield [
        "system",
        *(f"{call} {what}" for call in ("write", "read") for what in ("mean s", "median s", "passes", "tokens")),
    ]
    for name, one in evaluations.items():
        cells = [
            cell
            for spent in (one.write, one.read)
            for cell in (f"{spent.mean:.2g}", f"{spent.median:.2g}", f"{spent.passes:.2f}", f"{spent.tokens:.0f}")
        ]
        yield [f"`{name}`", *cells]
