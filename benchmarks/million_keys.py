"""How long it takes to open a memory of a million concepts, to recall from it, and to follow a small change.

Makes the store if it is not there (from a seed; some minutes), then opens a copy of it in fresh processes, one after
another. Times are medians over these; ``…_cpu`` is processor time, which says more where other programs are busy.

    python -m benchmarks.million_keys --store /tmp/million.db --out /tmp/million

The model takes no part: what it would decode for a query is drawn at random.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.options import positive
from benchmarks.synthetic import Size, make_columns, make_writes
from shared_core.config import SCGConfig
from shared_core.decoding import KeyColumns, SpokenSchema
from shared_core.entry import MemoryEntry
from shared_core.recall import Question, Recaller, Snapshot
from shared_core.store import ConceptLink, EntryWrite, Store, collector_paused

NAMESPACE = ("million",)
MODEL = "synthetic model"
_WRITTEN_TOGETHER = 20_000
_CHANGES = 5
_SEEDS = 50


def make_store(path: Path, size: Size) -> None:
    """A store of that size, with token ids and neutral log-probabilities of every concept."""
    draft = path.with_name(f"{path.name}.draft")
    draft.unlink(missing_ok=True)
    with Store.open(draft) as store:
        writes = make_writes(size)
        for _ in track(range(0, size.entries, _WRITTEN_TOGETHER), "Writing entries"):
            store.write(NAMESPACE, list(islice(writes, _WRITTEN_TOGETHER)))
        state = store.load(NAMESPACE)
        store.save_columns(NAMESPACE, MODEL, state, make_columns([key for key, _ in state.concepts]))
    draft.rename(path)


class Stopwatch:
    """Seconds and processor seconds of named parts."""

    def __init__(self) -> None:
        self.found: dict[str, list[float]] = {}

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        wall, processor = time.perf_counter(), time.process_time()
        yield
        self.found.setdefault(f"{name}_seconds", []).append(time.perf_counter() - wall)
        self.found.setdefault(f"{name}_cpu", []).append(time.process_time() - processor)

    def medians(self) -> dict[str, float]:
        return {name: statistics.median(values) for name, values in self.found.items()}


def measure(path: Path, started: float) -> dict[str, float]:
    """What one fresh process takes; ``started`` is the time at which it was started."""
    watch = Stopwatch()
    figures = {"import_cpu": time.process_time(), "import_seconds": time.time() - started}
    with Store.open(path, create=False) as store:
        with watch.part("load"):
            state = store.load(NAMESPACE)
        with watch.part("scores"):
            columns = store.load_scores(NAMESPACE, MODEL, state)
        with watch.part("snapshot"), collector_paused():  # as a memory does
            snapshot = Snapshot.build(state)
        with watch.part("schema"):
            spoken = KeyColumns(columns.tokens, columns.starts, columns.neutral, columns.known)
            schema = SpokenSchema.from_columns(spoken, SCGConfig().score)
        assert schema.trie.key_count == len(state.concepts)
        figures |= {"ready_seconds": time.time() - started, "ready_cpu": time.process_time()}
        figures |= {"entries": len(state.entries), "keys": len(state.concepts), "links": len(state.link_entry)}
        random = np.random.default_rng(0)
        for number in range(_CHANGES):
            with watch.part("retrieval"):
                retrieve(snapshot, random)
            entry, links = said(snapshot, f"{started} {number}")
            with watch.part("remember"):
                store.write(NAMESPACE, [EntryWrite(entry, links, assimilated=False)])
            with watch.part("refresh"):
                snapshot = follow(store, snapshot)
            inferred = ConceptLink(snapshot.keys[number], snapshot.keys[number], 0.3, "inferred")
            store.assimilate(NAMESPACE, {str(entry.id): [inferred]})
            with watch.part("refresh_after_assimilation"):
                snapshot = follow(store, snapshot)
            new = make_columns(snapshot.keys, len(snapshot.keys) - len(links))
            store.save_columns(NAMESPACE, MODEL, snapshot.state, new)
            with watch.part("scores_refresh"):
                columns = columns.after(store.load_scores(NAMESPACE, MODEL, snapshot.state, columns))
        assert len(columns.concept) == len(snapshot.keys)
    return figures | watch.medians()


def retrieve(snapshot: Snapshot, random: np.random.Generator) -> None:
    """A recall without the model."""
    concepts = random.choice(len(snapshot.keys), min(_SEEDS, len(snapshot.keys)), replace=False)
    generated = [(int(concept), -10.0 - place, -5.0 - place / 2) for place, concept in enumerate(concepts)]
    query = f"What about {snapshot.surfaces[int(concepts[0])]}?"
    Recaller(snapshot, SCGConfig()).recall(Question(query, k=10), generated)


def said(snapshot: Snapshot, mark: str) -> tuple[MemoryEntry, tuple[ConceptLink, ...]]:
    """An entry that says twelve new concepts."""
    keys = [f"{mark} {snapshot.keys[place]}" for place in range(min(12, len(snapshot.keys)))]
    entry = MemoryEntry(", ".join(keys), id=mark, speaker="Speaker 1", session="a new session")
    return entry, tuple(ConceptLink(key, key, 1.0, "said") for key in keys)


def follow(store: Store, snapshot: Snapshot) -> Snapshot:
    """The snapshot after a change."""
    change = store.changes(NAMESPACE, snapshot.state)
    assert change is not None
    return snapshot.after(change)


def measured_apart(path: Path) -> dict[str, float]:
    """:func:`measure` in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.million_keys", "--store", str(path), "--started", str(time.time())]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path, required=True, help="the store; made if it is not there")
    parser.add_argument("--keys", type=positive, help="of a store that is made: 1,000,000 if not given")
    parser.add_argument("--entries", type=positive, help="of a store that is made: 80,000 if not given")
    parser.add_argument("--runs", type=positive, default=5)
    parser.add_argument("--out", type=Path, help="write summary.json into this folder")
    parser.add_argument("--started", type=float, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.started is not None:
        sys.stdout.write(json.dumps(measure(given.store, given.started)))
        return
    if not given.store.exists():
        make_store(given.store, Size(given.entries or 80_000, given.keys or 1_000_000))
    elif given.keys or given.entries:
        parser.error(f"{given.store} exists and is measured as it is: leave out --keys and --entries, or name another")
    with tempfile.TemporaryDirectory(dir=given.store.parent) as folder:
        copy = Path(shutil.copy(given.store, folder))
        runs = [measured_apart(copy) for _ in track(range(given.runs), "Opening")]
    summary = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
    table = Table(title=f"A memory of {summary['keys']:,.0f} concepts, medians of {len(runs)} processes")
    table.add_column("figure")
    table.add_column("value", justify="right")
    for name, value in summary.items():
        table.add_row(name, f"{value:.3f}" if isinstance(value, float) else f"{value:,}")
    Console().print(table)
    if given.out:
        given.out.mkdir(parents=True, exist_ok=True)
        (given.out / "summary.json").write_text(json.dumps(summary, indent=2) + "\n")


if __name__ == "__main__":
    main()
