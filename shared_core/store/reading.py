"""Reading one namespace inside one read transaction."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from sqlalchemy import ColumnElement, Connection, Row, Select, func, select

from shared_core.entry import MemoryEntry, parse_time
from shared_core.store.tables import concepts, entries, links, models, namespaces, scores
from shared_core.store.values import (
    INFERRED,
    ORIGINS,
    ConceptLink,
    EntryWrite,
    KeyScores,
    Known,
    NamespaceInfo,
    NamespaceState,
    StoredEntry,
)

CHUNK = 500
"""Values in one IN list: far below every database's limit, and one cached statement serves all."""

_T = TypeVar("_T")

TOKEN_TYPE = np.dtype("<i4")
SCORE_TYPE = np.dtype("<f4")


def chunks(values: Sequence[_T]) -> Iterator[Sequence[_T]]:
    """``values`` in pieces of at most :data:`CHUNK`."""
    for start in range(0, len(values), CHUNK):
        yield values[start : start + CHUNK]


def encode_name(name: tuple[str, ...]) -> str:
    """A namespace's canonical form: JSON, so that no two names share one and none is joined or split."""
    return json.dumps(name, ensure_ascii=False, separators=(",", ":"))


def find_namespace(connection: Connection, name: tuple[str, ...]) -> Row[Any] | None:
    """The row of the namespace, if it exists."""
    return connection.execute(select(namespaces).where(namespaces.c.name == encode_name(name))).one_or_none()


def list_namespaces(connection: Connection) -> list[NamespaceInfo]:
    """Every namespace, in the order of their creation."""
    sizes = [
        select(func.count()).where(table.c.namespace == namespaces.c.number).scalar_subquery()
        for table in (entries, concepts)
    ]
    rows = connection.execute(select(namespaces.c.name, *sizes).order_by(namespaces.c.number))
    return [NamespaceInfo(tuple(json.loads(name)), held, known) for name, held, known in rows]


def read_generation(connection: Connection, name: tuple[str, ...]) -> int:
    """The namespace's generation; 0 while it does not exist."""
    query = select(namespaces.c.generation).where(namespaces.c.name == encode_name(name))
    return connection.execute(query).scalar_one_or_none() or 0


def count_entries(connection: Connection, namespace: int) -> int:
    """How many entries the namespace has."""
    query = select(func.count()).select_from(entries).where(entries.c.namespace == namespace)
    return connection.execute(query).scalar_one()


def read_known(connection: Connection, namespace: int, ids: Sequence[str]) -> dict[str, Known]:
    """Digest and state of those ids that exist."""
    found = {}
    for chunk in chunks(ids):
        query = select(entries.c.id, entries.c.digest, entries.c.assimilated)
        for id, digest, assimilated in connection.execute(_within(query, namespace, chunk)):
            found[id] = Known(digest, assimilated)
    return found


def read_duplicates(connection: Connection, namespace: int, digests: Sequence[str]) -> dict[str, str]:
    """The earliest entry of each digest."""
    found: dict[str, str] = {}
    for chunk in chunks(digests):
        query = (
            select(entries.c.digest, entries.c.id)
            .where(entries.c.namespace == namespace, entries.c.digest.in_(chunk))
            .order_by(entries.c.seq)
        )
        for digest, id in connection.execute(query):
            found.setdefault(digest, id)
    return found


def read_entries(connection: Connection, namespace: int, ids: Sequence[str]) -> list[MemoryEntry]:
    """The entries of those ids that exist, in the order of ``ids``."""
    found = {}
    for chunk in chunks(ids):
        for row in connection.execute(_within(select(entries), namespace, chunk)):
            found[row.id] = _decode_entry(row)
    return [found[id] for id in ids if id in found]


def read_state(connection: Connection, name: tuple[str, ...], fingerprint: str | None) -> NamespaceState:
    """The whole namespace, with the scores of one model.

    Raises:
        ValueError: if the rows do not fit together.
    """
    namespace = find_namespace(connection, name)
    if namespace is None:
        return NamespaceState()
    number = namespace.number
    rows = connection.execute(select(entries).where(entries.c.namespace == number).order_by(entries.c.seq))
    stored = [StoredEntry(row.seq, _decode_entry(row), row.assimilated) for row in rows]
    known = connection.execute(
        select(concepts.c.number, concepts.c.key, concepts.c.surface)
        .where(concepts.c.namespace == number)
        .order_by(concepts.c.number)
    ).all()
    columns = links.c.seq, links.c.concept, links.c.weight, links.c.origin
    linked = connection.execute(
        select(*columns).where(links.c.namespace == number).order_by(links.c.seq, links.c.concept)
    ).all()
    seqs, numbers, weights, origins = zip(*linked, strict=True) if linked else ((), (), (), ())
    state = NamespaceState(
        generation=namespace.generation,
        entries=stored,
        concepts=[(key, surface) for _, key, surface in known],
        link_entry=_positions([entry.seq for entry in stored], seqs),
        link_concept=_positions([row[0] for row in known], numbers),
        link_weight=np.array(weights, dtype=np.float32),
        link_origin=np.array(origins, dtype=np.uint8),
        scores={} if fingerprint is None else _read_scores(connection, number, fingerprint),
    )
    _check_sound(state)
    return state


