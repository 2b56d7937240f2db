"""Namespaces: each call reads and writes its own, whatever else runs at the same time."""

import asyncio
import gc
import random

import pytest
from langchain_classic.retrievers import MultiQueryRetriever
from langchain_core.runnables import RunnableLambda

from scg_langchain import SCGMemory, SCGRetriever
from shared_core import MemoryEntry, SCGConfig
from shared_core.adapting import memory_in
from shared_core.adapting.namespaces import _KEPT

USERS = {"anna": ("users", "anna"), "ben": ("users", "ben")}
TEXTS = ["{} adopted a puppy", "{} painted the kitchen", "{} takes the train to Lyon", "{} sold the canoe"]


@pytest.fixture
def retriever(open_memory):
    memory = open_memory("m.db", namespace="nobody", config=SCGConfig(assimilate=0, width=1))
    for user, namespace in USERS.items():
        entries = [MemoryEntry(text.format(user), f"{user}-{place}") for place, text in enumerate(TEXTS)]
        memory_in(memory, namespace).remember(entries, use_model=False)
    return SCGRetriever.from_memory(memory)


def owners_of(documents):
    return {document.id.partition("-")[0] for document in documents}


def test_a_namespace_comes_with_the_call_the_config_or_the_field(retriever):
    anna, ben = USERS.values()
    assert not retriever.invoke("puppy")
    assert owners_of(retriever.invoke("puppy", namespace=anna)) == {"anna"}
    assert owners_of(retriever.invoke("puppy", {"configurable": {"namespace": anna}})) == {"anna"}
    assert owners_of(retriever.with_config(configurable={"namespace": list(ben)}).invoke("puppy")) == {"ben"}
    fixed = SCGRetriever.from_memory(retriever.memory, namespace=ben)
    assert owners_of(fixed.invoke("puppy")) == {"ben"}
    # The nearest to the call counts.
    assert owners_of(fixed.invoke("puppy", {"configurable": {"namespace": anna}})) == {"anna"}
    assert owners_of(fixed.invoke("puppy", {"configurable": {"namespace": anna}}, namespace=ben)) == {"ben"}
    # In a chain as well, and where a function of the chain calls the retriever.
    chain = RunnableLambda(lambda question: question["input"]) | retriever
    assert owners_of(chain.invoke({"input": "puppy"}, {"configurable": {"namespace": anna}})) == {"anna"}
    inner = RunnableLambda(lambda question: retriever.invoke(question))
    assert owners_of(inner.invoke("puppy", {"configurable": {"namespace": ben}})) == {"ben"}
    assert not retriever.invoke("puppy")


def test_a_wrapper_that_drops_the_config_recalls_nothing_or_the_right_thing(retriever, scripted):
    config = {"configurable": {"namespace": USERS["anna"]}}
    wrapped = MultiQueryRetriever.from_llm(retriever, scripted("Which dog?\nWho barks?"))
    assert not wrapped.invoke("puppy", config)
    in_a_chain = RunnableLambda(lambda question: question) | wrapped
    assert owners_of(in_a_chain.invoke("puppy", config)) == {"anna"}
    assert owners_of(asyncio.run(in_a_chain.ainvoke("puppy", config))) == {"anna"}


def test_hundreds_of_interleaved_calls_never_mix(retriever):
    draw = random.Random(0)
    owners = [draw.choice(list(USERS)) for _ in range(240)]
    queries = [draw.choice(["puppy", "kitchen", "Lyon", "canoe", "who?"]) for _ in owners]

    async def call(place, owner):
        await asyncio.sleep(0.001 * draw.randrange(10))
        namespace = USERS[owner]
        if place % 16 < 8:
            return await retriever.ainvoke(queries[place], namespace=namespace, k=3)
        if place % 16 < 15:
            return await retriever.ainvoke(queries[place], {"configurable": {"namespace": namespace}}, k=3)
        memory = SCGMemory(memory=retriever.memory, namespace=namespace, session=owner)
        await memory.asave_context({"input": f"{owner} said {place}"}, {"output": f"noted for {owner}"})
        return await retriever.ainvoke(f"{owner} said {place}", namespace=namespace, k=3)

    async def use():
        return await asyncio.gather(*(call(place, owner) for place, owner in enumerate(owners)))

    results = asyncio.run(use())
    assert all(results)
    for owner, documents in zip(owners, results, strict=True):
        assert all(owner in document.page_content for document in documents)
    for user, namespace in USERS.items():
        entries = memory_in(retriever.memory, namespace).entries
        assert len(entries) == len(TEXTS) + 2 * sum(owners[place] == user for place in range(15, len(owners), 16))
        assert all(user in entry.text for entry in entries)


def test_memories_are_kept_while_they_are_used_and_let_go_after(open_memory):
    memory = open_memory(namespace="home")
    assert memory_in(memory, None) is memory
    assert memory_in(memory, ("home",)) is memory
    first = memory_in(memory, "a")
    assert memory_in(memory, ["a"]) is first
    assert memory_in(first, None) is first
    for number in range(_KEPT):
        memory_in(memory, ("many", str(number)))
    assert memory_in(memory, "a") is not first
    first.remember("still works", use_model=False)
    assert [entry.text for entry in memory_in(memory, "a").entries] == ["still works"]


def test_other_files_have_other_namespaces(open_memory):
    one, other = open_memory("one.db"), open_memory("other.db")
    memory_in(one, "a").remember("here", use_model=False)
    assert not memory_in(other, "a").entries
    assert memory_in(one, "a").entries
    gc.collect()
    assert memory_in(one, "a").entries
