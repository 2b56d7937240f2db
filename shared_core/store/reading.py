"""Reading parts of one namespace inside one read transaction."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Row, Select, Text, column, func, select, values

from shared_core.entry import MemoryEntry, parse_time
from shared_core.store.tables import concepts, entries, links, namespaces
from shared_core.store.values import (
    INFERRED,
    ORIGINS,
    ConceptLink,
    EntryWrite,
    HeldEntry,
    Known,
    NamespaceInfo,
)

CHUNK = 500
"""Values in one IN list: far below every database's limit, and one cached statement serves all."""

_T = TypeVar("_T")


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


def is_taken(connection: Connection, namespace: int, id: str) -> bool:
    """Whether an entry of the namespace has an id."""
    return connection.execute(_within(select(entries.c.seq), namespace, [id])).first() is not None


def find_concepts(connection: Connection, namespace: int, keys: Sequence[str]) -> dict[str, int]:
    """The numbers of those keys that are concepts."""
    found: dict[str, int] = {}
    for chunk in chunks(keys):
        # Joined, not listed with IN: there SQLite, which guesses that a namespace has ten concepts, reads them all.
        wanted = values(column("key", Text), name="wanted").data([(key,) for key in chunk]).cte()
        query = select(concepts.c.key, concepts.c.number)
        query = query.join(wanted, (concepts.c.namespace == namespace) & (concepts.c.key == wanted.c.key))
        found.update((key, number) for key, number in connection.execute(query))
    return found


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
            found[row.id] = decode_entry(row)
    return [found[id] for id in ids if id in found]


def read_held(connection: Connection, namespace: int, ids: Sequence[str]) -> list[HeldEntry]:
    """The entries of those ids that exist, in the order of ``ids``."""
    found = {}
    for chunk in chunks(ids):
        for row in connection.execute(_within(select(entries), namespace, chunk)):
            found[row.id] = _held(row)
    return [found[id] for id in ids if id in found]


def read_page(connection: Connection, namespace: int, after: int) -> list[HeldEntry]:
    """The next :data:`CHUNK` entries after a place, in seq order."""
    query = select(entries).where(entries.c.namespace == namespace, entries.c.seq > after)
    return [_held(row) for row in connection.execute(query.order_by(entries.c.seq).limit(CHUNK))]


def read_names(connection: Connection, under: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The namespaces at or under a name that hold an entry, in the order of their creation."""
    # In canonical JSON such names go on with "]" or with ",", and "-" comes right after ",".
    stem = encode_name(under)[:-1]
    name = namespaces.c.name
    inside = (name == f"{stem}]") | ((name > f"{stem},") & (name < f"{stem}-"))
    inhabited = select(entries.c.seq).where(entries.c.namespace == namespaces.c.number).exists()
    found = connection.execute(select(name).where(inside, inhabited).order_by(namespaces.c.number)).scalars()
    return [tuple(json.loads(one)) for one in found]


def read_writes(connection: Connection, namespace: int, *, unvouched: bool = False) -> Iterator[EntryWrite]:
    """Every entry as it would be written, in seq order, reading :data:`CHUNK` entries at a time.

    Args:
        connection: The transaction.
        namespace: The namespace's number.
        unvouched: Only those of which it is not known which links they were stored with.
    """
    wanted = select(entries).where(entries.c.namespace == namespace)
    if unvouched:
        wanted = wanted.where(entries.c.grounds.is_(None))
    last = -1
    while True:
        rows = connection.execute(wanted.where(entries.c.seq > last).order_by(entries.c.seq).limit(CHUNK)).all()
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
            yield EntryWrite(decode_entry(row), by_entry.get(row.seq, ()), row.assimilated)


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


def decode_entry(row: Row[Any]) -> MemoryEntry:
    """The entry that a row holds.

    Raises:
        ValueError, TypeError: if it holds none.
    """
    return MemoryEntry(
        text=row.text,
        id=row.id,
        speaker=row.speaker,
        session=row.session,
        occurred_at=None if row.occurred_at is None else parse_time(row.occurred_at),
        caption=row.caption,
        metadata={} if row.metadata is None else json.loads(row.metadata),
    )


def grounds_of(grounding: Iterable[tuple[str, str, float, int]]) -> str:
    """A check value of the links that ground an entry's concepts: each key, surface, weight and number of its origin.

    Nothing but a write of the entry changes these links; inferred ones come and go with others' concepts.
    """
    canonical = json.dumps(sorted(grounding), ensure_ascii=False)
    return hashlib.blake2b(canonical.encode(), digest_size=8).hexdigest()


def grounded() -> ColumnElement[bool]:
    """That a link keeps its concept alive."""
    return links.c.origin != INFERRED


def _held(row: Row[Any]) -> HeldEntry:
    return HeldEntry(row.seq, decode_entry(row), row.touched)


def _same_concept() -> ColumnElement[bool]:
    return (concepts.c.namespace == links.c.namespace) & (concepts.c.number == links.c.concept)


def _within(query: Select[Any], namespace: int, ids: Sequence[str]) -> Select[Any]:
    return query.where(entries.c.namespace == namespace, entries.c.id.in_(ids))
