"""The tables, as the newest migration leaves them.

Every row that holds something of a memory starts with the number of its namespace, and foreign keys carry
that number along: a link between two namespaces cannot be written down.

    memory_state   one row: the file's generation, and whether an erasure is unfinished
    namespaces     name (canonical JSON) -> number, generation, counters, generation of the last erasure
    entries        (namespace, seq)    an entry in its place, the generation that last changed it or its links, when
                                       it was last read, if somebody notes that (seconds since 1970), and a check value
                                       of the links it was stored with, unknown of what versions before 5 stored
    concepts       (namespace, number) a concept of the schema
    links          (namespace, seq, concept)
    models         fingerprints of language models
    scores         (namespace, model, block)   how a model reads a block of concepts, and when that was saved

Generations and the times of saving are numbers of one clock, ``memory_state.generation``.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
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

schema = MetaData()

TEXT = Text().with_variant(Text(collation="C"), "postgresql")
"""Texts that are the same only if all their bytes are, and stand in the order of their code points, on any server."""

memory_state = Table(
    "memory_state",
    schema,
    Column("id", Integer, primary_key=True),
    Column("generation", BigInteger, nullable=False),
    Column("unwiped", BigInteger, nullable=False),
)

namespaces = Table(
    "namespaces",
    schema,
    Column("number", Integer, primary_key=True),
    Column("name", TEXT, nullable=False, unique=True),
    Column("generation", BigInteger, nullable=False),
    Column("next_seq", BigInteger, nullable=False),
    Column("next_concept", BigInteger, nullable=False),
    Column("erased", BigInteger, nullable=False, server_default="0"),
)

entries = Table(
    "entries",
    schema,
    Column("namespace", ForeignKey("namespaces.number"), primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("id", TEXT, nullable=False),
    Column("digest", TEXT, nullable=False),
    Column("assimilated", Boolean, nullable=False),
    Column("text", TEXT, nullable=False),
    Column("speaker", TEXT),
    Column("session", TEXT),
    Column("caption", TEXT),
    Column("occurred_at", TEXT),
    Column("metadata", TEXT),
    Column("changed", BigInteger, nullable=False, server_default="0"),
    Column("touched", Double),
    Column("grounds", TEXT),
    UniqueConstraint("namespace", "id", name="entries_by_id"),
    Index("entries_by_digest", "namespace", "digest"),
    Index("entries_by_change", "namespace", "changed"),
)

concepts = Table(
    "concepts",
    schema,
    Column("namespace", ForeignKey("namespaces.number"), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("key", TEXT, nullable=False),
    Column("surface", TEXT, nullable=False),
    UniqueConstraint("namespace", "key", name="concepts_by_key"),
    sqlite_with_rowid=False,
)

links = Table(
    "links",
    schema,
    Column("namespace", Integer, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("concept", BigInteger, primary_key=True, autoincrement=False),
    Column("weight", Double, nullable=False),
    Column("origin", SmallInteger, nullable=False),
    Column("surface", TEXT),
    ForeignKeyConstraint(["namespace", "seq"], ["entries.namespace", "entries.seq"]),
    ForeignKeyConstraint(["namespace", "concept"], ["concepts.namespace", "concepts.number"]),
    Index("links_by_concept", "namespace", "concept", "origin", "seq"),
    sqlite_with_rowid=False,
)

models = Table(
    "models",
    schema,
    Column("number", Integer, primary_key=True),
    Column("fingerprint", TEXT, nullable=False, unique=True),
)

scores = Table(
    "scores",
    schema,
    Column("namespace", ForeignKey("namespaces.number"), primary_key=True, autoincrement=False),
    Column("model", ForeignKey("models.number"), primary_key=True, autoincrement=False),
    Column("block", BigInteger, primary_key=True, autoincrement=False),
    Column("saved", BigInteger, nullable=False),
    Column("concepts", LargeBinary, nullable=False),
    Column("sizes", LargeBinary, nullable=False),
    Column("token_ids", LargeBinary, nullable=False),
    Column("neutral", LargeBinary, nullable=False),
    Column("known", LargeBinary, nullable=False),
    Index("scores_by_save", "namespace", "model", "saved"),
    sqlite_with_rowid=False,
)

anticipations = Table(
    "anticipations",
    schema,
    Column("namespace", Integer, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("model", ForeignKey("models.number"), primary_key=True, autoincrement=False),
    Column("token_ids", LargeBinary, nullable=False),
    Column("logprobs", LargeBinary, nullable=False),
    ForeignKeyConstraint(["namespace", "seq"], ["entries.namespace", "entries.seq"]),
    sqlite_with_rowid=False,
)
