"""Reading a whole namespace, or what was added to it, into columns, inside one read transaction.

At a million concepts the rows are many. They come straight from the driver, in pieces, and become arrays at once; of
concepts and of most links not even rows are made, but long texts of many values.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from sqlalchemy import Connection, Select, func, or_, select

from shared_core.entry import MemoryEntry, parse_time
from shared_core.store.dialect import SEPARATOR, dialect_of
from shared_core.store.reading import find_namespace
from shared_core.store.scoring import read_columns
from shared_core.store.state import NamespaceChange, NamespaceState, ScoreColumns, StoredEntry
from shared_core.store.tables import concepts, entries, links
from shared_core.store.values import ORIGINS, SAID, KeyScores

_CONCEPTS_TOGETHER: Final = 4096
_SAID_WEIGHT: Final = 1.0
_LINK = np.dtype([("seq", np.int64), ("concept", np.int64), ("weight", np.float64), ("origin", np.int64)])
_Links: TypeAlias = tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.float32], npt.NDArray[np.uint8]]


def read_state(connection: Connection, name: tuple[str, ...], fingerprint: str | None) -> NamespaceState:
    """The whole namespace, with the scores of one model.

    Raises:
        ValueError: if the rows do not fit together.
    """
    namespace = find_namespace(connection, name)
    if namespace is None:
        return NamespaceState()
    number = namespace.number
    stored = _entries(connection, _entry_query(number))
    known, numbers = _all_concepts(connection, number)
    state_links = _all_links(connection, number, np.array([one.seq for one in stored], dtype=np.int64), numbers)
    state = NamespaceState(namespace.generation, stored, known, numbers, *state_links)
    if fingerprint is None:
        return state
    return replace(state, scores=_by_key(read_columns(connection, name, fingerprint, state, None), known))


def read_change(connection: Connection, name: tuple[str, ...], state: NamespaceState) -> NamespaceChange | None:
    """What was added since ``state``; ``None`` if something was erased since, so that all must be read.

    Raises:
        ValueError: if the rows do not fit together.
    """
    namespace = find_namespace(connection, name)
    if namespace is None or namespace.erased > state.generation:
        return None
    number = namespace.number
    changed = entries.c.changed > state.generation
    touched = _entries(connection, _entry_query(number).where(changed))
    # Concepts are numbered in the order they are made, and without an erasure none has gone.
    last = int(state.concept_number[-1]) if len(state.concept_number) else -1
    made, numbers = _concepts(connection, _concept_query(number).where(concepts.c.number > last))
    theirs = select(entries.c.seq).where(entries.c.namespace == number, changed)
    rows = _link_rows(connection, _link_query(number).where(links.c.seq.in_(theirs)))
    count = len(state.entries)
    seqs = np.array([one.seq for one in state.entries], dtype=np.int64)
    touched_seqs = np.array([one.seq for one in touched], dtype=np.int64)
    new = int(np.searchsorted(touched_seqs, seqs[-1], side="right")) if count else 0
    seqs = np.concatenate([seqs, touched_seqs[new:]])
    place = _positions(seqs, touched_seqs)
    entry, concept, weight, origin = _in_places(rows, seqs, np.concatenate([state.concept_number, numbers]))
    width = len(state.concepts) + len(made)
    old = state.links_of(place[place < count])
    known = state.link_entry[old].astype(np.int64) * width + state.link_concept[old]
    added = ~np.isin(entry.astype(np.int64) * width + concept, known)
    new_links = (entry[added], concept[added], weight[added], origin[added])
    return NamespaceChange(namespace.generation, touched, place.astype(np.int64), made, numbers, *new_links)


def _entry_query(namespace: int) -> Select[Any]:
    columns = ("seq", "assimilated", "text", "id", "speaker", "session", "occurred_at", "caption", "metadata")
    query = select(*(entries.c[name] for name in columns))
    return query.where(entries.c.namespace == namespace).order_by(entries.c.seq)


def _concept_query(namespace: int) -> Select[Any]:
    query = select(concepts.c.number, concepts.c.key, concepts.c.surface)
    return query.where(concepts.c.namespace == namespace).order_by(concepts.c.number)


def _link_query(namespace: int) -> Select[Any]:
    query = select(links.c.seq, links.c.concept, links.c.weight, links.c.origin)
    return query.where(links.c.namespace == namespace).order_by(links.c.seq, links.c.concept)


def _entries(connection: Connection, query: Select[Any]) -> list[StoredEntry]:
    return [_stored(*row) for rows in dialect_of(connection).fetch_rows(connection, query) for row in rows]


def _stored(
    seq: int,
    assimilated: object,
    text: str,
    id: str,
    speaker: str | None,
    session: str | None,
    occurred_at: str | None,
    caption: str | None,
    metadata: str | None,
) -> StoredEntry:
    time = None if occurred_at is None else parse_time(occurred_at)
    body = {} if metadata is None else json.loads(metadata)
    return StoredEntry(seq, MemoryEntry(text, id, speaker, session, time, caption, body), bool(assimilated))


def _all_concepts(connection: Connection, namespace: int) -> tuple[list[tuple[str, str]], npt.NDArray[np.int64]]:
    """Key and surface of every concept, and its number, ascending, shape (concepts,)."""
    of = concepts.c.number
    theirs = concepts.c.namespace == namespace
    columns = [dialect_of(connection).joined(column) for column in (of, concepts.c.key, concepts.c.surface)]
    found: list[tuple[str, str]] = []
    pieces = [np.empty(0, np.int64)]
    end = 0
    while (begin := connection.scalar(select(func.min(of)).where(theirs, of >= end))) is not None:
        end = begin + _CONCEPTS_TOGETHER
        count, *texts = connection.execute(select(func.count(), *columns).where(theirs, of >= begin, of < end)).one()
        keys, surfaces = (text.split(SEPARATOR) for text in texts[1:])
        if len(keys) == len(surfaces) == count and "\x00" not in texts[1] and "\x00" not in texts[2]:
            some, numbers = list(zip(keys, surfaces, strict=True)), _numbers(texts[0])
            if (numbers[1:] < numbers[:-1]).any():
                order = np.argsort(numbers)
                some, numbers = [some[at] for at in order.tolist()], numbers[order]
        else:  # some text holds the separator, or is none
            some, numbers = _concepts(connection, _concept_query(namespace).where(of >= begin, of < end))
        found += some
        pieces.append(numbers)
    return found, np.concatenate(pieces)


def _concepts(connection: Connection, query: Select[Any]) -> tuple[list[tuple[str, str]], npt.NDArray[np.int64]]:
    found: list[tuple[str, str]] = []
    numbers = [np.empty(0, np.int64)]
    for rows in dialect_of(connection).fetch_rows(connection, query):
        number, keys, surfaces = zip(*rows, strict=True)
        # SQLite does not check the type of a value.
        if not set(map(type, keys)) == set(map(type, surfaces)) == {str}:
            raise ValueError("a concept is not text")
        found += zip(keys, surfaces, strict=True)
        numbers.append(np.array(number, dtype=np.int64))
    return found, np.concatenate(numbers)


def _all_links(
    connection: Connection, namespace: int, seqs: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64]
) -> _Links:
    """As :func:`_in_places`, by entry, then by concept."""
    weight, origin = links.c.weight, links.c.origin
    others = _link_query(namespace).where(or_(weight != _SAID_WEIGHT, origin != SAID))
    entry, concept, weights, origins = _in_places(_link_rows(connection, others), seqs, numbers)
    # Of those that were said, which are most, only the concepts are read, together for each entry.
    dialect = dialect_of(connection)
    said = select(links.c.seq, func.count(), dialect.joined(links.c.concept))
    said = said.where(links.c.namespace == namespace, weight == _SAID_WEIGHT, origin == SAID).group_by(links.c.seq)
    rows = [row for some in dialect.fetch_rows(connection, said) for row in some]
    if rows:
        seq, sizes, texts = zip(*rows, strict=True)
        theirs = np.repeat(_positions(seqs, np.array(seq, dtype=np.int64)), sizes)
        entry = np.concatenate([theirs, entry])
        concept = np.concatenate([_positions(numbers, _numbers(SEPARATOR.join(texts))), concept])
        weights = np.concatenate([np.full(len(theirs), _SAID_WEIGHT, np.float32), weights])
        origins = np.concatenate([np.full(len(theirs), SAID, np.uint8), origins])
    # Two ascending runs as a rule, which the stable sort merges in linear time.
    order = np.argsort(entry.astype(np.int64) * max(len(numbers), 1) + concept, kind="stable")
    return entry[order], concept[order], weights[order], origins[order]


def _link_rows(connection: Connection, query: Select[Any]) -> npt.NDArray[np.void]:
    pieces = [np.empty(0, _LINK)]
    pieces += [np.fromiter(rows, _LINK, len(rows)) for rows in dialect_of(connection).fetch_rows(connection, query)]
    found = np.concatenate(pieces)
    if not np.isfinite(found["weight"]).all() or (found["origin"] != found["origin"].clip(0, len(ORIGINS) - 1)).any():
        raise ValueError("a link has no weight or origin")
    return found


def _in_places(rows: npt.NDArray[np.void], seqs: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64]) -> _Links:
    """Entry and concept of each link as indices, its weight and origin, each shape (links,)."""
    return (
        _positions(seqs, rows["seq"]),
        _positions(numbers, rows["concept"]),
        rows["weight"].astype(np.float32),
        rows["origin"].astype(np.uint8),
    )


def _positions(ascending: npt.NDArray[np.int64], wanted: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    """Where each wanted number stands, int32, shape (wanted,)."""
    places = np.searchsorted(ascending, wanted)
    if len(wanted) and (not len(ascending) or (ascending[np.minimum(places, len(ascending) - 1)] != wanted).any()):
        raise ValueError("a link leads nowhere")
    return places.astype(np.int32)


def _numbers(joined_numbers: str) -> npt.NDArray[np.int64]:
    return np.fromstring(joined_numbers, np.int64, sep=SEPARATOR)


def _by_key(columns: ScoreColumns, known: list[tuple[str, str]]) -> dict[str, KeyScores]:
    ends, concepts_of = columns.starts.tolist(), columns.concept.tolist()
    return {
        known[concept][0]: KeyScores(
            columns.tokens[ends[row] : ends[row + 1]],
            columns.neutral[ends[row] + row : ends[row + 1] + row + 1] if columns.known[row] else None,
        )
        for row, concept in enumerate(concepts_of)
    }
