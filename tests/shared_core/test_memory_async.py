"""The async twins: equal to their sync ones, beside a running event loop, on few threads."""

import asyncio
import threading
from types import SimpleNamespace

import pytest

from shared_core import Filter, MemoryEntry
from shared_core.decoding import ConceptDecoder
from shared_core.errors import InvalidInputError, SCGError, StoreError

QUERIES = ["Where is the canoe?", "Who has bees?", "walnuts", "What grows by the shed?", "Lindau", "the kettle"]


def ids_of(recall):
    return [one.entry.id for one in recall.entries]


@pytest.fixture
def memory(open_memory, turns):
    memory = open_memory()
    memory.remember(turns[:12])
    return memory


@pytest.fixture
def held(monkeypatch):
    """Holds every decode until ``go`` is set, and counts them."""
    held = SimpleNamespace(go=threading.Event(), started=threading.Event(), sizes=[])
    decode = ConceptDecoder.decode

    def wait(decoder, texts, constraints):
        held.sizes.append(len(texts))
        held.started.set()
        assert held.go.wait(60), "the event loop did not run meanwhile"
        return decode(decoder, texts, constraints)

    monkeypatch.setattr(ConceptDecoder, "decode", wait)
    yield held
    held.go.set()


async def until(event):
    while not event.is_set():  # noqa: ASYNC110 - another thread sets it
        await asyncio.sleep(0.001)


def test_the_twins_do_the_same(open_memory, turns):
    twin, memory = open_memory("twin.db"), open_memory()
    reports = []

    async def use():
        first = await twin.aremember(turns[:8], progress=reports.append)
        second = await twin.aremember("The rhubarb came up", id="r", speaker="Mira", session="s", use_model=False)
        recalls = [
            await twin.arecall("Where is the pear tree?"),
            await twin.arecall("bees", k=3, where=Filter(speaker="Tobi")),
            await twin.arecall("bees", k=3, unit="concepts"),
        ]
        answer = await twin.aanswer("bees", k=2)
        return first, second, recalls, answer, await twin.aforget(ids=["t01"]), await twin.aforget(session="s")

    first, second, recalls, answer, *erased = asyncio.run(use())
    assert first == memory.remember(turns[:8])
    assert second == memory.remember("The rhubarb came up", id="r", speaker="Mira", session="s", use_model=False)
    assert recalls == [
        memory.recall("Where is the pear tree?"),
        memory.recall("bees", k=3, where=Filter(speaker="Tobi")),
        memory.recall("bees", k=3, unit="concepts"),
    ]
    assert answer == memory.answer("bees", k=2)
    assert erased == [memory.forget(ids=["t01"]), memory.forget(session="s")]
    assert twin.entries == memory.entries
    assert reports
    assert asyncio.run(twin.aclear()) == memory.clear()


def test_they_refuse_the_same(memory):
    async def use():
        for call in (
            lambda: memory.arecall(" "),
            lambda: memory.arecall("bees", k=0),
            lambda: memory.aanswer("bees", where={"speaker": "Mira"}),
            lambda: memory.aremember(""),
            lambda: memory.aforget(),
        ):
            with pytest.raises(InvalidInputError):
                await call()

    asyncio.run(use())


def test_the_event_loop_runs_while_a_recall_decodes(memory, held):
    async def use():
        recall = asyncio.create_task(memory.arecall("Where is the canoe?"))
        await until(held.started)
        assert not recall.done()
        held.go.set()
        return await recall

    assert asyncio.run(use()).entries


def test_the_event_loop_runs_while_entries_are_remembered(memory, turns):
    stored, go = threading.Event(), threading.Event()

    def wait(progress):
        stored.set()
        assert go.wait(60), "the event loop did not run meanwhile"

    async def use():
        writing = asyncio.create_task(memory.aremember(turns[12:14], progress=wait))
        await until(stored)
        # Recalls go on beside a write.
        assert (await memory.arecall("bees")).entries
        go.set()
        return await writing

    assert asyncio.run(use()).added == 2


