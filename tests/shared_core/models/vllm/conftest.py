"""A tiny model, on this machine and behind a server that speaks as vLLM does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from shared_core.models import load_model
from shared_core.models.vllm import server as sending
from tests.served import running
from tests.vllm_server import ServedModel

if TYPE_CHECKING:
    from shared_core.models import TransformersModel


@pytest.fixture(scope="session")
def tokenizer_folder(tiny: Callable[[str], TransformersModel], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tokenizer of the tiny models, and the configuration of one."""
    folder = tmp_path_factory.mktemp("tokenizer")
    model = tiny("llama")
    model._tokenizer.save_pretrained(folder)
    model._model.config.save_pretrained(folder)
    return folder


@pytest.fixture
def serve(tokenizer_folder: Path, small_model: TransformersModel) -> Iterator[Callable[..., SimpleNamespace]]:
    """Starts a server of the tiny model, with settings of :class:`ServedModel`, and opens it."""
    with ExitStack() as opened:

        def start(**settings: object) -> SimpleNamespace:
            served = ServedModel(small_model, **({"root": str(tokenizer_folder)} | settings))
            address = f"vllm+{opened.enter_context(running(served.app()))}/{served.name}"
            return SimpleNamespace(served=served, address=address, load=lambda extra="": load_model(address + extra))

        yield start


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pauses to speak of before something is sent again, and no key of this machine's."""
    monkeypatch.setattr(sending, "_FIRST_PAUSE", 0.001)
    monkeypatch.delenv("VLLM_API_KEY", raising=False)
