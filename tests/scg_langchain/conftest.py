"""Memories, documents, and a chat model that says what it is told and keeps what it was asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import BaseMessage
from pydantic import Field

from scg_langchain import SCGVectorStore
from shared_core import SCGConfig, SchemaMemory
from shared_core.models import TransformersModel

# Entries are stored with the concepts that they say. What a model adds to them is the core's affair, and means nothing
# when a random model adds it; test_standard and test_swap run with every setting at its default.
QUICK = SCGConfig(assimilate=0)


@pytest.fixture(scope="session")
def model(embedded: TransformersModel) -> TransformersModel:
    """The embedded model, for what depends on sense."""
    return embedded


@pytest.fixture
def open_memory(tmp_path: Path, tiny: Callable[[str], TransformersModel]) -> Iterator[Callable[..., SchemaMemory]]:
    """Opens memories, closed after the test; with a model that knows nothing, but fast, unless another is given."""
    with ExitStack() as opened:

        def make(place: str = ":memory:", **options: Any) -> SchemaMemory:
            path = place if place == ":memory:" else tmp_path / place
            return opened.enter_context(
                SchemaMemory.open(path, **({"model": tiny("llama"), "config": QUICK} | options))
            )

        yield make


@pytest.fixture(scope="session")
def documents() -> list[Document]:
    return [
        Document(
            "I adopted a puppy named Rex from the shelter!",
            id="t1",
            metadata={"speaker": "Anna", "session": "May", "channel": "phone"},
        ),
        Document(
            "We spent the weekend painting the kitchen green.",
            id="t2",
            metadata={"speaker": "Ben", "session": "May", "channel": "phone", "occurred_at": "2024-05-12T10:00:00"},
        ),
        Document(
            "My train to Lyon leaves at seven on Monday.",
            id="t3",
            metadata={"speaker": "Ben", "session": "June", "channel": "letter", "occurred_at": "2024-06-02"},
        ),
        Document("The quince jelly workshop is sold out.", id="t4", metadata={"channel": "club", "places": 0}),
    ]


@pytest.fixture(scope="session")
def sensible(model: TransformersModel, documents: list[Document]) -> Iterator[SchemaMemory]:
    """A memory of the documents with the embedded model, for reading alone."""
    with SchemaMemory.open(":memory:", model=model) as memory:
        SCGVectorStore(memory).add_documents(documents, use_model=False)
        yield memory


class Scripted(FakeListChatModel):
    """Says its responses in turn."""

    asked: list[list[BaseMessage]] = Field(default_factory=list)

    def _call(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> str:
        self.asked.append(messages)
        return super()._call(messages, *args, **kwargs)


@pytest.fixture
def scripted() -> Callable[..., Scripted]:
    """Makes a scripted chat model; ``asked`` holds the prompts it got."""
    return lambda *responses: Scripted(responses=list(responses))
