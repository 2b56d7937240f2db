"""Commands that keep a memory sound."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from shared_core.cli.opening import namespace_label
from shared_core.cli.options import DEFAULT_MEMORY, AsJson, MemoryPath, OutputFile, Place
from shared_core.cli.output import note, show, show_json
from shared_core.errors import InvalidInputError

_EXIT_FAULTS = 1


def check(memory: MemoryPath = DEFAULT_MEMORY, as_json: AsJson = False) -> None:
    """Check the whole memory as of one moment: the file, its rows, and the tries and graphs made of them.

    It may be in use meanwhile. What a model inferred is not known without it, so of that only what cannot be is found;
    'scg repair --rebuild' makes it anew. The exit code is 1 if anything does not fit together.
    """
    from shared_core.upkeep import check_memory

    checked = check_memory(memory)
    if as_json:
        faults = [
            {"kind": fault.kind, "what": fault.what, "namespace": fault.namespace and list(fault.namespace)}
            for fault in checked.faults
        ]
        sizes = {"namespaces": checked.namespaces, "entries": checked.entries, "concepts": checked.concepts}
        show_json({**sizes, "faults": faults})
    else:
        for fault in checked.faults:
            where = "" if fault.namespace is None else f" (namespace {namespace_label(fault.namespace)})"
            show(f"{fault.kind}: {fault.what}{where}")
        if not checked.faults:
            show(
                f"Sound: {checked.entries} entries and {checked.concepts} concepts in {checked.namespaces} namespaces."
            )
    if checked.faults:
        note("Mend it with 'scg repair', or, where the file itself is damaged, restore a backup.")
        raise typer.Exit(_EXIT_FAULTS)


def repair(
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Distil the concepts of all entries anew, even if nothing is wrong.")
    ] = False,
    into: Annotated[
        Path | None,
        typer.Option("--into", metavar="FILE", help="Carry what can be read of a damaged file over to a new memory."),
    ] = None,
    memory: MemoryPath = DEFAULT_MEMORY,
    as_json: AsJson = False,
) -> None:
    """Mend what 'scg check' finds.

    Entries are kept; what is derived from them is made anew. A copy of the memory as it was stays beside it.
    """
    from shared_core.upkeep import rebuild_memory, repair_memory, salvage_memory

    if into is not None:
        if rebuild:
            raise InvalidInputError("--into makes everything anew: leave out --rebuild")
        salvaged = salvage_memory(memory, into)
        lost = [{"first": one.first, "last": one.last, "why": one.why} for one in salvaged.lost]
        if as_json:
            show_json({"entries": salvaged.entries, "lost": lost})
        else:
            for one in salvaged.lost:
                rows = f"row {one.first}" if one.first == one.last else f"rows {one.first} to {one.last}"
                show(f"{rows}: {one.why}")
            show(f"{salvaged.entries} entries carried over to {into}.")
        note(f"Let the model catch up with 'scg consolidate --memory {into}'.")
        return
    mended = (rebuild_memory if rebuild else repair_memory)(memory)
    if as_json:
        show_json({"done": mended.done, "waiting": mended.waiting, "kept": mended.kept and str(mended.kept)})
    else:
        for what in mended.done:
            show(what)
        show("Mended." if mended.done else "Nothing was wrong.")
    if mended.waiting:
        note(f"{mended.waiting} entries wait for the model: 'scg consolidate' lets it catch up.")
    if mended.kept is not None:
        note(f"The memory as it was is in {mended.kept}: delete it when all is well.")


def backup(file: OutputFile, memory: MemoryPath = DEFAULT_MEMORY, as_json: AsJson = False) -> None:
    """Write the whole memory to another file; it may be in use meanwhile.

    To go back to it, put it in the memory's place while nobody has that open, and delete the -wal and -shm files that
    are left there.
    """
    from shared_core.store import Store

    with Store.open(memory, create=False) as store:
        copy = store.back_up(file)
        known = store.namespaces()
    entries = sum(info.entries for info in known)
    if as_json:
        show_json({"backup": str(copy), "entries": entries})
    else:
        show(f"{entries} entries backed up to {copy}.")


def migrate(source: Place, target: Place, as_json: AsJson = False) -> None:
    """Copy a whole memory to another file or database, and check the copy against it.

    SOURCE and TARGET are files or URLs, postgresql+psycopg://user@host/database. Nothing may be at the target yet, and
    nothing is there if this fails. Stop what writes to the source first.
    """
    from shared_core.store import migrate_memory, shown_location

    copied = migrate_memory(source, target)
    if as_json:
        show_json([asdict(one) for one in copied])
        return
    for one in copied:
        show(f"{namespace_label(one.name)}  {one.entries} entries, {one.rows} rows, SHA-256 {one.digest[:16]}…")
    entries = sum(one.entries for one in copied)
    show(f"{entries} entries in {len(copied)} namespaces copied to {shown_location(target)}; both are the same.")
