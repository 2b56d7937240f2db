"""Nothing acknowledged is lost when a process is killed at any moment, and nothing lands by half.

More trials: ``KILL_TRIALS=1000 make test``, or ``make trust``.
"""

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

from shared_core.entry import MemoryEntry
from shared_core.store import ConceptLink, EntryWrite, Store

ROOT = Path(__file__).parents[2]
TRIALS = int(os.environ.get("KILL_TRIALS", "6"))
ANNA = ("anna",)


def test_a_kill_at_any_moment_loses_nothing_acknowledged(tmp_path):
    ran = subprocess.run(
        [sys.executable, "-m", "tests.reliability.kill_trials", str(TRIALS)],
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=100 + 4 * TRIALS,
    )
    assert ran.returncode == 0, ran.stderr
    figures = json.loads(ran.stdout)
    assert figures["killed within a call"] > TRIALS // 2
    assert figures["remembered"] > TRIALS
    assert figures["assimilated"] > 0
    assert figures["forgotten"] > 0


def test_a_log_cut_short_by_a_power_cut_keeps_what_was_acknowledged_before_it(tmp_path):
    """A commit that has returned is on the disk: whatever of the log's rest is lost or torn, it stays."""
    path, log = tmp_path / "memory.db", tmp_path / "memory.db-wal"
    chance = random.Random(0)
    sizes = []
    with Store.open(path) as store:
        for number in range(12):
            said = ConceptLink(f"key {number}", f"key {number}", 1.0, "said")
            store.write(ANNA, [EntryWrite(MemoryEntry(f"text {number} " * 99, id=str(number)), (said,))])
            sizes.append(log.stat().st_size)
        written = log.read_bytes()
        cut = tmp_path / "cut.db"
        for trial in range(16):
            length = chance.randrange(len(written) + 1)
            torn = written[:length] + (chance.randbytes(chance.randrange(5000)) if trial % 2 else b"")
            shutil.copy(path, cut)
            Path(f"{cut}-wal").write_bytes(torn)
            with Store.open(cut) as left:
                ids = [one.entry.id for one in left.load(ANNA).entries]
                assert ids == [str(number) for number in range(sum(size <= length for size in sizes))]
                assert left.check() == []
