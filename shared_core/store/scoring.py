"""How models read keys: columns in memory, blocks of concepts with neighbouring numbers on disk.

A block is one row, which holds the columns of its concepts as bytes, little-endian. So a million keys are read and
written in four thousand rows, and a key that is saved or dies costs the writing of one block of about ten kilobytes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from sqlalchemy import ColumnElement, Connection, delete, select

from shared_core.store.dialect import dialect_of
from shared_core.store.models import find_model, model_number
from shared_core.store.reading import CHUNK, chunks, find_concepts, find_namespace
from shared_core.store.state import NamespaceState, ScoreColumns
from shared_core.store.tables import concepts, scores
from shared_core.store.values import KeyScores

BLOCK: Final = 256

_BLOBS: Final = {"concepts": "<i8", "sizes": "<i4", "token_ids": "<i4", "neutral": "<f4", "known": "<u1"}


def read_columns(
    connection: Connection, name: tuple[str, ...], fingerprint: str, state: NamespaceState, since: int | None
) -> ScoreColumns:
    """One model's scores of the concepts of ``state``; with ``since`` at least what was saved after it.

    Raises:
        ValueError: if the rows do not fit together.
    """
    namespace = find_namespace(connection, name)
    model = find_model(connection, fingerprint)
    if namespace is None or model is None:
        return ScoreColumns.empty(since or 0)
    number = namespace.number
    found, saved = _read(connection, number, model, None if since is None else scores.c.saved > since)
    latest = max(int(saved.max(initial=0)), since or 0)
    places = _places(_numbers_now(connection, number, namespace.erased > state.generation, state), found.concept)
    inside = np.flatnonzero(places >= 0)
    if len(inside) < len(places):
        # Concepts that came after the state: what was saved of them has still to be read when the state follows.
        latest = min(latest, int(saved[places < 0].min()) - 1)
    if len(inside) < len(places) or (places[1:] < places[:-1]).any():
        inside = inside[np.argsort(places[inside], kind="stable")]
        found = found.select(inside)
    return replace(found, saved=latest, concept=places[inside].astype(np.int32))


def put_scores(connection: Connection, namespace: int, fingerprint: str, by_key: Mapping[str, KeyScores]) -> None:
    """Store one model's scores of keys, in place of earlier ones; skips keys that are gone."""
    numbers = find_concepts(connection, namespace, list(by_key))
    ordered = sorted((number, by_key[key]) for key, number in numbers.items()) if numbers else []
    if not ordered:
        return
    sizes = [len(one.token_ids) for _, one in ordered]
    unknown = np.float32(np.nan)
    neutral = [np.full(len(one.token_ids) + 1, unknown) if one.neutral is None else one.neutral for _, one in ordered]
    columns = ScoreColumns(
        saved=0,
        concept=np.array([number for number, _ in ordered], dtype=np.int64),
        starts=np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]),
        tokens=np.concatenate([one.token_ids for _, one in ordered]),
        neutral=np.concatenate(neutral),
        known=np.array([one.neutral is not None for _, one in ordered], dtype=np.bool_),
    )
    model = model_number(connection, fingerprint)
    stored, _ = _read(connection, namespace, model, _blocks_of(columns.concept))
    _merge(connection, namespace, model, stored, columns)


def put_columns(
    connection: Connection, name: tuple[str, ...], fingerprint: str, state: NamespaceState, columns: ScoreColumns
) -> None:
    """Store one model's scores of concepts of ``state``, see :meth:`.Store.save_columns`."""
    namespace = find_namespace(connection, name)
    if namespace is None:
        return
    number = namespace.number
    now = _numbers_now(connection, number, namespace.erased > state.generation, state)[columns.concept]
    there = np.flatnonzero(now >= 0)
    columns = replace(columns, concept=now).select(there[np.argsort(now[there], kind="stable")])
    if not len(columns.concept):
        return
    columns.neutral[np.repeat(~columns.known, np.diff(columns.starts) + 1)] = np.nan
    model = model_number(connection, fingerprint)
    stored, _ = _read(connection, number, model, _blocks_of(columns.concept))
    # Neutral log-probabilities are not given up for token ids alone.
    wanted = columns.known | ~np.isin(columns.concept, stored.concept)
    if wanted.any():
        later = columns if wanted.all() else columns.select(np.flatnonzero(wanted))
        _merge(connection, number, model, stored, later)


