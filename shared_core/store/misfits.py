"""Values that their columns cannot hold, which SQLite lets anyone write, and setting them right.

Everything else that looks at rows, or reads a memory, may rely on the kinds of their values.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import numpy as np
from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Double,
    Integer,
    LargeBinary,
    Row,
    Table,
    Text,
    case,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)

from shared_core.store.dialect import Dialect, dialect_of
from shared_core.store.reading import encode_name, is_taken
from shared_core.store.recovering import recovered_id
from shared_core.store.tables import anticipations, concepts, entries, links, models, namespaces, schema, scores
from shared_core.store.values import MAX_PLACE

# What counts on from a sound number must not come to one that is not.
_LARGEST_COUNT: Final = MAX_PLACE // 2
_LARGEST: Final = float(np.finfo(np.float64).max)
# Numbers that the engine gives, or that only refer to such.
_GIVEN: Final = ("namespace", "model", "namespaces.number", "models.number")
_OPTIONAL: Final = ("speaker", "session", "caption", "occurred_at", "metadata")


def misfits(connection: Connection) -> Iterator[tuple[str, int]]:
    """The columns that hold values of another kind than theirs, with the number of these values."""
    dialect = dialect_of(connection)
    for table in schema.sorted_tables:
        columns = list(table.columns)
        counts = [func.count(case((_misfit(dialect, column), 1))) for column in columns]
        found = connection.execute(select(*counts)).one()
        yield from ((str(column), count) for column, count in zip(columns, found, strict=True) if count)


def mend_misfits(connection: Connection) -> Iterator[str]:
    """Set right what :func:`misfits` finds: what cannot be read is left out, and what is derived is made again."""
    dialect = dialect_of(connection)
    found = dict(misfits(connection))
    if not found:
        return
    yield f"set right what was of the wrong kind in {', '.join(sorted(found))}"
    if any(name.startswith("memory_state.") for name in found):
        dialect.set_clock(connection, 0)  # from there it is set by what was written last
    for table in (scores, anticipations):
        connection.execute(delete(table).where(_any_misfit(dialect, table)))
    _remove_models(connection, dialect)
    _remove_links(connection, dialect)
    for name in ("generation", "erased", "next_seq", "next_concept"):
        column = namespaces.c[name]
        connection.execute(update(namespaces).where(_misfit(dialect, column)).values({name: 0}))
    rows = connection.execute(select(entries).where(_any_misfit(dialect, entries))).all()
    for row in rows:
        id = _mend_entry(connection, row)
        if id != row.id:
            yield f"an entry without a readable id is {id!r} now"


def readable_text(value: object) -> str | None:
    """What can be read of a value as text; ``None`` if nothing can."""
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    return value.replace("\x00", "") if isinstance(value, str) else None


def _misfit(dialect: Dialect, column: Column[Any]) -> ColumnElement[bool]:
    """That a value is not of its column's kind."""
    fits: ColumnElement[bool]
    if isinstance(column.type, Text):
        fits = dialect.is_of(column, "text")
    elif isinstance(column.type, LargeBinary):
        fits = dialect.is_of(column, "blob")
    elif isinstance(column.type, Double):
        fits = dialect.is_of(column, "real") & column.between(-_LARGEST, _LARGEST)
    else:
        fits = dialect.is_of(column, "integer")
        if isinstance(column.type, Integer) and column.name not in _GIVEN and str(column) not in _GIVEN:
            fits &= column.between(0, _LARGEST_COUNT if isinstance(column.type, BigInteger) else 2**15 - 1)
    return ~func.coalesce(or_(fits, column.is_(None)) if column.nullable else fits, False)


def _any_misfit(dialect: Dialect, table: Table) -> ColumnElement[bool]:
    return or_(*(_misfit(dialect, column) for column in table.columns))


def _remove_models(connection: Connection, dialect: Dialect) -> None:
    lost = select(models.c.number).where(_any_misfit(dialect, models))
    for table in (scores, anticipations):
        connection.execute(delete(table).where(table.c.model.in_(lost)))
    connection.execute(delete(models).where(_any_misfit(dialect, models)))


def _remove_links(connection: Connection, dialect: Dialect) -> None:
    """Remove links and concepts that cannot be; their entries then differ from what they were stored with."""
    lost = select(concepts.c.namespace, concepts.c.number).where(_any_misfit(dialect, concepts)).subquery()
    leading_there = (links.c.namespace == lost.c.namespace) & (links.c.concept == lost.c.number)
    wrong = _any_misfit(dialect, links) | select(lost.c.number).where(leading_there).exists()
    theirs = (links.c.namespace == entries.c.namespace) & (links.c.seq == entries.c.seq)
    connection.execute(update(entries).where(select(links.c.seq).where(theirs, wrong).exists()).values(grounds=""))
    connection.execute(delete(links).where(wrong))
    connection.execute(delete(concepts).where(_any_misfit(dialect, concepts)))


def _mend_entry(connection: Connection, row: Row[Any]) -> str:
    """Give an entry a place and fields that can be; its links, which led to its old place, are made again.

    Returns:
        Its id, which is a new one if it had none that can be read.
    """
    for table in (links, anticipations):
        theirs = table.c.namespace.is_not_distinct_from(row.namespace) & table.c.seq.is_not_distinct_from(row.seq)
        connection.execute(delete(table).where(theirs))
    namespace = row.namespace
    if not isinstance(namespace, int):
        namespace = (connection.scalar(select(func.max(namespaces.c.number))) or 0) + 1
    if connection.scalar(select(namespaces.c.number).where(namespaces.c.number == namespace)) is None:
        named = {"number": namespace, "name": encode_name(("recovered", str(namespace)))}
        zeros = dict.fromkeys(("generation", "next_seq", "next_concept", "erased"), 0)
        connection.execute(insert(namespaces).values({**named, **zeros}))
    there = entries.c.namespace == namespace
    seq = row.seq
    if not _is_count(seq):
        counted = entries.c.seq.between(0, _LARGEST_COUNT) & dialect_of(connection).is_of(entries.c.seq, "integer")
        last = connection.scalar(select(func.max(entries.c.seq)).where(there, counted))
        seq = 0 if last is None else last + 1
    id = row.id if isinstance(row.id, str) else recovered_id(seq, partial(is_taken, connection, namespace))
    values: dict[str, Any] = {
        "namespace": namespace,
        "seq": seq,
        "id": id,
        "text": readable_text(row.text) or "",
        "digest": row.digest if isinstance(row.digest, str) else "",
        "assimilated": False,
        "changed": row.changed if _is_count(row.changed) else 0,
        "touched": row.touched if isinstance(row.touched, float) and abs(row.touched) <= _LARGEST else None,
        "grounds": "",
    }
    values |= {name: readable_text(getattr(row, name)) for name in _OPTIONAL}
    this = entries.c.namespace.is_not_distinct_from(row.namespace) & entries.c.seq.is_not_distinct_from(row.seq)
    connection.execute(update(entries).where(this).values(values))
    return id


def _is_count(value: object) -> bool:
    return isinstance(value, int) and 0 <= value <= _LARGEST_COUNT
