"""Four workers in the same eight namespaces of a server; one is killed, and the server restarts under all.

As long as promised: ``LOAD_SECONDS=60 make test``. What is checked does not depend on the length.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from shared_core.store import Store
from shared_core.upkeep import check_store
from tests.reliability.load import WORKERS, check_entries

ROOT = Path(__file__).parents[2]
SECONDS = float(os.environ.get("LOAD_SECONDS", "2"))
NAMES = [f"u{number}" for number in range(8)]
KILLED = WORKERS - 1
_PATIENCE = 90


@pytest.mark.timeout(200 + 2 * SECONDS)
def test_nothing_is_lost_or_mixed_whatever_dies(postgres, tmp_path):
    place = postgres.url(postgres.database())
    logs = [tmp_path / f"{worker}.log" for worker in range(WORKERS)]
    program = [sys.executable, "-m", "tests.reliability.load", place, str(tmp_path), *NAMES]
    environment = os.environ | {"LOAD_ALARM": str(round(200 + 2 * SECONDS))}
    with subprocess.Popen(program, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as running:
        try:
            children = json.loads(running.stdout.readline())
            wait_for(logs, 3)
            begun = time.monotonic()
            sleep_until(begun + SECONDS / 3)
            postgres.stop(signal.SIGINT)
            postgres.start()
            wait_for(logs, 3)
            sleep_until(begun + SECONDS * 2 / 3)
            os.kill(children[KILLED], signal.SIGKILL)
            postgres.stop(signal.SIGQUIT)  # as in a crash
            postgres.start()
            wait_for(logs[:KILLED], 3)
            sleep_until(begun + SECONDS)
        finally:
            (tmp_path / "stop").touch()
        ended = json.loads(running.stdout.readline())
    assert ended == [-signal.SIGKILL if worker == KILLED else 0 for worker in range(WORKERS)]

    whole = [[line for line in log.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")] for log in logs]
    told = [json.loads(line) for lines in whole for line in lines]
    assert any(fate == "-" for fate, *_ in told)  # the restarts were felt
    with Store.open(place) as store:
        assert {info.name[0] for info in store.namespaces()} <= set(NAMES)
        found = Counter()
        for name in NAMES:
            state = store.load((name,))
            entries = [one.entry for one in state.entries]
            found.update((name, id) for id in check_entries(name, entries, {key for key, _ in state.concepts}))
        checked = check_store(store)
    assert (checked.entries, checked.faults) == (found.total(), ())
    by_fate = {fate: {"write": set(), "forget": set()} for fate in "+-?"}
    for fate, kind, name, ids in told:
        if kind in by_fate[fate]:
            by_fate[fate][kind] |= {(name, id) for id in ids}
    assert set(found.values()) <= {1}
    missing = by_fate["+"]["write"] - by_fate["+"]["forget"] - set(found) - by_fate["?"]["forget"]
    assert len(missing) <= 1  # a forgetting that nobody was told of
    assert all(id.startswith(f"p{KILLED}x") for _, id in missing)
    assert not set(found) & by_fate["+"]["forget"]
    assert not set(found) & by_fate["-"]["write"]
    assert by_fate["-"]["forget"] - by_fate["+"]["forget"] - by_fate["?"]["forget"] <= set(found) | missing
    # What nobody was told of is there whole, or not at all.
    untold = set(found) - by_fate["+"]["write"]
    assert all(id.startswith(f"p{KILLED}x") for _, id in untold - by_fate["?"]["write"])
    assert len(untold - by_fate["?"]["write"]) in (0, 2)
    forgotten = by_fate["+"]["forget"] | by_fate["?"]["forget"]
    pairs = Counter((name, id.rpartition("x")[0]) for name, id in untold - forgotten)
    assert set(pairs.values()) <= {2}

    calls = Counter(kind for fate, kind, *_ in told if fate == "+")
    failed = sum(fate != "+" for fate, *_ in told)
    kept = len(by_fate["+"]["write"])
    sys.stdout.write(f"{SECONDS:g} s: {len(told)} calls ({dict(calls)}), {failed} failed, {kept} entries written, ")
    sys.stdout.write(f"{found.total()} held at the end; 2 restarts of the server, 1 worker killed\n")


def wait_for(logs: list[Path], more: int) -> None:
    """Until every worker has written so many more lines."""
    wanted = {log: lines(log) + more for log in logs}
    deadline = time.monotonic() + _PATIENCE
    while any(lines(log) < least for log, least in wanted.items()):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def lines(log: Path) -> int:
    return log.read_bytes().count(b"\n") if log.exists() else 0


def sleep_until(moment: float) -> None:
    time.sleep(max(0.0, moment - time.monotonic()))
