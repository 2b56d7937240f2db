"""`scg serve` as a process: it says where it listens, finishes what it began, and loses nothing when it is killed."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from shared_core import MemoryEntry, RemoteMemory
from shared_core.errors import AccessError, StoreUnavailableError
from shared_core.serving import KeyFile
from shared_core.store import Store

ROOT = Path(__file__).parents[3]
NAME = ("users", "anna")
SCG = [sys.executable, "-c", "from shared_core.cli import main; main()"]


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory, small_model):
    folder = tmp_path_factory.mktemp("model")
    small_model._model.save_pretrained(folder)
    small_model._tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def start(tmp_path, model_folder):
    """Starts a service on the same memory and keys each time; it has been killed after the test."""

    @contextmanager
    def started():
        arguments = ["serve", "--memory", "memory.db", "--keys", "keys.json", "--port", "0", "--model", model_folder]
        process = subprocess.Popen(
            [*SCG, *map(str, arguments)],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=(tmp_path / "log").open("a"),
            text=True,
        )
        try:
            line = process.stdout.readline()
            told = re.fullmatch(r"Serving at (http://127\.0\.0\.1:\d+)\n", line)
            assert told, (line, (tmp_path / "log").read_text())
            yield process, told[1]
        finally:
            process.kill()
            process.communicate()

    return started


@pytest.mark.timeout(300)  # three processes, one of which loads a model
def test_it_ends_gracefully_and_survives_being_killed(start, tmp_path):
    key, _ = KeyFile(tmp_path / "keys.json").add(NAME)
    with start() as (process, address):
        with RemoteMemory(address, api_key=key, namespace=NAME) as remote:
            stored = remote.remember([MemoryEntry(f"bee {n}", f"{n:03}") for n in range(40)], use_model=False)
            assert stored.added == 40
            with pytest.raises(AccessError):
                remote.in_namespace(("users", "ben")).stats()
        process.send_signal(signal.SIGKILL)
        assert process.wait(30) == -signal.SIGKILL
    with start() as (process, address), httpx.Client(base_url=address, timeout=100) as client:
        with RemoteMemory(address, api_key=key, namespace=NAME) as remote:
            assert [entry.id for entry in remote.entries] == list(stored.ids)
        answers = []

        def consolidate():
            headers = {"Authorization": f"Bearer {key}", "X-SCG-Namespace": json.dumps(NAME)}
            answers.append(client.post("/v1/consolidate", headers=headers))

        running = threading.Thread(target=consolidate)
        running.start()
        while 'scg_requests_running{route="/v1/consolidate"} 1.0' not in httpx.get(f"{address}/metrics").text:
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        assert process.wait(100) == 0
        running.join()
        assert (answers[0].status_code, answers[0].json()) == (200, {"waited": 40})
    with pytest.raises(StoreUnavailableError, match="cannot be reached"):
        RemoteMemory(address, api_key=key, namespace=NAME)
    with Store.open(tmp_path / "memory.db") as store:
        assert store.check() == []
        assert sum(one.assimilated for one in store.known(NAME, list(stored.ids)).values()) == 40
    log = (tmp_path / "log").read_text()
    for secret in (key, "anna", "bee"):
        assert secret not in log


def test_it_refuses_to_start_where_it_cannot_serve(tmp_path):
    for arguments, told in (
        (("--host", "0.0.0.0"), "scg key add"),
        (("--keys", "none.json"), "scg key add"),
        (("--memory", "keys.json"), "not a memory"),
    ):
        (tmp_path / "keys.json").write_text('{"version": 1, "keys": []}\n' * 100)
        ran = subprocess.run(
            [*SCG, "serve", "--port", "0", *arguments],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=100,
        )
        assert (ran.returncode, ran.stdout) == (2, "")
        assert told in ran.stderr
        assert ran.stderr.count("\n") == 1
    assert {file.name for file in tmp_path.iterdir()} == {"keys.json"}
