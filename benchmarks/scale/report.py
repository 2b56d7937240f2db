"""What was measured and reckoned: figures for programs, tables for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

import numpy as np
from rich.table import Table

from benchmarks.scale.experiment import MACHINE, Figures, Step
from benchmarks.scale.projection import Assumptions, Costs, Projection, project, read_costs
from benchmarks.scale.worker import TOGETHER

Found = Mapping[Step, Figures]

ENGINE_NAMES: Final = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
MODEL_NAMES: Final = {"embedded": "the embedded model", "tiny": "a tiny random model"}
_OPERATIONS: Final = {
    "recall": "recall",
    "remember": "entry remembered by itself",
    "remember_8": "entry, eight remembered together",
    "store_100": "entry, a hundred stored without the model",
}
_TABLES: Final = {
    "entries": ("entries", "anticipations"),
    "concepts": ("concepts", "scores"),
    "links": ("links",),
}
_BUSY = 10.0
_NOTHING = 5e-5
NOT_MEASURED: Final = (
    "A database of that size: the largest one here holds some ten thousand entries, and all of it is in caches.",
    "A cold disk, replicas, backups under load.",
    "Wear. Every memory was new: tables and indexes that have been changed for a year take more room.",
    "Waiting. Cores are those that are busy, without reserve: at full use, calls would queue without end.",
    "A network. Workers and server share one machine and a socket.",
    "The model on a namespace of thousands of entries. What it takes for a call was measured on small ones.",
    "What it would have computed for large ones: those numbers were drawn at random, in the room that real ones take.",
    "A faster engine: its speed is an assumption, and what remains beside the model is taken as it is here.",
    "People. How often they call, how many at once, and what they say is assumed; the sentences are made from a seed.",
)


def summary(found: Found, assumed: Assumptions, about: Mapping[str, object]) -> dict[str, Any]:
    """Everything, to be kept as JSON."""
    costs, projections = reckoned(found, assumed)
    return {
        "about": {**about, **found.get(MACHINE, {})},
        "assumptions": asdict(assumed),
        "costs": {engine: asdict(one) for engine, one in costs.items()},
        "projection": {engine: asdict(one) for engine, one in projections.items()},
        "idle_namespace_bytes": {str(step[1]): slope(one) for step, one in _of(found, "idle")},
        "steps": [{"step": list(step), **figures} for step, figures in found.items() if step != MACHINE],
    }


def reckoned(found: Found, assumed: Assumptions) -> tuple[dict[str, Costs], dict[str, Projection]]:
    """Costs and projections by engine, as far as what they rest on was measured."""
    costs = {}
    for engine in ENGINE_NAMES:
        operations = found.get(("operations", engine, "embedded"))
        grown = [figures for step, figures in _of(found, "growth") if step[1] == engine]
        if operations is not None and grown:
            costs[engine] = read_costs(operations, max(grown, key=lambda one: one["entries"]))
    return costs, {engine: project(one, assumed) for engine, one in costs.items()}


def slope(idle: Figures) -> float:
    """Bytes of memory for each idle namespace that is held open."""
    return float(np.polyfit(idle["held"], idle["resident_bytes"], 1)[0])


def markdown(kept: Mapping[str, Any]) -> str:
    """All tables, from a summary."""
    found: Found = {
        tuple(row["step"]): {name: value for name, value in row.items() if name != "step"} for row in kept["steps"]
    }
    engines = [engine for engine in ENGINE_NAMES if any(step[1] == engine for step in found)]
    parts = ["# Scale", *_preface(kept["about"])]
    for model, name in MODEL_NAMES.items():
        rows = list(_load_rows(found, engines, model))
        if len(rows) > 1:
            parts += [f"## Throughput with {name}", _ABOUT_LOAD[model], _table(rows)]
    parts += ["## Single operations", _ABOUT_OPERATIONS, _table(_operation_rows(found, engines))]
    parts += ["## A namespace as it grows", _ABOUT_GROWTH]
    for engine in engines:
        parts += [f"{ENGINE_NAMES[engine]}:", _table(_growth_rows(found, engine))]
    parts += ["## Idle namespaces", *_idle(found)]
    if kept["projection"]:
        parts += [f"## What {kept['assumptions']['users']:,} users would need", *_projected(kept)]
    return "\n\n".join(parts) + "\n"


_ABOUT_LOAD = {
    "embedded": "Calls a second of all workers together; in brackets, processor seconds of a call: the model's, the "
    "rest of the worker's, the server's. Each worker recalls in namespaces drawn at random, then remembers, an entry a "
    "call. It keeps the 64 namespaces open that it used last, as the service does, and reads others anew.",
    "tiny": "The same with a random model that costs next to nothing: what the memory itself can carry.",
}
_ABOUT_OPERATIONS = (
    "Processor seconds of one operation, one worker in one namespace: of the model, of the rest of the worker, of the "
    "server."
)
_ABOUT_GROWTH = (
    "With the tiny model; numbers that a model computes are drawn at random here, since they take the same room. "
    "*Memory* is what a worker grew by. *Cold* is the first recall, which reads the whole namespace; *follow* takes up "
    "an entry that another process stored. Processor seconds of the worker, the tiny model's left out."
)


def _preface(about: Mapping[str, Any]) -> Iterator[str]:
    if about["quick"]:
        yield (
            "**A quick run.** Sizes and times are so small that the figures say that the program works, and not how "
            "fast. Run it without `--quick` for figures to rely on."
        )
    if about["busy_percent"] > _BUSY:
        yield (
            f"**Other programs were busy**: they used {about['busy_percent']:.0f} % of the processors when this was "
            "begun. Throughput is less than the machine gives when it is quiet, and processor seconds are more."
        )
    versions = ", ".join(f"{name} {value}" for name, value in about["versions"].items())
    yield (
        f"{about['processor']}, {about['cores']} cores, no GPU; every worker computes on one thread. {versions}. "
        "Made by `python -m benchmarks.scale`."
    )


def _load_rows(found: Found, engines: Sequence[str], model: str) -> Iterator[list[str]]:
    yield [
        "workers",
        "namespaces",
        *(f"{ENGINE_NAMES[engine]}, {what}/s" for engine in engines for what in ("recalls", "writes")),
    ]
    places = sorted({(step[3], step[4]) for step, _ in _of(found, "load") if step[2] == model})
    for workers, namespaces in places:
        cells = []
        for engine in engines:
            figures = found.get(("load", engine, model, workers, namespaces), {})
            cells += [_rate(figures, what) for what in ("recall", "write")]
        yield [str(workers), f"{namespaces:,}", *cells]


def _rate(figures: Figures, what: str) -> str:
    if f"{what}_per_second" not in figures:
        return "–"
    return f"{_short(figures[f'{what}_per_second'])} ({_parts(figures, what)})"


def _parts(figures: Figures, what: str, per: float = 1) -> str:
    model, cpu = figures[f"{what}_model_seconds"], figures[f"{what}_cpu_seconds"]
    parts = (model, cpu - model, figures[f"{what}_server_seconds"])
    return " + ".join("?" if value is None else _short(value / per) for value in parts)


def _operation_rows(found: Found, engines: Sequence[str]) -> Iterator[list[str]]:
    models = [name for name in MODEL_NAMES if any(step[2] == name for step, _ in _of(found, "operations"))]
    yield ["", *(f"{ENGINE_NAMES[engine]}, {MODEL_NAMES[model]}" for engine in engines for model in models)]
    for what, name in _OPERATIONS.items():
        cells = []
        for engine in engines:
            for model in models:
                figures = found.get(("operations", engine, model))
                cells.append("–" if figures is None else _parts(figures, what, TOGETHER.get(what, 1)))
        yield [name, *cells]


def _growth_rows(found: Found, engine: str) -> Iterator[list[str]]:
    names = ("entries", "concepts an entry", "rows an entry", "on disk, bytes an entry")
    by_table = tuple(f"bytes of {name}" for name in ("an entry", "a concept", "a link"))
    calls = ("recall", "remember", "cold", "follow")
    yield [*names, *by_table, "memory, MB", "memory, bytes an entry", *(f"{name}, s" for name in calls)]
    for step, one in sorted(_of(found, "growth")):
        if step[1] != engine:
            continue
        entries = one["entries"]
        seconds = [one[f"{name}_cpu_seconds"] - one[f"{name}_model_seconds"] for name in calls]
        yield [
            f"{entries:,}",
            _short(one["concepts"] / entries),
            _short(sum(one["rows"].values()) / entries),
            f"{one['disk_bytes'] / entries:,.0f}",
            *(_each(one, name) for name in _TABLES),
            f"{one['resident_bytes'] / 1e6:,.1f}",
            f"{one['resident_bytes'] / entries:,.0f}",
            *(_short(value) for value in seconds),
        ]


def _each(figures: Figures, what: str) -> str:
    """Bytes on disk of what belongs to one entry, concept or link."""
    taken = figures["table_bytes"]
    if not all(table in taken for table in _TABLES[what]):
        return "–"
    return f"{sum(taken[table] for table in _TABLES[what]) / figures[what]:,.0f}"


def _idle(found: Found) -> Iterator[str]:
    for step, one in _of(found, "idle"):
        held = ", ".join(
            f"{resident / 1e6:,.0f} MB with {count:,}"
            for count, resident in zip(one["held"], one["resident_bytes"], strict=True)
        )
        yield (
            f"{ENGINE_NAMES[str(step[1])]}: {slope(one) / 1e3:,.0f} kB of a worker's memory for each namespace of "
            f"{one['entries']} entries that it holds open (resident, tiny model: {held})."
        )


def _projected(kept: Mapping[str, Any]) -> Iterator[str]:
    assumed = kept["assumptions"]
    measured = {engine: one["entries"] for engine, one in kept["costs"].items()}
    yield (
        f"Assumed: {assumed['users']:,} users with {assumed['entries']:,} entries each; {assumed['recalls']:g} recalls "
        f"and {assumed['writes']:g} entries written a day by each of them, one at a time with the model; "
        f"{assumed['peak']:g} times the mean in the busiest hour; an engine {assumed['speedup']:g} times as fast as "
        "one core of this machine, in the row that says so. Everything else is what was measured above, multiplied: "
        f"disk, rows, memory and time beside the model from a namespace of {max(measured.values()):,} entries, the "
        "model's time from the embedded model."
    )
    yield _table(_projection_rows(kept))
    yield "Not measured:\n\n" + "\n".join(f"- {line}" for line in NOT_MEASURED)


def _projection_rows(kept: Mapping[str, Any]) -> Iterator[list[str]]:
    projections = kept["projection"]
    assumed = kept["assumptions"]

    def row(name: str, write: Callable[[float], str], figure: str) -> list[str]:
        values = [one[figure] for one in projections.values()]
        return [name, *("not known" if value is None else write(value) for value in values)]

    yield ["", *(ENGINE_NAMES[engine] for engine in projections)]
    yield row("entries", _count, "entries")
    yield row("concepts", _count, "concepts")
    yield row("rows", _count, "rows")
    yield row("on disk", _bytes, "disk_bytes")
    for share in assumed["active"]:
        held = [one["held_bytes"][f"{share:g}"] for one in projections.values()]
        yield [f"memory for open namespaces, {100 * share:g} % of the users", *map(_bytes, held)]
    yield row("recalls a second, busiest hour", _count, "recalls_per_second")
    yield row("entries written a second, busiest hour", _count, "writes_per_second")
    yield row("cores busy with the model", _count, "model_cores")
    yield row("cores busy beside it, in workers", _count, "store_cores")
    yield row("cores busy in the server", _count, "server_cores")
    yield row("cores more if no namespace is open when it is called", _count, "opening_cores")
    yield row("workers, of one core each", _count, "workers")
    yield row("their memory without namespaces", _bytes, "worker_bytes")
    faster = f"engines {assumed['speedup']:g} times as fast, for the model instead (extrapolated)"
    yield row(faster, _count, "engine_cores")


def console_table(kept: Mapping[str, Any]) -> Table:
    """The projection, for the console."""
    head, *rows = _projection_rows(kept)
    table = Table(*head, title=f"{kept['assumptions']['users']:,} users")
    for row in rows:
        table.add_row(*row)
    return table


def _of(found: Found, kind: str) -> list[tuple[Step, Figures]]:
    return [(step, figures) for step, figures in found.items() if step[0] == kind]


def _table(rows: Iterator[list[str]] | Sequence[list[str]]) -> str:
    head, *rest = rows
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rest]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _short(value: float) -> str:
    if abs(value) < _NOTHING:
        return "0"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2g}" if abs(value) < 10 else f"{value:.3g}"


def _count(value: float) -> str:
    for size, name in ((1e9, "thousand million"), (1e6, "million")):
        if value >= size:
            return f"{value / size:,.3g} {name}"
    return _short(value)


def _bytes(value: float) -> str:
    for size, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB")):
        if value >= size:
            return f"{value / size:,.0f} {name}" if value >= 100 * size else f"{value / size:,.3g} {name}"
    return f"{value / 1e3:,.3g} kB"
