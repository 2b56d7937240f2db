"""Run by test_concurrency: one of several processes that write to the same memory at the same time."""

import signal
import sys
import time
from pathlib import Path

from shared_core.entry import MemoryEntry
from shared_core.store import ConceptLink, EntryWrite, Store

ANNA = ("anna",)


def work(place: str, worker: str, rounds: int) -> None:
    said = ConceptLink("shared", "Shared", 1.0, "said")
    with Store.open(place) as store:
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
    place, worker, rounds, start = sys.argv[1:]
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while not Path(start).exists():
        time.sleep(0.002)
    work(place, worker, int(rounds))
