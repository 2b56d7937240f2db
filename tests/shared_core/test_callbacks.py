"""What is told how far a call is may use the memory: it reads what it likes, and is refused what would wait for itself.

Every call is made on a thread of its own, and is late if it has not returned after a while.
"""

import asyncio
import threading
from functools import partial

import pytest

from shared_core import MemoryEntry, SCGConfig
from shared_core.errors import SCGError

SECONDS = 20


def returned(call):
    """What a call that must not hang returns or raises."""
    found = []

    def run():
        try:
            found.append(call())
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(SECONDS)
    assert found, "the call hangs"
    return found[0]


@pytest.fixture(params=["memory.db", ":memory:"])
def memory(request, open_memory):
    memory = open_memory(request.param, config=SCGConfig(assimilate=0))
    memory.remember("The first kettle", id="first", use_model=False)
    return memory


@pytest.fixture
def exported(memory, tmp_path):
    memory.export(tmp_path / "exported.jsonl")
    return tmp_path / "exported.jsonl"


def with_callback(memory, exported):
    """Every call that tells how far it is, given the callback."""
    return {
        "remember": lambda told: memory.remember("More tea", id="more", use_model=False, progress=told),
        "import_file": lambda told: memory.import_file(exported, progress=told),
        "consolidate": lambda told: memory.consolidate(progress=told),
        "aremember": lambda told: asyncio.run(memory.aremember("More", id="more", use_model=False, progress=told)),
        "aconsolidate": lambda told: asyncio.run(memory.aconsolidate(progress=told)),
    }


def storing(memory, exported):
    """Every call that stores or erases something."""
    return {
        "remember": partial(memory.remember, "nested", id="nested", use_model=False),
        "import_file": partial(memory.import_file, exported),
        "consolidate": memory.consolidate,
        "forget": partial(memory.forget, ids=["first"]),
        "expire": memory.expire,
        "clear": memory.clear,
        "aremember": lambda: asyncio.run(memory.aremember("nested", id="nested", use_model=False)),
        "aconsolidate": lambda: asyncio.run(memory.aconsolidate()),
        "aforget": lambda: asyncio.run(memory.aforget(ids=["first"])),
        "aclear": lambda: asyncio.run(memory.aclear()),
    }


OUTER = ("remember", "import_file", "consolidate", "aremember", "aconsolidate")
INNER = (*OUTER, "forget", "expire", "clear", "aforget", "aclear")


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("outer", OUTER)
def test_a_callback_that_stores_is_refused_and_hangs_nothing(memory, exported, outer, inner):
    refused = []

    def told(progress):
        try:
            storing(memory, exported)[inner]()
        except SCGError as error:
            refused.append(error)

    found = returned(lambda: with_callback(memory, exported)[outer](told))
    assert not isinstance(found, BaseException), found
    assert refused
    assert all("returned" in str(error) for error in refused)
    # Others are not kept waiting, and nothing of the callback's call happened.
    after = returned(lambda: memory.remember("Later", id="later", use_model=False))
    assert after.added == 1
    assert {entry.id for entry in memory.entries} - {"more"} == {"first", "later"}


@pytest.mark.parametrize("outer", OUTER)
def test_a_callback_reads(memory, exported, outer):
    read = []

    def told(progress):
        read.append(([entry.id for entry in memory.entries], memory.get("first").text, memory.recall("kettle").entries))

    found = returned(lambda: with_callback(memory, exported)[outer](told))
    assert not isinstance(found, BaseException), found
    assert read
    assert all(ids[0] == "first" and text == "The first kettle" and entries for ids, text, entries in read)


@pytest.mark.parametrize("outer", OUTER)
def test_a_callback_stores_in_no_other_namespace_of_the_memory_either(memory, exported, outer):
    other = memory.in_namespace("other")
    refused = []

    def told(progress):
        for call in storing(other, exported).values():
            try:
                call()
            except SCGError as error:
                refused.append(error)

    found = returned(lambda: with_callback(memory, exported)[outer](told))
    assert not isinstance(found, BaseException), found
    assert len(refused) >= len(INNER)
    assert other.entries == []


def test_a_callback_that_closes_the_memory_ends_the_call(open_memory):
    memory = open_memory(config=SCGConfig(assimilate=0))
    call = memory.aremember("tea", use_model=False, progress=lambda progress: memory.close())
    found = returned(lambda: asyncio.run(call))
    assert isinstance(found, SCGError)


def test_a_nested_write_of_many_leaves_the_first_whole(open_memory):
    memory = open_memory(config=SCGConfig(assimilate=0))
    entries = [MemoryEntry(f"entry {number}", id=str(number)) for number in range(20)]
    found = returned(
        lambda: memory.remember(
            entries, use_model=False, progress=lambda progress: memory.remember("nested", use_model=False)
        )
    )
    assert isinstance(found, SCGError)
    again = memory.remember(entries, use_model=False)
    assert again.added + again.unchanged == len(memory.entries) == 20
