"""Settings of all properties, a small conversation to remember, and memories to remember it in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from shared_core import MemoryEntry, SchemaMemory

if TYPE_CHECKING:  # imports torch, which the tests of the store do without
    from shared_core.models import TransformersModel

_SAID = {
    ("allotment", 3): [
        ("Mira", "I planted a row of purple carrots by the shed"),
        ("Tobi", "My beehive swarmed again this morning"),
        ("Mira", "Did the bees settle in the pear tree?"),
        ("Tobi", "Yes, so I fetched them down with a ladder"),
        ("Mira", "The slugs have eaten every lettuce"),
        ("Tobi", "Put copper tape around the pots"),
        ("Mira", "A hedgehog sleeps under my compost heap"),
        ("Tobi", "Then leave the heap alone until spring"),
    ],
    ("workshop", 11): [
        ("Tobi", "I am building a canoe out of cedar strips"),
        ("Mira", "Where will you paddle it?"),
        ("Tobi", "On the reservoir behind the old mill"),
        ("Mira", "My violin needs new strings before the wedding"),
        ("Tobi", "Ask Oskar, he repairs instruments in Lindau"),
        ("Mira", "He quoted me ninety euros for the bow alone"),
        ("Tobi", "The cedar arrived wet, so the canoe has to wait"),
        ("Mira", "I sanded the garden bench and oiled it twice"),
    ],
    ("kitchen", 20): [
        ("Mira", "The carrots are ready, I made a cake of them"),
        ("Tobi", "I traded honey for a jar of pickled walnuts"),
        ("Mira", "My sister Petra is allergic to walnuts"),
        ("Tobi", "Then bring her the plum jam instead"),
        ("Mira", "Petra moves to Lindau in October"),
        ("Tobi", "I burned the bread while the kettle whistled"),
        ("Mira", "Your oven runs hot, use the lower shelf"),
        ("Tobi", "The canoe floats, we paddled to the mill"),
    ],
}


@pytest.fixture(scope="session")
def turns() -> list[MemoryEntry]:
    """24 turns of three sessions, with ids from "t01"."""
    entries: list[MemoryEntry] = []
    for (session, day), said in _SAID.items():
        for minute, (speaker, text) in enumerate(said):
            time = datetime(2024, 5, day, 9, minute)
            metadata = {"place": session, "minute": minute}
            id = f"t{len(entries) + 1:02}"
            entries.append(MemoryEntry(text, id, speaker, session, time, metadata=metadata))
    return entries


@pytest.fixture(scope="session")
def sensible_model(embedded: TransformersModel) -> TransformersModel:
    """The embedded model, for what depends on sense."""
    return embedded


@pytest.fixture(scope="session")
def small_model(tiny: Callable[[str], TransformersModel]) -> TransformersModel:
    """A model that knows nothing, but fast: for what does not depend on sense."""
    return tiny("llama")


@pytest.fixture
def open_memory(tmp_path: Path, small_model: TransformersModel) -> Iterator[Callable[..., SchemaMemory]]:
    """Opens ``memory.db``, or another place or URL; closed after the test."""
    with ExitStack() as opened:

        def make(place: str | Path = "memory.db", **options: Any) -> SchemaMemory:
            path = place if place == ":memory:" or "://" in str(place) else tmp_path / place
            return opened.enter_context(SchemaMemory.open(path, **({"model": small_model} | options)))

        yield make
