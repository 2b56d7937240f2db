"""Changing one namespace inside one write transaction.

The life of a concept: it is made by the first link of origin ``said`` or ``generated``, and it lives while at
least one such *grounding* link exists. When the last goes, the concept goes in the same transaction, with its
scores and the ``inferred`` links other entries have to it: otherwise a forgotten text would live on as their
key. Its surface is that of the earliest entry grounding it, so no surface outlives the text it comes from.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from shared_core.store.anticipating import put_anticipations
from shared_core.store.dialect import dialect_of
from shared_core.store.reading import (
    chunks,
    encode_entry,
    encode_name,
    find_concepts,
    find_namespace,
    grounded,
    grounds_of,
)
from shared_core.store.scoring import drop_scores
from shared_core.store.tables import anticipations, concepts, entries, links, namespaces, scores
from shared_core.store.values import ORIGINS, Anticipated, ConceptLink, EntryWrite, Erased, WriteOutcome


class NamespaceWriter:
    """What a write transaction has learnt about its namespace, and what it must settle before it ends."""

    def __init__(self, connection: Connection, name: tuple[str, ...], *, anew: bool = False) -> None:
        """Read the namespace's counters; a namespace that does not exist is made.

        Args:
            connection: The transaction.
            name: The namespace.
            anew: Replace links also where the content is the same.
        """
        self._anew = anew
        self._connection = connection
        row = find_namespace(connection, name)
        self._generation = dialect_of(connection).next_moment(connection)
        self._namespace: int = _make_namespace(connection, name, self._generation) if row is None else row.number
        self._next_seq: int = 0 if row is None else row.next_seq
        self._next_concept: int = 0 if row is None else row.next_concept
        self._concepts: dict[str, int] = {}
        self._waiting: dict[int, list[ConceptLink]] = {}
        self._unsettled: set[int] = set()
        self._ids: dict[str, None] = {}
        self._added = self._updated = self._unchanged = 0

    def put(self, writes: Sequence[EntryWrite]) -> None:
        """Store entries as if one after the other."""
        stored = self._stored([write.id for write in writes])
        digests = {id: digest for id, (digest, _) in stored.items()}
        changed: dict[str, EntryWrite] = {}
        for write in writes:
            self._ids[write.id] = None
            digest = write.entry.digest
            if digests.get(write.id) == digest and not self._anew:
                self._unchanged += 1
                continue
            if write.id in digests:
                self._updated += 1
            else:
                self._added += 1
            digests[write.id] = digest
            changed[write.id] = write
        old = {stored[id][1]: write for id, write in changed.items() if id in stored}
        new = [write for id, write in changed.items() if id not in stored]
        fresh = dict(enumerate(new, start=self._next_seq))
        self._next_seq += len(fresh)
        self._replace_entries(old)
        self._insert_entries(fresh)
        self._link({**old, **fresh})
        # The surface of a concept comes from its earliest entry: an updated entry may have become that.
        self._unsettled.update(
            self._concepts[link.key] for write in old.values() for link in write.links if link.is_grounding
        )

    def finish(self) -> WriteOutcome:
        """Settle concepts and counters, once, after the last :meth:`put`."""
        # Inferred links may lead to a concept that a later entry of the same write has made.
        waiting = self._waiting.items()
        self._insert_links({seq: [link for link in late if link.key in self._concepts] for seq, late in waiting})
        settle(self._connection, self._namespace, self._unsettled)
        if self._added or self._updated:
            counters = {"next_seq": self._next_seq, "next_concept": self._next_concept}
            bump(self._connection, self._namespace, erased=self._updated > 0, **counters)
        return WriteOutcome(self._added, self._updated, self._unchanged, tuple(self._ids))

    def _stored(self, ids: Sequence[str]) -> dict[str, tuple[str, int]]:
        stored = {}
        for chunk in chunks(list(dict.fromkeys(ids))):
            query = select(entries.c.id, entries.c.digest, entries.c.seq)
            query = query.where(entries.c.namespace == self._namespace, entries.c.id.in_(chunk))
            stored.update({id: (digest, seq) for id, digest, seq in self._connection.execute(query)})
        return stored

    def _replace_entries(self, old: Mapping[int, EntryWrite]) -> None:
        if not old:
            return
        for seq in old:
            self._waiting.pop(seq, None)
        touched, _ = remove_links(self._connection, self._namespace, list(old))
        self._unsettled |= touched
        rows = [{"place": seq, **self._columns(write)} for seq, write in old.items()]
        in_place = (entries.c.namespace == self._namespace) & (entries.c.seq == bindparam("place"))
        columns: dict[str, Any] = {name: bindparam(name) for name in rows[0] if name != "place"}
        self._connection.execute(update(entries).where(in_place).values(columns), rows)

    def _insert_entries(self, fresh: Mapping[int, EntryWrite]) -> None:
        rows = [{"namespace": self._namespace, "seq": seq, **self._columns(write)} for seq, write in fresh.items()]
        if rows:
            self._connection.execute(insert(entries), rows)

    def _columns(self, write: EntryWrite) -> dict[str, Any]:
        grounds = grounds_of(
            (link.key, link.surface, float(link.weight), ORIGINS.index(link.origin))
            for link in write.links
            if link.is_grounding
        )
        own = {"assimilated": write.assimilated, "changed": self._generation, "grounds": grounds}
        return {**encode_entry(write.entry), **own}

    def _link(self, written: Mapping[int, EntryWrite]) -> None:
        self._learn({link.key for write in written.values() for link in write.links})
        self._make_concepts([link for write in written.values() for link in write.links])
        ready = {}
        for seq, write in written.items():
            ready[seq] = [link for link in write.links if link.key in self._concepts]
            if len(ready[seq]) < len(write.links):
                self._waiting[seq] = [link for link in write.links if link.key not in self._concepts]
        self._insert_links(ready)

    def _learn(self, keys: Collection[str]) -> None:
        unknown = sorted(key for key in keys if key not in self._concepts)  # neighbours share index pages
        self._concepts.update(find_concepts(self._connection, self._namespace, unknown))

    def _make_concepts(self, wanted: Sequence[ConceptLink]) -> None:
        rows = []
        for link in wanted:
            if link.is_grounding and link.key not in self._concepts:
                self._concepts[link.key] = self._next_concept
                rows.append((self._namespace, self._next_concept, link.key, link.surface))
                self._next_concept += 1
        dialect_of(self._connection).insert_rows(self._connection, concepts, rows)

    def _insert_links(self, by_seq: Mapping[int, Sequence[ConceptLink]]) -> None:
        rows = [
            _link_row(self._namespace, seq, self._concepts[link.key], link)
            for seq, entry_links in by_seq.items()
            for link in entry_links
        ]
        dialect_of(self._connection).insert_rows(self._connection, links, rows)


def add_inferred(
    connection: Connection,
    namespace: int,
    inferred: Mapping[str, Sequence[ConceptLink]],
    anticipated: Anticipated | None,
) -> None:
    """Add inferred links, and what a model expects, and mark their entries as assimilated; skips what is gone."""
    seqs = _seqs(connection, namespace, list(inferred))
    if not seqs:
        return
    taken: set[tuple[int, int]] = set()
    for places in chunks(list(seqs.values())):
        pairs = select(links.c.seq, links.c.concept)
        pairs = pairs.where(links.c.namespace == namespace, links.c.seq.in_(places))
        taken.update((seq, concept) for seq, concept in connection.execute(pairs))
    known = find_concepts(connection, namespace, list({link.key for id in seqs for link in inferred[id]}))
    rows = []
    for id, seq in seqs.items():
        for link in inferred[id]:
            pair = seq, known.get(link.key, -1)
            if link.key in known and pair not in taken:
                taken.add(pair)
                rows.append(_link_row(namespace, seq, known[link.key], link))
    dialect_of(connection).insert_rows(connection, links, rows)
    if anticipated is not None:
        _put_anticipated(connection, namespace, seqs, anticipated)
    _mark(connection, namespace, seqs.values(), assimilated=True)


def add_anticipated(connection: Connection, namespace: int, anticipated: Anticipated) -> None:
    """Store what a model expects of entries; skips those that are gone."""
    seqs = _seqs(connection, namespace, list(anticipated.by_id))
    if not seqs:
        return
    _put_anticipated(connection, namespace, seqs, anticipated)
    _mark(connection, namespace, seqs.values())


def _mark(connection: Connection, namespace: int, seqs: Collection[int], **marks: bool) -> None:
    """Mark entries as changed, so that whoever follows the namespace reads them."""
    theirs = (entries.c.namespace == namespace) & (entries.c.seq == bindparam("place"))
    change = update(entries).where(theirs).values(changed=dialect_of(connection).next_moment(connection), **marks)
    connection.execute(change, [{"place": seq} for seq in seqs])
    bump(connection, namespace)


def _put_anticipated(connection: Connection, namespace: int, seqs: Mapping[str, int], anticipated: Anticipated) -> None:
    by_seq = {seqs[id]: one for id, one in anticipated.by_id.items() if id in seqs}
    put_anticipations(connection, namespace, anticipated.fingerprint, by_seq)


def _seqs(connection: Connection, namespace: int, ids: Sequence[str]) -> dict[str, int]:
    """Places of those of the ids that exist."""
    found: dict[str, int] = {}
    for chunk in chunks(ids):
        query = select(entries.c.id, entries.c.seq)
        query = query.where(entries.c.namespace == namespace, entries.c.id.in_(chunk))
        found.update((row.id, row.seq) for row in connection.execute(query))
    return found


def touch_entries(connection: Connection, namespace: int, ids: Sequence[str], moment: float) -> None:
    """Note when entries were read."""
    for chunk in chunks(ids):
        read = (entries.c.namespace == namespace) & entries.c.id.in_(chunk)
        connection.execute(update(entries).where(read).values(touched=moment))


def remove_entries(connection: Connection, namespace: int, ids: Sequence[str]) -> Erased:
    """Remove the entries of those ids that exist, and the concepts that die with them."""
    held = {seq: id for id, seq in _seqs(connection, namespace, ids).items()}
    if not held:
        return Erased(0, 0, 0)
    seqs = sorted(held)
    touched, removed = remove_links(connection, namespace, seqs)
    for places in chunks(seqs):
        connection.execute(delete(entries).where(entries.c.namespace == namespace, entries.c.seq.in_(places)))
    dead, orphaned = settle(connection, namespace, touched)
    generation = bump(connection, namespace, erased=True)
    gone = tuple(held[seq] for seq in seqs)
    return Erased(len(seqs), dead, removed + orphaned, ids=gone, generation=generation)


def remove_namespace(connection: Connection, namespace: int) -> Erased:
    """Remove a namespace with all it holds."""
    generation = bump(connection, namespace, erased=True)
    query = select(entries.c.id).where(entries.c.namespace == namespace).order_by(entries.c.seq)
    gone = tuple(connection.execute(query).scalars())
    _, _, linked, held, known = [
        connection.execute(delete(table).where(table.c.namespace == namespace)).rowcount
        for table in (scores, anticipations, links, entries, concepts)
    ]
    connection.execute(delete(namespaces).where(namespaces.c.number == namespace))
    return Erased(held, known, linked, ids=gone, generation=generation)


def remove_links(connection: Connection, namespace: int, seqs: Sequence[int]) -> tuple[set[int], int]:
    """Remove all that was made of some entries; returns the concepts they led to, and how many links there were."""
    touched: set[int] = set()
    removed = 0
    for chunk in chunks(seqs):
        theirs = (links.c.namespace == namespace) & links.c.seq.in_(chunk)
        touched.update(connection.execute(select(links.c.concept).where(theirs).distinct()).scalars())
        removed += connection.execute(delete(links).where(theirs)).rowcount
        expected = (anticipations.c.namespace == namespace) & anticipations.c.seq.in_(chunk)
        connection.execute(delete(anticipations).where(expected))
    return touched, removed


def settle(connection: Connection, namespace: int, touched: Collection[int]) -> tuple[int, int]:
    """Remove those of the touched concepts that nothing grounds any more, and give the others their surface.

    Returns:
        How many concepts died, and how many inferred links to them.
    """
    dead = orphaned = 0
    for chunk in chunks(sorted(touched)):
        surfaces = due_surfaces(connection, namespace, chunk)
        changed = [{"c": concept, "s": surface} for concept, (surface, stale) in surfaces.items() if stale]
        if changed:
            one = (concepts.c.namespace == namespace) & (concepts.c.number == bindparam("c"))
            connection.execute(update(concepts).where(one).values(surface=bindparam("s")), changed)
        gone = [concept for concept in chunk if concept not in surfaces]
        if gone:
            to_gone = (links.c.namespace == namespace) & links.c.concept.in_(gone)
            orphaned += connection.execute(delete(links).where(to_gone)).rowcount
            drop_scores(connection, namespace, gone)
            dead += connection.execute(
                delete(concepts).where(concepts.c.namespace == namespace, concepts.c.number.in_(gone))
            ).rowcount
    return dead, orphaned


def due_surfaces(connection: Connection, namespace: int, chunk: Sequence[int]) -> dict[int, tuple[str, bool]]:
    """Surface due to each concept that something grounds, and whether it differs from the present one."""
    earliest = (
        select(links.c.concept, func.min(links.c.seq).label("seq"))
        .where(links.c.namespace == namespace, links.c.concept.in_(chunk), grounded())
        .group_by(links.c.concept)
        .subquery()
    )
    query = (
        select(links.c.concept, links.c.surface, links.c.surface != concepts.c.surface)
        .join(earliest, (earliest.c.concept == links.c.concept) & (earliest.c.seq == links.c.seq))
        .join(concepts, (concepts.c.namespace == links.c.namespace) & (concepts.c.number == links.c.concept))
        .where(links.c.namespace == namespace)
    )
    return {concept: (surface, stale) for concept, surface, stale in connection.execute(query)}


def bump(connection: Connection, namespace: int, *, erased: bool = False, **counters: int) -> int:
    """Give the namespace a new generation, and return it.

    Generations come from one counter of the memory, so that a namespace that was cleared and made again never
    shows an old one: another process would take its stale snapshot for current. ``erased`` also notes that what
    was read before cannot be brought up to date by adding to it.
    """
    dialect = dialect_of(connection)
    generation = dialect.next_moment(connection)
    dialect.show_moment(connection, generation, erased=erased)
    if erased:
        counters["erased"] = generation
    connection.execute(
        update(namespaces).where(namespaces.c.number == namespace).values(generation=generation, **counters)
    )
    return generation


def _make_namespace(connection: Connection, name: tuple[str, ...], moment: int) -> int:
    # One of that name may have been cleared, and its numbers are given again: who knew it must read all of it.
    values = {"name": encode_name(name), "generation": 0, "next_seq": 0, "next_concept": 0, "erased": moment}
    made = connection.execute(insert(namespaces).values(values)).inserted_primary_key
    assert made is not None
    return int(made[0])


def _link_row(namespace: int, seq: int, concept: int, link: ConceptLink) -> tuple[Any, ...]:
    surface = link.surface if link.is_grounding else None
    return namespace, seq, concept, float(link.weight), ORIGINS.index(link.origin), surface
