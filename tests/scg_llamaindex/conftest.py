"""Memories, nodes, and a language model that says what it is told."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.schema import TextNode

from scg_llamaindex import SCGRetriever
from shared_core import SchemaMemory
from shared_core.models import TransformersModel
from tests.scg_llamaindex.scripted import ScriptedLLM


@pytest.fixture(scope="session")
def model(embedded: TransformersModel) -> TransformersModel:
    """The embedded model, for what depends on sense."""
    return embedded


@pytest.fixture
def open_memory(tmp_path: Path, tiny: Callable[[str], TransformersModel]) -> Iterator[Callable[..., SchemaMemory]]:
    """Opens memories with a model that knows nothing, but fast; closed after the test."""
    with ExitStack() as opened:

        def make(place: str = ":memory:", **options: Any) -> SchemaMemory:
            path = place if place == ":memory:" else tmp_path / place
            return opened.enter_context(SchemaMemory.open(path, **({"model": tiny("llama")} | options)))

        yield make


@pytest.fixture(scope="session")
def nodes() -> list[TextNode]:
    return [
        TextNode(
            text="I adopted a puppy named Rex from the shelter!",
            id_="t1",
            metadata={"speaker": "Anna", "session": "May", "channel": "phone", "stars": 5},
        ),
        TextNode(
            text="We spent the weekend painting the kitchen green.",
            id_="t2",
            metadata={"channel": "phone", "speaker": "Ben", "session": "May", "occurred_at": "2024-05-12T10:00:00"},
        ),
        TextNode(
            text="My train to Lyon leaves at seven on Monday.",
            id_="t3",
            metadata={"speaker": "Ben", "session": "June", "channel": "letter", "occurred_at": "2024-06-02"},
        ),
        TextNode(text="The quince jelly workshop is sold out.", id_="t4", metadata={"channel": "club", "stars": 0}),
    ]


@pytest.fixture(scope="session")
def sensible(model: TransformersModel, nodes: list[TextNode]) -> Iterator[SchemaMemory]:
    """A memory of the nodes with the embedded model, for reading alone."""
    with SchemaMemory.open(":memory:", model=model) as memory:
        SCGRetriever.from_defaults(nodes=nodes, memory=memory, use_model=False)
        yield memory


@pytest.fixture
def scripted() -> Callable[..., ScriptedLLM]:
    """Makes a scripted language model; ``shown`` holds the prompts it got."""
    return lambda *script: ScriptedLLM(script=list(script) or ["Fine."])


@pytest.fixture
def stalled(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Runs a coroutine while a method waits for the event loop to turn: that fails where the loop waits for it."""

    def run(owner: type, name: str, use: Callable[[], Coroutine[Any, Any, None]]) -> None:
        go, held = threading.Event(), threading.Event()
        method = getattr(owner, name)

        def wait(*args: Any, **options: Any) -> Any:
            held.set()
            assert go.wait(30), f"the event loop did not run during {name}"
            return method(*args, **options)

        async def turn() -> None:
            while not held.is_set():  # noqa: ASYNC110 - another thread holds
                await asyncio.sleep(0.001)
            go.set()

        async def both() -> None:
            await asyncio.gather(use(), turn())

        monkeypatch.setattr(owner, name, wait)
        asyncio.run(both())

    return run


@pytest.fixture(autouse=True)
def no_embedding(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **options: Any) -> None:
        raise AssertionError("something was embedded")

    monkeypatch.setattr(BaseEmbedding, "get_text_embedding_batch", refuse)
    monkeypatch.setattr(BaseEmbedding, "get_query_embedding", refuse)