def read_writes(connection: Connection, namespace: int) -> Iterator[EntryWrite]:
    """Every entry as it would be written, in seq order, reading :data:`CHUNK` entries at a time."""
    last = -1
    while True:
        rows = connection.execute(
            select(entries)
            .where(entries.c.namespace == namespace, entries.c.seq > last)
            .order_by(entries.c.seq)
            .limit(CHUNK)
        ).all()
        if not rows:
            return
        first, last = rows[0].seq, rows[-1].seq
        linked = connection.execute(
            select(links.c.seq, concepts.c.key, func.coalesce(links.c.surface, concepts.c.surface))
            .add_columns(links.c.weight, links.c.origin)
            .join(concepts, _same_concept())
            .where(links.c.namespace == namespace, links.c.seq.between(first, last))
            .order_by(links.c.seq, links.c.concept)
        )
        by_entry = {
            seq: tuple(ConceptLink(key, text, weight, ORIGINS[origin]) for _, key, text, weight, origin in group)
            for seq, group in groupby(linked, key=itemgetter(0))
        }
        for row in rows:
            yield EntryWrite(_decode_entry(row), by_entry.get(row.seq, ()), row.assimilated)


def encode_entry(entry: MemoryEntry) -> dict[str, Any]:
    """The columns that hold the entry."""
    return {
        "id": entry.id,
        "digest": entry.digest,
        "text": entry.text,
        "speaker": entry.speaker,
        "session": entry.session,
        "caption": entry.caption,
        "occurred_at": entry.occurred_at and entry.occurred_at.isoformat(),
        "metadata": json.dumps(dict(entry.metadata), ensure_ascii=False) if entry.metadata else None,
    }


def grounded() -> ColumnElement[bool]:
    """That a link keeps its concept alive."""
    return links.c.origin != INFERRED


def _decode_entry(row: Row[Any]) -> MemoryEntry:
    return MemoryEntry(
        text=row.text,
        id=row.id,
        speaker=row.speaker,
        session=row.session,
        occurred_at=None if row.occurred_at is None else parse_time(row.occurred_at),
        caption=row.caption,
        metadata={} if row.metadata is None else json.loads(row.metadata),
    )


def _read_scores(connection: Connection, namespace: int, fingerprint: str) -> dict[str, KeyScores]:
    rows = connection.execute(
        select(concepts.c.key, scores.c.token_ids, scores.c.neutral)
        .join(concepts, concepts.c.number == scores.c.concept)
        .join(models, models.c.number == scores.c.model)
        .where(scores.c.namespace == namespace, concepts.c.namespace == namespace)
        .where(models.c.fingerprint == fingerprint)
    )
    return {
        key: KeyScores(
            np.frombuffer(token_ids, TOKEN_TYPE),
            None if neutral is None else np.frombuffer(neutral, SCORE_TYPE),
        )
        for key, token_ids, neutral in rows
    }


def _check_sound(state: NamespaceState) -> None:
    """Refuse what only a damaged file holds: SQLite does not check the type or the range of a value."""
    if not all(isinstance(text, str) for concept in state.concepts for text in concept):
        raise ValueError("a concept is not text")
    if not np.isfinite(state.link_weight).all() or (state.link_origin >= len(ORIGINS)).any():
        raise ValueError("a link has no weight or origin")


def _positions(sorted_numbers: Sequence[int], wanted: Sequence[int]) -> npt.NDArray[np.int32]:
    """Where each wanted number stands, int32, shape (wanted,)."""
    table = np.array(sorted_numbers, dtype=np.int64)
    values = np.array(wanted, dtype=np.int64)
    places = np.searchsorted(table, values)
    if len(values) and (not len(table) or (table[np.minimum(places, len(table) - 1)] != values).any()):
        raise ValueError("a link leads nowhere")
    return places.astype(np.int32)


def _same_concept() -> ColumnElement[bool]:
    return (concepts.c.namespace == links.c.namespace) & (concepts.c.number == links.c.concept)


def _within(query: Select[Any], namespace: int, ids: Sequence[str]) -> Select[Any]:
    return query.where(entries.c.namespace == namespace, entries.c.id.in_(ids))
