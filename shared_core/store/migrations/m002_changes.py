"""Version 2: what changed since when, so that a reader follows a memory without reading it all again.

Scores of keys move into blocks of concepts with neighbouring numbers: a million keys are read in four thousand rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import numpy as np
from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    insert,
    text,
)
from sqlalchemy.schema import CreateColumn

_BLOCK = 256

_schema = MetaData()


def _stamp(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False, server_default="0")


_namespaces = Table("namespaces", _schema, Column("number", Integer, primary_key=True), _stamp("erased"))
_entries = Table("entries", _schema, Column("namespace", Integer), _stamp("changed"))
_models = Table("models", _schema, Column("number", Integer, primary_key=True), Column("fingerprint", Text))
_by_change = Index("entries_by_change", _entries.c.namespace, _entries.c.changed)
_scores = Table(
    "scores",
    _schema,
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


def upgrade(connection: Connection) -> None:
    """Add the stamps (what is there counts as changed before anyone asks), and pack the scores."""
    for table, name in ((_namespaces, "erased"), (_entries, "changed")):
        column = CreateColumn(table.c[name]).compile(dialect=connection.dialect)
        connection.exec_driver_sql(f"ALTER TABLE {table.name} ADD COLUMN {column}")
    _by_change.create(connection)
    packed = list(_blocks(connection))
    connection.exec_driver_sql("DROP TABLE scores")
    _scores.create(connection)
    if packed:
        connection.execute(insert(_scores), packed)


def _blocks(connection: Connection) -> Iterator[dict[str, Any]]:
    columns = "namespace, model, concept, token_ids, neutral"
    rows = connection.execute(text(f"SELECT {columns} FROM scores ORDER BY namespace, model, concept"))  # noqa: S608
    for (namespace, model, block), group in groupby(rows, lambda row: (row[0], row[1], row[2] // _BLOCK)):
        # What is damaged is left out: it can be computed again.
        whole = [(concept, ids, neutral) for _, _, concept, ids, neutral in group if _fits(ids, neutral)]
        if not whole:
            continue
        unknown = np.array([np.nan], dtype="<f4").tobytes()
        yield {
            "namespace": namespace,
            "model": model,
            "block": block,
            "saved": 0,
            "concepts": np.array([concept for concept, _, _ in whole], dtype="<i8").tobytes(),
            "sizes": np.array([len(ids) // 4 for _, ids, _ in whole], dtype="<i4").tobytes(),
            "token_ids": b"".join(ids for _, ids, _ in whole),
            "neutral": b"".join(
                unknown * (len(ids) // 4 + 1) if neutral is None else neutral for _, ids, neutral in whole
            ),
            "known": bytes(neutral is not None for _, _, neutral in whole),
        }


def _fits(ids: bytes, neutral: bytes | None) -> bool:
    return len(ids) % 4 == 0 and (neutral is None or len(neutral) == len(ids) + 4)
