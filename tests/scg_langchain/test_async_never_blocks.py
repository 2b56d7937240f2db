"""The event loop runs on while a model or a file is slow, and callers do not make threads."""

from __future__ import annotations

import asyncio
import threading

import pytest
from langchain.agents import create_agent

from scg_langchain import SCGMemoryMiddleware, SCGStore, create_memory_tools
from shared_core.decoding import ConceptDecoder
from shared_core.store import Store
from tests.scg_langchain.scripted import ScriptedModel


@pytest.fixture
def memory(open_memory):
    memory = open_memory("memory.db")
    memory.remember("I adopted a puppy named Rex", id="1")
    memory.recall("puppy")  # loads the model
    return memory


@pytest.fixture
def slow(monkeypatch):
    """Holds the named methods until the event loop has turned some rounds; a blocked loop would never let them go."""
    go = threading.Event()
    held = []

    def hold(owner, name):
        method = getattr(owner, name)

        def wait(*args, **options):
            held.append(name)
            assert go.wait(30), f"the event loop did not run during {name}"
            return method(*args, **options)

        monkeypatch.setattr(owner, name, wait)

    async def run(coroutine):
        async def turn():
            while not held:  # noqa: ASYNC110 - another thread holds
                await asyncio.sleep(0.001)
            for _ in range(20):
                await asyncio.sleep(0)
            go.set()

        result, _ = await asyncio.gather(coroutine, turn())
        return result

    yield hold, run
    go.set()


@pytest.mark.parametrize(("owner", "name"), [(ConceptDecoder, "decode"), (Store, "write"), (Store, "changes")])
async def test_an_agent_waits_beside_the_loop(memory, slow, owner, name):
    hold, run = slow
    memory.remember("The puppy is new", id="2")
    agent = create_agent(ScriptedModel(), middleware=[SCGMemoryMiddleware(memory, score_threshold=0.0)])
    hold(owner, name)
    result = await run(agent.ainvoke({"messages": [("user", "Which puppy?")]}))
    assert len(result["messages"]) == 2


@pytest.mark.parametrize(
    ("owner", "name", "method", "args", "options"),
    [
        (ConceptDecoder, "decode", "asearch", [("a",)], {"query": "puppy"}),
        (Store, "names", "asearch", [("a",)], {}),
        (Store, "page", "asearch", [("a",)], {}),
        (Store, "held", "aget", [("a",), "1"], {}),
        (Store, "touch", "aget", [("a",), "1"], {}),
        (Store, "write", "aput", [("a",), "2", {"text": "tea"}], {}),
        (Store, "forget", "adelete", [("a",), "1"], {}),
        (Store, "names", "alist_namespaces", [], {}),
        (Store, "names", "asweep_ttl", [], {}),
    ],
)
async def test_the_store_waits_beside_the_loop(memory, slow, owner, name, method, args, options):
    hold, run = slow
    store = SCGStore(memory)
    store.put(("a",), "1", {"text": "a puppy"}, ttl=60)
    store.search(("a",), query="puppy")
    hold(owner, name)
    await run(getattr(store, method)(*args, **options))


@pytest.mark.parametrize(
    ("owner", "name", "tool", "args"),
    [
        (Store, "write", 0, {"text": "tea"}),
        (Store, "get", 0, {"text": "tea"}),
        (ConceptDecoder, "decode", 1, {"query": "puppy"}),
        (Store, "forget", 2, {"ids": ["1"]}),
    ],
)
async def test_the_tools_wait_beside_the_loop(memory, slow, owner, name, tool, args):
    hold, run = slow
    hold(owner, name)
    await run(create_memory_tools(memory)[tool].ainvoke(args))


async def test_many_callers_in_many_namespaces_make_no_threads(memory):
    store = SCGStore(memory)
    [_, recall, _] = create_memory_tools(memory, namespace=("{user_id}",))
    await store.aput(("a", "0"), "1", {"text": "a puppy"})
    await store.asearch((), query="puppy")
    before = threading.active_count()
    await asyncio.gather(*(store.aput(("a", str(user)), "1", {"text": "a puppy"}) for user in range(50)))
    await asyncio.gather(*(store.aget(("a", str(user)), "1") for user in range(50)))
    await asyncio.gather(
        *(recall.ainvoke({"query": "puppy"}, {"configurable": {"user_id": user}}) for user in range(50))
    )
    assert threading.active_count() <= before + 2
