"""Time, memory and recall of constrained decoding, beside Hugging Face's beam search and grammar engines.

See README.md for what is compared, and how.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from transformers.utils.logging import disable_progress_bar

from benchmarks.decoding.corpus import read_corpus
from benchmarks.decoding.experiment import Plan, run
from benchmarks.decoding.measurement import BASE
from benchmarks.decoding.report import figures, markdown, tables
from benchmarks.decoding.subject import load_subject
from benchmarks.decoding.systems import EXACT_KEYS, SYSTEMS
from benchmarks.options import existing_file, positive, processor_name
from shared_core.errors import SCGError
from shared_core.models import cache_folder, on_model_thread


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "python -m benchmarks.decoding",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--keys", type=positive, nargs="+", default=[1_000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--prompt-tokens", type=positive, nargs="+", default=[50, 250])
    parser.add_argument("--widths", type=positive, nargs="+", default=[10, 50])
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--queries", type=positive, default=3)
    parser.add_argument("--runs", type=positive, default=5)
    parser.add_argument("--threads", type=positive, default=2)
    parser.add_argument("--locomo", type=existing_file, help="a LoCoMo file to take keys and prompts from")
    parser.add_argument("--compile-limit", type=float, default=120.0, help="seconds for a grammar engine to compile")
    parser.add_argument(
        "--prior-keys",
        type=int,
        default=EXACT_KEYS,
        help="compute neutral log-probabilities for the first so many keys; those computed before are used in any case",
    )
    parser.add_argument("--cache", type=Path, help="where scores are kept; by default in the project's cache folder")
    parser.add_argument("--out", type=Path, required=True, help="folder for the results; an interrupted run goes on")
    chosen = parser.parse_args(arguments)
    if BASE not in chosen.systems:
        parser.error(f"{BASE} must be among the systems: the others and the floor are measured against it")
    try:
        chosen.out.mkdir(parents=True, exist_ok=True)
        chosen.corpus = read_corpus(chosen.locomo)
    except (OSError, SCGError) as error:
        parser.error(str(error))
    return chosen


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = parse(arguments)
    console = Console()
    disable_progress_bar()  # type: ignore[no-untyped-call]  # while it loads the weights
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        plan = Plan(
            sizes=sorted(set(chosen.keys)),
            lengths=sorted(set(chosen.prompt_tokens)),
            widths=sorted(set(chosen.widths)),
            systems=[name for name in SYSTEMS if name in chosen.systems],
            queries=chosen.queries,
            runs=chosen.runs,
            corpus=chosen.corpus,
            compile_limit=chosen.compile_limit,
            prior_keys=chosen.prior_keys,
            cache=chosen.cache or cache_folder() / "benchmarks",
            out=chosen.out,
        )
        # All systems on one thread: two that compute slow each other down, even when they take turns.
        cells, prior = on_model_thread(lambda: run(plan, load_subject(chosen.threads), progress))
    summary = machine(chosen) | figures(cells) | ({} if prior is None else {"prior_ms_per_key": prior})
    (chosen.out / "summary.json").write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    (chosen.out / "table.md").write_text(markdown(cells, prior), encoding="utf-8")
    try:
        from benchmarks.decoding.plots import draw
    except ImportError:
        console.print("No plots are drawn: matplotlib is not installed. The extra `bench` has it.")
    else:
        draw(cells, chosen.out)
    for table in tables(cells):
        console.print(table)


def machine(chosen: argparse.Namespace) -> dict[str, str | float]:
    """Where and with what the figures were measured."""
    return {
        "processor": processor_name(),
        "threads": chosen.threads,
        "queries": chosen.queries,
        "runs": chosen.runs,
        **{f"version_{name}": version(name) for name in ("torch", "transformers")},
    }


if __name__ == "__main__":
    main()
