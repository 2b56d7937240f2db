"""The one door: remember, recall, answer, forget."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Self, TypeAlias, TypeVar

import numpy as np

from shared_core.answering import Answer, compose_answer
from shared_core.config import SCGConfig
from shared_core.decoding import FollowedSchema, Reading, SharedModel, SpokenSchema
from shared_core.entry import (
    DEFAULT_NAMESPACE,
    JSON,
    MemoryEntry,
    check_entries,
    check_ids,
    check_namespace,
    check_text,
)
from shared_core.errors import InvalidInputError, NotFoundError, StoreError
from shared_core.evolution import Evolution, Progress, Report
from shared_core.filters import Filter, check_filter
from shared_core.graph import AssociativeGraph
from shared_core.interface import Memory, Unit
from shared_core.models import LanguageModel, ModelSource
from shared_core.recall import (
    Explanation,
    FollowedAnticipations,
    FollowedSnapshot,
    Question,
    Recall,
    Recaller,
    SchemaView,
    Snapshot,
    Stats,
    check_count,
    generated_evidence,
    generated_seeds,
    seed_constraint,
    unweighed,
)
from shared_core.retention import Retention
from shared_core.store import Erased, HeldEntry, Store, WriteOutcome, export_namespace, import_namespace
from shared_core.threads import MemoryThreads

Remembered: TypeAlias = WriteOutcome
__all__ = ["Progress", "Recall", "Remembered", "SchemaMemory", "SchemaView", "Stats", "Unit"]

_T = TypeVar("_T")


class SchemaMemory(Memory):
    """A schema-constrained memory: one namespace of a store, with a language model to recall from it.

    Open one with :meth:`open`. All methods may be called from several threads; the ``a…`` twins never block the
    event loop. Use as a context manager, or call :meth:`close`.
    """

    def __init__(
        self,
        store: Store,
        engine: SharedModel,
        threads: MemoryThreads,
        namespace: tuple[str, ...],
        config: SCGConfig,
        retention: Retention | None,
        *,
        owner: bool,
    ) -> None:
        """Use :meth:`open`."""
        self._store = store
        self._engine = engine
        self._threads = threads
        self._namespace = namespace
        self._config = config
        self._retention = retention
        self._owner = owner
        self._write_lock = threading.Lock()
        self._followed = FollowedSnapshot(store, namespace)
        self._schema = FollowedSchema(store, namespace, engine.voice, config.score)
        self._anticipations = FollowedAnticipations(store, namespace, engine.voice)
        self._evolution = Evolution(
            store, namespace, config, engine.voice, lambda: self._current().state, self._schema.current
        )

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        model: ModelSource = None,
        namespace: str | Sequence[str] = DEFAULT_NAMESPACE,
        config: SCGConfig | None = None,
        retention: Retention | None = None,
        create: bool = True,
    ) -> Self:
        """Open the memory kept in a file, or in a PostgreSQL database.

        The model is loaded when it is first needed.

        Args:
            path: The file, a ``sqlite:///`` URL, ``":memory:"``, or ``postgresql+psycopg://user@host/database``
                (``pip install 'scg-mem[postgres]'``).
            model: A hub id, a local folder, a GGUF file, the address of a model on a vLLM server
                (``vllm+http://host:port/name``, ``pip install 'scg-mem[vllm]'``), a loaded (model, tokenizer) pair, or
                ``None`` for the embedded model. It serves recall; the application's own model may be any other.
            namespace: Which memory of it: one user, one agent. Parts are compared exactly.
            config: Settings; ``None`` for the measured defaults.
            retention: How long and how much to keep: applied after whatever is remembered, and by :meth:`expire`.
                ``None`` keeps everything.
            create: Make the memory if there is none.

        Raises:
            InvalidInputError: if the namespace is not one.
            NotFoundError: if there is no memory and ``create`` is false.
            StoreError: if it cannot be opened as a memory; it is left as it was.
        """
        if config is not None and not isinstance(config, SCGConfig):
            raise InvalidInputError(f"config must be an SCGConfig, not {type(config).__name__}: SCGConfig(k=5)")
        if retention is not None and not isinstance(retention, Retention):
            raise InvalidInputError(f"retention must be a Retention, not {type(retention).__name__}")
        if not isinstance(path, str | Path):
            raise InvalidInputError(f"the path of a memory must be text or a Path, not {type(path).__name__}")
        if isinstance(path, str) and path.startswith(("http://", "https://")):
            raise InvalidInputError(
                "that is the address of a service: RemoteMemory(address, api_key=…, namespace=…) from shared_core"
            )
        name = check_namespace(namespace)
        store = Store.open(path, create=create)
        return cls(store, SharedModel(model), MemoryThreads(), name, config or SCGConfig(), retention, owner=True)

    def in_namespace(self, namespace: str | Sequence[str]) -> Self:
        """Another namespace of the same memory, sharing store, model and threads; it need not be closed."""
        name = check_namespace(namespace)
        shared = (self._store, self._engine, self._threads)
        return type(self)(*shared, name, self._config, self._retention, owner=False)

    @property
    def namespace(self) -> tuple[str, ...]:
        """The namespace."""
        return self._namespace

    @property
    def config(self) -> SCGConfig:
        """The settings."""
        return self._config

    @property
    def location(self) -> str | None:
        """The file, or the address of a server's database without its password; ``None`` for ``":memory:"``."""
        return self._store.location

    @property
    def queued(self) -> int:
        """Recalls of this process that wait for the model."""
        return self._engine.queued

    @property
    def store(self) -> Store:
        """The store that holds this namespace and others, for reading what no recall is needed for."""
        return self._store

    @property
    def model(self) -> LanguageModel:
        """The language model; loads it."""
        return self._engine.voice().decoder.model

    @property
    def schema(self) -> SchemaView:
        """The schema as it is now."""
        return SchemaView.of(self._current())

    @property
    def graph(self) -> AssociativeGraph:
        """The associative graph as it is now, immutable; ``graph.to_networkx()`` for analysis."""
        return self._current().graph

    @property
    def entries(self) -> list[MemoryEntry]:
        """All entries, in the order they were first stored."""
        return [one.entry for one in self._current().entries]

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
    ) -> Remembered:
        """Store what was said, and distil it into concepts.

        Whatever the outcome reports is durable. If the call is interrupted, what was stored before stays, and
        the same call again, with the same ids, completes it.

        Args:
            what: A text, with its source in the keyword arguments, or one or more entries, which bring theirs.
            id: An id that exists is an update; ``None`` generates one.
            speaker: Who said it.
            session: The conversation it belongs to.
            occurred_at: When it was said.
            caption: What an attached image shows.
            metadata: A JSON object.
            use_model: Let the model infer concepts now. Without it thousands of entries a second are stored,
                recalled by what they say, and :meth:`consolidate` lets the model catch up.
            dedupe: Store no second copy of an entry that differs from one in the memory in its id only.
            progress: Told how far a long call is. It may read from the memory; what stores is refused.

        Returns:
            Ids, in order, and the numbers of entries added, updated and unchanged, and of those that the memory's
            retention then erased.

        Raises:
            InvalidInputError: if an entry cannot be stored; none of them was.
            ModelError: if the model is needed and cannot be loaded; nothing was stored.
            StoreError: if the store cannot be written.
            SCGError: of these kinds, if the store or the model fails midway; ``stored`` has the ids that are stored.
        """
        source = {"id": id, "speaker": speaker, "session": session, "occurred_at": occurred_at, "caption": caption}
        entries = check_entries(what, {**source, "metadata": metadata})
        with self._writing():
            named = self._with_ids(entries, dedupe)
            if use_model and self._needs_model(named):
                self._engine.voice()  # before anything is stored: a model that cannot be loaded changes nothing
            remembered = self._evolution.remember(named, use_model=use_model, report=progress or _ignore)
            return self._with_expired(remembered)

    def _with_expired(self, remembered: Remembered) -> Remembered:
        erased = self._expire()
        return replace(remembered, wiped=remembered.wiped and erased.wiped, expired=erased.entries)

    def _with_ids(self, entries: list[MemoryEntry], dedupe: bool) -> list[MemoryEntry]:
        if not dedupe:
            return [entry if entry.id is not None else entry.with_id(uuid.uuid4().hex) for entry in entries]
        digests = [entry.digest for entry in entries]
        same = self._store.find_duplicates(self._namespace, digests)
        # Ids that follow from the content: of two processes that store the same at once, the second changes nothing.
        derived = {digest: digest[:32] for digest in digests if digest not in same}
        stored = self._store.known(self._namespace, list(derived.values()))
        named = []
        for entry, digest in zip(entries, digests, strict=True):
            if digest not in same:
                taken = stored.get(derived[digest])
                free = taken is None or taken.digest == digest
                same[digest] = entry.id or (derived[digest] if free else uuid.uuid4().hex)
            named.append(entry.with_id(same[digest]))
        return named

    def _needs_model(self, entries: Sequence[MemoryEntry]) -> bool:
        if not self._config.assimilate and self._config.accommodation == "phrases":
            return False
        stored = self._store.known(self._namespace, [entry.id for entry in entries if entry.id is not None])
        known = [stored.get(entry.id or "") for entry in entries]
        return any(
            not entry.is_silent and (one is None or one.digest != entry.digest or not one.assimilated)
            for one, entry in zip(known, entries, strict=True)
        )

    def consolidate(self, progress: Report | None = None) -> int:
        """Let the model catch up: read every entry that it has not read, and weigh every concept.

        Those are entries that were stored without the model, imported, or read by another one. Concepts without a
        weight are found as well, but a search for them is less exact.

        Returns:
            How many entries waited.
        """
        with self._writing():
            return self._evolution.consolidate(progress or _ignore)

    def recall(
        self, query: str, *, k: int | None = None, unit: Unit = "entries", where: Filter | None = None
    ) -> Recall:
        """Recall what belongs to a query.

        Args:
            query: A question or any text.
            k: How many entries to return, or how many concepts to activate; ``None`` for ``config.k`` entries.
            unit: What ``k`` counts. With ``"concepts"`` every entry they lead to comes back.
            where: Which entries may come back.

        Returns:
            Entries with reasons, best first; empty if nothing is reached.

        Raises:
            InvalidInputError: if the query is empty or ``k`` is below 1.
        """
        question = self._question(query, k, unit, where)
        snapshot, schema = self._known()
        if schema is None:
            return Recall(query)
        reading = self._read(query, schema) if schema.trie.key_count else None
        return self._reconstruct(question, snapshot, schema, reading)

    def _read(self, query: str, schema: SpokenSchema) -> Reading:
        """What the model makes of a query (Eq. 11): the costly part of a recall, and one that can be replayed."""
        return self._ask(query, schema).result()

    def _ask(self, query: str, schema: SpokenSchema) -> Future[Reading]:
        return self._engine.queue().submit(query, [seed_constraint(schema, self._config)])

    def _known(self) -> tuple[Snapshot, SpokenSchema | None]:
        """What a recall runs on; an empty memory needs no model and has no schema."""
        snapshot = self._current()
        return snapshot, self._schema.current(snapshot.state) if snapshot.entries else None

    def _question(self, query: str, k: int | None, unit: Unit, where: Filter | None) -> Question:
        check_text(query, "query")
        if not query.strip():
            raise InvalidInputError("the query is empty: ask something")
        if unit not in ("entries", "concepts"):
            raise InvalidInputError(f"unit must be 'entries' or 'concepts', not {unit!r:.200}")
        check_count(k)
        check_filter(where)
        if unit == "concepts":
            return Question(query, None, k or self._config.concept_budget or self._config.k, where)
        return Question(query, k or self._config.k, self._config.concept_budget or None, where)

    def _reconstruct(
        self, question: Question, snapshot: Snapshot, schema: SpokenSchema, reading: Reading | None
    ) -> Recall:
        decoded = reading.keys[0] if reading else []
        calibrated = self._config.calibration and self._config.method != "sample"
        missing = unweighed(decoded, schema) if calibrated else np.zeros(0, dtype=np.int64)
        if len(missing):
            # Concepts that were never weighed are weighed when they come up.
            keys = [snapshot.keys[concept] for concept in schema.concept[missing].tolist()]
            neutral = {key: scores for group in self._engine.voice().weigh(keys) for key, (_, scores) in group.items()}
            schema = schema.learned(missing, np.concatenate([neutral[key] for key in keys]))
        generated = generated_seeds(decoded, schema, self._config)
        evidence = generated_evidence(decoded, schema)
        anticipation = None
        if reading and self._config.anticipation_weight:
            index = self._anticipations.current(snapshot.state)
            anticipation = index.similarities(reading.anticipation, len(snapshot.entries))
        return Recaller(snapshot, self._config).recall(question, generated, evidence, anticipation)

    def answer(self, query: str, *, k: int | None = None, where: Filter | None = None, free: bool = False) -> Answer:
        """Answer a question from what is recalled, with the memory's own model.

        The answer is the words of an entry, what a date in it means, yes or no, or a choice that the question offers,
        and comes with the entry it rests on. A small model answers poorly all the same; an application will rather
        hand ``recall(…).as_text()`` to its own.

        Args:
            query: As in :meth:`recall`, as are ``k`` and ``where``.
            k: Entries to answer from.
            where: Which entries may come back.
            free: Let the model write what it likes instead, at most ``config.answer_tokens`` tokens; such an answer
                need not be anywhere in the memory, and its sources are the entries that say most of its words.

        Returns:
            The answer's text, empty if nothing that was recalled supports one, or what is said of somebody else than
            the question names fits about as well; the entries it rests on; the recall.

        Raises:
            InvalidInputError: as :meth:`recall`.
        """
        return self._compose(self.recall(query, k=k, where=where), free=free)

    def _compose(self, recall: Recall, *, free: bool) -> Answer:
        if not recall.entries:
            return Answer("", recall)
        free_tokens = self._config.answer_tokens if free else None
        return compose_answer(recall, self.model, speakers=self._current().speakers, free_tokens=free_tokens)

    def explain(self, query: str, entry_id: str, *, where: Filter | None = None) -> Explanation:
        """Why an entry comes back for a query, and at which rank, or why it does not.

        Raises:
            NotFoundError: if there is no such entry.
            InvalidInputError: as :meth:`recall`.
        """
        check_filter(where)
        snapshot = self._current()
        place = _place_of(entry_id, snapshot)
        return _explanation(self.recall(query, k=len(snapshot.entries), where=where), snapshot, place, where)

    def get(self, id: str) -> MemoryEntry:
        """An entry by its id.

        Raises:
            NotFoundError: if there is none.
        """
        found = self._store.get(self._namespace, [id])
        if not found:
            raise NotFoundError(f"there is no entry {id!r:.200} in this namespace: check the id")
        return found[0]

    def find(self, ids: Collection[str]) -> list[MemoryEntry]:
        """Those of the entries that are stored, in the order of ``ids``."""
        return self._store.get(self._namespace, ids)

    def page(self, after: int = -1) -> list[HeldEntry]:
        """Some hundred entries with their places, in order, those after a place; an empty page is the end."""
        return self._store.page(self._namespace, after)

    def forget(
        self,
        *,
        ids: Collection[str] | None = None,
        session: str | Collection[str] | None = None,
        speaker: str | Collection[str] | None = None,
        where: Filter | None = None,
    ) -> Erased:
        """Erase entries, and every concept that only they said, from results, trie, graph and file.

        Args:
            ids: Which entries. Unknown ids are passed over.
            session: All entries of these sessions.
            speaker: All entries of these speakers. Conditions together must all hold.
            where: All entries that meet this condition.

        Returns:
            The receipt: which entries went, and how many concepts and links with them.

        Raises:
            InvalidInputError: if no condition is given; :meth:`clear` erases everything.
        """
        named = None if ids is None else set(check_ids(ids))
        check_filter(where)
        conditions = [Filter(session=session, speaker=speaker), where or Filter()]
        if ids is None and all(condition.is_empty for condition in conditions):
            raise InvalidInputError("say what to forget (ids, session, speaker, where), or call clear()")
        with self._writing():
            chosen = named
            if any(not condition.is_empty for condition in conditions):
                matching = {
                    one.entry.id
                    for one in self._current().entries
                    if one.entry.id is not None and all(each.matches(one.entry) for each in conditions)
                }
                chosen = matching if chosen is None else chosen & matching
            erased = self._store.forget(self._namespace, ids=list(chosen or ()))
            self._drop_snapshot()
            return erased

    def expire(self) -> Erased:
        """Erase what the memory's retention does not keep; nothing if it has none."""
        with self._writing():
            return self._expire()

    def _expire(self) -> Erased:
        gone = [] if self._retention is None else self._retention.expired(self.entries)
        if not gone:
            return Erased(0, 0, 0)
        erased = self._store.forget(self._namespace, ids=gone)
        self._drop_snapshot()
        return erased

    def clear(self) -> Erased:
        """Erase the whole namespace."""
        with self._writing():
            erased = self._store.clear(self._namespace)
            self._drop_snapshot()
            return erased

    def stats(self) -> Stats:
        """Figures of this namespace."""
        return Stats.of(self._current())

    def export(self, path: str | Path) -> int:
        """Write this namespace to a JSON Lines file, whole or not at all; returns the number of entries."""
        return export_namespace(self._store, self._namespace, path)

    def import_file(self, path: str | Path, progress: Report | None = None) -> Remembered:
        """Merge an exported file into this namespace, whole or not at all; an id that exists is an update.

        An export has no numbers that a model computed: :meth:`consolidate` makes them again, and until then recall is
        less exact.

        Raises:
            FormatError: if the file is not an export; names the line.
        """
        report = progress or _ignore
        with self._writing():
            imported = import_namespace(
                self._store,
                self._namespace,
                path,
                progress=lambda done, total: report(Progress("importing", done, total or done)),
            )
            return self._with_expired(imported)

    def close(self) -> None:
        """Finish running calls and close the store, if this memory opened it; else nothing."""
        if self._owner:
            self._threads.close()
            self._engine.close()
            self._store.close()

    # Async twins: writes on one thread, store and ranking of recalls on another, decodes in the model's queue, and
    # what else the model does for a recall or an answer on a third.

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
    ) -> Remembered:
        """:meth:`remember`, without blocking the event loop."""
        call = partial(
            self.remember,
            what,
            id=id,
            speaker=speaker,
            session=session,
            occurred_at=occurred_at,
            caption=caption,
            metadata=metadata,
            use_model=use_model,
            dedupe=dedupe,
            progress=progress,
        )
        return await self._run(self._threads.writer, call)

    async def aconsolidate(self, progress: Report | None = None) -> int:
        """:meth:`consolidate`, without blocking the event loop."""
        return await self._run(self._threads.writer, partial(self.consolidate, progress))

    async def arecall(
        self, query: str, *, k: int | None = None, unit: Unit = "entries", where: Filter | None = None
    ) -> Recall:
        """:meth:`recall`, without blocking the event loop; recalls that run at the same time share the model."""
        question = self._question(query, k, unit, where)
        if not self._engine.loaded and (await self._run(self._threads.reader, self._current)).entries:
            await self._run(self._threads.asker, self._engine.voice)  # may take long: others read meanwhile
        snapshot, schema = await self._run(self._threads.reader, self._known)
        if schema is None:
            return Recall(query)
        reading: Reading | None = None
        if schema.trie.key_count:
            reading = await asyncio.wrap_future(self._ask(query, schema))
        return await self._run(self._threads.reader, partial(self._reconstruct, question, snapshot, schema, reading))

    async def aanswer(
        self, query: str, *, k: int | None = None, where: Filter | None = None, free: bool = False
    ) -> Answer:
        """:meth:`answer`, without blocking the event loop."""
        recall = await self.arecall(query, k=k, where=where)
        return await self._run(self._threads.asker, partial(self._compose, recall, free=free))

    async def aexplain(self, query: str, entry_id: str, *, where: Filter | None = None) -> Explanation:
        """:meth:`explain`, without blocking the event loop."""
        check_filter(where)
        snapshot = await self._run(self._threads.reader, self._current)
        place = _place_of(entry_id, snapshot)
        return _explanation(await self.arecall(query, k=len(snapshot.entries), where=where), snapshot, place, where)

    async def aget(self, id: str) -> MemoryEntry:
        """:meth:`get`, without blocking the event loop."""
        return await self._run(self._threads.reader, partial(self.get, id))

    async def afind(self, ids: Collection[str]) -> list[MemoryEntry]:
        """:meth:`find`, without blocking the event loop."""
        return await self._run(self._threads.reader, partial(self.find, ids))

    async def apage(self, after: int = -1) -> list[HeldEntry]:
        """:meth:`page`, without blocking the event loop."""
        return await self._run(self._threads.reader, partial(self.page, after))

    async def aforget(
        self,
        *,
        ids: Collection[str] | None = None,
        session: str | Collection[str] | None = None,
        speaker: str | Collection[str] | None = None,
        where: Filter | None = None,
    ) -> Erased:
        """:meth:`forget`, without blocking the event loop."""
        call = partial(self.forget, ids=ids, session=session, speaker=speaker, where=where)
        return await self._run(self._threads.writer, call)

    async def aclear(self) -> Erased:
        """:meth:`clear`, without blocking the event loop."""
        return await self._run(self._threads.writer, self.clear)

    async def astats(self) -> Stats:
        """:meth:`stats`, without blocking the event loop."""
        return await self._run(self._threads.reader, self.stats)

    async def _run(self, pool: Executor, call: Callable[[], _T]) -> _T:
        self._engine.check_process()
        if pool is self._threads.writer:
            self._threads.refuse_nested()
        try:
            future = asyncio.get_running_loop().run_in_executor(pool, call)
        except RuntimeError as error:
            raise StoreError("the memory was closed: open it again") from error
        return await future

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Writers take turns."""
        self._engine.check_process()  # before a lock that a forked process may have inherited locked
        with self._threads.storing(), self._write_lock:
            yield

    def _current(self) -> Snapshot:
        """The snapshot of now, with what this or another process has written."""
        self._engine.check_process()  # before a lock that a forked process may have inherited locked
        return self._followed.current()

    def _drop_snapshot(self) -> None:
        """Let nothing of what was erased live on in this process."""
        self._followed.drop()
        self._schema.drop()
        self._anticipations.drop()
        self._engine.forget()


def _ignore(progress: Progress) -> None:
    """Tell nobody."""


def _place_of(entry_id: str, snapshot: Snapshot) -> int:
    places = {one.entry.id: place for place, one in enumerate(snapshot.entries)}
    if entry_id not in places:
        raise NotFoundError(f"there is no entry {entry_id!r:.200} in this namespace: check the id")
    return places[entry_id]


def _explanation(everything: Recall, snapshot: Snapshot, place: int, where: Filter | None) -> Explanation:
    entry = snapshot.entries[place].entry
    concepts, _ = snapshot.graph.by_entry.row(place)
    return Explanation.of(
        everything,
        entry,
        tuple(snapshot.surfaces[concept] for concept in concepts),
        excluded=where is not None and not where.matches(entry),
    )
