"""A store for LangGraph that keeps its items in the memory's file, and finds them by recall."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from typing import Any, Final, TypeVar

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
)

from scg_langchain.conditions import choose_namespaces, meets_filter
from scg_langchain.items import WHOLE, StoredItem, new_item, searchable_text
from scg_langchain.operations import Operations, check_minutes, check_paths
from scg_langchain.scope import check_memory
from scg_langchain.selection import Selection
from scg_langchain.spelling import cleaned, read, spell
from shared_core import Filter, MemoryEntry, SchemaMemory
from shared_core.adapting import memory_in
from shared_core.errors import InvalidInputError, SCGError
from shared_core.recall import Recall

_T = TypeVar("_T")
_log = logging.getLogger(__name__)

# LangGraph allows no namespace of a store to begin like this, so nobody takes these for memories of their own.
_ROOT: Final = "langgraph"
_TTL_SETTINGS: Final = {"refresh_on_read", "omit_expired", "default_ttl", "sweep_interval_minutes"}


class SCGStore(BaseStore):
    """A LangGraph store: items with JSON values in namespaces, durable, searched by schema-constrained recall.

    Each namespace of the store is an isolated memory of its own in the file, with its own schema and graph; an item
    is an entry of it. Where :class:`langgraph.store.memory.InMemoryStore` is defined, the results are the same, in the
    same order. What differs: a search with a query returns what is recalled for it, best first, and does not fill
    up with items that have nothing to do with it; a prefix of many namespaces is one recall for each. A condition
    such as ``$gt`` on a field that is no number is not met, where the reference fails; ``created_at`` is kept when
    an item is put again; namespaces whose last item is gone are not listed.

    A batch reads before it writes. Its writes to one namespace are stored together; those to several are not one
    transaction. What is replaced or deleted leaves nothing in the file, which takes time in proportion to the file:
    put several in one batch. Without a query nothing needs the model.

    Args:
        memory: A memory of the file; the store's namespaces lie under its own.
        index: ``{"fields": ["text", "profile.name"]}``: which parts of a value an item is found by, if ``put`` does
            not say. ``None``: the whole value.
        ttl: As LangGraph defines it; expired items go with :meth:`sweep_ttl`, see :meth:`start_ttl_sweeper`.

    Raises:
        InvalidInputError: if a setting is unknown or cannot be used.
    """

    supports_ttl = True

    def __init__(
        self, memory: SchemaMemory, *, index: Mapping[str, Any] | None = None, ttl: TTLConfig | None = None
    ) -> None:
        super().__init__()
        check_memory(memory)
        self._memory = memory
        self._root = (*memory.namespace, _ROOT)
        self._store = memory.store
        self._paths = _searchable_paths(index)
        self.ttl_config = _checked_ttl(ttl)
        self._omits_expired = bool(ttl and ttl.get("omit_expired"))
        self._threads = ThreadPoolExecutor(max_workers=1, thread_name_prefix="scg-store")
        self._sweeping: tuple[threading.Thread, threading.Event] | None = None

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations.

        Raises:
            InvalidInputError: if an operation cannot be carried out; none was.
        """
        batch = Operations.of(ops)
        results = self._read(batch)
        for place, op in batch.queries.items():
            searched = self._searched(op)
            recalls = [memory.recall(cleaned(str(op.query)), k=k, where=where) for memory, k, where in searched]
            results[place] = self._ranked(op, recalls, searched)
        for memory, entries, gone in self._changes(batch):
            if entries:
                memory.remember(entries)
            if gone:
                memory.forget(ids=gone)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations, without blocking the event loop.

        Raises:
            InvalidInputError: if an operation cannot be carried out; none was.
        """
        batch = await self._run(partial(Operations.of, list(ops)))
        results = await self._run(partial(self._read, batch))
        for place, op in batch.queries.items():
            searched = await self._run(partial(self._searched, op))
            recalls = await asyncio.gather(
                *(memory.arecall(cleaned(str(op.query)), k=k, where=where) for memory, k, where in searched)
            )
            results[place] = await self._run(partial(self._ranked, op, recalls, searched))
        for memory, entries, gone in await self._run(partial(self._changes, batch)):
            if entries:
                await memory.aremember(entries)
            if gone:
                await memory.aforget(ids=gone)
        return results

    def sweep_ttl(self) -> int:
        """Erase the items whose time is over; returns how many."""
        count = 0
        for name in self._store.names(self._root):
            expired = [item for item in self._items(name) if item.is_expired(_now())]
            if expired:
                memory = memory_in(self._memory, name)
                count += memory.forget(ids=[spell(item.key) for item in expired]).entries
        return count

    async def asweep_ttl(self) -> int:
        """:meth:`sweep_ttl`, without blocking the event loop."""
        return await self._run(self.sweep_ttl)

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> None:
        """Erase expired items from time to time, until :meth:`stop_ttl_sweeper` or the end of the process.

        Args:
            sweep_interval_minutes: How often; ``None``: as the store's ``ttl`` says.

        Raises:
            InvalidInputError: if neither says how often.
        """
        minutes = sweep_interval_minutes or (self.ttl_config or {}).get("sweep_interval_minutes")
        if minutes is None:
            raise InvalidInputError("say how often to sweep: sweep_interval_minutes=5")
        check_minutes("sweep_interval_minutes", minutes)
        self.stop_ttl_sweeper()
        stop = threading.Event()
        thread = threading.Thread(target=self._sweep_until, args=(stop, 60 * minutes), name="scg-sweep", daemon=True)
        self._sweeping = thread, stop
        thread.start()

    def stop_ttl_sweeper(self) -> None:
        """Sweep no more; waits for a sweep that is under way."""
        if self._sweeping is not None:
            thread, stop = self._sweeping
            self._sweeping = None
            stop.set()
            thread.join()

    def _sweep_until(self, stop: threading.Event, seconds: float) -> None:
        while not stop.wait(seconds):
            try:
                self.sweep_ttl()
            except SCGError as error:  # locked for a while, say: the next sweep finds what this one left
                if self._store.is_closed:
                    return
                _log.warning("expired items were not erased: %s", error)

    def _read(self, batch: Operations) -> list[Result]:
        """The results of everything but queries."""
        results: list[Result] = [None] * batch.count
        for place, op in batch.reads.items():
            if isinstance(op, GetOp):
                results[place] = self._get(op)
            elif isinstance(op, SearchOp):
                results[place] = self._search(op)
            else:
                results[place] = self._list(op)
        return results

    def _get(self, op: GetOp) -> Item | None:
        name = self._spelled(op.namespace)
        held = self._store.held(name, [spell(op.key)])
        items = [item for item in map(StoredItem.from_held, held) if self._is_shown(item)]
        if not items:
            return None
        self._refresh(op.refresh_ttl, {name: items})
        return items[0].to_item(tuple(op.namespace))

    def _search(self, op: SearchOp) -> list[SearchItem]:
        """The items that meet the filter, in the order in which they were first put, namespace by namespace."""
        found = (
            (name, item, None)
            for name in self._store.names(self._spelled(op.namespace_prefix))
            for item in self._items(name)
            if self._is_shown(item) and (not op.filter or meets_filter(item.load(), op.filter))
        )
        return self._handed_out(op, list(islice(found, op.offset, op.offset + op.limit)))

    def _searched(self, op: SearchOp) -> list[tuple[SchemaMemory, int, Filter | None]]:
        """Where to recall for a query, how much, and which entries may come back."""
        wanted = op.offset + op.limit
        if not wanted:
            return []
        names = self._store.names(self._spelled(op.namespace_prefix))
        return [(memory_in(self._memory, name), wanted, self._selection(op, name)) for name in names]

    def _selection(self, op: SearchOp, name: tuple[str, ...]) -> Filter | None:
        if not op.filter and not self._omits_expired:
            return None
        condition = op.filter or {}
        hidden = {spell(item.key) for item in self._items(name) if not self._is_shown(item)}
        return Selection(
            lambda entry: entry.id not in hidden and meets_filter(StoredItem.from_entry(entry).load(), condition)
        )

    def _ranked(
        self, op: SearchOp, recalls: Sequence[Recall], searched: Sequence[tuple[SchemaMemory, int, Filter | None]]
    ) -> list[SearchItem]:
        """What was recalled in some namespaces as one list, best first."""
        found = [
            (memory.namespace, StoredItem.from_entry(one.entry), one.relevance)
            for recall, (memory, _, _) in zip(recalls, searched, strict=True)
            for one in recall.entries
        ]
        found.sort(key=lambda one: -one[2])
        return self._handed_out(op, found[op.offset : op.offset + op.limit])

    def _handed_out(
        self, op: SearchOp, found: Sequence[tuple[tuple[str, ...], StoredItem, float | None]]
    ) -> list[SearchItem]:
        read_now: dict[tuple[str, ...], list[StoredItem]] = {}
        for name, item, _ in found:
            read_now.setdefault(name, []).append(item)
        self._refresh(op.refresh_ttl, read_now)
        return [item.to_search_item(self._labels(name), score) for name, item, score in found]

    def _list(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        names = self._store.names(self._root)
        if self._omits_expired:
            names = [name for name in names if any(self._is_shown(item) for item in self._items(name))]
        return choose_namespaces(map(self._labels, names), op)

    def _changes(self, batch: Operations) -> list[tuple[SchemaMemory, list[MemoryEntry], list[str]]]:
        """By namespace: the entries to store, and the ids to forget."""
        changes = []
        for namespace, writes in batch.writes.items():
            name = self._spelled(namespace)
            held = map(StoredItem.from_held, self._store.held(name, [spell(key) for key in writes]))
            earlier = {item.key: item for item in held}
            entries = [self._entry(op, earlier.get(key)) for key, op in writes.items() if op.value is not None]
            gone = [spell(key) for key, op in writes.items() if op.value is None and key in earlier]
            changes.append((memory_in(self._memory, name), entries, gone))
        return changes

    def _entry(self, op: PutOp, earlier: StoredItem | None) -> MemoryEntry:
        value = op.value or {}
        paths = () if op.index is False else self._paths if op.index is None else op.index
        return new_item(op.key, value, op.ttl, earlier).to_entry(searchable_text(value, paths))

    def _items(self, name: tuple[str, ...]) -> Iterator[StoredItem]:
        """The items of a namespace, in the order in which they were first put."""
        page = self._store.page(name)
        while page:
            yield from map(StoredItem.from_held, page)
            page = self._store.page(name, page[-1].seq)

    def _is_shown(self, item: StoredItem) -> bool:
        return not (self._omits_expired and item.is_expired(_now()))

    def _refresh(self, wanted: bool, read_now: Mapping[tuple[str, ...], Sequence[StoredItem]]) -> None:
        """Note that items were read, where that makes them live longer."""
        if not wanted:
            return
        for name, items in read_now.items():
            mortal = [spell(item.key) for item in items if item.ttl is not None]
            if mortal:
                self._store.touch(name, mortal, _now().timestamp())

    def _spelled(self, namespace: Sequence[str]) -> tuple[str, ...]:
        return (*self._root, *map(spell, namespace))

    def _labels(self, name: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(read, name[len(self._root) :]))

    async def _run(self, call: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)


def _now() -> datetime:
    return datetime.now(UTC)


def _searchable_paths(index: Mapping[str, Any] | None) -> tuple[str, ...]:
    if index is None:
        return (WHOLE,)
    if not isinstance(index, Mapping):
        raise InvalidInputError(f"index must be a dict such as {{'fields': ['text']}}, not {index!r:.200}")
    unknown = sorted(set(index) - {"fields"})
    if unknown:
        raise InvalidInputError(f"index has no use for {', '.join(unknown)}: recall needs no embeddings, only 'fields'")
    fields = index.get("fields")
    if fields is None:
        return (WHOLE,)
    check_paths(fields)
    if not fields:
        raise InvalidInputError("index names no fields: leave it out to search whole values, or put with index=False")
    return tuple(fields)


def _checked_ttl(ttl: TTLConfig | None) -> TTLConfig | None:
    if ttl is None:
        return None
    if not isinstance(ttl, Mapping):
        raise InvalidInputError(f"ttl must be a dict such as {{'default_ttl': 60}}, not {ttl!r:.200}")
    unknown = sorted(set(ttl) - _TTL_SETTINGS)
    if unknown:
        raise InvalidInputError(f"ttl has no setting {', '.join(unknown)}: use {', '.join(sorted(_TTL_SETTINGS))}")
    for name in ("default_ttl", "sweep_interval_minutes"):
        minutes = ttl.get(name)
        if minutes is not None:
            check_minutes(name, minutes)
    for name in ("refresh_on_read", "omit_expired"):
        if not isinstance(ttl.get(name, False), bool):
            raise InvalidInputError(f"{name} is True or False, not {ttl.get(name)!r:.200}")
    return ttl
