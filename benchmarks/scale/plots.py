"""Plots: throughput by workers and namespaces, what a namespace takes as it grows, memory of idle ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from benchmarks.locomo.plots import save
from benchmarks.scale.report import ENGINE_NAMES, MODEL_NAMES

_WHAT = {"recall": "recalls", "write": "writes"}


def draw(kept: Mapping[str, Any], folder: Path) -> list[Path]:
    """Draw all plots from a summary, each as PNG and SVG; returns the files."""
    steps = kept["steps"]
    drawn = {f"throughput_{model}": _throughput(steps, model) for model in MODEL_NAMES if _loads(steps, model)}
    return save({**drawn, "growth": _growth(steps), "idle": _idle(steps)}, folder)


def _loads(steps: Sequence[Mapping[str, Any]], model: str) -> list[Mapping[str, Any]]:
    return [one for one in steps if one["step"][0] == "load" and one["step"][2] == model]


def _throughput(steps: Sequence[Mapping[str, Any]], model: str) -> Figure:
    figure = Figure(figsize=(9, 4.5), layout="constrained")
    loads = _loads(steps, model)
    lines = sorted({(one["step"][1], one["step"][3]) for one in loads}, key=lambda line: (line[0] != "sqlite", line[1]))
    for axes, (what, name) in zip(figure.subplots(1, 2), _WHAT.items(), strict=True):
        for engine, workers in lines:
            points = sorted(
                (one["step"][4], one[f"{what}_per_second"])
                for one in loads
                if (one["step"][1], one["step"][3]) == (engine, workers)
            )
            label = f"{ENGINE_NAMES[engine]}, {workers} worker{'s' * (workers > 1)}" if what == "recall" else None
            style = "-" if engine == "sqlite" else "--"
            axes.plot(*zip(*points, strict=True), style, marker="o", color=f"C{(1, 2, 4).index(workers)}", label=label)
        axes.set(xscale="log", ylim=(0, None), xlabel="namespaces", ylabel=f"{name} a second")
        axes.grid(visible=True, alpha=0.3)
    figure.suptitle(f"With {MODEL_NAMES[model]}")
    figure.legend(fontsize="small", loc="outside right upper")
    return figure


def _growth(steps: Sequence[Mapping[str, Any]]) -> Figure:
    figure = Figure(figsize=(9, 4.5), layout="constrained")
    room, time = figure.subplots(1, 2)
    for engine, name in ENGINE_NAMES.items():
        grown = sorted(
            (one for one in steps if one["step"][:2] == ["growth", engine]), key=lambda one: int(one["entries"])
        )
        sizes = [one["entries"] for one in grown]
        style = "-" if engine == "sqlite" else "--"
        for what, title in (("disk_bytes", "on disk"), ("resident_bytes", "in memory")):
            room.plot(sizes, [one[what] / 1e6 for one in grown], style, marker="o", label=f"{title}, {name}")
        for what, title in (("cold", "open and recall"), ("recall", "recall"), ("follow", "follow a change")):
            seconds = [one[f"{what}_cpu_seconds"] - one[f"{what}_model_seconds"] for one in grown]
            time.plot(sizes, seconds, style, marker="o", label=f"{title}, {name}")
    room.set(xscale="log", yscale="log", xlabel="entries", ylabel="MB")
    time.set(xscale="log", yscale="log", xlabel="entries", ylabel="processor seconds beside the model")
    for axes in (room, time):
        axes.grid(visible=True, alpha=0.3)
        axes.legend(fontsize="x-small")
    return figure


def _idle(steps: Sequence[Mapping[str, Any]]) -> Figure:
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot()
    for one in steps:
        if one["step"][0] == "idle":
            held = [resident / 1e6 for resident in one["resident_bytes"]]
            axes.plot(one["held"], held, marker="o", label=ENGINE_NAMES[one["step"][1]])
    axes.set(xlabel="idle namespaces held open", ylabel="resident MB of a worker", title="Tiny model")
    axes.grid(visible=True, alpha=0.3)
    axes.legend()
    return figure
