"""Plots: time against keys, time by system, recall against time."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.typing import ColorType

from benchmarks.decoding.cells import Cell, Row
from benchmarks.decoding.systems import SYSTEMS

_COLOURS = dict(zip(SYSTEMS, mpl.color_sequences["tab10"], strict=False))
_SECONDS = "seconds, prompt read inside"


def draw(cells: Sequence[Cell], folder: Path) -> list[Path]:
    """Draw the plots for each length of prompt and width; returns the files."""
    files = []
    for prompt, width in sorted({(cell.prompt, cell.width) for cell in cells}):
        chosen = [cell for cell in cells if (cell.prompt, cell.width) == (prompt, width)]
        title = f"prompt of {prompt} tokens, width {width}"
        drawn = {
            "time_by_keys": _time_by_keys(chosen, title),
            "time_by_system": _time_by_system(chosen[-1], title),
            "recall_by_time": _recall_by_time(chosen, title),
        }
        for name, figure in drawn.items():
            files.append(folder / f"{name}_prompt_{prompt}_width_{width}.png")
            figure.savefig(files[-1], dpi=110)
    return files


def _run(cell: Cell) -> Iterable[Row]:
    return (row for row in cell.rows if row.reason is None)


def _time_by_keys(cells: Sequence[Cell], title: str) -> Figure:
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.add_subplot()
    for system in SYSTEMS:
        points = [(cell.keys, statistics.median(row.cold)) for cell in cells if (row := cell.row(system)) is not None]
        if points:
            axes.plot(*zip(*points, strict=True), marker="o", label=system, color=_COLOURS[system])
    axes.plot([cell.keys for cell in cells], [statistics.median(cell.floor) for cell in cells], "k--", label="floor")
    axes.set(xscale="log", yscale="log", xlabel="keys", ylabel=_SECONDS, title=title)
    axes.grid(visible=True, alpha=0.3)
    figure.legend(fontsize="small", loc="outside right upper")
    return figure


def _time_by_system(cell: Cell, title: str) -> Figure:
    figure = Figure(figsize=(7, 3.5), layout="constrained")
    axes = figure.add_subplot()
    bars: list[tuple[str, float, ColorType]] = [("floor", statistics.median(cell.floor), "black")]
    bars += [(row.system, statistics.median(row.cold), _COLOURS[row.system]) for row in _run(cell)]
    names, seconds, colours = zip(*reversed(bars), strict=True)
    drawn = axes.barh(names, seconds, color=colours)
    axes.bar_label(drawn, fmt=" %.2f", fontsize="small")
    axes.margins(x=0.12)
    axes.set(xlabel=_SECONDS, title=f"{cell.keys:,} keys, {title}")
    return figure


def _recall_by_time(cells: Sequence[Cell], title: str) -> Figure:
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.add_subplot()
    labelled: set[str] = set()
    for cell in cells:
        for row in _run(cell):
            if row.recall is None:
                continue
            seconds = statistics.median(row.cold)
            label = None if row.system in labelled else row.system
            labelled.add(row.system)
            axes.scatter(seconds, row.recall, color=_COLOURS[row.system], label=label)
            axes.annotate(
                f"{cell.keys:,}", (seconds, row.recall), fontsize="x-small", textcoords="offset points", xytext=(4, 4)
            )
    axes.set(xscale="log", ylim=(-0.05, 1.08), xlabel=_SECONDS, ylabel="share of the true best keys", title=title)
    axes.grid(visible=True, alpha=0.3)
    if labelled:
        figure.legend(fontsize="small", loc="outside right upper")
    return figure
