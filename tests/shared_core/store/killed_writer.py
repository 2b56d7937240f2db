"""Run by test_crash: in each trial a forked child writes until it is killed with SIGKILL at a random moment.

Prints one JSON line a trial: the file, the ids whose write was acknowledged, and those whose forgetting was.
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

ANNA = ("anna",)


def entry(id: str) -> EntryWrite:
    links = tuple(ConceptLink(f"key {id} {n}", f"Key {id} {n}", 1.0, "said") for n in range(5))
    return EntryWrite(MemoryEntry(f"text of {id} " * 30, id=id), links, assimilated=False)


def child(path: Path, acknowledge: int) -> None:
    signal.alarm(60)
    store = Store.open(path)
    number = 0
    while True:
        ids = [str(number + n) for n in range(3)]
        number += 3
        store.write(ANNA, [entry(id) for id in ids])
        os.write(acknowledge, f"+ {' '.join(ids)}\n".encode())
        if number % 4 == 0:
            store.forget(ANNA, ids=ids[:1])
            os.write(acknowledge, f"- {ids[0]}\n".encode())


def trial(path: Path, chance: random.Random) -> dict[str, object]:
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            child(path, write_end)
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
    return {"path": str(path), "written": written, "forgotten": forgotten}


if __name__ == "__main__":
    folder, trials = Path(sys.argv[1]), int(sys.argv[2])
    for number in range(trials):
        sys.stdout.write(json.dumps(trial(folder / f"{number}.db", random.Random(number))) + "\n")
