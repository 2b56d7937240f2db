"""Who may use a memory, and when: nobody after it was closed, and never a forked child as if it were its parent."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NoReturn
from weakref import WeakSet

from sqlalchemy import Connection, Engine

from shared_core.errors import StoreError


class Access(ABC):
    """Transactions on one memory, for the threads of one process.

    Args:
        engine: Connects to the database.
        location: What to call the memory in messages.
        path: Its file, if it is one.
    """

    def __init__(self, engine: Engine, location: str, path: Path | None) -> None:
        self.engine = engine
        self.location = location
        self.path = path
        self.closed = False
        _all.add(self)

    @abstractmethod
    def reading(self) -> AbstractContextManager[Connection]:
        """One read transaction: everything in it sees the same moment."""

    @abstractmethod
    def writing(self, namespace: tuple[str, ...] | None) -> AbstractContextManager[Connection]:
        """One write transaction, alone in its namespace; ``None``: in all of the memory."""

    @abstractmethod
    def check_version(self, connection: Connection) -> None:
        """Refuse a memory that another version of this code has changed since it was opened.

        Raises:
            NotAMemoryError, StoreVersionError: if its tables are not those that this code works with.
        """

    @abstractmethod
    def wipe(self) -> bool:
        """Leave no byte of what was erased; returns whether that is certain."""

    @abstractmethod
    def back_up(self, path: str | Path) -> Path:
        """Write the memory as of now to a new file, see :meth:`.Store.back_up`."""

    @abstractmethod
    def damaged(self, what: str) -> StoreError:
        """The error of a memory whose content does not hold together."""

    @abstractmethod
    def leave_parent(self) -> None:
        """Give up, in a forked child, the connections it inherited."""

    def close(self) -> None:
        """Let go of the memory."""
        self.closed = True
        self.engine.dispose()

    def check_usable(self) -> None:
        """Refuse to go on where the memory cannot be used."""
        if self.closed:
            raise StoreError(f"the memory {self.location} was closed: open it again")


class OneMoment(Access):
    """The memory of another access as of one moment: all that is read is read in one transaction of it.

    Errors of the database are translated where that transaction was begun.

    Args:
        access: The other access.
        connection: Its read transaction.
    """

    def __init__(self, access: Access, connection: Connection) -> None:
        super().__init__(access.engine, access.location, access.path)
        self._access = access
        self._connection = connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """The transaction."""
        yield self._connection

    def writing(self, namespace: tuple[str, ...] | None) -> NoReturn:
        """Nothing is written at a moment that is gone."""
        raise StoreError(f"the memory {self.location} is being read as of one moment: write to it itself")

    def check_version(self, connection: Connection) -> None:
        """See :meth:`.Access.check_version`."""
        self._access.check_version(connection)

    def wipe(self) -> bool:
        """Nothing was erased here."""
        return True

    def back_up(self, path: str | Path) -> Path:
        """See :meth:`.Access.back_up`."""
        return self._access.back_up(path)

    def damaged(self, what: str) -> StoreError:
        """See :meth:`.Access.damaged`."""
        return self._access.damaged(what)

    def leave_parent(self) -> None:
        """The other access does."""

    def close(self) -> None:
        """The other access goes on."""


_all: WeakSet[Access] = WeakSet()


def _after_fork() -> None:
    for access in tuple(_all):
        access.leave_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
