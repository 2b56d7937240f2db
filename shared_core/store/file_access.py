"""The use of a SQLite file: threads in turn, and never a file that is not the one opened."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from sqlalchemy import Connection

from shared_core.errors import StoreError, StoreUnavailableError
from shared_core.store import copying, sqlite
from shared_core.store.access import Access


class FileAccess(Access):
    """Transactions on one file.

    Args:
        path: The file; ``None`` for a memory that is kept nowhere.
        create: Make the memory if there is none.

    Raises:
        StoreError, NotFoundError: see :func:`.sqlite.open_engine`.
    """

    def __init__(self, path: Path | None, *, create: bool) -> None:
        before = None if path is None else _identity(path)
        super().__init__(
            sqlite.open_engine(path, create=create), location=":memory:" if path is None else str(path), path=path
        )
        self._forked_in_use = False
        self._file = None if path is None else _identity(path)
        if before not in (None, self._file):  # the connection may be to the file that was there before
            self.close()
            raise StoreUnavailableError(f"the memory {path} was replaced while it was being opened: open it again")
        # Threads queue here rather than at SQLite's lock, which is polled.
        self._lock = threading.Lock()
        self._turns = 0
        self._holder: int | None = None

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """One read transaction."""
        self.check_usable()
        # A memory without a file has one connection, so there readers queue as well.
        turn = self._turn() if self.path is None else nullcontext()
        with turn, sqlite.reading(self.engine, self.location) as connection:
            yield connection

    @contextmanager
    def writing(self, namespace: tuple[str, ...] | None) -> Iterator[Connection]:
        """One write transaction, alone in the whole file."""
        self.check_usable()
        with self._turn(), sqlite.writing(self.engine, self.location) as connection:
            self.check_version(connection)  # a newer process may have changed the tables since they were opened
            yield connection
        if self.path is not None:
            self._check_same_file(self.path)  # what is acknowledged is in the file that is there now

    def check_version(self, connection: Connection) -> None:
        """See :func:`.sqlite.check_version`."""
        sqlite.check_version(connection, self.location)

    def wipe(self) -> bool:
        """Leave no byte of what was erased in the file, see :func:`.sqlite.wipe`."""
        return self.path is None or sqlite.wipe(self.engine)

    def back_up(self, path: str | Path) -> Path:
        """Write the memory as of now to a new file, see :func:`.copying.back_up`."""
        self.check_usable()
        return copying.back_up(self.engine, self.path, path)

    def damaged(self, what: str) -> StoreError:
        """The error of a file whose content does not hold together."""
        return sqlite.damaged(self.location, what)

    def check_usable(self) -> None:
        """Refuse to go on where the file cannot be used."""
        super().check_usable()
        if self._forked_in_use:
            raise StoreError(
                f"this process was forked while another thread used the memory {self.location}, which cannot be "
                "used here: fork before it is opened, or start processes with the method 'spawn'"
            )
        if self.path is not None:
            self._check_same_file(self.path)

    def leave_parent(self) -> None:
        """Close, in a forked child, the connections it inherited.

        With them SQLite believes that this process has the parent's locks, which a fork does not pass on. When
        the parent closes its last connection it would then remove the log this process goes on writing to.
        """
        if self._lock.locked() or sqlite.is_in_use(self.engine):
            self._forked_in_use = True
        elif self.path is not None:
            self.engine.dispose()

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if self._holder == threading.get_ident():  # a call from inside a write's iterator
            raise StoreUnavailableError(
                f"another call, which this one was made from, uses the memory {self.location}, and would be waited for "
                "for ever: nothing of this call was stored; make it when the other one has returned"
            )
        # As with another process's lock, the wait ends when nobody gets on.
        seen = self._turns
        while not self._lock.acquire(timeout=sqlite.BUSY_SECONDS):
            if self._turns == seen:
                raise StoreUnavailableError(
                    f"another call of this process used the memory {self.location} for "
                    f"{sqlite.BUSY_SECONDS:g} s: nothing of this write was stored; try again"
                )
            seen = self._turns
        self._turns += 1
        self._holder = threading.get_ident()
        try:
            yield
        finally:
            self._holder = None
            self._lock.release()

    def _check_same_file(self, path: Path) -> None:
        """Refuse to go on with a file that nobody can find any more.

        An open connection keeps a deleted file alive: what is written there is acknowledged, and gone at the end.
        """
        found = _identity(path)
        if found != self._file or found is None:
            what = "was deleted" if found is None else "was replaced by another file"
            raise StoreUnavailableError(
                f"the memory {self.location} {what} while it was open, so it cannot be opened here any more: nothing "
                "of this call was stored; put the file back, or restore a backup in its place and delete the -wal and "
                "-shm files beside it, then open the memory again"
            )


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file is at a path now."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
