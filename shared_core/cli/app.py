"""The commands put together, and errors turned into one line and an exit code."""

from __future__ import annotations

import importlib.metadata
import io
import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from shared_core.cli import demo, reading, serving, upkeep, writing
from shared_core.cli.output import note
from shared_core.errors import FormatError, InvalidInputError, NotAMemoryError, NotFoundError, SCGError

_WRONG_INPUT = (FormatError, InvalidInputError, NotAMemoryError, NotFoundError)
_EXIT_WRONG_INPUT = 2
_EXIT_FAILURE = 1
_UsageError: Any = typer.BadParameter.__base__

app = typer.Typer(
    name="scg",
    help="A memory for conversations that recalls only through concepts it really holds.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(writing.remember)
app.command()(reading.recall)
app.command()(reading.ask)
app.command()(reading.explain)
app.command()(writing.forget)
app.command()(writing.consolidate)
app.command()(reading.stats)
app.command()(reading.namespaces)
app.command()(reading.export)
app.command("import")(writing.import_file)
app.command()(upkeep.check)
app.command()(upkeep.repair)
app.command()(upkeep.backup)
app.command()(upkeep.migrate)
app.command()(serving.serve)
app.add_typer(serving.keys)
app.command()(demo.demo)


def _show_version(wanted: bool) -> None:
    if wanted:
        try:
            version = importlib.metadata.version("scg-mem")
        except importlib.metadata.PackageNotFoundError:
            version = "(not installed: run from its source)"
        typer.echo(f"scg {version}")
        raise typer.Exit


@app.callback()
def _scg(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    pass


def run(arguments: Sequence[str] | None) -> int:
    """Run a command and tell of its errors; returns the exit code, see :func:`shared_core.cli.main`."""
    # Threads that spin while they wait slow a pass tens of times when another process is busy.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a poor terminal must not fail a command
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        # An interrupted command ends with an exit code of typer's, which is that of shells.
        return app(args=given or ["--help"], prog_name="scg", standalone_mode=False) or 0
    except SCGError as error:
        note(f"error: {error}")
        return _EXIT_WRONG_INPUT if isinstance(error, _WRONG_INPUT) else _EXIT_FAILURE
    except OSError as error:
        note(f"error: {error}")
        return _EXIT_FAILURE
    except _UsageError as error:
        note(f"error: {error.format_message()} (see `scg --help`, and `scg COMMAND --help`)")
        return _EXIT_WRONG_INPUT
