"""Whether what a file holds fits together: looked at row by row, by other statements than those that read a memory.

No fault quotes what is remembered: places, numbers and ids say where it is, and a report may be shown to anyone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from sqlalchemy import ColumnElement, Connection, Row, func, or_, select

from shared_core.entry import check_namespace
from shared_core.errors import InvalidInputError
from shared_core.store.anticipating import anticipation_faults
from shared_core.store.dialect import Dialect, dialect_of
from shared_core.store.misfits import misfits
from shared_core.store.objects import object_faults
from shared_core.store.reading import CHUNK, chunks, decode_entry, encode_name, grounded, grounds_of
from shared_core.store.scoring import score_faults
from shared_core.store.tables import concepts, entries, links, namespaces
from shared_core.store.values import MAX_INFERRED_WEIGHT, MAX_WEIGHT, ORIGINS
from shared_core.store.writing import due_surfaces

FaultKind: TypeAlias = Literal[
    "file", "erasure", "schema", "value", "counter", "entry", "concept", "link", "scores", "trie", "graph"
]
"""Where a fault is. ``file``: the database itself; only salvaging helps. ``erasure``: bytes of erased content may be
left. ``schema``: an index is missing, or something was added. ``value``: a value is of the wrong kind. All others are
mended by a repair; ``trie`` and ``graph`` are derived whenever a memory is opened."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something in a memory that does not fit together.

    Attributes:
        kind: See :data:`FaultKind`.
        what: What is wrong and where, in words; never remembered text.
        namespace: In which namespace; ``None`` for the file.
    """

    kind: FaultKind
    what: str
    namespace: tuple[str, ...] | None = None


def find_faults(connection: Connection) -> Iterator[Fault]:
    """Everything that is wrong with the rows of a file, inside one read transaction.

    Where the database itself is damaged, or values are of the wrong kind, nothing else is looked at: no answer could be
    relied on.

    Raises:
        sqlalchemy.exc.SQLAlchemyError: if the damage does not even let it be looked at.
    """
    dialect = dialect_of(connection)
    broken = [Fault("file", what) for what in dialect.damages(connection)]
    yield from broken
    if broken:
        return
    yield from (Fault("schema", what) for what in object_faults(connection))
    unlike = [
        Fault("value", f"{count} values of {column} are not of its kind") for column, count in misfits(connection)
    ]
    yield from unlike
    if unlike:
        return
    yield from (Fault("link", what) for what in dialect.strays(connection))
    clock = dialect.clock(connection)
    if clock is None:
        yield Fault("counter", "the memory's state has not one row")
        return
    if dialect.unfinished_erasure(connection):
        yield Fault("erasure", "an erasure is not finished: open the memory while nobody else uses it")
    for row in connection.execute(select(namespaces).order_by(namespaces.c.number)).all():
        name = decode_name(row.name)
        if name is None:
            yield Fault("counter", f"the name of namespace {row.number} cannot be read")
        if row.generation > clock or row.erased > clock:
            yield Fault("counter", "the generation is ahead of the memory's clock", name)
        for kind, what in _namespace_faults(connection, row):
            yield Fault(kind, what, name)


def decode_name(encoded: object) -> tuple[str, ...] | None:
    """A namespace's name as it is stored; ``None`` if it is not in its canonical form."""
    try:
        name = check_namespace(tuple(json.loads(encoded))) if isinstance(encoded, str) else None
    except (ValueError, TypeError, RecursionError):
        return None
    return name if name is not None and encode_name(name) == encoded else None


def unusable_link(dialect: Dialect) -> ColumnElement[bool]:
    """That a link's weight, origin or surface cannot be."""
    possible = grounded() | (links.c.weight > 0) & (links.c.weight <= MAX_INFERRED_WEIGHT)
    in_range = links.c.weight.between(0, MAX_WEIGHT) & possible & dialect.is_of(links.c.weight, "real")
    known = links.c.origin.between(0, len(ORIGINS) - 1) & dialect.is_of(links.c.origin, "integer")
    worded = grounded() == dialect.is_of(links.c.surface, "text")
    return ~func.coalesce(in_range & known & worded, False)


