"""What models expect the concepts of entries to begin with: a row for each entry and model."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from sqlalchemy import Connection, delete, select

from shared_core.store.dialect import dialect_of
from shared_core.store.models import find_model, model_number
from shared_core.store.reading import chunks, find_namespace
from shared_core.store.state import Anticipations, NamespaceState
from shared_core.store.tables import anticipations, entries
from shared_core.store.values import Anticipation

_TOKEN = np.dtype("<i4")
# A hundredth of a nat is more than the logits of most models are worth.
_LOGPROB = np.dtype("<f2")
# Beyond any vocabulary: arrays are made that have a place for every token.
_TOKENS = 2**24
_CERTAIN = 0.01


def put_anticipations(
    connection: Connection, namespace: int, fingerprint: str, by_seq: Mapping[int, Anticipation]
) -> None:
    """Store one model's anticipations of entries, in place of earlier ones."""
    if not by_seq:
        return
    model = model_number(connection, fingerprint)
    for chunk in chunks(list(by_seq)):
        theirs = (anticipations.c.namespace == namespace) & (anticipations.c.model == model)
        connection.execute(delete(anticipations).where(theirs, anticipations.c.seq.in_(chunk)))
    rows = [
        (namespace, seq, model, one.tokens.astype(_TOKEN).tobytes(), one.logprobs.astype(_LOGPROB).tobytes())
        for seq, one in by_seq.items()
    ]
    dialect_of(connection).insert_rows(connection, anticipations, rows)


def read_anticipations(
    connection: Connection,
    name: tuple[str, ...],
    fingerprint: str,
    state: NamespaceState,
    known: Anticipations | None,
) -> Anticipations:
    """One model's anticipations of the entries of ``state``, see :meth:`.Store.load_anticipations`.

    Raises:
        ValueError: if the rows do not fit together.
    """
    namespace = find_namespace(connection, name)
    model = find_model(connection, fingerprint)
    if namespace is None or model is None:
        return Anticipations.empty(state.generation)
    query = select(anticipations.c.seq, anticipations.c.token_ids, anticipations.c.logprobs)
    query = query.where(anticipations.c.namespace == namespace.number, anticipations.c.model == model)
    if known is not None and namespace.erased <= known.generation:
        theirs = (entries.c.namespace == anticipations.c.namespace) & (entries.c.seq == anticipations.c.seq)
        query = query.join(entries, theirs).where(entries.c.changed > known.generation)
    else:
        known = None
    pieces = dialect_of(connection).fetch_rows(connection, query.order_by(anticipations.c.seq))
    rows = [row for some in pieces for row in some]
    found = _columns(state, rows)
    return found if known is None else known.after(found)


def anticipation_faults(connection: Connection, namespace: int) -> dict[tuple[int, int], str]:
    """By entry and model, which anticipations are unreadable or of an entry that does not exist."""
    living = set(connection.execute(select(entries.c.seq).where(entries.c.namespace == namespace)).scalars())
    columns = (anticipations.c.seq, anticipations.c.model, anticipations.c.token_ids, anticipations.c.logprobs)
    query = select(*columns).where(anticipations.c.namespace == namespace)
    faults = {}
    pieces = dialect_of(connection).fetch_rows(connection, query)
    for seq, model, *blobs in (row for some in pieces for row in some):
        where = f"what model {model} expects of entry {seq}"
        if seq not in living:
            faults[seq, model] = f"{where} is of an entry that does not exist"
            continue
        try:
            _read_blobs([(seq, *blobs)])
        except (ValueError, TypeError) as error:
            faults[seq, model] = f"{where} cannot be read ({type(error).__name__})"
    return faults


def drop_anticipations(connection: Connection, namespace: int, places: Collection[tuple[int, int]]) -> None:
    """Remove what some models expect of some entries: it can be computed again."""
    for seq, model in places:
        this = (anticipations.c.seq == seq) & (anticipations.c.model == model)
        connection.execute(delete(anticipations).where(anticipations.c.namespace == namespace, this))


def _columns(state: NamespaceState, rows: list[tuple[int, bytes, bytes]]) -> Anticipations:
    seqs = np.array([one.seq for one in state.entries], dtype=np.int64)
    wanted = np.array([row[0] for row in rows], dtype=np.int64)
    # Of entries that came after the state nothing is taken: they are read when the state follows.
    places = np.searchsorted(seqs, wanted)
    there = np.flatnonzero(places < len(seqs))
    there = there[seqs[places[there]] == wanted[there]]
    starts, tokens, logprobs = _read_blobs([rows[at] for at in there.tolist()])
    return Anticipations(state.generation, places[there].astype(np.int32), starts, tokens, logprobs)


def _read_blobs(
    rows: Sequence[tuple[int, bytes, bytes]],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """Starts, tokens and log-probabilities of some rows, see :class:`.Anticipations`.

    Raises:
        ValueError: if they are none.
    """
    sizes = np.array([len(row[1]) // _TOKEN.itemsize for row in rows], dtype=np.int64)
    if [len(row[2]) for row in rows] != (sizes * _LOGPROB.itemsize).tolist():
        raise ValueError("the anticipations of an entry do not fit together")
    tokens: npt.NDArray[np.int32] = np.frombuffer(b"".join(row[1] for row in rows), _TOKEN).astype(np.int32)
    logprobs = np.frombuffer(b"".join(row[2] for row in rows), _LOGPROB).astype(np.float32)
    if (tokens != tokens.clip(0, _TOKENS - 1)).any() or not (logprobs <= _CERTAIN).all():
        raise ValueError("the anticipations of an entry are not what a model says")
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]), tokens, logprobs
