"""Commands that change a memory."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from shared_core.cli.opening import Target, namespace_label
from shared_core.cli.options import (
    DEFAULT_MEMORY,
    AsJson,
    InputFile,
    MemoryPath,
    Model,
    Namespace,
    read_retention,
)
from shared_core.cli.output import entry_heading, note, printable, show, show_json
from shared_core.cli.progress import progress_shown
from shared_core.entry import DEFAULT_NAMESPACE
from shared_core.errors import FormatError, InvalidInputError, NotFoundError
from shared_core.formats import FORMATS, Format, read_entries

if TYPE_CHECKING:
    from shared_core.entry import MemoryEntry
    from shared_core.memory import Remembered
    from shared_core.retention import Retention


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

    The memory is created if there is none. Without --namespace the entries go where they were exported from.
    """
    from shared_core.store import exported_namespace

    with _read_again(file) as export:
        target = Target.of(memory, namespace, model, default_namespace=exported_namespace(export) or DEFAULT_NAMESPACE)
        with target.open() as opened, progress_shown() as progress:
            remembered = opened.import_file(export, progress=progress)
    _show_remembered(remembered, as_json)


@contextmanager
def _read_again(file: Path) -> Iterator[Path]:
    """A file that can be read twice: what comes through a pipe is kept in one until the end."""
    if not file.exists() or file.is_file() or file.is_dir():
        yield file
        return
    with tempfile.TemporaryDirectory(prefix="scg-") as folder:
        copy = Path(folder) / file.name
        with file.open("rb") as source, copy.open("wb") as target:
            shutil.copyfileobj(source, target)
        try:
            yield copy
        except FormatError as error:
            raise FormatError(str(error).replace(str(copy), str(file))) from error


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
    older_than: Annotated[
        str | None,
        typer.Option("--older-than", metavar="AGE", help="Forget what was said longer ago: 90d, 12h or 8w."),
    ] = None,
    keep_newest: Annotated[
        int | None,
        typer.Option("--keep-newest", metavar="COUNT", help="Forget all but the entries that were stored last."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List what would be forgotten, and leave it.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")] = False,
    memory: MemoryPath = DEFAULT_MEMORY,
    namespace: Namespace = None,
    model: Model = None,
    as_json: AsJson = False,
) -> None:
    """Forget entries for good.

    Every concept that only they brought goes with them. --older-than and --keep-newest may be given together; an entry
    without a time does not age.
    """
    target = Target.of(memory, namespace, model)
    retention = read_retention(older_than, keep_newest)
    what = _what_to_forget(ids, session, speaker, everything, retention)
    if dry_run:
        with target.open_existing(retention) as opened:
            _show_going(_going(opened.entries, ids, session, speaker, retention), as_json)
        return
    if not yes:
        from shared_core.store import shown_location

        target.check_exists()
        _confirm(f"Forget {what} in namespace {namespace_label(target.namespace)} of {shown_location(memory)}?")
    with target.open_existing(retention) as opened:
        if retention is not None:
            erased = opened.expire()
        elif everything:
            erased = opened.clear()
        else:
            erased = opened.forget(ids=ids or None, session=session, speaker=speaker)
    if erased.entries == 0 and not everything and retention is None:
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


def _what_to_forget(
    ids: list[str] | None, session: str | None, speaker: str | None, everything: bool, retention: Retention | None
) -> str:
    choices = [
        f"{', '.join(map(repr, ids))}" if ids else None,
        None if session is None else f"every entry of session {session!r}",
        None if speaker is None else f"every entry said by {speaker!r}",
        "everything" if everything else None,
        None if retention is None else "every entry that is too old or too many",
    ]
    chosen = [choice for choice in choices if choice is not None]
    if len(chosen) != 1:
        raise InvalidInputError(
            "say what to forget by exactly one of --id, --session, --speaker, --all, or --older-than and --keep-newest"
        )
    return chosen[0]


def _going(
    entries: Sequence[MemoryEntry],
    ids: list[str] | None,
    session: str | None,
    speaker: str | None,
    retention: Retention | None,
) -> list[MemoryEntry]:
    """The entries that would be forgotten; all of them if no condition is given."""
    if retention is not None:
        expired = set(retention.expired(entries))
        return [entry for entry in entries if entry.id in expired]
    return [
        entry
        for entry in entries
        if (not ids or entry.id in ids)
        and (session is None or entry.session == session)
        and (speaker is None or entry.speaker == speaker)
    ]


def _show_going(entries: Sequence[MemoryEntry], as_json: bool) -> None:
    if as_json:
        show_json({"would_forget": len(entries), "ids": [entry.id for entry in entries]})
        return
    for entry in entries:
        show(entry_heading(entry))
    note(f"{len(entries)} entries would be forgotten; without --dry-run they are.")


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
