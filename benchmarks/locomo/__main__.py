"""The commands of the LoCoMo benchmark; see README.md."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import typer

from benchmarks.locomo import retrieval
from benchmarks.locomo.answers import command

_OF_SEVERAL_VALUES = ("--data", "--conversations", "--systems")

app = typer.Typer(
    name="python -m benchmarks.locomo",
    help="LoCoMo: does a memory bring back the turns that hold the answer, and is the answer right?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("retrieval")(retrieval.retrieval)
app.command("answers")(command.answers)
app.command("ablation")(command.ablation)
app.command("sweep")(command.sweep)


@app.callback()
def _locomo() -> None:
    pass


def spread(arguments: Sequence[str], options: Sequence[str] = _OF_SEVERAL_VALUES) -> list[str]:
    """Arguments with ``--option a b`` spelt as ``--option a --option b``, which is how several values are read."""
    spelt: list[str] = []
    option = ""
    follows = False
    for argument in arguments:
        if argument.startswith("-"):
            option = argument if argument in options else ""
            follows = False
        elif option and follows:
            spelt.append(option)
        else:
            follows = True
        spelt.append(argument)
    return spelt


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command."""
    app(spread(sys.argv[1:] if arguments is None else arguments))


if __name__ == "__main__":
    main()
