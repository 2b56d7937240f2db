"""The memory of a service."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn, Self

from shared_core.answering import Answer
from shared_core.config import SCGConfig
from shared_core.entry import DEFAULT_NAMESPACE, JSON, MemoryEntry, check_entries, check_ids, check_namespace
from shared_core.errors import NotFoundError, UnsupportedError
from shared_core.evolution import Progress, Report
from shared_core.filters import Filter, check_filter
from shared_core.interface import Memory, Unit
from shared_core.recall import Explanation, Recall, Stats
from shared_core.remote.connection import Call, Connection
from shared_core.remote.results import (
    answer_of,
    config_of,
    entries_of,
    erased_of,
    explanation_of,
    outcome_of,
    page_of,
    recall_of,
    stats_of,
    waited_of,
)
from shared_core.store import Erased, WriteOutcome

_SECONDS = 60.0
_READ_TOGETHER = 8  # entries that the model reads in one call: some seconds with a small model
_STORED_TOGETHER = 500
_CHARACTERS_TOGETHER = 1_000_000
_PAGE = 500


class RemoteMemory(Memory):
    """One namespace of a memory that a service keeps (``scg serve``): the methods of :class:`shared_core.SchemaMemory`.

    Calls that change nothing are sent again where the service does not answer, and so is what is remembered: its ids
    are made here, so that what arrives twice is stored once. An erasure is sent again only where it was never sent.

    What needs the store itself is not there: :attr:`store`, :attr:`schema`, :attr:`graph`, files, and conditions of
    other types than :class:`shared_core.Filter`.

    Args:
        address: ``http://host:port``.
        api_key: The key, as ``scg key add`` printed it.
        namespace: Whose memory.
        timeout: Seconds that an answer may take.

    Raises:
        InvalidInputError: if an argument cannot be used.
        AccessError: if the key is missing, wrong, or not for this namespace.
        StoreUnavailableError: if the service cannot be reached. So may every method.
    """

    def __init__(
        self,
        address: str,
        *,
        api_key: str | None = None,
        namespace: str | Sequence[str] = DEFAULT_NAMESPACE,
        timeout: float = _SECONDS,
    ) -> None:
        self._namespace = check_namespace(namespace)
        self._connection = Connection(address, api_key, timeout)
        self._owner = True
        try:
            self._config = self._connection.send(self._read("config"), config_of)
        except BaseException:
            self._connection.close()
            raise

    def in_namespace(self, namespace: str | Sequence[str]) -> Self:
        """Another namespace of the same service, over the same connections, with the same key."""
        name = check_namespace(namespace)
        other = type(self).__new__(type(self))
        other._namespace, other._connection, other._config, other._owner = name, self._connection, self._config, False
        return other

    @property
    def namespace(self) -> tuple[str, ...]:
        """The namespace."""
        return self._namespace

    @property
    def config(self) -> SCGConfig:
        """The settings of the service, as they were when the memory was opened."""
        return self._config

    @property
    def location(self) -> str:
        """The address."""
        return self._connection.address

    @property
    def entries(self) -> list[MemoryEntry]:
        """All entries, in the order they were first stored; fetched anew, some hundred at a time."""
        found: list[MemoryEntry] = []
        after: int | None = -1
        while after is not None:
            page, after = self._connection.send(
                Call("GET", "/v1/entries", self._namespace, True, query={"after": after, "limit": _PAGE}), page_of
            )
            found += page
        return found

    @property
    def store(self) -> NoReturn:
        """Nothing.

        Raises:
            UnsupportedError: always.
        """
        self._refuse("its store")

    @property
    def schema(self) -> NoReturn:
        """Nothing.

        Raises:
            UnsupportedError: always.
        """
        self._refuse("its schema")

    @property
    def graph(self) -> NoReturn:
        """Nothing.

        Raises:
            UnsupportedError: always.
        """
        self._refuse("its associative graph")

    def remember(
        self,
        what: str | MemoryEntry | Iterable[MemoryEntry],
        *,
        id: str | None = None,
        speaker: str | None = None,
        session: str | None = None,
        occurred_at: datetime | None = None,
        caption: str | None = None,
        metadata: dict[str, JSON] | None = None,
        use_model: bool = True,
        dedupe: bool = False,
        progress: Report | None = None,
    ) -> WriteOutcome:
        """Store what was said, some entries at a time; see :meth:`shared_core.SchemaMemory.remember`."""
        source = {"id": id, "speaker": speaker, "session": session, "occurred_at": occurred_at, "caption": caption}
        entries = _with_ids(check_entries(what, {**source, "metadata": metadata}), dedupe=dedupe)
        outcomes: list[WriteOutcome] = []
        for batch, done in _batches(entries, use_model=use_model):
            outcomes.append(self._connection.send(self._remembering(batch, use_model, dedupe), outcome_of))
            _tell(progress, done, len(entries))
        return _joined(outcomes)

    async def aremember(
        self,
        what: str | MemoryEntry | Iterable[MemoryEntry],
        *,
        id: str | None = None,
        speaker: str | None = None,
        session: str | None = None,
        occurred_at: datetime | None = None,
        caption: str | None = None,
        metadata: dict[str, JSON] | None = None,
        use_model: bool = True,
        dedupe: bool = False,
        progress: Report | None = None,
    ) -> WriteOutcome:
        """:meth:`remember`, without blocking the event loop."""
        source = {"id": id, "speaker": speaker, "session": session, "occurred_at": occurred_at, "caption": caption}
        entries = _with_ids(check_entries(what, {**source, "metadata": metadata}), dedupe=dedupe)
        outcomes: list[WriteOutcome] = []
        for batch, done in _batches(entries, use_model=use_model):
            outcomes.append(await self._connection.asend(self._remembering(batch, use_model, dedupe), outcome_of))
            _tell(progress, done, len(entries))
        return _joined(outcomes)

    def consolidate(self) -> int:
        """Let the model catch up; returns how many entries waited.

        It may take longer than an answer is waited for: then it goes on all the same.
        """
        return self._connection.send(self._write("consolidate"), waited_of)

    async def aconsolidate(self) -> int:
        """:meth:`consolidate`, without blocking the event loop."""
        return await self._connection.asend(self._write("consolidate"), waited_of)

    def recall(
        self, query: str, *, k: int | None = None, unit: Unit = "entries", where: Filter | None = None
    ) -> Recall:
        """Recall what belongs to a query."""
        return self._connection.send(self._ask("recall", where, query=query, k=k, unit=unit), recall_of)

    async def arecall(
        self, query: str, *, k: int | None = None, unit: Unit = "entries", where: Filter | None = None
    ) -> Recall:
        """:meth:`recall`, without blocking the event loop."""
        return await self._connection.asend(self._ask("recall", where, query=query, k=k, unit=unit), recall_of)

    def answer(self, query: str, *, k: int | None = None, where: Filter | None = None, free: bool = False) -> Answer:
        """Answer a question from what is recalled, with the service's model."""
        return self._connection.send(self._ask("answer", where, query=query, k=k, free=free), answer_of)

    async def aanswer(
        self, query: str, *, k: int | None = None, where: Filter | None = None, free: bool = False
    ) -> Answer:
        """:meth:`answer`, without blocking the event loop."""
        return await self._connection.asend(self._ask("answer", where, query=query, k=k, free=free), answer_of)

    def explain(self, query: str, entry_id: str, *, where: Filter | None = None) -> Explanation:
        """Why an entry comes back for a query, or does not."""
        return self._connection.send(self._ask("explain", where, query=query, entry_id=entry_id), explanation_of)

    async def aexplain(self, query: str, entry_id: str, *, where: Filter | None = None) -> Explanation:
        """:meth:`explain`, without blocking the event loop."""
        call = self._ask("explain", where, query=query, entry_id=entry_id)
        return await self._connection.asend(call, explanation_of)

    def get(self, id: str) -> MemoryEntry:
        """An entry by its id."""
        return _only(self.find([id]), id)

    async def aget(self, id: str) -> MemoryEntry:
        """:meth:`get`, without blocking the event loop."""
        return _only(await self.afind([id]), id)

    def find(self, ids: Collection[str]) -> list[MemoryEntry]:
        """Those of the entries that are stored, in the order of ``ids``."""
        return self._connection.send(self._read("get", {"ids": check_ids(ids)}), entries_of)

    async def afind(self, ids: Collection[str]) -> list[MemoryEntry]:
        """:meth:`find`, without blocking the event loop."""
        return await self._connection.asend(self._read("get", {"ids": check_ids(ids)}), entries_of)

    def forget(
        self,
        *,
        ids: Collection[str] | None = None,
        session: str | Collection[str] | None = None,
        speaker: str | Collection[str] | None = None,
        where: Filter | None = None,
    ) -> Erased:
        """Erase entries, and every concept that only they said."""
        return self._connection.send(self._forgetting(ids, session, speaker, where), erased_of)

    async def aforget(
        self,
        *,
        ids: Collection[str] | None = None,
        session: str | Collection[str] | None = None,
        speaker: str | Collection[str] | None = None,
        where: Filter | None = None,
    ) -> Erased:
        """:meth:`forget`, without blocking the event loop."""
        return await self._connection.asend(self._forgetting(ids, session, speaker, where), erased_of)

    def clear(self) -> Erased:
        """Erase the whole namespace."""
        return self._connection.send(self._write("clear"), erased_of)

    async def aclear(self) -> Erased:
        """:meth:`clear`, without blocking the event loop."""
        return await self._connection.asend(self._write("clear"), erased_of)

    def stats(self) -> Stats:
        """Figures of this namespace."""
        return self._connection.send(self._read("stats"), stats_of)

    async def astats(self) -> Stats:
        """:meth:`stats`, without blocking the event loop."""
        return await self._connection.asend(self._read("stats"), stats_of)

    def export(self, path: str | Path) -> NoReturn:
        """Nothing.

        Raises:
            UnsupportedError: always.
        """
        self._refuse("export; run `scg export` where the store is")

    def import_file(self, path: str | Path) -> NoReturn:
        """Nothing.

        Raises:
            UnsupportedError: always.
        """
        self._refuse("import; run `scg import` where the store is, or remember the entries")

    def close(self) -> None:
        """Close the connections, if this memory made them; else nothing. The service goes on."""
        if self._owner:
            self._connection.close()

    async def aclose(self) -> None:
        """:meth:`close`, and the connections that the ``a…`` twins made in this event loop."""
        if self._owner:
            await self._connection.aclose()

    def _read(self, name: str, body: dict[str, Any] | None = None) -> Call:
        return Call("GET" if body is None else "POST", f"/v1/{name}", self._namespace, True, body)

    def _write(self, name: str, body: dict[str, Any] | None = None) -> Call:
        return Call("POST", f"/v1/{name}", self._namespace, False, body)

    def _ask(self, name: str, where: Filter | None, **body: object) -> Call:
        given = {part: value for part, value in body.items() if value is not None}
        return self._read(name, given | _condition(where))

    def _forgetting(
        self,
        ids: Collection[str] | None,
        session: str | Collection[str] | None,
        speaker: str | Collection[str] | None,
        where: Filter | None,
    ) -> Call:
        body: dict[str, Any] = {} if ids is None else {"ids": check_ids(ids)}
        body |= Filter(session=session, speaker=speaker).to_dict()
        return self._write("forget", body | _condition(where))

    def _remembering(self, entries: Sequence[MemoryEntry], use_model: bool, dedupe: bool) -> Call:
        body = {"entries": [entry.to_dict() for entry in entries], "use_model": use_model, "dedupe": dedupe}
        return Call("POST", "/v1/remember", self._namespace, True, body)

    def _refuse(self, what: str) -> NoReturn:
        raise UnsupportedError(f"the memory at {self.location} is a service's, which does not give {what}")


