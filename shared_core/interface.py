"""What a memory is to whoever uses one, wherever it is kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Literal, NoReturn, Self, TypeAlias

from shared_core.answering import Answer
from shared_core.config import SCGConfig
from shared_core.entry import JSON, MemoryEntry
from shared_core.errors import UnsupportedError
from shared_core.evolution import Report
from shared_core.filters import Filter
from shared_core.recall import Explanation, Recall, Stats
from shared_core.store import Erased, WriteOutcome

Unit: TypeAlias = Literal["entries", "concepts"]


class Memory(ABC):
    """One namespace of a memory: :class:`shared_core.SchemaMemory` in this process, or one that a service keeps.

    The methods are documented where they are carried out, in :class:`shared_core.SchemaMemory`. All of them may be
    called from several threads; the ``a…`` twins never block the event loop.
    """

    @property
    @abstractmethod
    def namespace(self) -> tuple[str, ...]:
        """The namespace."""

    @property
    @abstractmethod
    def config(self) -> SCGConfig:
        """The settings."""

    @property
    @abstractmethod
    def location(self) -> str | None:
        """The file or the address of the memory; ``None`` where it is kept nowhere."""

    @property
    @abstractmethod
    def entries(self) -> list[MemoryEntry]:
        """All entries, in the order they were first stored."""

    @abstractmethod
    def in_namespace(self, namespace: str | Sequence[str]) -> Self:
        """Another namespace of the same memory; it need not be closed."""

    @abstractmethod
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
        """Store what was said, and distil it into concepts."""

    @abstractmethod
    def consolidate(self) -> int:
        """Let the model catch up; returns how many entries waited."""

    @abstractmethod
    def recall(
        self, query: str, *, k: int | None = None, unit: Unit = "entries", where: Filter | None = None
    ) -> Recall:
        """Recall what belongs to a query."""

    @abstractmethod
    def answer(self, query: str, *, k: int | None = None, where: Filter | None = None, free: bool = False) -> Answer:
        """Answer a question from what is recalled."""

    @abstractmethod
    def explain(self, query: str, entry_id: str, *, where: Filter | None = None) -> Explanation:
        """Why an entry comes back for a query, or does not."""

    @abstractmethod
    def get(self, id: str) -> MemoryEntry:
        """An entry by its id."""

    @abstractmethod
    def find(self, ids: Collection[str]) -> list[MemoryEntry]:
        """Those of the entries that are stored, in the order of ``ids``."""

    @abstractmethod
    def forget(
        self,
        *,
        ids: Collection[str] | None = None,
        session: str | Collection[str] | None = None,
        speaker: str | Collection[str] | None = None,
        where: Filter | None = None,
    ) -> Erased:
        """Erase entries, and every concept that only they said."""

    @abstractmethod
    def clear(self) -> Erased:
        """Erase the whole namespace."""

    @abstractmethod
    def stats(self) -> Stats:
        """Figures of this namespace."""

    @abstractmethod
    def export(self, path: str | Path) -> int:
        """Write this namespace to a JSON Lines file; returns the number of entries."""

    @abstractmethod
    def import_file(self, path: str | Path) -> WriteOutcome:
        """Merge an exported file into this namespace."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the memory; of a namespace of another memory: nothing."""

    @abstractmethod
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

    @abstractmethod
    async def aconsolidate(self) -> int:
        """:meth:`consolidate`, without blocking the event loop."""

    @abstractmethod
    async def arecall(
        self, query: str, *, k: int | None = None, unit: Unit = "entries", where: Filter | None = None
    ) -> Recall:
        """:meth:`recall`, without blocking the event loop."""

    @abstractmethod
    async def aanswer(
        self, query: str, *, k: int | None = None, where: Filter | None = None, free: bool = False
    ) -> Answer:
        """:meth:`answer`, without blocking the event loop."""

    @abstractmethod
    async def aexplain(self, query: str, entry_id: str, *, where: Filter | None = None) -> Explanation:
        """:meth:`explain`, without blocking the event loop."""

    @abstractmethod
    async def aget(self, id: str) -> MemoryEntry:
        """:meth:`get`, without blocking the event loop."""

    @abstractmethod
    async def afind(self, ids: Collection[str]) -> list[MemoryEntry]:
        """:meth:`find`, without blocking the event loop."""

    @abstractmethod
    async def aforget(
        self,
        *,
        ids: Collection[str] | None = None,
        session: str | Collection[str] | None = None,
        speaker: str | Collection[str] | None = None,
        where: Filter | None = None,
    ) -> Erased:
        """:meth:`forget`, without blocking the event loop."""

    @abstractmethod
    async def aclear(self) -> Erased:
        """:meth:`clear`, without blocking the event loop."""

    @abstractmethod
    async def astats(self) -> Stats:
        """:meth:`stats`, without blocking the event loop."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # A memory is a door to one place: frameworks that copy the objects around it mean the same one.

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise UnsupportedError("an open memory cannot be pickled: open it again where it is needed")
