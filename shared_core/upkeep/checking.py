"""Whether a memory fits together: its rows, and the trie and the graph that are made of them.

Entries are read a second time here, in another way than a recall reads them, and what a recall would run on is held
against that: every link, every count, every key of every trie.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from shared_core.entry import MemoryEntry
from shared_core.errors import InvalidInputError, StoreError, StoreUnavailableError
from shared_core.evolution import said_concepts
from shared_core.recall import Snapshot
from shared_core.schema import build_trie_from_arrays, fits_bounds, normalise_key
from shared_core.store import Fault, NamespaceState, ScoreColumns, Store


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check looked at, and what it found.

    Attributes:
        namespaces: Number of namespaces.
        entries: Number of entries.
        concepts: Number of concepts.
        faults: What does not fit together; empty for a sound memory.
    """

    namespaces: int
    entries: int
    concepts: int
    faults: tuple[Fault, ...]


def check_memory(path: str | Path) -> Checked:
    """Check a memory that is there: the file, its rows, and what is derived from them. It may be in use meanwhile.

    All of it is looked at as of one moment. Takes time in proportion to the file, and no model. Which links a model
    inferred, and which scores it computed, is not known without it: of those only what cannot be is found.

    Raises:
        NotFoundError: if there is no memory.
        NotAMemoryError, StoreVersionError, StoreUnavailableError: as :meth:`.Store.open`.
    """
    try:
        store = Store.open(path, create=False)
    except StoreError as error:
        if type(error) is not StoreError:
            raise
        return Checked(0, 0, 0, (Fault("file", str(error)),))
    with store:
        return check_store(store)


def check_store(store: Store) -> Checked:
    """As :func:`check_memory`, of a store that is open."""
    faults: list[Fault] = []
    try:
        with store.at_one_moment() as moment:
            faults += moment.check()
            if any(fault.kind in ("file", "value") for fault in faults):
                return Checked(0, 0, 0, tuple(faults))
            try:
                known = moment.namespaces()
            except StoreError as error:
                return Checked(0, 0, 0, (*faults, Fault("counter", str(error))))
            for info in known:
                faults += check_derived(moment, info.name)
    except StoreUnavailableError:
        raise
    except StoreError as error:  # the damage may show only on the way, or at the end
        return Checked(0, 0, 0, (*faults, Fault("file", str(error))))
    return Checked(len(known), sum(info.entries for info in known), sum(info.concepts for info in known), tuple(faults))


def check_derived(store: Store, namespace: tuple[str, ...]) -> list[Fault]:
    """Check the graph and the tries of one namespace against its entries, in a store that stands at one moment."""
    try:
        found = [
            Fault("link", f"the entry {entry.id!r:.80} {what}", namespace) for entry, what in unlikely(store, namespace)
        ]
        state = store.load(namespace)
        found += [Fault("graph", what, namespace) for what in _graph_faults(store, namespace, Snapshot.build(state))]
        for model, fingerprint in enumerate(store.fingerprints(), start=1):
            columns = store.load_scores(namespace, fingerprint, state)
            found += [Fault("trie", f"model {model}: {what}", namespace) for what in _trie_faults(state, columns)]
    except StoreError as error:
        return [Fault("graph", f"the namespace cannot be read ({error})", namespace)]
    return found


def unlikely(store: Store, namespace: tuple[str, ...]) -> Iterator[tuple[MemoryEntry, str]]:
    """Entries of which it is not known which links they were stored with, and that cannot have been these."""
    with store.scan(namespace, unvouched=True) as (_, writes):
        for write in writes:
            said = [link for link in write.links if link.origin == "said"]
            if not write.links and said_concepts(write.entry):
                yield write.entry, "says something, and no concept leads to it"
            elif any(normalise_key(link.surface) != link.key or not fits_bounds(link.key) for link in said):
                yield write.entry, "is linked to a concept that it words otherwise"


def _graph_faults(store: Store, namespace: tuple[str, ...], snapshot: Snapshot) -> Iterator[str]:
    graph, keys = snapshot.graph, snapshot.keys
    if len(set(keys)) < len(keys):
        yield "a concept is there twice"
    counts: Counter[str] = Counter()
    with store.scan(namespace) as (total, writes):
        if total != len(snapshot.entries):
            yield f"{len(snapshot.entries)} of {total} entries are in it"
            return
        for place, write in enumerate(writes):
            if snapshot.entries[place].entry != write.entry:
                yield f"entry {snapshot.entries[place].seq} is another one"
            concepts, weights = graph.by_entry.row(place)
            linked = {
                keys[concept]: weight for concept, weight in zip(concepts.tolist(), weights.tolist(), strict=True)
            }
            if linked != {link.key: float(np.float32(link.weight)) for link in write.links}:
                yield f"entry {snapshot.entries[place].seq} is linked to other concepts than it says"
            counts.update(link.key for link in write.links)
    by_concept = dict(zip(keys, np.diff(graph.by_concept.starts).tolist(), strict=True))
    wrong = sum(by_concept[key] != counts[key] for key in keys)
    if wrong or counts.keys() - by_concept.keys():
        yield f"{wrong} concepts are counted in more or fewer entries than there are"
    if len(graph.by_concept.members) != len(graph.by_entry.members) or _pairs(snapshot):
        yield "its two directions differ"


def _pairs(snapshot: Snapshot) -> bool:
    """Whether links read by concept are others than links read by entry."""
    graph = snapshot.graph
    entries = graph.by_concept.members.astype(np.int64)
    concepts = np.repeat(np.arange(graph.by_concept.row_count), np.diff(graph.by_concept.starts))
    other = np.repeat(np.arange(graph.by_entry.row_count), np.diff(graph.by_entry.starts))
    width = max(len(snapshot.keys), 1)
    return not np.array_equal(np.sort(entries * width + concepts), np.sort(other * width + graph.by_entry.members))


def _trie_faults(state: NamespaceState, columns: ScoreColumns) -> Iterator[str]:
    """Whether the trie that a model's stored tokens make holds its keys, all of them and nothing else."""
    sayable = columns.select(np.flatnonzero(np.diff(columns.starts)))
    if len(sayable.concept) and int(sayable.concept[-1]) >= len(state.concepts):
        yield "it has keys of concepts that do not exist"
    try:
        trie = build_trie_from_arrays(sayable.tokens, sayable.starts)
    except InvalidInputError as error:
        yield f"no trie can be made of its keys ({error})"
        return
    starts = sayable.starts.tolist()
    keys = {tuple(sayable.tokens[low:high].tolist()) for low, high in pairwise(starts)}
    if trie.key_count != len(keys) or {tuple(key) for key in trie} != keys:
        yield "the trie holds other keys than were stored"
