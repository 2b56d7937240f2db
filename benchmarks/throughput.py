"""How fast a memory writes with the model, and what callers gain who recall at the same time.

Writing: a conversation goes into a new memory, in calls of --batch entries; weighing new concepts and storing are
inside the time. Recalling: --callers different questions, one after the other and then at once, in turns,
so that a change of the machine's speed falls out of the ratio.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import Progress, track
from rich.table import Table

from benchmarks.options import existing_file, positive
from benchmarks.recall_latency import QUERIES
from shared_core import MemoryEntry, SchemaMemory
from shared_core.formats import read_entries
from shared_core.models import LanguageModel, load_model
from shared_core.samples import sample_path


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--locomo", type=existing_file, help="a LoCoMo file; by default the sample conversation")
    parser.add_argument("--conversation", help="which conversation of the file")
    parser.add_argument("--entries", type=positive, help="write the first so many only")
    parser.add_argument("--batch", type=positive, default=64, help="entries in one call")
    parser.add_argument("--callers", type=positive, default=8)
    parser.add_argument("--runs", type=positive, default=5)
    parser.add_argument("--threads", type=positive, default=2)
    parser.add_argument("--out", type=Path, help="also write summary.json into this folder")
    chosen = parser.parse_args(arguments)

    torch.set_num_threads(chosen.threads)
    model = load_model(threads=chosen.threads)
    entries = read_entries(sample_path())
    if chosen.locomo:
        entries = read_entries(chosen.locomo, "locomo", conversation=chosen.conversation)
    entries = entries[: chosen.entries]
    with tempfile.TemporaryDirectory() as folder:
        with SchemaMemory.open(Path(folder, "memory.db"), model=model) as memory:
            writing = write(memory, entries, chosen.batch)
        recalling = asyncio.run(recall(Path(folder, "memory.db"), model, chosen.callers, chosen.runs))
    summary = {"threads": chosen.threads, **writing, **recalling}
    table = Table("figure", "value", title="Writing and recalling")
    for name, value in summary.items():
        table.add_row(name, f"{value:.3f}" if isinstance(value, float) else str(value))
    Console().print(table)
    if chosen.out:
        chosen.out.mkdir(parents=True, exist_ok=True)
        (chosen.out / "summary.json").write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")


def write(memory: SchemaMemory, entries: Sequence[MemoryEntry], batch: int) -> dict[str, float]:
    """Write all entries; seconds of each call."""
    memory.remember("The kettle whistles.", id="first")  # loads what is loaded once
    groups = [entries[start : start + batch] for start in range(0, len(entries), batch)]
    seconds = []
    for group in track(groups, "writing"):
        start = time.perf_counter()
        memory.remember(group)
        seconds.append(time.perf_counter() - start)
    rates = [len(group) / took for group, took in zip(groups, seconds, strict=True)]
    return {
        "entries": len(entries),
        "concepts": memory.stats().concepts,
        "entries_per_second": len(entries) / sum(seconds),
        "entries_per_second_median_of_calls": statistics.median(rates),
    }


async def recall(path: Path, model: LanguageModel, callers: int, runs: int) -> dict[str, float]:
    """Recall by several callers, in a row and at once."""
    in_a_row, at_once = [], []
    with SchemaMemory.open(path, model=model) as memory, Progress() as progress:
        await asyncio.gather(*(memory.arecall(question) for question in QUERIES[:callers]))
        task = progress.add_task("recalling", total=2 * runs)
        for run in range(runs):
            asked = [QUERIES[(run * callers + at) % len(QUERIES)] for at in range(callers)]
            start = time.perf_counter()
            for question in asked:
                await memory.arecall(question)
            middle = time.perf_counter()
            progress.advance(task)
            await asyncio.gather(*(memory.arecall(question) for question in asked))
            in_a_row.append(middle - start)
            at_once.append(time.perf_counter() - middle)
            progress.advance(task)
    ratios = [together / apart for together, apart in zip(at_once, in_a_row, strict=True)]
    return {
        "callers": callers,
        "runs": runs,
        "seconds_in_a_row": statistics.median(in_a_row),
        "seconds_at_once": statistics.median(at_once),
        "at_once_share": statistics.median(ratios),
    }


if __name__ == "__main__":
    main()