def unusable_concept(dialect: Dialect) -> ColumnElement[bool]:
    """That a concept's key or surface cannot be."""
    return or_(
        *(
            ~dialect.is_of(column, "text") | (func.trim(column) == "") | dialect.holds_nul(column)
            for column in (concepts.c.key, concepts.c.surface)
        )
    )


def altered_entries(connection: Connection, namespace: int) -> Iterator[int]:
    """The places of entries whose links, but for inferred ones, are not those that they were stored with."""
    last = -1
    query = select(entries.c.seq, entries.c.grounds).where(entries.c.namespace == namespace)
    query = query.order_by(entries.c.seq).limit(CHUNK)
    linked = select(links.c.seq, concepts.c.key, links.c.surface, links.c.weight, links.c.origin)
    linked = linked.join(
        concepts, (concepts.c.namespace == links.c.namespace) & (concepts.c.number == links.c.concept)
    ).where(links.c.namespace == namespace, grounded())
    while rows := connection.execute(query.where(entries.c.seq > last)).all():
        last = rows[-1].seq
        found: dict[int, list[tuple[str, str, float, int]]] = {row.seq: [] for row in rows}
        for seq, *link in connection.execute(linked.where(links.c.seq.between(rows[0].seq, last))):
            if seq in found:
                found[seq].append((link[0], link[1], link[2], link[3]))
        for seq, grounds in rows:
            if grounds is not None and grounds != grounds_of(found[seq]):
                yield seq


def _namespace_faults(connection: Connection, namespace: Row[Any]) -> Iterator[tuple[FaultKind, str]]:
    number = namespace.number
    for counter, column in ((namespace.next_seq, entries.c.seq), (namespace.next_concept, concepts.c.number)):
        last = connection.scalar(select(func.max(column)).where(column.table.c.namespace == number))
        if last is not None and last >= counter:
            yield "counter", f"the next number of {column.table.name} is {counter}, and {last} is taken"
    yield from (("entry", what) for what in _entry_faults(connection, namespace))
    yield from (("concept", what) for what in _concept_faults(connection, number))
    wrong = select(links.c.seq, links.c.concept)
    wrong = wrong.where(links.c.namespace == number, unusable_link(dialect_of(connection)))
    for seq, concept in connection.execute(wrong):
        yield "link", f"the link of entry {seq} to concept {concept} has no usable weight, origin or surface"
    for seq in altered_entries(connection, number):
        yield "link", f"entry {seq} is linked to other concepts than it was stored with"
    yield from (("scores", what) for what in score_faults(connection, number).values())
    yield from (("scores", what) for what in anticipation_faults(connection, number).values())


def _entry_faults(connection: Connection, namespace: Row[Any]) -> Iterator[str]:
    last = -1
    query = select(entries).where(entries.c.namespace == namespace.number).order_by(entries.c.seq).limit(CHUNK)
    while rows := connection.execute(query.where(entries.c.seq > last)).all():
        for row in rows:
            try:
                digest = decode_entry(row).digest
            except (InvalidInputError, ValueError, TypeError, RecursionError) as error:
                yield f"entry {row.seq} cannot be read ({type(error).__name__})"
                continue
            if digest != row.digest:
                yield f"entry {row.seq} is not what was stored: its digest differs"
            if row.changed > namespace.generation:
                yield f"entry {row.seq} was changed after the namespace was"
        last = rows[-1].seq


def _concept_faults(connection: Connection, namespace: int) -> Iterator[str]:
    theirs = concepts.c.namespace == namespace
    unusable = unusable_concept(dialect_of(connection))
    for number in connection.execute(select(concepts.c.number).where(theirs, unusable)).scalars():
        yield f"concept {number} has no usable key or surface"
    numbers = connection.execute(select(concepts.c.number).where(theirs).order_by(concepts.c.number)).scalars().all()
    for chunk in chunks(numbers):
        surfaces = due_surfaces(connection, namespace, chunk)
        for number in chunk:
            if number not in surfaces:
                yield f"concept {number} is said by no entry"
            elif surfaces[number][1]:
                yield f"concept {number} is not worded as its earliest entry words it"
