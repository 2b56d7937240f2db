"""The demonstration: remember the packaged conversation and ask about it."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shared_core.cli.opening import Target
from shared_core.cli.options import AsJson, Model, Namespace
from shared_core.cli.output import entry_heading, note, printable, show_json
from shared_core.cli.progress import progress_shown
from shared_core.formats import read_entries
from shared_core.samples import DEMO_QUESTIONS, sample_path

if TYPE_CHECKING:
    from rich.table import Table

    from shared_core.memory import Recall

_ENTRIES_PER_QUESTION = 5
_REASONS_SHOWN = 4


def demo(
    # Not by SCG_MEMORY: a demonstration must not fill a memory that somebody uses.
    memory: Annotated[
        str | None,
        typer.Option("--memory", metavar="PATH", help="Keep the memory there; else it is temporary."),
    ] = None,
    namespace: Namespace = None,
    model: Model = None,
    as_json: AsJson = False,
) -> None:
    """Try the memory on a sample conversation.

    Remembers the packaged conversation, asks questions about it, and shows the recalled turns, the concepts
    that brought them, and whether the turns that hold the answer are among them.
    """
    with _memory_path(memory) as path:
        target = Target.of(path, namespace, model, default_namespace=("demo",))
        with target.open() as opened:
            entries = read_entries(sample_path())
            note(f"Remembering {len(entries)} turns of {sample_path().name}")
            with progress_shown() as progress:
                opened.remember(entries, progress=progress)
            results = [
                (opened.recall(question, k=_ENTRIES_PER_QUESTION), expected) for question, expected in DEMO_QUESTIONS
            ]
    if as_json:
        show_json([_result_body(recall, expected) for recall, expected in results])
    else:
        _show_tables(results)


@contextmanager
def _memory_path(memory: str | None) -> Iterator[str]:
    if memory is not None:
        yield memory
        return
    with tempfile.TemporaryDirectory(prefix="scg-demo-") as folder:
        yield str(Path(folder) / "demo.db")


def _found(recall: Recall, expected: Collection[str]) -> list[str]:
    recalled = {recalled.entry.id for recalled in recall.entries}
    return [id for id in expected if id in recalled]


def _result_body(recall: Recall, expected: tuple[str, ...]) -> dict[str, object]:
    return {"recall": recall.to_dict(), "expected": list(expected), "found": _found(recall, expected)}


def _show_tables(results: list[tuple[Recall, tuple[str, ...]]]) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    for recall, expected in results:
        console.print(_table(recall, expected))
    found = sum(len(_found(recall, expected)) for recall, expected in results)
    total = sum(len(expected) for _, expected in results)
    console.print(f"{found} of the {total} expected turns are among the first {_ENTRIES_PER_QUESTION} recalled.")


def _table(recall: Recall, expected: tuple[str, ...]) -> Table:
    from rich.table import Table
    from rich.text import Text

    found = _found(recall, expected)
    table = Table(
        title=Text(recall.query, style="bold"),
        caption=f"✓ marks an expected turn; {len(found)} of {len(expected)} recalled",
        title_justify="left",
        expand=True,
        show_lines=True,
    )
    table.add_column("", width=1)
    table.add_column("recalled turn", ratio=3)
    table.add_column("brought by", ratio=1)
    for recalled in recall.entries:
        turn = Text.assemble((printable(entry_heading(recalled.entry)), "dim"), "\n", printable(recalled.entry.content))
        reasons = ", ".join(reason.key for reason in recalled.reasons[:_REASONS_SHOWN])
        mark = Text("✓", style="green") if recalled.entry.id in expected else Text("")
        table.add_row(mark, turn, Text(printable(reasons)))
    return table
