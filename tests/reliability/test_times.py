"""Times are kept as they were given, wherever the machine stands."""

import time
from datetime import datetime, timedelta, timezone

import pytest

from shared_core import Filter, MemoryEntry, SCGConfig, SchemaMemory


@pytest.mark.parametrize("zone", ["Asia/Kolkata", "America/St_Johns", "UTC"])
def test_a_naive_time_stays_naive_whatever_the_time_zone_of_the_machine(tmp_path, monkeypatch, zone):
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        naive = datetime(2024, 3, 31, 2, 30)  # an hour that some places skip
        aware = naive.replace(tzinfo=timezone(timedelta(hours=-9, minutes=-30)))
        with SchemaMemory.open(tmp_path / "m.db", config=SCGConfig(assimilate=0)) as memory:
            memory.remember(
                [MemoryEntry("a kettle", "naive", occurred_at=naive), MemoryEntry("tea", "aware", occurred_at=aware)]
            )
            memory.export(tmp_path / "m.jsonl")
            copy = memory.in_namespace("copy")
            copy.import_file(tmp_path / "m.jsonl")
            for one in (memory, copy):
                assert one.get("naive").occurred_at == naive
                assert one.get("naive").occurred_at.tzinfo is None
                assert one.get("aware").occurred_at == aware
                assert one.get("aware").occurred_at.utcoffset() == timedelta(hours=-9, minutes=-30)
            where = Filter(before=datetime(2024, 3, 31, 12, tzinfo=timezone.utc))  # noqa: UP017
            assert [entry.id for entry in memory.entries if where.matches(entry)] == ["naive"]
            memory.forget(where=where)
            assert [entry.id for entry in memory.entries] == ["aware"]
    finally:
        monkeypatch.undo()
        time.tzset()
