"""The durable store: one file or database, many namespaces."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import TypeAlias

from sqlalchemy import URL, Connection

from shared_core.entry import MemoryEntry, check_ids, check_namespace, check_text
from shared_core.errors import InvalidInputError, StoreError, StoreUnavailableError, UnsupportedError
from shared_core.store import anticipating, loading, reading, scoring, writing
from shared_core.store.access import Access, OneMoment
from shared_core.store.checking import Fault, find_faults
from shared_core.store.collector import collector_paused
from shared_core.store.file_access import FileAccess
from shared_core.store.location import parse_location
from shared_core.store.models import list_models
from shared_core.store.repairing import Repaired, mend_rows
from shared_core.store.state import Anticipations, NamespaceChange, NamespaceState, ScoreColumns
from shared_core.store.values import (
    MAX_PLACE,
    Anticipated,
    ConceptLink,
    EntryWrite,
    Erased,
    HeldEntry,
    KeyScores,
    Known,
    NamespaceInfo,
    WriteOutcome,
)

Name: TypeAlias = tuple[str, ...]


class Store:
    """Entries, concepts and links of many namespaces, in one SQLite file or PostgreSQL database.

    Every call is one transaction and is durable when it returns. Several threads may share one store, and
    several processes one file or database. Every method may raise :class:`StoreError` when it is damaged or the
    store is closed, :class:`StoreUnavailableError` when it is locked, read-only or out of space, or its server is
    gone, and :class:`InvalidInputError` for a namespace or an id that is not one.
    """

    def __init__(self, access: Access) -> None:
        """Use :meth:`open`."""
        self._access = access

    @classmethod
    def open(cls, path_or_url: str | Path, *, create: bool = True) -> Store:
        """Open the memory at a path, a URL (``sqlite:///…``, ``postgresql+psycopg://…``) or ``":memory:"`` (nowhere).

        Args:
            path_or_url: Where the memory is. A ``Path`` is always a file.
            create: Make the memory if there is none.

        Raises:
            InvalidInputError: if it is neither a path nor the URL of a database this version writes to.
            NotFoundError: if there is no memory and ``create`` is false, or its folder does not exist.
            NotAMemoryError: if the file is something else; it is left untouched.
            StoreVersionError: if a newer version wrote the file; it is left untouched.
            StoreUnavailableError: if it cannot be opened for writing.
            StoreError: if it is damaged, or gone while its log is still there.
        """
        place = parse_location(path_or_url)
        return cls(_on_server(place, create=create) if isinstance(place, URL) else FileAccess(place, create=create))

    @property
    def path(self) -> Path | None:
        """The file; ``None`` for ``":memory:"`` and for a database."""
        return self._access.path

    def write(self, namespace: Name, writes: Iterable[EntryWrite], *, anew: bool = False) -> WriteOutcome:
        """Store entries with their links: all of them, or none if anything fails.

        An id that is there with the same content is left alone, links included. One with other content is
        replaced, text and links, and keeps its place. Inferred links to concepts that do not exist after
        the write are left out.

        Args:
            namespace: Where to store them.
            writes: The entries. An iterator is consumed inside the transaction: other writers wait for it, it
                must not use this store, and what it raises undoes the write.
            anew: Replace links also where the content is the same, as if it were other content.
        """
        name = check_namespace(namespace)
        remaining = iter(writes)
        chunk = list(islice(remaining, reading.CHUNK))
        if not chunk:
            return WriteOutcome(0, 0, 0, ())
        with self._access.writing(name) as connection:
            writer = writing.NamespaceWriter(connection, name, anew=anew)
            while chunk:
                writer.put(chunk)
                chunk = list(islice(remaining, reading.CHUNK))
            outcome = writer.finish()
        return replace(outcome, wiped=not outcome.updated or self._access.wipe())

    def assimilate(
        self, namespace: Name, links: Mapping[str, Sequence[ConceptLink]], anticipated: Anticipated | None = None
    ) -> None:
        """Add inferred links to entries and mark those entries as assimilated.

        Entries and concepts that are gone meanwhile are skipped, and so is a concept an entry has already.

        Args:
            namespace: Where the entries are.
            links: By entry id; an empty sequence marks the entry all the same.
            anticipated: What the model that inferred them expects of these entries.

        Raises:
            InvalidInputError: if a link is not of origin ``inferred``.
        """
        name = check_namespace(namespace)
        check_ids(links)
        for link in (link for entry_links in links.values() for link in entry_links):
            if link.origin != "inferred":
                raise InvalidInputError(f"assimilation adds inferred links, not {link.origin!r:.200}: use write")
        with self._namespace(name, write=True) as (connection, number):
            if number is not None:
                writing.add_inferred(connection, number, links, anticipated)

    def save_anticipations(self, namespace: Name, anticipated: Anticipated) -> None:
        """Store what a model expects of entries, in place of what was stored; entries that are gone are skipped."""
        name = check_namespace(namespace)
        check_ids(anticipated.by_id)
        with self._namespace(name, write=True) as (connection, number):
            if number is not None:
                writing.add_anticipated(connection, number, anticipated)

    def save_scores(self, namespace: Name, fingerprint: str, scores: Mapping[str, KeyScores]) -> None:
        """Store how one model reads keys, in place of earlier scores; keys that are gone are skipped.

        Does not change the generation: scores can be computed again at any time.
        """
        name = check_namespace(namespace)
        check_text(fingerprint, "fingerprint")
        check_ids(scores)
        with self._namespace(name, write=True) as (connection, number):
            if number is not None:
                scoring.put_scores(connection, number, fingerprint, scores)

    def save_columns(self, namespace: Name, fingerprint: str, state: NamespaceState, columns: ScoreColumns) -> None:
        """Store how one model reads many concepts, in columns: token ids as soon as the model has spelled them.

        Where neutral log-probabilities are not known, those that are stored stay, with their token ids. Concepts
        that are gone are skipped. Does not change the generation.

        Args:
            namespace: Where the concepts are.
            fingerprint: The model.
            state: What ``columns.concept`` indexes; it may be of an earlier moment.
            columns: The scores; ``columns.saved`` is ignored.
        """
        name = check_namespace(namespace)
        check_text(fingerprint, "fingerprint")
        with self._access.writing(name) as connection:
            scoring.put_columns(connection, name, fingerprint, state, columns)

    def load(self, namespace: Name, fingerprint: str | None = None) -> NamespaceState:
        """The whole namespace as of one moment; empty if it does not exist.

        Args:
            namespace: Which one.
            fingerprint: The model whose scores to load; ``None`` for no scores.
        """
        name = check_namespace(namespace)
        with self._access.reading() as connection, self._sound(), collector_paused():
            return loading.read_state(connection, name, fingerprint)

    def changes(self, namespace: Name, since: NamespaceState) -> NamespaceChange | None:
        """What was added to the namespace since a state of it, read at a cost in proportion to that.

        Returns:
            The change (see :meth:`.NamespaceState.after`); ``None`` if something was erased or replaced meanwhile:
            then only :meth:`load` will do, and nothing of the old state should be kept.
        """
        name = check_namespace(namespace)
        with self._access.reading() as connection, self._sound():
            return loading.read_change(connection, name, since)

    def load_scores(
        self, namespace: Name, fingerprint: str, state: NamespaceState, since: ScoreColumns | None = None
    ) -> ScoreColumns:
        """How one model reads the concepts of a state, in columns, as far as it is stored.

        Args:
            namespace: Where the concepts are.
            fingerprint: The model.
            state: What ``concept`` of the result indexes; it may be of an earlier moment.
            since: Read only what was saved after these were (see :meth:`.ScoreColumns.after`). They must belong to
                ``state`` or to one that it was made of by adding.
        """
        name = check_namespace(namespace)
        check_text(fingerprint, "fingerprint")
        with self._access.reading() as connection, self._sound():
            return scoring.read_columns(connection, name, fingerprint, state, None if since is None else since.saved)

    def load_anticipations(
        self, namespace: Name, fingerprint: str, state: NamespaceState, known: Anticipations | None = None
    ) -> Anticipations:
        """What one model expects of the entries of a state, as far as it is stored.

        Args:
            namespace: Where the entries are.
            fingerprint: The model.
            state: What ``entry`` of the result indexes; it may be of an earlier moment.
            known: What was loaded for an earlier state: then only what was stored since is read, if nothing was
                erased meanwhile.
        """
        name = check_namespace(namespace)
        check_text(fingerprint, "fingerprint")
        with self._access.reading() as connection, self._sound():
            return anticipating.read_anticipations(connection, name, fingerprint, state, known)

    @contextmanager
    def at_one_moment(self) -> Iterator[Store]:
        """A store for reading alone, in which all calls see the memory as it is now; it ends with the block.

        Until then an erasure cannot be wiped from the file.
        """
        with self._access.reading() as connection:
            yield Store(OneMoment(self._access, connection))

    @contextmanager
    def scan(self, namespace: Name, *, unvouched: bool = False) -> Iterator[tuple[int, Iterator[EntryWrite]]]:
        """The number of entries, and the entries as they would be written, in order, from one moment.

        Only a few hundred entries are in memory at a time. The moment ends with the ``with`` block, and until
        then an erasure cannot be wiped from the file. ``unvouched``: only those entries that an earlier version stored,
        without noting with which links.
        """
        with self._namespace(check_namespace(namespace), write=False) as (connection, number):
            if number is None:
                yield 0, iter(())
            else:
                yield reading.count_entries(connection, number), self._scan(connection, number, unvouched)

    def known(self, namespace: Name, ids: Collection[str]) -> dict[str, Known]:
        """Those of the ids that are stored, with the digest of their content."""
        wanted = check_ids(ids)
        with self._namespace(check_namespace(namespace), write=False) as (connection, number):
            return {} if number is None else reading.read_known(connection, number, wanted)

    def find_duplicates(self, namespace: Name, digests: Collection[str]) -> dict[str, str]:
        """Those of the digests that are stored, with the id of the earliest entry that has it."""
        wanted = check_ids(digests)
        with self._namespace(check_namespace(namespace), write=False) as (connection, number):
            return {} if number is None else reading.read_duplicates(connection, number, wanted)

    def get(self, namespace: Name, ids: Collection[str]) -> list[MemoryEntry]:
        """Those of the entries that are stored, in the order of ``ids``."""
        wanted = check_ids(ids)
        with self._namespace(check_namespace(namespace), write=False) as (connection, number), self._sound():
            return [] if number is None else reading.read_entries(connection, number, wanted)

    def held(self, namespace: Name, ids: Collection[str]) -> list[HeldEntry]:
        """Those of the entries that are stored, in the order of ``ids``, with what is noted of them."""
        wanted = check_ids(ids)
        with self._namespace(check_namespace(namespace), write=False) as (connection, number), self._sound():
            return [] if number is None else reading.read_held(connection, number, wanted)

    def page(self, namespace: Name, after: int = -1) -> list[HeldEntry]:
        """Some hundred entries in seq order, those after a place; an empty page is the end.

        Raises:
            InvalidInputError: if ``after`` is no number that a place can have.
        """
        if type(after) is not int or not -1 <= after <= MAX_PLACE:
            raise InvalidInputError("the place must be a whole number, -1 or that of an entry")
        with self._namespace(check_namespace(namespace), write=False) as (connection, number), self._sound():
            return [] if number is None else reading.read_page(connection, number, after)

    def touch(self, namespace: Name, ids: Collection[str], moment: float) -> None:
        """Note when entries were read, in seconds since 1970; unknown ids are passed over.

        Does not change the generation: what was said stays the same.
        """
        wanted = check_ids(ids)
        with self._namespace(check_namespace(namespace), write=True) as (connection, number):
            if number is not None:
                writing.touch_entries(connection, number, wanted, moment)

    def fingerprints(self) -> list[str]:
        """The models that scores were ever saved of."""
        with self._access.reading() as connection:
            return list_models(connection)

    def generation(self, namespace: Name) -> int:
        """A number that changes with every committed change of the namespace's entries or links.

        It never returns to an old value, not even when the namespace is cleared and made again. 0 while the
        namespace does not exist.
        """
        name = check_namespace(namespace)
        with self._access.reading() as connection:
            return reading.read_generation(connection, name)

    def forget(self, namespace: Name, *, ids: Collection[str]) -> Erased:
        """Remove entries, and the concepts nothing grounds any more; unknown ids are ignored.

        No byte of what was removed stays in a file: its pages are written afresh, which takes time in
        proportion to the file (about a second for 60 MB), so forget many ids in one call. The same holds
        for a :meth:`write` that replaces entries. A server is told to free the space, see :class:`.Erased`.
        """
        name, wanted = check_namespace(namespace), check_ids(ids)
        with self._namespace(name, write=True) as (connection, number):
            if number is None:
                return Erased(0, 0, 0)
            erased = writing.remove_entries(connection, number, wanted)
        return replace(erased, namespace=name, wiped=self._access.wipe())

    def clear(self, namespace: Name) -> Erased:
        """Remove a namespace with all it holds, its name included."""
        name = check_namespace(namespace)
        with self._namespace(name, write=True) as (connection, number):
            if number is None:
                return Erased(0, 0, 0)
            erased = writing.remove_namespace(connection, number)
        return replace(erased, namespace=name, wiped=self._access.wipe())

    def namespaces(self) -> list[NamespaceInfo]:
        """Every namespace with its size, in the order of their creation."""
        with self._access.reading() as connection, self._sound():
            return reading.list_namespaces(connection)

    def names(self, under: Name) -> list[Name]:
        """The namespaces at or under a name that hold an entry, in the order of their creation."""
        name = check_namespace(under)
        with self._access.reading() as connection, self._sound():
            return reading.read_names(connection, name)

    def check_usable(self) -> None:
        """Read from the store, and see that its tables are still those that this version works with."""
        with self._access.reading() as connection:
            self._access.check_version(connection)

    @property
    def location(self) -> str | None:
        """The file, or the address of a server's database without its password; ``None`` if it is kept nowhere."""
        return None if self._access.location == ":memory:" else self._access.location

    @property
    def is_closed(self) -> bool:
        """Whether it was closed."""
        return self._access.closed

    def check(self) -> list[Fault]:
        """Look at every row of the file; takes time in proportion to the file.

        Returns:
            What does not fit together; empty for a sound memory.
        """
        found: list[Fault] = []
        try:
            with self._access.reading() as connection:
                found.extend(find_faults(connection))
        except StoreUnavailableError:
            raise
        except StoreError as error:  # the damage may show only on the way, or at the end
            found.append(Fault("file", str(error)))
        # Of a memory that is kept nowhere nothing can be left.
        return [fault for fault in found if fault.kind != "erasure" or self.path is not None]

    def repair(self) -> Repaired:
        """Mend what :meth:`check` finds, but for damage to the database itself, see :func:`.salvage` for that.

        Raises:
            StoreError: if the database itself is damaged; nothing was changed.
        """
        with self._access.writing(None) as connection:
            repaired = mend_rows(connection)
        self._access.wipe()
        return repaired

    def back_up(self, path: str | Path) -> Path:
        """Write the memory as of one moment to a new SQLite file, which appears whole or not at all.

        Nobody may read the copy who may not read the memory's file. Readers and writers go on meanwhile. The copy is a
        memory like any other: open it, or put it in the place of the old one while nobody has that open (and remove
        that one's ``-wal`` and ``-shm`` files, which belong to no other). Into a database it goes with
        :func:`.migrate_memory`.

        Args:
            path: The file to write. An older one there is replaced.

        Returns:
            The path of the copy.

        Raises:
            InvalidInputError: if ``path`` is the memory itself or a file beside it, or not a file.
            StoreUnavailableError: if the file cannot be written, or is a memory that somebody has open; an older one
                is kept.
            StoreError: if the memory is damaged.
        """
        return self._access.back_up(path)

    def close(self) -> None:
        """Let go of the file. Calls after this fail; closing twice is fine."""
        self._access.close()

    def __enter__(self) -> Store:
        """The store itself; it is closed at the end of the block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the store."""
        self.close()

    @contextmanager
    def _namespace(self, name: Name, *, write: bool) -> Iterator[tuple[Connection, int | None]]:
        with self._access.writing(name) if write else self._access.reading() as connection:
            row = reading.find_namespace(connection, name)
            yield connection, None if row is None else row.number

    @contextmanager
    def _sound(self) -> Iterator[None]:
        try:
            yield
        except (ValueError, TypeError, LookupError, OverflowError) as error:
            raise self._access.damaged(f"{type(error).__name__}: {error}") from error

    def _scan(self, connection: Connection, number: int, unvouched: bool) -> Iterator[EntryWrite]:
        with self._sound():
            yield from reading.read_writes(connection, number, unvouched=unvouched)


def _on_server(url: URL, *, create: bool) -> Access:
    try:
        from shared_core.store.server_access import ServerAccess
    except ModuleNotFoundError as error:
        if error.name != "psycopg":
            raise
        raise UnsupportedError(
            "a memory in PostgreSQL needs psycopg, which is not installed: pip install 'scg-mem[postgres]'"
        ) from error
    return ServerAccess(url, create=create)
