"""Nothing acknowledged is lost when a process is killed at any moment, and nothing lands by half."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from shared_core.store import Store
from tests.shared_core.store.conftest import ENGINES

ROOT = Path(__file__).parents[3]
TRIALS = {"sqlite": 16, "postgresql": 3}


@pytest.mark.parametrize("engine", ENGINES)
def test_kill_at_any_moment_loses_nothing_acknowledged(request, tmp_path, engine):
    where = str(tmp_path) if engine == "sqlite" else request.getfixturevalue("empty_database")()
    run = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("killed_writer.py")), where, str(TRIALS[engine])],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=100,
    )
    trials = [json.loads(line) for line in run.stdout.splitlines()]
    assert len(trials) == TRIALS[engine]
    assert sum(len(trial["written"]) for trial in trials) > 3 * TRIALS[engine]
    assert sum(len(trial["forgotten"]) for trial in trials) > 0
    for trial in trials:
        check(**trial)


def check(place, name, written, forgotten):
    with Store.open(place) as store:  # a memory, an empty file, or nothing yet: all of them open
        state = store.load(tuple(name))
        found = [stored.entry.id for stored in state.entries]
        # At most one write of three, or one forgetting, was under way.
        in_flight = set(found) - set(written)
        assert in_flight <= {str(len(written) + n) for n in range(3)}
        assert len(in_flight) in (0, 3)
        missing = set(written) - set(found) - set(forgotten)
        assert missing <= set(written[-3:-2])
        assert not set(found) & set(forgotten)
        assert len(state.concepts) == len(state.link_entry) == 5 * len(found)
        assert [stored.seq for stored in state.entries] == [int(id) for id in found]
        assert all(not stored.assimilated for stored in state.entries)
        assert store.check() == []
        if store.path is None:
            return
        log = Path(f"{place}-wal")
        content = Path(place).read_bytes() + (log.read_bytes() if log.exists() else b"")
        for id in forgotten:
            assert f"text of {id} ".encode() not in content
            assert f"key {id} ".encode() not in content
