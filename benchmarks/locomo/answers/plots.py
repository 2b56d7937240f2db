"""Plots: answers by category with intervals, and coverage by token budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.locomo.answers.answering import BUDGETS, MODES
from benchmarks.locomo.answers.evaluation import AVERAGED, GROUPS, Evaluation
from benchmarks.locomo.dataset import CATEGORIES
from benchmarks.locomo.evaluation import Figure as Interval
from benchmarks.locomo.plots import save


def draw(evaluations: Mapping[str, Evaluation], folder: Path) -> list[Path]:
    """Draw the plots, each as PNG and SVG; returns the files."""
    drawn = {
        f"{score}_{mode}": _by_category(evaluations, mode, score)
        for mode in MODES
        for score in ("locomo_f1", "amem_f1")
    }
    return save({**drawn, "coverage": _coverage(evaluations)}, folder)


def draw_sweeps(
    sweeps: Mapping[str, Mapping[int, str]], evaluations: Mapping[str, Evaluation], folder: Path
) -> list[Path]:
    """Draw one plot for each sweep, each as PNG and SVG; returns the files.

    Args:
        sweeps: By what is varied and by its value, the system.
        evaluations: The systems.
        folder: Where to.
    """
    drawn = {
        varied.replace(", ", "_").replace(" ", "_"): _along(varied, points, evaluations)
        for varied, points in sweeps.items()
    }
    return save(drawn, folder)


def _along(varied: str, points: Mapping[int, str], evaluations: Mapping[str, Evaluation]) -> Figure:
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.add_subplot()
    for mode in MODES:
        for score in ("locomo_f1", "amem_f1"):
            shown = [evaluations[name].figures[mode][score].get(AVERAGED) for name in points.values()]
            _line(axes, list(points), shown, f"{score}, {mode}")
    axes.set(xlabel=varied, ylabel="F1, categories 1 to 4", xticks=list(points), ylim=(0, None))
    axes.grid(visible=True, alpha=0.3)
    figure.legend(fontsize="small", loc="outside right upper")
    return figure


def _line(axes: Axes, at: Sequence[int], shown: Sequence[Interval | None], label: str) -> None:
    """A line with intervals; nothing where there is no figure."""
    means = np.array([one.mean if one else np.nan for one in shown])
    low, high = (np.array([getattr(one, end, np.nan) for one in shown]) for end in ("low", "high"))
    # Percentiles of few and lopsided values may lie to one side of the mean.
    ends = np.maximum([means - low, high - means], 0)
    axes.errorbar(at, means, yerr=ends, marker="o", capsize=2, label=label)


def _by_category(evaluations: Mapping[str, Evaluation], mode: str, score: str) -> Figure:
    figure = Figure(figsize=(8 + 0.3 * len(evaluations), 4.5), layout="constrained")
    axes = figure.add_subplot()
    axes.set_prop_cycle(color=mpl.color_sequences["tab20"])
    groups = [group for group in GROUPS if any(group in one.figures[mode][score] for one in evaluations.values())]
    width = 0.8 / len(evaluations)
    for place, (name, one) in enumerate(evaluations.items()):
        shown = [one.figures[mode][score][group] for group in groups]
        means = np.array([figure.mean for figure in shown])
        low, high = (np.array([getattr(figure, end) for figure in shown]) for end in ("low", "high"))
        at = np.arange(len(groups)) + (place - (len(evaluations) - 1) / 2) * width
        # Percentiles of few and lopsided values may lie to one side of the mean.
        ends = np.maximum([means - low, high - means], 0)
        axes.bar(at, means, width, yerr=ends, error_kw={"linewidth": 0.8}, label=name)
    names = {str(number): name for number, name in CATEGORIES.items()}
    axes.set_xticks(np.arange(len(groups)), [names.get(group, group) for group in groups])
    axes.set(ylabel=score, ylim=(0, 1), title=f"{mode} answers")
    axes.grid(visible=True, axis="y", alpha=0.3)
    figure.legend(fontsize="small", loc="outside right upper")
    return figure


def _coverage(evaluations: Mapping[str, Evaluation]) -> Figure:
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.add_subplot()
    axes.set_prop_cycle(color=mpl.color_sequences["tab20"])
    for name, one in evaluations.items():
        _line(axes, BUDGETS, [one.coverage[str(budget)].get(AVERAGED) for budget in BUDGETS], name)
    axes.set(xlabel="tokens of context", ylabel="share of the gold answer", xticks=BUDGETS, ylim=(0, 1))
    axes.grid(visible=True, alpha=0.3)
    figure.legend(fontsize="small", loc="outside right upper")
    return figure