def test_recalls_at_the_same_time_share_decodes_and_threads(memory, held):
    expected = {query: memory_recall_alone(memory, held, query) for query in QUERIES}
    held.sizes.clear()
    held.go.clear()
    before = threading.active_count()

    async def use():
        waiting = [asyncio.create_task(memory.arecall(query)) for query in QUERIES * 8]
        await until(held.started)
        await asyncio.sleep(0.05)
        threads = threading.active_count()
        held.go.set()
        return threads, await asyncio.gather(*waiting)

    held.started.clear()
    threads, recalls = asyncio.run(use())
    assert threads - before <= 2
    assert sum(held.sizes) == len(recalls) == 48
    assert len(held.sizes) < 16  # most of them were decoded eight together
    for query, recall in zip(QUERIES * 8, recalls, strict=True):
        assert ids_of(recall) == ids_of(expected[query])
        assert [seed.key for seed in recall.seeds] == [seed.key for seed in expected[query].seeds]


def memory_recall_alone(memory, held, query):
    held.go.set()
    return memory.recall(query)


def test_a_cancelled_recall_leaves_the_memory_usable(memory, held):
    async def use():
        running = asyncio.create_task(memory.arecall("bees"))
        await until(held.started)
        waiting = [asyncio.create_task(memory.arecall(query)) for query in QUERIES]
        await asyncio.sleep(0.05)
        for task in (running, *waiting[:3]):
            task.cancel()
        held.go.set()
        results = await asyncio.gather(running, *waiting, return_exceptions=True)
        timed_out = asyncio.wait_for(memory.arecall("bees"), timeout=0)
        with pytest.raises(asyncio.TimeoutError):
            await timed_out
        return results, await memory.arecall("Where is the canoe?")

    results, after = asyncio.run(use())
    assert [isinstance(result, asyncio.CancelledError) for result in results] == [True] * 4 + [False] * 3
    assert all(result.entries for result in results[4:])
    assert ids_of(after) == ids_of(memory.recall("Where is the canoe?"))


def test_a_cancelled_write_is_whole_or_absent(memory, turns):
    async def use():
        writing = asyncio.create_task(memory.aremember(turns[12:], use_model=False))
        await asyncio.sleep(0)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        return (await memory.aremember("The rhubarb came up", id="r", use_model=False)).added

    assert asyncio.run(use()) == 1
    assert [entry.id for entry in memory.entries] in ([turn.id for turn in turns] + ["r"], ["r"])


def test_an_error_of_one_recall_is_its_own(memory, monkeypatch):
    decode = ConceptDecoder.decode

    def fail(decoder, texts, constraints):
        if "fault" in texts:
            raise ZeroDivisionError("a fault")
        return decode(decoder, texts, constraints)

    monkeypatch.setattr(ConceptDecoder, "decode", fail)

    async def use():
        with pytest.raises(ZeroDivisionError):
            await memory.arecall("fault")
        return await memory.arecall("bees")

    assert asyncio.run(use()).entries


def test_many_event_loops_use_one_memory(memory):
    def use():
        recalls.append(asyncio.run(memory.arecall("bees")))

    recalls = []
    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [ids_of(recall) for recall in recalls] == [ids_of(memory.recall("bees"))] * 4


def test_an_empty_memory_recalls_nothing(open_memory):
    memory = open_memory()
    assert asyncio.run(memory.arecall("Anything?")).entries == ()
    assert asyncio.run(memory.aanswer("Anything?")).text == ""


def test_a_closed_memory_says_so(open_memory):
    memory = open_memory()
    memory.remember(MemoryEntry("bees"), use_model=False)
    memory.close()

    async def use():
        for call in (
            lambda: memory.arecall("bees"),
            lambda: memory.aanswer("bees"),
            lambda: memory.aremember("bees"),
            lambda: memory.aforget(ids=["1"]),
            memory.aclear,
        ):
            with pytest.raises(StoreError, match="closed") as caught:
                await call()
            assert isinstance(caught.value, SCGError)

    asyncio.run(use())
