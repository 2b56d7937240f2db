"""Entries that are kept for their metadata and say nothing."""

from __future__ import annotations

import threading

import pytest

from shared_core import MemoryEntry, SCGConfig, SchemaMemory
from shared_core.errors import InvalidInputError

SILENT = [MemoryEntry("", "s1", metadata={"value": 1}), MemoryEntry(" \n", "s2", metadata={"value": "puppy"})]


@pytest.mark.parametrize("fields", [{}, {"metadata": {}}, {"speaker": "Anna"}, {"caption": ""}])
def test_an_entry_needs_something_to_keep(fields):
    with pytest.raises(InvalidInputError, match="some text, a caption or metadata"):
        MemoryEntry("  ", **fields)
    assert not MemoryEntry("", caption="a puppy").is_silent
    assert SILENT[1].is_silent


@pytest.mark.parametrize("accommodation", ["phrases", "spans"])
def test_they_need_no_model_and_wait_for_none(accommodation):
    memory = SchemaMemory.open(":memory:", model="/nowhere", config=SCGConfig(accommodation=accommodation))
    assert memory.remember(SILENT).added == 2
    assert memory.entries == SILENT
    assert memory.stats().waiting == memory.stats().concepts == memory.consolidate() == 0
    memory.forget(ids=["s1"])
    assert memory.entries == SILENT[1:]


@pytest.mark.parametrize("accommodation", ["phrases", "spans"])
def test_they_are_never_recalled(open_memory, tmp_path, turns, accommodation):
    config = SCGConfig(accommodation=accommodation)
    memory = open_memory(config=config)
    memory.remember([SILENT[0], *turns[:4], SILENT[1]])
    assert memory.stats().waiting == 0
    for query in ("Did the bees settle?", "puppy", "value", "carrots"):
        assert not {"s1", "s2"} & {one.entry.id for one in memory.recall(query, k=9).entries}
    memory.export(tmp_path / "all.jsonl")
    twin = open_memory("twin.db", config=config)
    twin.import_file(tmp_path / "all.jsonl")
    assert twin.entries == memory.entries


def test_an_entry_may_fall_silent_and_speak_again(open_memory):
    memory = open_memory()
    memory.remember("a puppy", id="1")
    memory.remember(MemoryEntry("", "1", metadata={"value": 1}))
    assert not memory.schema.keys
    assert not memory.recall("puppy").entries
    memory.remember("a puppy", id="1")
    assert [one.entry.id for one in memory.recall("puppy").entries] == ["1"]


async def test_namespaces_of_one_file_share_their_threads(open_memory, turns):
    memory = open_memory()
    await memory.aremember(turns[0])
    await memory.arecall("carrots")
    before = threading.active_count()
    others = [memory.in_namespace(("user", str(number))) for number in range(20)]
    for other in others:
        await other.aremember("a puppy", use_model=False)
        await other.arecall("puppy")
        other.close()
    assert threading.active_count() == before
    assert (await others[0].aget(others[0].entries[0].id)).text == "a puppy"
