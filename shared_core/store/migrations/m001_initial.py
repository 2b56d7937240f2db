"""Version 1: the first tables. Frozen: later changes are migrations of their own."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
)

_schema = MetaData()
_TEXT = Text().with_variant(Text(collation="C"), "postgresql")

_memory_state = Table(
    "memory_state",
    _schema,
    Column("id", Integer, primary_key=True),
    Column("generation", BigInteger, nullable=False),
    Column("unwiped", BigInteger, nullable=False),
)

Table(
    "namespaces",
    _schema,
    Column("number", Integer, primary_key=True),
    Column("name", _TEXT, nullable=False, unique=True),
    Column("generation", BigInteger, nullable=False),
    Column("next_seq", BigInteger, nullable=False),
    Column("next_concept", BigInteger, nullable=False),
)

Table(
    "entries",
    _schema,
    Column("namespace", ForeignKey("namespaces.number"), primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("id", _TEXT, nullable=False),
    Column("digest", _TEXT, nullable=False),
    Column("assimilated", Boolean, nullable=False),
    Column("text", _TEXT, nullable=False),
    Column("speaker", _TEXT),
    Column("session", _TEXT),
    Column("caption", _TEXT),
    Column("occurred_at", _TEXT),
    Column("metadata", _TEXT),
    UniqueConstraint("namespace", "id", name="entries_by_id"),
    Index("entries_by_digest", "namespace", "digest"),
)

Table(
    "concepts",
    _schema,
    Column("namespace", ForeignKey("namespaces.number"), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("key", _TEXT, nullable=False),
    Column("surface", _TEXT, nullable=False),
    UniqueConstraint("namespace", "key", name="concepts_by_key"),
    sqlite_with_rowid=False,
)

Table(
    "links",
    _schema,
    Column("namespace", Integer, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("concept", BigInteger, primary_key=True, autoincrement=False),
    Column("weight", Double, nullable=False),
    Column("origin", SmallInteger, nullable=False),
    Column("surface", _TEXT),
    ForeignKeyConstraint(["namespace", "seq"], ["entries.namespace", "entries.seq"]),
    ForeignKeyConstraint(["namespace", "concept"], ["concepts.namespace", "concepts.number"]),
    Index("links_by_concept", "namespace", "concept", "origin", "seq"),
    sqlite_with_rowid=False,
)

Table(
    "models",
    _schema,
    Column("number", Integer, primary_key=True),
    Column("fingerprint", _TEXT, nullable=False, unique=True),
)

Table(
    "scores",
    _schema,
    Column("namespace", Integer, primary_key=True, autoincrement=False),
    Column("concept", BigInteger, primary_key=True, autoincrement=False),
    Column("model", ForeignKey("models.number"), primary_key=True),
    Column("token_ids", LargeBinary, nullable=False),
    Column("neutral", LargeBinary),
    ForeignKeyConstraint(["namespace", "concept"], ["concepts.namespace", "concepts.number"]),
    sqlite_with_rowid=False,
)


def upgrade(connection: Connection) -> None:
    """Make the tables and the one row of the file's state."""
    _schema.create_all(connection, checkfirst=False)
    connection.execute(_memory_state.insert().values(id=1, generation=0, unwiped=0))
