"""Plots: recall against the number of turns, and recall by category with intervals."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from benchmarks.locomo.dataset import CATEGORIES
from benchmarks.locomo.evaluation import GROUPS, PAIRED, Evaluation
from benchmarks.locomo.metrics import CUTOFFS

_GROUP = "1-4"


def draw(evaluations: Mapping[str, Evaluation], folder: Path) -> list[Path]:
    """Draw the plots, each as PNG and SVG; returns the files."""
    return save(
        {"recall_by_turns": _by_turns(evaluations), "recall_at_10_by_category": _by_category(evaluations)}, folder
    )


def save(drawn: Mapping[str, Figure], folder: Path) -> list[Path]:
    """Save plots by name, each as PNG and SVG; returns the files."""
    files = []
    # Text stays text, and the same figures give the same file.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "locomo"}):
        for name, figure in drawn.items():
            for kind, metadata in (("png", {"Software": None}), ("svg", {"Date": None})):
                files.append(folder / f"{name}.{kind}")
                figure.savefig(files[-1], dpi=110, metadata=metadata)
    return files


def _by_turns(evaluations: Mapping[str, Evaluation]) -> Figure:
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.add_subplot()
    axes.set_prop_cycle(color=mpl.color_sequences["tab20"])
    for name, one in evaluations.items():
        means = [one.figures[f"recall@{cutoff}"].get(_GROUP) for cutoff in CUTOFFS]
        if all(means):
            axes.plot(CUTOFFS, [mean.mean for mean in means if mean is not None], marker="o", label=name)
    axes.set(xlabel="turns", ylabel="evidence recall", title="Categories 1 to 4", xticks=CUTOFFS, ylim=(None, 1))
    axes.grid(visible=True, alpha=0.3)
    figure.legend(fontsize="small", loc="outside right upper")
    return figure


def _by_category(evaluations: Mapping[str, Evaluation]) -> Figure:
    figure = Figure(figsize=(8 + 0.3 * len(evaluations), 4.5), layout="constrained")
    axes = figure.add_subplot()
    axes.set_prop_cycle(color=mpl.color_sequences["tab20"])
    groups = [group for group in GROUPS if any(group in one.figures[PAIRED] for one in evaluations.values())]
    width = 0.8 / len(evaluations)
    for place, (name, one) in enumerate(evaluations.items()):
        shown = [one.figures[PAIRED][group] for group in groups]
        means = np.array([figure.mean for figure in shown])
        ends = np.array([[figure.low, figure.high] for figure in shown]).T
        axes.bar(
            np.arange(len(groups)) + (place - (len(evaluations) - 1) / 2) * width,
            means,
            width,
            # Percentiles of few and lopsided values may lie to one side of the mean.
            yerr=np.maximum([means - ends[0], ends[1] - means], 0),
            error_kw={"linewidth": 0.8},
            label=name,
        )
    names = {str(number): name for number, name in CATEGORIES.items()}
    axes.set_xticks(np.arange(len(groups)), [names.get(group, group) for group in groups])
    axes.set(ylabel=f"evidence {PAIRED}", ylim=(0, 1))
    axes.grid(visible=True, axis="y", alpha=0.3)
    figure.legend(fontsize="small", loc="outside right upper")
    return figure
