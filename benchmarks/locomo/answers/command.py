"""The commands ``answers``, ``ablation`` and ``sweep``: how right the answers are that each memory leads to."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.lines import replace_text
from benchmarks.locomo.answers.answering import BUDGETS, MODES, Answerer
from benchmarks.locomo.answers.evaluation import Evaluation, evaluate
from benchmarks.locomo.answers.report import console_table, figures, markdown
from benchmarks.locomo.answers.run import Finished, Plan, run
from benchmarks.locomo.answers.systems import ABLATION, DEFAULT, SWEEPS, Shared, choose
from benchmarks.locomo.answers.writer import Writer
from benchmarks.locomo.dataset import load
from benchmarks.locomo.results import open_folder
from benchmarks.locomo.retrieval import default_cache, versions
from benchmarks.locomo.systems import UnavailableError, Workplace
from shared_core.errors import SCGError
from shared_core.models import TransformersModel, load_model

Data: TypeAlias = Annotated[list[Path], typer.Option(help="LoCoMo files: the list, or files of one conversation each.")]
Out: TypeAlias = Annotated[Path, typer.Option(help="Folder for the results; an interrupted run goes on.")]
Conversations: TypeAlias = Annotated[list[str] | None, typer.Option(help="Ids of the conversations; default: all.")]
Model: TypeAlias = Annotated[
    str | None, typer.Option(help="Hub id, folder or GGUF file of the model of all systems; default: embedded.")
]
PerCategory: TypeAlias = Annotated[
    int | None, typer.Option(min=1, help="Most questions of each category of each conversation.")
]
Retrieved: TypeAlias = Annotated[int, typer.Option(min=1, help="Turns, notes or memories that a system retrieves.")]
Seed: TypeAlias = Annotated[int, typer.Option(min=0, help="Of the questions drawn, and of the intervals.")]
Cache: TypeAlias = Annotated[
    Path | None, typer.Option(help="Folder of what models wrote; default: in the user's cache folder.")
]


def answers(
    data: Data,
    out: Out,
    conversations: Conversations = None,
    systems: Annotated[list[str] | None, typer.Option(help="Names of systems, see the README.")] = None,
    model: Model = None,
    questions_per_category: PerCategory = None,
    k: Retrieved = 10,
    against: Annotated[str, typer.Option(help="The system to compare with; it is run as well.")] = "scg",
    seed: Seed = 0,
    cache: Cache = None,
) -> None:
    """Let each system remember each conversation, and answer questions from what it gives, with the same model."""
    named = list(systems or DEFAULT)
    named += [against] if against not in named else []
    asked = _Asked(data, out, conversations or (), model, questions_per_category, k, seed, cache)
    _measure(asked, named, against, out)


def ablation(
    data: Data,
    out: Out,
    conversations: Conversations = None,
    model: Model = None,
    questions_per_category: PerCategory = None,
    k: Retrieved = 10,
    seed: Seed = 0,
    cache: Cache = None,
) -> None:
    """The paper's Table 2: the memory without its constraint, and without assimilation; the default and as published.

    The folder may be that of ``answers``: what was answered there counts, and the tables go to its folder ablation.
    """
    asked = _Asked(data, out, conversations or (), model, questions_per_category, k, seed, cache)
    _measure(asked, ABLATION, ABLATION[0], out / "ablation")


def sweep(
    data: Data,
    out: Out,
    conversations: Conversations = None,
    model: Model = None,
    questions_per_category: PerCategory = None,
    k: Retrieved = 10,
    seed: Seed = 0,
    cache: Cache = None,
) -> None:
    """The paper's Figures 3 and 4: more and more turns or concepts, and hops over the graph.

    The folder may be that of ``answers``: what was answered there counts, and the plots go to its folder sweep.
    """
    asked = _Asked(data, out, conversations or (), model, questions_per_category, k, seed, cache)
    systems = [name for points in SWEEPS.values() for name in points.values()]
    evaluations = _measure(asked, list(dict.fromkeys(systems)), systems[0], out / "sweep", bars=False)
    try:
        from benchmarks.locomo.answers.plots import draw_sweeps
    except ImportError:
        return  # said already
    draw_sweeps(SWEEPS, evaluations, out / "sweep")


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a command was told."""

    data: Sequence[Path]
    out: Path
    conversations: Sequence[str]
    model: str | None
    questions_per_category: int | None
    k: int
    seed: int
    cache: Path | None


def _measure(
    asked: _Asked, systems: Sequence[str], against: str, folder: Path, *, bars: bool = True
) -> Mapping[str, Evaluation]:
    """Run systems and write what they score into a folder."""
    console = Console()
    try:
        conversations = load(asked.data, asked.conversations)
        plan = Plan(conversations, choose(systems), asked.questions_per_category, asked.seed, asked.out)
        if not plan.count:
            raise UnavailableError("none of the questions has evidence: there is nothing to measure")
        open_folder(folder)
        open_folder(asked.cache or default_cache())
        finished, model = _run(plan, asked, console)
    except (SCGError, UnavailableError) as error:
        console.print(f"error: {error}", style="red", markup=False, highlight=False)
        raise typer.Exit(2) from None
    evaluations = evaluate(finished, against, asked.seed)
    summary: dict[str, Any] = {
        "systems": figures(evaluations),
        "settings": {
            "data": [file.name for file in asked.data],
            "conversations": [conversation.name for conversation in plan.conversations],
            "questions": plan.count,
            "questions_per_category": asked.questions_per_category,
            "k": asked.k,
            "seed": asked.seed,
            "against": against,
            "model": model,
            "modes": MODES,
            "coverage_budgets": BUDGETS,
        },
        "versions": versions(),
    }
    replace_text(folder / "summary.json", json.dumps(summary, indent=2) + "\n")
    replace_text(folder / "table.md", markdown(evaluations, plan.count, against))
    try:
        from benchmarks.locomo.answers.plots import draw
    except ImportError:
        console.print("No plots are drawn: matplotlib is not installed. The extra `bench` has it.")
    else:
        if bars:
            draw(evaluations, folder)
    console.print(console_table(evaluations))
    return evaluations


def _run(plan: Plan, asked: _Asked, console: Console) -> tuple[Finished, str]:
    """The run, and what the model is called."""
    loaded = load_model(asked.model)
    if not isinstance(loaded, TransformersModel):
        raise UnavailableError("the model does not run in this process")
    cache = asked.cache or default_cache()
    name = Path(asked.model or "embedded").name
    writer = Writer(loaded, cache / "answers" / f"{loaded.fingerprint}.jsonl")
    workplace = Workplace(cache, lambda: loaded, f"{name} {loaded.fingerprint}")
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console) as progress:
        return run(plan, Shared(writer, workplace, asked.k), Answerer(loaded), progress), name
