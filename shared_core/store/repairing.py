"""Making what a file holds fit together again, in one write transaction. Entries are the truth, the rest follows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from sqlalchemy import Connection, Row, delete, func, insert, select, update

from shared_core.store.anticipating import anticipation_faults, drop_anticipations
from shared_core.store.checking import altered_entries, decode_name, unusable_concept, unusable_link
from shared_core.store.dialect import dialect_of
from shared_core.store.misfits import mend_misfits, readable_text
from shared_core.store.objects import mend_objects
from shared_core.store.reading import CHUNK, chunks, encode_entry, encode_name, is_taken
from shared_core.store.recovering import FIELDS, recover_entry, recovered_id
from shared_core.store.scoring import drop_models, score_faults
from shared_core.store.tables import anticipations, concepts, entries, links, models, namespaces, scores
from shared_core.store.writing import bump, due_surfaces, settle


@dataclass(frozen=True, slots=True)
class Repaired:
    """What a repair did.

    Attributes:
        done: What was mended, in words; never remembered text.
        bare: Entries that lost links, so that their concepts must be distilled again, by namespace.
    """

    done: tuple[str, ...] = ()
    bare: dict[tuple[str, ...], tuple[str, ...]] = field(default_factory=dict)


def mend_rows(connection: Connection) -> Repaired:
    """Mend every fault that :func:`.find_faults` finds, but for those of the database itself.

    Nothing that can be read is removed from an entry: what cannot be is left out, and said.
    """
    set_right = [*mend_objects(connection), *mend_misfits(connection)]
    dialect_of(connection).mend_indexes(connection)
    done = [*set_right, *_mend_clock(connection), *_name_namespaces(connection)]
    bare: dict[tuple[str, ...], tuple[str, ...]] = {}
    for row in connection.execute(select(namespaces)).all():
        mended, stripped = _mend_namespace(connection, row)
        name = decode_name(row.name)
        assert name is not None
        done += [f"{what} in namespace {name!r}" for what in mended]
        if mended or set_right:
            bump(connection, row.number, erased=True)  # whoever follows the namespace reads all of it anew
        if stripped:
            bare[name] = stripped
    return Repaired(tuple(done), bare)


def _mend_clock(connection: Connection) -> Iterator[str]:
    dialect = dialect_of(connection)
    shown = dialect.clock(connection)
    stamps = (namespaces.c.generation, namespaces.c.erased, entries.c.changed, scores.c.saved)
    last = max(connection.scalar(select(func.max(stamp))) or 0 for stamp in stamps)
    if shown is None or shown < last:
        moment = max(last, shown or 0, 1)
        dialect.set_clock(connection, moment)
        # What may lie in unused bytes is not known: a file is written afresh.
        dialect.show_moment(connection, moment, erased=True)
        yield "set the memory's clock"


def _name_namespaces(connection: Connection) -> Iterator[str]:
    """Give every number that rows belong to a namespace with a name that can be read."""
    for row in connection.execute(select(namespaces)).all():
        if decode_name(row.name) is None:
            found = encode_name(("recovered", str(row.number)))
            connection.execute(update(namespaces).where(namespaces.c.number == row.number).values(name=found))
            yield f"gave namespace {row.number} the name {found}"
    known = select(namespaces.c.number)
    for number in connection.execute(select(entries.c.namespace).distinct().where(entries.c.namespace.not_in(known))):
        name = encode_name(("recovered", str(number[0])))
        values = {"number": number[0], "name": name, "generation": 0, "next_seq": 0, "next_concept": 0, "erased": 0}
        connection.execute(insert(namespaces).values(values))
        yield f"gave the entries of namespace {number[0]}, which was lost, the name {name}"
    for table in (anticipations, links, concepts, scores):
        if connection.execute(delete(table).where(table.c.namespace.not_in(known))).rowcount:
            yield f"removed {table.name} of a namespace that was lost"


def _mend_namespace(connection: Connection, namespace: Row[Any]) -> tuple[list[str], tuple[str, ...]]:
    """What was done, and the ids of the entries that lost links."""
    number = namespace.number
    done = list(_mend_entries(connection, number))
    for table in (anticipations, scores):
        lost = (table.c.namespace == number) & table.c.model.not_in(select(models.c.number))
        if connection.execute(delete(table).where(lost)).rowcount:
            done.append(f"removed {table.name} of a model that was lost")
    faulty = score_faults(connection, number)
    drop_models(connection, number, faulty)
    if faulty:
        done.append(f"dropped the scores of {len(faulty)} models")
    unreadable = anticipation_faults(connection, number)
    drop_anticipations(connection, number, unreadable)
    if unreadable:
        done.append(f"dropped what models expected of {len({seq for seq, _ in unreadable})} entries")
    stripped = _remove_links(connection, number)
    altered = set(altered_entries(connection, number)) - stripped
    if altered:
        done.append(f"found {len(altered)} entries linked to other concepts than they were stored with")
    if stripped:
        done.append(f"removed faulty links of {len(stripped)} entries")
    touched = connection.execute(select(concepts.c.number).where(concepts.c.namespace == number)).scalars().all()
    stale = sum(differs for some in chunks(touched) for _, differs in due_surfaces(connection, number, some).values())
    if stale:
        done.append(f"worded {stale} concepts as their earliest entries do")
    dead, orphaned = settle(connection, number, touched)
    if dead or orphaned:
        done.append(f"removed {dead} concepts that no entry says")
    done += _mend_counters(connection, namespace)
    ids = (
        connection.execute(select(entries.c.id).where(entries.c.namespace == number, entries.c.seq.in_(some)))
        for some in chunks(sorted(stripped | altered))
    )
    return done, tuple(id for found in ids for id in found.scalars())


def _mend_entries(connection: Connection, namespace: int) -> Iterator[str]:
    last = -1
    query = select(entries).where(entries.c.namespace == namespace).order_by(entries.c.seq).limit(CHUNK)
    while rows := connection.execute(query.where(entries.c.seq > last)).all():
        for row in rows:
            this = (entries.c.namespace == namespace) & (entries.c.seq == row.seq)
            # A NUL character is left out of a text; an id without it would be another one, perhaps another entry's.
            cleaned = {name: readable_text(getattr(row, name)) for name in FIELDS if name != "id"}
            entry, unread = recover_entry({"id": row.id, **cleaned})
            unread += [name for name, value in cleaned.items() if value != getattr(row, name) and name not in unread]
            if entry is None:
                for table in (links, anticipations):
                    connection.execute(delete(table).where(table.c.namespace == namespace, table.c.seq == row.seq))
                connection.execute(delete(entries).where(this))
                yield f"removed entry {row.seq}, which holds no text"
                continue
            if entry.id is None:
                entry = entry.with_id(recovered_id(row.seq, partial(is_taken, connection, namespace)))
            if unread or entry.digest != row.digest:
                # What it is linked to was made of other content.
                connection.execute(update(entries).where(this).values(**encode_entry(entry), grounds=""))
                named = f", it is {entry.id!r} now" if "id" in unread else ""
                yield f"entry {row.seq}: {', '.join([*unread, 'digest'])} set anew{named}"
        last = rows[-1].seq


def _remove_links(connection: Connection, namespace: int) -> set[int]:
    """Remove what links nothing, and every link of concepts that cannot be; returns the entries that had some."""
    dialect = dialect_of(connection)
    theirs = links.c.namespace == namespace
    seqs = select(entries.c.seq).where(entries.c.namespace == namespace)
    usable = select(concepts.c.number).where(concepts.c.namespace == namespace, ~unusable_concept(dialect))
    wrong = unusable_link(dialect) | links.c.concept.not_in(usable)
    stripped = set(connection.execute(select(links.c.seq).where(theirs, wrong)).scalars())
    connection.execute(delete(links).where(theirs, wrong | links.c.seq.not_in(seqs)))
    return stripped


def _mend_counters(connection: Connection, namespace: Row[Any]) -> Iterator[str]:
    counters: dict[str, int] = {}
    for name, column in (("next_seq", entries.c.seq), ("next_concept", concepts.c.number)):
        last = connection.scalar(select(func.max(column)).where(column.table.c.namespace == namespace.number))
        if last is not None and last >= getattr(namespace, name):
            counters[name] = last + 1
    if counters:
        connection.execute(update(namespaces).where(namespaces.c.number == namespace.number).values(counters))
        yield f"set {' and '.join(counters)}"
    stale = connection.scalar(
        select(func.count()).where(entries.c.namespace == namespace.number, entries.c.changed > namespace.generation)
    )
    if stale:
        yield f"counted {stale} entries as changed"
