"""A vLLM server with the embedded model, on the processors of this machine.

Its environment is too large for `make test`: `make test-servers` makes it, and says where it is.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from shared_core.models import load_model

if TYPE_CHECKING:
    from shared_core.models import LanguageModel, TransformersModel

# It loads for a minute, on a machine that has nothing else to do.
_SECONDS = 600
KEY = "sesame"


@dataclass(frozen=True)
class VLLMServer:
    """A server that runs.

    Attributes:
        base: ``http://host:port``.
        folder: What it has loaded, in a folder that it shares with the tests.
        process: The process that answers.
    """

    base: str
    folder: Path
    process: subprocess.Popen[bytes]

    def address(self, key: str = KEY) -> str:
        """What opens its model."""
        return f"vllm+{self.base.replace('//', f'//:{key}@')}/smollm2"


@pytest.fixture(scope="session")
def vllm(embedded: TransformersModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[VLLMServer]:
    """The server, from before the first test that needs it to after the last test of all."""
    folder = Path(embedded._tokenizer.name_or_path)
    log = tmp_path_factory.mktemp("vllm") / "log"
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    options = {
        "model": folder,
        "served-model-name": "smollm2",
        "host": "127.0.0.1",
        "port": port,
        "api-key": KEY,
        "dtype": "float32",
        "max-model-len": 4096,
        "max-logprobs": 128,
        "block-size": 32,
    }
    command = [os.environ["VLLM_PYTHON"], "-m", "vllm.entrypoints.openai.api_server", "--enforce-eager"]
    command += [part for name, value in options.items() for part in (f"--{name}", str(value))]
    settings = {
        "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
    }
    with log.open("wb") as written:
        process = subprocess.Popen(
            command, env=os.environ | settings, stdout=written, stderr=written, start_new_session=True, cwd=log.parent
        )
    try:
        base = f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + _SECONDS
        while not _answers(base):
            running = process.poll() is None and time.monotonic() < deadline
            assert running, log.read_text(errors="replace")[-8000:]
            time.sleep(1)
        yield VLLMServer(base, folder, process)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _answers(base: str) -> bool:
    try:
        return httpx.get(f"{base}/health", timeout=5).is_success
    except httpx.TransportError:
        return False


@pytest.fixture(scope="session")
def remote(vllm: VLLMServer) -> LanguageModel:
    """The model on the server."""
    return load_model(vllm.address())
