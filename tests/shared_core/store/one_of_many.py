"""Run by test_concurrency: one of several processes that write to the same file at the same time."""

import signal
import sys
import time
from pathlib import Path

from shared_core.entry import MemoryEntry
from shared_core.store import ConceptLink, EntryWrite, Store

ANNA = ("anna",)


def work(path: Path, worker: str, rounds: int) -> None:
    said = ConceptLink("shared", "Shared", 1.0, "said")
    with Store.open(path) as store:
        seen = 0
        for number in range(rounds):
            own = ConceptLink(f"key {worker} {number}", f"key {worker} {number}", 1.0, "said")
            ids = [f"{worker} {number} {part}" for part in ("kept", "gone")]
            outcome = store.write(ANNA, [EntryWrite(MemoryEntry(f"text {id}", id=id), (said, own)) for id in ids])
            assert (outcome.added, outcome.updated) == (2, 0)
            store.write(ANNA, [EntryWrite(MemoryEntry(f"written by {worker}", id="contested"), (said,))])
            generation = store.generation(ANNA)
            assert generation > seen
            seen = generation
            assert store.forget(ANNA, ids=ids[1:]).entries == 1
            state = store.load(ANNA)
            assert len(state.link_entry) >= 2 * number


if __name__ == "__main__":
    signal.alarm(100)
    start = Path(sys.argv[1]).with_name("start")
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while not start.exists():
        time.sleep(0.002)
    work(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
