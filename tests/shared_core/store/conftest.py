"""What the tests of the store share. Those of both engines take ``store`` or ``shared_store``, or ask for a place."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from shared_core.store import Store
from shared_core.store.postgresql import SCHEMA
from shared_core.store.tables import schema

ENGINES = ("sqlite", "postgresql")
FEW = settings(max_examples=5)
"""For properties that were looked at in many examples on SQLite: on a server an example takes several times as long."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a memory may be made."""
    return tmp_path / "memory.db"


@pytest.fixture(scope="session")
def one_database(postgres):
    """A database for one test after the other: making one for each would take most of their time."""
    return postgres.database()


@pytest.fixture(scope="session")
def empty_database(postgres, one_database) -> Callable[[], str]:
    """Empties it; returns its URL."""
    url = postgres.url(one_database)
    Store.open(url).close()
    names = [f"{SCHEMA}.{table.name}" for table in schema.sorted_tables if table.name != "memory_state"]

    def empty() -> str:
        with postgres.connect(one_database) as connection:
            connection.execute(f"SET lock_timeout TO '5s'; ALTER SEQUENCE {SCHEMA}.moments RESTART")
            connection.execute("; ".join(f"DELETE FROM {name}" for name in reversed(names)))
        return url

    return empty


@pytest.fixture(params=ENGINES)
def place(request, path) -> str:
    """Where a memory may be made, in a file or on a server."""
    return str(path) if request.param == "sqlite" else request.getfixturevalue("empty_database")()


@pytest.fixture(params=["file", "memory", "server"])
def somewhere(request, path) -> str:
    """Every kind of place that a memory may be made in."""
    if request.param == "server":
        return request.getfixturevalue("empty_database")()
    return str(path) if request.param == "file" else ":memory:"


@pytest.fixture(scope="module", params=ENGINES)
def shared_store(request):
    """A store in memory or on a server, for the examples of one property; each starts by emptying it."""
    return request.getfixturevalue("memory_store" if request.param == "sqlite" else "server_store")


@pytest.fixture(scope="module")
def memory_store():
    """A store in memory, for many examples."""
    with Store.open(":memory:") as store:
        yield store


@pytest.fixture(scope="module")
def server_store(empty_database):
    """A store on a server, for few examples."""
    with Store.open(empty_database()) as store:
        yield store


@pytest.fixture
def store(place: str):
    """A store in a file or on a server."""
    with Store.open(place) as store:
        yield store


@pytest.fixture
def filed(path: Path):
    """A store in a file, for tests that look at the file."""
    with Store.open(path) as store:
        yield store
