"""Version 5: which links an entry was stored with, so that one that is lost or changed is noticed."""

from __future__ import annotations

from sqlalchemy import Column, Connection, Integer, MetaData, Table, Text
from sqlalchemy.schema import CreateColumn

_TEXT = Text().with_variant(Text(collation="C"), "postgresql")
_entries = Table("entries", MetaData(), Column("namespace", Integer), Column("grounds", _TEXT))


def upgrade(connection: Connection) -> None:
    """Add the column; of what is there it is not known."""
    column = CreateColumn(_entries.c.grounds).compile(dialect=connection.dialect)
    connection.exec_driver_sql(f"ALTER TABLE {_entries.name} ADD COLUMN {column}")
