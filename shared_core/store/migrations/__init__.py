"""Numbered migrations: the version of a file is how many of them it has seen.

A migration is never edited once released; a change of the tables is a new module ``m00N_…`` appended here.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection

from shared_core.store.migrations import m001_initial, m002_changes, m003_touched, m004_anticipations, m005_grounds

MIGRATIONS: tuple[Callable[[Connection], None], ...] = (
    m001_initial.upgrade,
    m002_changes.upgrade,
    m003_touched.upgrade,
    m004_anticipations.upgrade,
    m005_grounds.upgrade,
)


def newest() -> int:
    """The version this code writes."""
    return len(MIGRATIONS)


def upgrade(connection: Connection, version: int) -> None:
    """Bring tables of ``version`` (0: none yet) to the newest version, inside the caller's transaction."""
    for migration in MIGRATIONS[version:]:
        migration(connection)
