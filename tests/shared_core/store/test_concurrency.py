"""Threads share a store, and processes a file: nothing lost, nothing doubled, no lock error."""

import os
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from shared_core.entry import MemoryEntry
from shared_core.store import ConceptLink, EntryWrite, Store

ANNA = ("anna",)
ROOT = Path(__file__).parents[3]
WORKERS, ROUNDS = 4, 12


def test_several_processes_write_one_file(path):
    """They even make it together, and each erasure rewrites the file under the others."""
    program = str(Path(__file__).with_name("one_of_many.py"))
    workers = [
        subprocess.Popen(
            [sys.executable, program, str(path), str(worker), str(ROUNDS), str(path.with_name("start"))],
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for worker in range(WORKERS)
    ]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    path.with_name("start").touch()
    for worker in workers:
        _, errors = worker.communicate(timeout=100)
        assert worker.returncode == 0, errors
    with Store.open(path) as store:
        state = store.load(ANNA)
        expected = {f"{worker} {number} kept" for worker in range(WORKERS) for number in range(ROUNDS)}
        assert Counter(stored.entry.id for stored in state.entries) == Counter(expected | {"contested"})
        assert len(state.concepts) == WORKERS * ROUNDS + 1
        assert len(state.link_entry) == 2 * WORKERS * ROUNDS + 1
        assert len({stored.seq for stored in state.entries}) == len(state.entries)
        assert store.check() == []


def test_several_threads_share_one_store(somewhere):
    def work(worker):
        for number in range(10):
            name = ANNA if number % 2 else (f"worker {worker}",)
            said = ConceptLink("shared", f"Shared {worker}", 1.0, "said")
            own = ConceptLink(f"key {worker} {number}", "own", 1.0, "said")
            id = f"{worker} {number}"
            assert store.write(name, [EntryWrite(MemoryEntry(id, id=id), (said, own))]).added == 1
            store.assimilate(name, {id: [ConceptLink("key 0 1", "own", 0.3, "inferred")]})
            if number >= 8:
                assert store.forget(name, ids=[id]).entries == 1

    def read(_):
        for _ in range(25):
            state = store.load(ANNA)
            # Entry, own concept and both links land together, whatever else goes on.
            linked = Counter(state.link_entry.tolist())
            assert set(linked) == set(range(len(state.entries)))
            assert all(2 <= count <= 3 for count in linked.values())
            assert len(state.concepts) in (0, len(state.entries) + 1)
            assert len(store.get(ANNA, [stored.entry.id for stored in state.entries[:1]])) <= 1

    with Store.open(somewhere) as store, ThreadPoolExecutor(8) as pool:
        readers = [pool.submit(read, reader) for reader in range(2)]
        writers = [pool.submit(work, worker) for worker in range(6)]
        for future in writers + readers:
            future.result()
        assert len(store.load(ANNA).entries) == 6 * 4
        for worker in range(6):
            state = store.load((f"worker {worker}",))
            assert [stored.entry.id for stored in state.entries] == [f"{worker} {n}" for n in (0, 2, 4, 6)]
            assert dict(state.concepts)["shared"] == f"Shared {worker}"
