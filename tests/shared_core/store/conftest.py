"""What the tests of the store share."""

from pathlib import Path

import pytest

from shared_core.store import Store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a memory may be made."""
    return tmp_path / "memory.db"


@pytest.fixture(scope="module")
def shared_store():
    """A store in memory, for the many examples of one property; each starts by emptying it."""
    with Store.open(":memory:") as store:
        yield store


@pytest.fixture
def store(path: Path):
    """A store in a file."""
    with Store.open(path) as store:
        yield store
