"""The command ``answers``: how right the answers are that each system's memory leads to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from benchmarks.lines import replace_text
from benchmarks.locomo.answers.answering import BUDGETS, MODES, Answerer
from benchmarks.locomo.answers.evaluation import evaluate
from benchmarks.locomo.answers.report import console_table, figures, markdown
from benchmarks.locomo.answers.run import Finished, Plan, run
from benchmarks.locomo.answers.systems import DEFAULT, Shared, choose
from benchmarks.locomo.answers.writer import Writer
from benchmarks.locomo.dataset import load
from benchmarks.locomo.retrieval import default_cache, versions
from benchmarks.locomo.systems import UnavailableError, Workplace
from shared_core.errors import SCGError
from shared_core.models import TransformersModel, load_model


def answers(
    data: Annotated[list[Path], typer.Option(help="LoCoMo files: the list, or files of one conversation each.")],
    out: Annotated[Path, typer.Option(help="Folder for the results; an interrupted run goes on.")],
    conversations: Annotated[list[str] | None, typer.Option(help="Ids of the conversations; default: all.")] = None,
    systems: Annotated[list[str] | None, typer.Option(help="Names of systems, see the README.")] = None,
    model: Annotated[
        str | None, typer.Option(help="Hub id, folder or GGUF file of the model of all systems; default: embedded.")
    ] = None,
    questions_per_category: Annotated[
        int | None, typer.Option(min=1, help="Most questions of each category of each conversation.")
    ] = None,
    k: Annotated[int, typer.Option(min=1, help="Turns, notes or memories that a system retrieves.")] = 10,
    against: Annotated[str, typer.Option(help="The system to compare with; it is run as well.")] = "scg",
    seed: Annotated[int, typer.Option(min=0, help="Of the questions drawn, and of the intervals.")] = 0,
    cache: Annotated[
        Path | None, typer.Option(help="Folder of what models wrote; default: in the user's cache folder.")
    ] = None,
) -> None:
    """Let each system remember each conversation, and answer questions from what it gives, with the same model."""
    console = Console()
    try:
        named = list(systems or DEFAULT)
        competitors = choose([*named, *([against] if against not in named else [])])
        plan = Plan(load(data, conversations or ()), competitors, questions_per_category, seed, out)
        if not any(map(plan.questions, plan.conversations)):
            raise UnavailableError("none of the questions has evidence: there is nothing to measure")
        finished, asked_of = _run(plan, model, k, cache or default_cache(), console)
    except (SCGError, UnavailableError) as error:
        console.print(f"error: {error}", style="red", markup=False, highlight=False)
        raise typer.Exit(2) from None
    evaluations = evaluate(finished, against, seed)
    count = sum(len(plan.questions(conversation)) for conversation in plan.conversations)
    summary = {
        "systems": figures(evaluations),
        "settings": {
            "data": [file.name for file in data],
            "conversations": [conversation.name for conversation in plan.conversations],
            "questions": count,
            "questions_per_category": questions_per_category,
            "k": k,
            "seed": seed,
            "against": against,
            "model": asked_of,
            "modes": MODES,
            "coverage_budgets": BUDGETS,
        },
        "versions": versions(),
    }
    replace_text(out / "summary.json", json.dumps(summary, indent=2) + "\n")
    replace_text(out / "table.md", markdown(evaluations, count, against))
    try:
        from benchmarks.locomo.answers.plots import draw
    except ImportError:
        console.print("No plots are drawn: matplotlib is not installed. The extra `bench` has it.")
    else:
        draw(evaluations, out)
    console.print(console_table(evaluations))


def _run(plan: Plan, model: str | None, k: int, cache: Path, console: Console) -> tuple[Finished, str]:
    """The run, and what the model is called."""
    loaded = load_model(model)
    if not isinstance(loaded, TransformersModel):
        raise UnavailableError("the model does not run in this process")
    name = model or "embedded"
    writer = Writer(loaded, cache / "answers" / f"{loaded.fingerprint}.jsonl")
    workplace = Workplace(cache, lambda: loaded, f"{Path(name).name} {loaded.fingerprint}")
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        return run(plan, Shared(writer, workplace, k), Answerer(loaded), progress), Path(name).name
