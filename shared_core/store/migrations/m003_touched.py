"""Version 3: when an entry was last read, for those who let entries expire."""

from __future__ import annotations

from sqlalchemy import Column, Connection, Double, Integer, MetaData, Table
from sqlalchemy.schema import CreateColumn

_entries = Table("entries", MetaData(), Column("namespace", Integer), Column("touched", Double))


def upgrade(connection: Connection) -> None:
    """Add the column; nothing was read yet, as far as anyone knows."""
    column = CreateColumn(_entries.c.touched).compile(dialect=connection.dialect)
    connection.exec_driver_sql(f"ALTER TABLE {_entries.name} ADD COLUMN {column}")