def drop_scores(connection: Connection, namespace: int, numbers: Sequence[int]) -> None:
    """Remove what every model has of concepts that die."""
    gone = np.array(numbers, dtype=np.int64)
    theirs = _blocks_of(gone)
    having = select(scores.c.model).where(scores.c.namespace == namespace, theirs).distinct()
    for model in connection.execute(having).scalars().all():
        stored, saved = _read(connection, namespace, model, theirs)
        connection.execute(delete(scores).where(scores.c.namespace == namespace, scores.c.model == model, theirs))
        rest = np.flatnonzero(~np.isin(stored.concept, gone))
        kept = _rows(namespace, model, int(saved.max(initial=0)), stored.select(rest))
        dialect_of(connection).insert_rows(connection, scores, kept)


def score_faults(connection: Connection, namespace: int) -> dict[int, str]:
    """The models whose scores are unreadable, or of concepts that do not exist, and what is wrong with them."""
    query = select(concepts.c.number).where(concepts.c.namespace == namespace)
    living = np.array(connection.execute(query).scalars().all(), dtype=np.int64)
    faults = {}
    having = select(scores.c.model).where(scores.c.namespace == namespace).distinct()
    for model in connection.execute(having).scalars().all():
        try:
            stored, _ = _read(connection, namespace, model, None)
        except (ValueError, TypeError, LookupError, OverflowError) as error:
            faults[model] = f"the scores of model {model} cannot be read ({type(error).__name__})"
            continue
        strangers = int((~np.isin(stored.concept, living)).sum())
        if strangers:
            faults[model] = f"model {model} has scores of {strangers} concepts that do not exist"
    return faults


def drop_models(connection: Connection, namespace: int, numbers: Collection[int]) -> None:
    """Remove all that some models have of a namespace: it can be computed again."""
    for model in numbers:
        connection.execute(delete(scores).where(scores.c.namespace == namespace, scores.c.model == model))


def _read(
    connection: Connection, namespace: int, model: int, condition: ColumnElement[bool] | None
) -> tuple[ScoreColumns, npt.NDArray[np.int64]]:
    """Columns by the number of the concept, ascending, and when each key's block was saved, shape (keys,)."""
    query = select(scores.c.saved, *(scores.c[name] for name in _BLOBS))
    query = query.where(scores.c.namespace == namespace, scores.c.model == model).order_by(scores.c.block)
    pieces = dialect_of(connection).fetch_rows(connection, query if condition is None else query.where(condition))
    rows = [row for some in pieces for row in some]
    blobs: dict[str, list[bytes]] = {name: [row[at] for row in rows] for at, name in enumerate(_BLOBS, start=1)}
    counts = np.array([len(blob) for blob in blobs["known"]], dtype=np.int64)
    arrays = {name: np.frombuffer(b"".join(blobs[name]), kind) for name, kind in _BLOBS.items()}
    sizes = arrays["sizes"].astype(np.int64)
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    totals = np.diff(ends[np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])]) if len(sizes) else counts
    expected = {"concepts": 8 * counts, "sizes": 4 * counts, "token_ids": 4 * totals, "neutral": 4 * (totals + counts)}
    for name, lengths in expected.items():
        if [len(blob) for blob in blobs[name]] != lengths.tolist():
            raise ValueError("the scores of a block do not fit together")
    numbers = arrays["concepts"].astype(np.int64, copy=False)
    if (sizes < 0).any() or (numbers[1:] <= numbers[:-1]).any():
        raise ValueError("the scores of a block are out of order")
    known = arrays["known"].astype(np.bool_)
    if not np.isnan(arrays["neutral"][np.repeat(~known, sizes + 1)]).all():
        raise ValueError("scores of a block are there that are not known")
    saved = np.repeat(np.array([row[0] for row in rows], dtype=np.int64), counts)
    columns = ScoreColumns(
        saved=0,
        concept=numbers,
        starts=ends,
        tokens=arrays["token_ids"].astype(np.int32, copy=False),
        neutral=arrays["neutral"].astype(np.float32, copy=False),
        known=known,
    )
    return columns, saved


