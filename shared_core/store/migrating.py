"""Moving a memory from one place to another, and from one engine to the other."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from sqlalchemy import URL, Connection

from shared_core.errors import InvalidInputError, StoreError
from shared_core.store import copying
from shared_core.store.checking import find_faults
from shared_core.store.copying import CopiedNamespace
from shared_core.store.location import parse_location, shown_location
from shared_core.store.store import Store


def migrate_memory(source: str | Path, target: str | Path) -> list[CopiedNamespace]:
    """Copy a whole memory as of one moment to a place that holds none yet, and check the copy against it.

    Places, generations and what models computed are copied as they are, so a recall gives the same from the copy. What
    is written to the source meanwhile is not in it: stop its writers first. The source is left as it is.

    Args:
        source: A path or URL, as for :meth:`.Store.open`.
        target: Another one: a file that does not exist, or a database whose memory is empty or does not exist.

    Returns:
        The namespaces, with the digests that both have.

    Raises:
        NotFoundError: if there is no memory to copy.
        InvalidInputError: if there is something at the target, or left beside it.
        StoreError: if the source does not fit together, or the target cannot be written. Nothing is at the target then.
    """
    place = parse_location(target)
    if place is None:
        raise InvalidInputError("a memory cannot be migrated to one that is kept nowhere: name a file or a database")
    with Store.open(source, create=False) as store, store._access.reading() as original:
        fault = next(find_faults(original), None)
        if fault is not None:
            raise StoreError(
                f"the memory {shown_location(source)} does not fit together ({fault.what}): nothing was copied; mend "
                "it with 'scg repair' first"
            )
        with _new_memory(place, store.path) as copy:
            return copying.copy_rows(original, copy)


def _new_memory(place: Path | URL, source: Path | None) -> AbstractContextManager[Connection]:
    if isinstance(place, URL):
        from shared_core.store import postgresql  # psycopg need not be there

        return postgresql.new_memory(place)
    return copying.new_file(place, source=source, new=True)
