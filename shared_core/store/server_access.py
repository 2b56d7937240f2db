"""The use of a memory on a PostgreSQL server, by any number of threads and processes at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import URL, Connection

from shared_core.errors import StoreError, StoreVersionError
from shared_core.store import copying, migrations, postgresql
from shared_core.store.access import Access
from shared_core.store.location import check_path, shown_url


class ServerAccess(Access):
    """Transactions on one database. Those that write different namespaces do not wait for each other.

    Args:
        url: The database.
        create: Make the memory if there is none.

    Raises:
        StoreError, NotFoundError, InvalidInputError: see :func:`.postgresql.open_engine`.
    """

    def __init__(self, url: URL, *, create: bool) -> None:
        super().__init__(postgresql.open_engine(url, create=create), location=shown_url(url), path=None)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """One read transaction."""
        self.check_usable()
        with postgresql.reading(self.engine, self.location) as connection:
            yield connection

    @contextmanager
    def writing(self, namespace: tuple[str, ...] | None) -> Iterator[Connection]:
        """One write transaction."""
        self.check_usable()
        with postgresql.writing(self.engine, self.location, namespace, migrations.newest()) as connection:
            yield connection

    def check_version(self, connection: Connection) -> None:
        """See :func:`.postgresql.read_version`."""
        version = postgresql.read_version(connection, self.location)
        if version != migrations.newest():
            raise StoreVersionError(f"the memory {self.location} has version {version}: open it again")

    def wipe(self) -> bool:
        """Free the space of what was erased. What the server's files and log still hold is its operator's."""
        postgresql.vacuum(self.engine)
        return False

    def back_up(self, path: str | Path) -> Path:
        """Write the memory as of now to a new SQLite file."""
        target = check_path(path)
        with self.reading() as original, copying.new_file(target) as copy:
            copying.copy_rows(original, copy)
        return target

    def damaged(self, what: str) -> StoreError:
        """The error of a memory whose content does not hold together."""
        return postgresql.damaged(self.location, what)

    def leave_parent(self) -> None:
        """Leave inherited connections to the parent: closing them here would end its sessions."""
        self.engine.dispose(close=False)
