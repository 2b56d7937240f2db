"""Processes that remember in one file at the same time: ``python -m tests.reliability.many_processes FILE 8 200``.

Prints one JSON line a process: how many entries it was told were added, and the longest wait for one, in seconds.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

from shared_core import MemoryEntry, SCGConfig, SchemaMemory


def work(path: Path, worker: str, writes: int) -> dict[str, object]:
    added, longest = 0, 0.0
    with SchemaMemory.open(path, config=SCGConfig(assimilate=0)) as memory:
        for number in range(writes):
            entry = MemoryEntry(f"{worker} saw the kettle {number} times", f"{worker}-{number}", worker)
            begun = time.monotonic()
            added += memory.remember(entry, use_model=False).added
            longest = max(longest, time.monotonic() - begun)
            if number % 20 == 19:
                assert memory.stats().entries > number  # a reader as well
    return {"worker": worker, "added": added, "longest": round(longest, 2)}


def main(path: Path, processes: int, writes: int) -> None:
    go, start = os.pipe()
    children = []
    for number in range(processes):
        pid = os.fork()  # nothing is open yet
        if pid == 0:
            signal.alarm(3000)
            code = 1
            try:
                os.close(start)
                os.read(go, 1)  # until the parent closes it
                os.write(sys.stdout.fileno(), f"{json.dumps(work(path, f'w{number}', writes))}\n".encode())
                code = 0
            finally:
                sys.excepthook(*sys.exc_info()) if code else None
                os._exit(code)
        children.append(pid)
    os.close(start)
    failed = [pid for pid in children if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])]
    sys.exit(len(failed))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
