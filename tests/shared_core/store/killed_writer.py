"""Run by test_crash: in each trial a forked child writes until it is killed with SIGKILL at a random moment.

Prints one JSON line a trial: the memory and the namespace, the ids whose write was acknowledged, and those whose
forgetting was.
"""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

from shared_core.entry import MemoryEntry
from shared_core.store import ConceptLink, EntryWrite, Store


def entry(id: str) -> EntryWrite:
    links = tuple(ConceptLink(f"key {id} {n}", f"Key {id} {n}", 1.0, "said") for n in range(5))
    return EntryWrite(MemoryEntry(f"text of {id} " * 30, id=id), links, assimilated=False)


def child(place: str, name: tuple[str, ...], acknowledge: int) -> None:
    signal.alarm(60)
    store = Store.open(place)
    number = 0
    while True:
        ids = [str(number + n) for n in range(3)]
        number += 3
        store.write(name, [entry(id) for id in ids])
        os.write(acknowledge, f"+ {' '.join(ids)}\n".encode())
        if number % 4 == 0:
            store.forget(name, ids=ids[:1])
            os.write(acknowledge, f"- {ids[0]}\n".encode())


def trial(place: str, name: tuple[str, ...], chance: random.Random) -> dict[str, object]:
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            child(place, name, write_end)
        finally:
            os._exit(1)
    os.close(write_end)
    with os.fdopen(read_end) as lines:
        acknowledged = [lines.readline() for _ in range(chance.randrange(8))]
        time.sleep(chance.random() * 0.02)
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        assert os.WIFSIGNALED(status), "the writer failed by itself"
        acknowledged += [line for line in lines if line.endswith("\n")]
    written = [id for line in acknowledged if line[0] == "+" for id in line[2:].split()]
    forgotten = [line[2:].strip() for line in acknowledged if line[0] == "-"]
    return {"place": place, "name": name, "written": written, "forgotten": forgotten}


if __name__ == "__main__":
    where, trials = sys.argv[1], int(sys.argv[2])
    for number in range(trials):
        # A file for each trial, or a namespace of a server's memory.
        place = where if "://" in where else str(Path(where) / f"{number}.db")
        sys.stdout.write(json.dumps(trial(place, (f"trial {number}",), random.Random(number))) + "\n")