def _merge(connection: Connection, namespace: int, model: int, stored: ScoreColumns, columns: ScoreColumns) -> None:
    """Write the blocks that some columns belong to, with what was stored in them, in place of what they were."""
    blocks = np.unique(columns.concept // BLOCK)
    merged = stored.after(columns)
    touched = np.isin(merged.concept // BLOCK, blocks)
    if not touched.all():
        merged = merged.select(np.flatnonzero(touched))
    for chunk in chunks(blocks.tolist()):
        theirs = (scores.c.namespace == namespace) & (scores.c.model == model)
        connection.execute(delete(scores).where(theirs, scores.c.block.in_(chunk)))
    dialect_of(connection).insert_rows(connection, scores, _rows(namespace, model, _tick(connection), merged))


def _rows(namespace: int, model: int, moment: int, columns: ScoreColumns) -> list[tuple[Any, ...]]:
    """A row for each block."""
    block = columns.concept // BLOCK
    firsts = np.flatnonzero(np.diff(block, prepend=-1))
    sizes = np.diff(columns.starts)
    rows = []
    for first, last in pairwise([*firsts.tolist(), len(block)]):
        low, high = int(columns.starts[first]), int(columns.starts[last])
        arrays = {
            "concepts": columns.concept[first:last],
            "sizes": sizes[first:last],
            "token_ids": columns.tokens[low:high],
            "neutral": columns.neutral[low + first : high + last],
            "known": columns.known[first:last],
        }
        blobs = (arrays[name].astype(kind).tobytes() for name, kind in _BLOBS.items())
        rows.append((namespace, model, int(block[first]), moment, *blobs))
    return rows


def _blocks_of(numbers: npt.NDArray[np.integer]) -> ColumnElement[bool]:
    """That a block is one of those that some concepts belong to, or, if they are many, lies between them."""
    blocks = np.unique(numbers // BLOCK).tolist()
    return scores.c.block.in_(blocks) if len(blocks) <= CHUNK else scores.c.block.between(blocks[0], blocks[-1])


def _numbers_now(connection: Connection, namespace: int, erased: bool, state: NamespaceState) -> npt.NDArray[np.int64]:
    """Number in the store of each concept of a state, -1 for those that are gone, shape (concepts,).

    Args:
        connection: The transaction.
        namespace: The namespace's number.
        erased: Whether something was erased since ``state``, perhaps the whole namespace, which was then made
            again: its numbers then mean something else.
        state: The state.
    """
    if not erased:
        return state.concept_number
    query = select(concepts.c.key, concepts.c.number).where(concepts.c.namespace == namespace)
    by_key = dict(row for rows in dialect_of(connection).fetch_rows(connection, query) for row in rows)
    return np.array([by_key.get(key, -1) for key, _ in state.concepts], dtype=np.int64)


def _places(numbers: npt.NDArray[np.int64], wanted: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    """Where each of the wanted numbers stands, -1 where it is missing, shape (wanted,)."""
    if not len(numbers):
        return np.full(len(wanted), -1, dtype=np.int64)
    order = np.argsort(numbers, kind="stable")
    ascending = numbers[order]
    at = np.minimum(np.searchsorted(ascending, wanted), len(ascending) - 1)
    return np.where(ascending[at] == wanted, order[at], -1)


def _tick(connection: Connection) -> int:
    """Move the memory's clock, and no namespace's generation: scores can be computed again at any time."""
    dialect = dialect_of(connection)
    moment = dialect.next_moment(connection)
    dialect.show_moment(connection, moment)
    return moment
