"""Indexes and triggers of the database, held against those that the migrations make."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection, Index, Table

from shared_core.store.dialect import IndexShape, dialect_of
from shared_core.store.tables import schema


def object_faults(connection: Connection) -> Iterator[str]:
    """What is missing, other than it was made, or of foreign make."""
    yield from (
        f"the trigger {name!r:.80} is not of this project" for name in dialect_of(connection).triggers(connection)
    )
    for table in schema.sorted_tables:
        missing, foreign = _differing(connection, table)
        yield from (f"the index {index.name} is missing, or not as it was made" for index in missing)
        yield from (f"the index {name!r:.80} is not of this project" for name in foreign)


def mend_objects(connection: Connection) -> Iterator[str]:
    """Remove what :func:`object_faults` finds to be foreign, and make what is missing."""
    quoted = connection.dialect.identifier_preparer.quote_identifier
    # First of all: whatever else is mended would set them off.
    for name in dialect_of(connection).triggers(connection):
        connection.exec_driver_sql(f"DROP TRIGGER {quoted(name)}")
        yield f"removed the trigger {name!r:.80}, which is not of this project"
    for table in schema.sorted_tables:
        missing, foreign = _differing(connection, table)
        for name in foreign:
            connection.exec_driver_sql(f"DROP INDEX {quoted(name)}")
            yield f"removed the index {name!r:.80}, which is not of this project"
        for index in missing:
            connection.exec_driver_sql(f"DROP INDEX IF EXISTS {quoted(str(index.name))}")
            index.create(connection)
            yield f"made the index {index.name}"


def _differing(connection: Connection, table: Table) -> tuple[list[Index], list[str]]:
    """Indexes that a table should have and has not so, and the names of those that it should not have."""
    found = dialect_of(connection).indexes(connection, table)
    own = {str(index.name): index for index in table.indexes}
    missing = [index for name, index in own.items() if found.get(name) != _shape(index)]
    return missing, [name for name in found if name not in own]


def _shape(index: Index) -> IndexShape:
    return IndexShape(tuple(column.name for column in index.columns), plain=True)
