"""Commands that change a memory."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from shared_core.cli.opening import Target, namespace_label
from shared_core.cli.options import DEFAULT_MEMORY, AsJson, InputFile, MemoryPath, Model, Namespace
from shared_core.cli.output import note, printable, show, show_json
from shared_core.cli.progress import progress_shown
from shared_core.errors import InvalidInputError, NotFoundError
from shared_core.formats import FORMATS, Format, read_entries

if TYPE_CHECKING:
    from shared_core.memory import Remembered


def remember(
    file: InputFile,
    format: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help=f"What the file is: {', '.join(FORMATS)}.")
    ] = "auto",
    conversation: Annotated[
        str | None,
        typer.Option("--conversation", metavar="ID", help="Which conversation of a LoCoMo file, such as conv-26."),
    ] = None,
    no_model: Annotated[
        bool,
        typer.Option("--no-model", help="Store without asking the model; 'scg consolidate' does that later."),
    ] = False,
    dedupe: Annotated[
        bool,
        typer.Option("--dedupe", help="Leave out entries whose content is already there under another id."),
    ] = False,
    memory: MemoryPath = DEFAULT_MEMORY,
    namespace: Namespace = None,
    model: Model = None,
    as_json: AsJson = False,
) -> None:
    """Remember the turns of a conversation file.

    The memory is created if there is none. A file that is broken anywhere changes nothing.
    """
    entries = read_entries(file, cast("Format", format), conversation)
    with Target.of(memory, namespace, model).open() as opened, progress_shown() as progress:
        remembered = opened.remember(entries, use_model=not no_model, dedupe=dedupe, progress=progress)
    _show_remembered(remembered, as_json)


def import_file(
    file: InputFile,
    memory: MemoryPath = DEFAULT_MEMORY,
    namespace: Namespace = None,
    model: Model = None,
    as_json: AsJson = False,
) -> None:
    """Remember what 'scg export' wrote.

    The memory is created if there is none.
    """
    with Target.of(memory, namespace, model).open() as opened, progress_shown() as progress:
        remembered = opened.import_file(file, progress=progress)
    _show_remembered(remembered, as_json)


def consolidate(
    memory: MemoryPath = DEFAULT_MEMORY,
    namespace: Namespace = None,
    model: Model = None,
    as_json: AsJson = False,
) -> None:
    """Relate waiting entries to the memory's concepts.

    Entries wait after 'scg remember --no-model', or when remembering was interrupted.
    """
    with Target.of(memory, namespace, model).open_existing() as opened, progress_shown() as progress:
        count = opened.consolidate(progress=progress)
    if as_json:
        show_json({"assimilated": count})
    else:
        show(f"{count} entries assimilated.")


def forget(
    ids: Annotated[
        list[str] | None,
        typer.Option("--id", metavar="ID", help="The entry to forget; repeat it for several."),
    ] = None,
    session: Annotated[str | None, typer.Option("--session", metavar="NAME", help="Forget this session.")] = None,
    speaker: Annotated[
        str | None, typer.Option("--speaker", metavar="NAME", help="Forget everything this speaker said.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Forget the whole namespace.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")] = False,
    memory: MemoryPath = DEFAULT_MEMORY,
    namespace: Namespace = None,
    model: Model = None,
    as_json: AsJson = False,
) -> None:
    """Forget entries for good.

    Every concept that only they brought goes with them.
    """
    target = Target.of(memory, namespace, model)
    what = _what_to_forget(ids, session, speaker, everything)
    if not yes:
        from shared_core.store import shown_location

        target.check_exists()
        _confirm(f"Forget {what} in namespace {namespace_label(target.namespace)} of {shown_location(memory)}?")
    with target.open_existing() as opened:
        erased = opened.clear() if everything else opened.forget(ids=ids or None, session=session, speaker=speaker)
    if erased.entries == 0 and not everything:
        raise NotFoundError(f"there is no such entry: nothing was forgotten ({what})")
    if as_json:
        show_json(asdict(erased))
    else:
        show(f"Forgot {erased.entries} entries and {erased.concepts} concepts.")
    if not erased.wiped:
        from shared_core.store import parse_location

        is_file = isinstance(parse_location(memory), Path)
        until = "in the file until the next time something is forgotten: it was in use"
        note(f"Their bytes may stay {until if is_file else 'in the files of the server, which are its own'}.")


def _what_to_forget(ids: list[str] | None, session: str | None, speaker: str | None, everything: bool) -> str:
    choices = [
        f"{', '.join(map(repr, ids))}" if ids else None,
        None if session is None else f"every entry of session {session!r}",
        None if speaker is None else f"every entry said by {speaker!r}",
        "everything" if everything else None,
    ]
    chosen = [choice for choice in choices if choice is not None]
    if len(chosen) != 1:
        raise InvalidInputError("say what to forget by exactly one of --id, --session, --speaker and --all")
    return chosen[0]


def _confirm(question: str) -> None:
    # Not typer.confirm, whose prompt leaves a blank on stdout.
    typer.echo(printable(f"{question} This cannot be undone. [y/N] "), nl=False, err=True)
    answer = sys.stdin.readline()
    if not answer:
        typer.echo(err=True)
        raise InvalidInputError("nobody answered, so nothing was forgotten; pass --yes to go ahead")
    if answer.strip().lower() not in ("y", "yes"):
        note("Nothing was forgotten.")
        raise typer.Exit(1)


def _show_remembered(remembered: Remembered, as_json: bool) -> None:
    if as_json:
        show_json(asdict(remembered))
    else:
        show(f"{remembered.added} entries added, {remembered.updated} updated, {remembered.unchanged} unchanged.")
