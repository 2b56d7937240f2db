"""What a retention does not keep is erased like what is forgotten; without one everything stays."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core import MemoryEntry, Retention, SCGConfig, SchemaMemory
from shared_core.errors import InvalidInputError

NOW = datetime(2025, 6, 1, tzinfo=UTC)
QUICK = SCGConfig(assimilate=0)
AGES = st.lists(st.none() | st.integers(-5, 40), max_size=12)


def entry(number, days):
    time = None if days is None else datetime.now(UTC) - timedelta(days=days)
    return MemoryEntry(f"kettle {number} whistles", str(number), occurred_at=time)


@given(ages=AGES, max_days=st.none() | st.integers(1, 40), most=st.none() | st.integers(1, 12))
def test_what_goes_is_too_old_or_too_much(ages, max_days, most):
    if max_days is None and most is None:
        return
    retention = Retention(None if max_days is None else timedelta(days=max_days), most)
    entries = [
        MemoryEntry("a", str(n), occurred_at=None if age is None else (NOW - timedelta(days=age)).replace(tzinfo=None))
        for n, age in enumerate(ages)
    ]
    young = [str(n) for n, age in enumerate(ages) if max_days is None or age is None or age <= max_days]
    kept = young if most is None else young[-most:]
    gone = retention.expired(entries, NOW)
    assert gone == [str(n) for n in range(len(ages)) if str(n) not in kept]


def test_it_is_applied_to_what_is_remembered_and_imported_and_when_asked(tmp_path):
    with SchemaMemory.open(tmp_path / "m.db", config=QUICK) as memory:
        memory.remember([entry(number, number) for number in range(10)])
        memory.in_namespace("other").remember([entry(number, number) for number in range(10)])
        assert memory.expire().entries == 0
        memory.export(tmp_path / "m.jsonl")
    retention = Retention(max_age=timedelta(days=6, hours=12), max_entries=5)
    with SchemaMemory.open(tmp_path / "m.db", config=QUICK, retention=retention) as memory:
        assert len(memory.entries) == 10  # opening erases nothing
        receipt = memory.expire()
        assert receipt.ids == ("0", "1", "7", "8", "9")
        assert receipt.wiped
        content = (tmp_path / "m.db").read_bytes() + (tmp_path / "m.db-wal").read_bytes()
        assert b"kettle 5" in content
        receipt = memory.remember(entry("new", None))
        assert (receipt.added, receipt.expired, receipt.wiped) == (1, 1, True)
        assert [one.id for one in memory.entries] == ["3", "4", "5", "6", "new"]
        other = memory.in_namespace("other")
        assert len(other.entries) == 10
        receipt = other.import_file(tmp_path / "m.jsonl")
        assert (receipt.added, receipt.updated, receipt.expired) == (0, 10, 5)
        assert [one.id for one in other.entries] == ["2", "3", "4", "5", "6"]
        receipt = memory.remember([entry(f"more {number}", None) for number in range(8)])
        assert (receipt.added, receipt.expired, len(memory.entries)) == (8, 8, 5)


@pytest.mark.parametrize(
    "options",
    [{}, {"max_age": timedelta(0)}, {"max_age": 90}, {"max_entries": 0}, {"max_entries": True}, {"max_entries": 1.5}],
)
def test_bounds_that_are_none_are_refused(options):
    with pytest.raises(InvalidInputError):
        Retention(**options)


def test_what_is_no_retention_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="Retention"):
        SchemaMemory.open(tmp_path / "m.db", retention=timedelta(days=1))
    assert list(tmp_path.iterdir()) == []