def _with_ids(entries: list[MemoryEntry], *, dedupe: bool) -> list[MemoryEntry]:
    """The entries to send, each with an id: what is sent again is then stored once."""
    if dedupe:  # then the service finds by its content what it has, also what came just now
        return entries
    return [entry if entry.id is not None else entry.with_id(uuid.uuid4().hex) for entry in entries]


def _batches(entries: Sequence[MemoryEntry], *, use_model: bool) -> Iterator[tuple[list[MemoryEntry], int]]:
    """Entries for one call each, and how many were handed out; at least one call, which checks the key."""
    most = _READ_TOGETHER if use_model else _STORED_TOGETHER
    batch: list[MemoryEntry] = []
    size = 0
    for place, entry in enumerate(entries):
        length = len(json.dumps(entry.to_dict()))
        if batch and (len(batch) == most or size + length > _CHARACTERS_TOGETHER):
            yield batch, place
            batch, size = [], 0
        batch.append(entry)
        size += length
    yield batch, len(entries)


def _joined(outcomes: Sequence[WriteOutcome]) -> WriteOutcome:
    return WriteOutcome(
        sum(one.added for one in outcomes),
        sum(one.updated for one in outcomes),
        sum(one.unchanged for one in outcomes),
        tuple(dict.fromkeys(id for one in outcomes for id in one.ids)),
        all(one.wiped for one in outcomes),
        sum(one.expired for one in outcomes),
    )


def _condition(where: Filter | None) -> dict[str, Any]:
    check_filter(where)
    return {} if where is None or where.is_empty else {"where": where.to_dict()}


def _only(found: Sequence[MemoryEntry], id: str) -> MemoryEntry:
    if not found:
        raise NotFoundError(f"there is no entry {id!r:.200} in this namespace: check the id")
    return found[0]


def _tell(progress: Callable[[Progress], None] | None, done: int, total: int) -> None:
    if progress is not None:
        progress(Progress("remembering", done, total))
