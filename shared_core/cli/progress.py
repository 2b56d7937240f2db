"""Progress of long work, on stderr: a bar on a terminal, a few lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from shared_core.cli.output import note

if TYPE_CHECKING:
    from rich.progress import Task

    from shared_core.memory import Progress

_LINES_PER_STAGE = 10


@contextmanager
def progress_shown() -> Iterator[Callable[[Progress], None]]:
    """A callback that shows the progress it is given, for as long as the context lasts."""
    if sys.stderr.isatty():
        with _bar() as report:
            yield report
    else:
        yield _line_reporter()


@contextmanager
def _bar() -> Iterator[Callable[[Progress], None]]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        ProgressColumn,
        TaskID,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bar
    from rich.text import Text

    class RateColumn(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text("" if task.speed is None else f"{task.speed:.1f}/s")

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        RateColumn(),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True)) as bar:
        tasks: dict[str, TaskID] = {}

        def report(progress: Progress) -> None:
            if progress.stage not in tasks:
                tasks[progress.stage] = bar.add_task(progress.stage, total=progress.total)
            bar.update(tasks[progress.stage], completed=progress.done, total=progress.total)

        yield report


def _line_reporter() -> Callable[[Progress], None]:
    shown: dict[str, int] = {}

    def report(progress: Progress) -> None:
        share = progress.done * _LINES_PER_STAGE // max(progress.total, 1)
        if share > shown.get(progress.stage, 0):
            shown[progress.stage] = share
            note(f"{progress.stage}: {progress.done} of {progress.total}")

    return report
