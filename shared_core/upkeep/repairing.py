"""Rebuilding what is derived from entries, and carrying entries over from a file that is damaged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from shared_core.entry import MemoryEntry
from shared_core.errors import InvalidInputError, StoreError
from shared_core.evolution import said_concepts
from shared_core.store import EntryWrite, Lost, Store, check_path, draft, parse_location, read_salvageable
from shared_core.upkeep.checking import check_store, unlikely

_TOGETHER = 500


@dataclass(frozen=True, slots=True)
class Mended:
    """What a repair did.

    Attributes:
        done: What was mended, in words; never remembered text. Empty if there was nothing to mend.
        waiting: Entries whose concepts were distilled again, which wait for assimilation by the model.
        kept: A copy of the memory as it was before; ``None`` if nothing was changed, or if it is in a database.
    """

    done: tuple[str, ...]
    waiting: int
    kept: Path | None


@dataclass(frozen=True, slots=True)
class Salvaged:
    """What could be carried over from a damaged file.

    Attributes:
        entries: Entries that are in the new memory.
        lost: What could not be read, or not as it was stored; entries that were carried over with less than they had,
            or under another id, are named here, too.
    """

    entries: int
    lost: tuple[Lost, ...]


def repair_memory(path: str | Path) -> Mended:
    """Mend everything that a check finds, but for damage to the database itself.

    An entry whose links are not those that it was stored with is distilled again by what it says, without the model.
    What a check cannot know, such as a link that a model inferred and that is gone, :func:`rebuild_memory` makes anew.

    If there is something to mend, a copy of the memory as it was is kept beside its file first. It holds all that was
    remembered: delete it when the repair has proved good. Of a database no copy is made: back it up before.

    Raises:
        NotFoundError: if there is no memory.
        StoreError: if the database itself is damaged, which :func:`salvage_memory` is for; nothing was changed.
    """
    with Store.open(path, create=False) as store:
        faults = check_store(store).faults
        if any(fault.kind == "file" for fault in faults):
            reason = next(fault.what for fault in faults if fault.kind == "file")
            advice = "let the server restore it from a backup"
            if store.path is not None:
                advice = (
                    "restore a backup in its place and delete the -wal and -shm files beside it, or carry over what "
                    "can be read with `scg repair --into NEW_FILE`"
                )
            raise StoreError(
                f"the database {store.location} itself is damaged ({reason}): nothing was changed; {advice}"
            )
        if not faults:
            return Mended((), 0, None)
        kept = _keep(store)
        repaired = store.repair()
        waiting = sum(_distil_again(store, name, store.get(name, ids)) for name, ids in repaired.bare.items())
        again = sum(_distil_again(store, info.name, _unlikely(store, info.name)) for info in store.namespaces())
        done = (*repaired.done, f"distilled {waiting + again} entries anew") if waiting + again else repaired.done
        return Mended(done, waiting + again, kept)


def rebuild_memory(path: str | Path) -> Mended:
    """Distil the concepts of all entries anew, and drop what models computed; entries then wait for assimilation.

    Raises:
        As :func:`repair_memory`.
    """
    mended = repair_memory(path)
    with Store.open(path, create=False) as store:
        kept = mended.kept or _keep(store)
        names = [info.name for info in store.namespaces()]
        waiting = 0
        for name in names:
            entries = _entries(store, name)
            while chunk := list(islice(entries, _TOGETHER)):
                waiting += _distil_again(store, name, chunk)
        return Mended((*mended.done, f"distilled {waiting} entries anew"), waiting, kept)


def salvage_memory(damaged: str | Path, into: str | Path) -> Salvaged:
    """Carry every entry that can be read over to a new memory, in which all else is made anew.

    The damaged file is left as it is, and nobody else should be using it; it may be cut short, or where nothing can be
    written. The new one appears whole or not at all. Entries then wait for assimilation.

    Raises:
        InvalidInputError: if the new file exists already.
        NotFoundError: if there is no damaged file.
        StoreError: if none of its tables can be recognised, or the new file cannot be written.
    """
    target = check_path(into)
    source = parse_location(damaged)
    if not isinstance(source, Path):
        raise InvalidInputError("entries are carried over from a damaged file: what a server holds, it must restore")
    lost: list[Lost] = []
    with draft(target, source=source, new=True) as whole, Store.open(whole) as store:
        entries = _carry_over(read_salvageable(source, whole.parent), store, lost)
    return Salvaged(entries, tuple(lost))


def _carry_over(found: Iterable[tuple[tuple[str, ...], MemoryEntry] | Lost], store: Store, lost: list[Lost]) -> int:
    """Store what was found; returns how many entries that are."""
    entries = 0
    by_name: dict[tuple[str, ...], list[MemoryEntry]] = {}
    for one in found:
        if isinstance(one, Lost):
            lost.append(one)
            continue
        name, entry = one
        by_name.setdefault(name, []).append(entry)
        if len(by_name[name]) == _TOGETHER:
            entries += store.write(name, _writes(by_name.pop(name))).added
    for name, rest in by_name.items():
        entries += store.write(name, _writes(rest)).added
    return entries


def _keep(store: Store) -> Path | None:
    """A copy of the memory beside its file, under a name that is free."""
    if store.path is None:
        return None
    number = 0
    while True:
        copy = store.path.with_name(f"{store.path.name}.before-repair{f'-{number}' if number else ''}")
        if not copy.exists():
            return store.back_up(copy)
        number += 1


def _entries(store: Store, name: tuple[str, ...]) -> Iterator[MemoryEntry]:
    last = -1
    while page := store.page(name, last):
        yield from (held.entry for held in page)
        last = page[-1].seq


def _unlikely(store: Store, name: tuple[str, ...]) -> list[MemoryEntry]:
    return [entry for entry, _ in unlikely(store, name)]


def _distil_again(store: Store, name: tuple[str, ...], entries: Iterable[MemoryEntry]) -> int:
    return store.write(name, _writes(entries), anew=True).updated


def _writes(entries: Iterable[MemoryEntry]) -> list[EntryWrite]:
    return [EntryWrite(entry, tuple(said_concepts(entry)), assimilated=entry.is_silent) for entry in entries]
