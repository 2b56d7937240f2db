"""Version 4: what a model expects the concepts of each entry to begin with."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    ForeignKey,
    ForeignKeyConstraint,
    Integer,
    LargeBinary,
    MetaData,
    Table,
)

_schema = MetaData()

# What the new table refers to, as far as it does.
Table("models", _schema, Column("number", Integer, primary_key=True))
Table(
    "entries",
    _schema,
    Column("namespace", Integer, primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
)

_anticipations = Table(
    "anticipations",
    _schema,
    Column("namespace", Integer, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("model", ForeignKey("models.number"), primary_key=True, autoincrement=False),
    Column("token_ids", LargeBinary, nullable=False),
    Column("logprobs", LargeBinary, nullable=False),
    ForeignKeyConstraint(["namespace", "seq"], ["entries.namespace", "entries.seq"]),
    sqlite_with_rowid=False,
)


def upgrade(connection: Connection) -> None:
    """Make the table; what was stored before is read by the model when it next consolidates."""
    _anticipations.create(connection, checkfirst=False)
