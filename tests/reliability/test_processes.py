"""Eight processes remember in one file: nothing lost, nothing doubled, no lock error reaches a caller.

As many writes as promised: ``PROCESS_WRITES=200 make test``.
"""

import json
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from shared_core.entry import MemoryEntry
from shared_core.errors import StoreUnavailableError
from shared_core.store import EntryWrite, Store, sqlite
from shared_core.upkeep import check_store

ROOT = Path(__file__).parents[2]
PROCESSES, WRITES = 8, int(os.environ.get("PROCESS_WRITES", "5"))


def test_processes_that_write_at_the_same_time_lose_and_double_nothing(tmp_path):
    path = tmp_path / "memory.db"  # they even make it together
    program = [sys.executable, "-m", "tests.reliability.many_processes", str(path), str(PROCESSES), str(WRITES)]
    ran = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=False, timeout=100 + 20 * WRITES)
    assert ran.returncode == 0, ran.stderr
    told = [json.loads(line)["added"] for line in ran.stdout.splitlines()]
    assert told == [WRITES] * PROCESSES
    with Store.open(path) as store:
        held = Counter(one.entry.id for one in store.load(("default",)).entries)
        assert held == Counter(f"w{number}-{n}" for number in range(PROCESSES) for n in range(WRITES))
        checked = check_store(store)
        assert (checked.entries, checked.faults) == (PROCESSES * WRITES, ())


def test_a_writer_waits_as_long_as_others_get_on(tmp_path, monkeypatch):
    """What is too long is that nobody stores anything, not that many others do."""
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.4)
    monkeypatch.setattr(sqlite, "_PATIENCE_SECONDS", 0.02)
    path = tmp_path / "memory.db"
    with Store.open(path) as store:
        store.write(("a",), [EntryWrite(MemoryEntry("text", "1"))])
        others = [sqlite3.connect(path, isolation_level=None, check_same_thread=False) for _ in range(2)]
        others[0].execute("BEGIN IMMEDIATE")

        def hold():
            # Two that hand the lock to each other, so that it is never free for long, and store something each time.
            for number in range(8):
                mine, next_one = others[number % 2], others[(number + 1) % 2]
                mine.execute("UPDATE memory_state SET generation = generation + 1")
                time.sleep(0.2)
                mine.execute("COMMIT")
                next_one.execute("PRAGMA busy_timeout = 20000")
                next_one.execute("BEGIN IMMEDIATE")
            others[0].execute("ROLLBACK")

        holder = threading.Thread(target=hold)
        holder.start()
        assert store.write(("a",), [EntryWrite(MemoryEntry("text", "2"))]).added == 1
        holder.join()
        for other in others:
            other.close()
        others = [sqlite3.connect(path, isolation_level=None)]
        others[0].execute("BEGIN IMMEDIATE")  # and stores nothing
        with pytest.raises(StoreUnavailableError, match=r"stored nothing for 0\.4 s"):
            store.write(("a",), [EntryWrite(MemoryEntry("text", "3"))])
        others[0].close()
