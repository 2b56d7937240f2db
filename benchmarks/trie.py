"""Tries beside each other: memory, building, growing, looking up, saving.

Ours, nested dicts as GENRE keeps its trie, and marisa-trie, at several numbers of phrase-like keys. Each contender at
each size is measured in a process of its own, and its memory in another. Bytes a key are what the arrays hold for ours
and what the process grew by for the others; what it grew by is given for ours too. An insert (or delete) is one change
with a snapshot after it that the next change does not touch, on average over thousands for ours, while another thread
reads; nested dicts have to be copied for that. Ours is saved as the tokens of its keys (``np.savez``) and built again
from these, nested dicts as JSON, marisa-trie in its own format. marisa-trie numbers keys as it likes, and finds what
may follow a prefix by going through all keys below it.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks.options import positive
from benchmarks.trie_contenders import CONTENDERS
from benchmarks.trie_keys import phrase_keys

SIZES = (1_000, 10_000, 100_000, 1_000_000)
NAMES = {"ours": "ours", "dicts": "nested dicts", "marisa": "marisa-trie"}
FIGURES = {
    "bytes_per_key": "memory, bytes a key",
    "bytes_per_key_grown": "the same before a merge, bytes a key",
    "rss_bytes_per_key": "growth of the process, bytes a key",
    "build_seconds": "build from sequences, s",
    "build_from_arrays_seconds": "build from arrays, s",
    "lookup_us": "allowed tokens of a prefix, µs",
    "insert_ms": "insert and snapshot, mean, ms",
    "insert_median_ms": "insert and snapshot, median, ms",
    "insert_longest_ms": "insert and snapshot, longest, ms",
    "delete_ms": "delete and snapshot, mean, ms",
    "snapshot_us": "snapshot, µs",
    "save_seconds": "save, s",
    "reload_seconds": "load again, s",
}
FEWEST = 100
PLOTS = ("bytes_per_key", "build_seconds", "lookup_us", "insert_ms")
CANNOT = {
    ("marisa", "insert_ms"): "cannot",
    ("marisa", "delete_ms"): "cannot",
    ("marisa", "snapshot_us"): "never changes",
}
ROOT = Path(__file__).parents[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=positive, nargs="+", default=SIZES, help="numbers of keys")
    parser.add_argument("--out", type=Path, required=True, help="folder for summary.json, table.md and plots")
    arguments = parser.parse_args()
    if min(arguments.keys) < FEWEST:
        parser.error(f"at least {FEWEST} keys are needed: with fewer there is nothing to time")

    console = Console()
    contenders = [one for one in CONTENDERS if one != "marisa" or importlib.util.find_spec("marisa_trie")]
    summary = measured(arguments.keys, contenders, console)
    for size in arguments.keys:
        console.print(rich_table(summary, contenders, size))
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "summary.json").write_text(json.dumps(summary, indent=2) + "\n")
    tables = "\n".join(markdown_table(summary, contenders, size) for size in arguments.keys)
    (arguments.out / "table.md").write_text(tables)
    if importlib.util.find_spec("matplotlib"):
        plot(summary, contenders, arguments.keys, arguments.out)
    else:
        console.print("no plots: matplotlib is not installed (pip install 'scg-mem\\[bench]')")


def measured(sizes: Sequence[int], contenders: Sequence[str], console: Console) -> dict[str, float]:
    """All figures, named ``{contender}_{figure}_{size}``."""
    summary: dict[str, float] = {}
    with Progress(console=console) as progress, tempfile.TemporaryDirectory() as folder:
        task = progress.add_task("", total=2 * len(sizes) * len(contenders))
        for size in sizes:
            progress.update(task, description=f"{size:,} keys")
            flat, starts = phrase_keys(size)
            keys = Path(folder) / f"{size}.npz"
            np.savez(keys, flat=flat, starts=starts)
            summary[f"tokens_per_key_{size}"] = len(flat) / size
            for contender in contenders:
                for what in ("time", "memory"):
                    progress.update(task, description=f"{size:,} keys, {NAMES[contender]}, {what}")
                    found = measure(contender, keys, folder, what)
                    summary |= {f"{contender}_{figure}_{size}": value for figure, value in found.items()}
                    progress.advance(task)
    return summary


def measure(contender: str, keys: Path, folder: str, what: str) -> dict[str, float]:
    """Figures of one contender, from a fresh process."""
    command = [sys.executable, "-m", "benchmarks.trie_contenders", contender, str(keys), folder, what]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def rows(summary: Mapping[str, float], contenders: Sequence[str], size: int) -> list[list[str]]:
    """For each figure its name, and its value for each contender."""
    table = []
    for figure, title in FIGURES.items():
        values = [CANNOT.get((one, figure)) or _written(summary.get(f"{one}_{figure}_{size}")) for one in contenders]
        table.append([title, *values])
    return table


def _written(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def rich_table(summary: Mapping[str, float], contenders: Sequence[str], size: int) -> Table:
    table = Table(title=f"{size:,} keys")
    table.add_column("figure")
    for one in contenders:
        table.add_column(NAMES[one], justify="right")
    for row in rows(summary, contenders, size):
        table.add_row(*row)
    return table


def markdown_table(summary: Mapping[str, float], contenders: Sequence[str], size: int) -> str:
    lines = [
        [f"{size:,} keys", *(NAMES[one] for one in contenders)],
        ["---", *("---:" for _ in contenders)],
        *rows(summary, contenders, size),
    ]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def plot(summary: Mapping[str, float], contenders: Sequence[str], sizes: Sequence[int], folder: Path) -> None:
    """One plot a figure: its value over the number of keys, on logarithmic axes."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.use("Agg")
    for figure in PLOTS:
        drawing = Figure(figsize=(5.5, 3.8), layout="constrained")
        axes = drawing.add_subplot()
        for one, marker in zip(contenders, "os^", strict=False):
            points = [(size, summary.get(f"{one}_{figure}_{size}")) for size in sorted(sizes)]
            known = [(size, value) for size, value in points if value]
            if known:
                axes.plot(*zip(*known, strict=True), marker=marker, label=NAMES[one])
        axes.set(xscale="log", yscale="log", xlabel="keys", title=FIGURES[figure])
        axes.grid(alpha=0.3)
        axes.legend()
        drawing.savefig(folder / f"{figure}.png", dpi=110)


if __name__ == "__main__":
    main()
