"""One user's memory never mixes with another's, not even in hundreds of calls at the same time."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest
from langchain.agents import create_agent

from scg_langchain import SCGMemoryMiddleware, SCGStore, create_memory_tools
from shared_core import SCGConfig
from shared_core.adapting import namespaces
from tests.scg_langchain.scripted import ScriptedModel

USERS = {"anna": "puppy", "ben": "canoe"}


@dataclass
class Context:
    user_id: str


@pytest.fixture
def memory(open_memory):
    return open_memory("memory.db", config=SCGConfig(assimilate=0, width=1))


def config_of(user):
    return {"configurable": {"user_id": user}}


async def test_hundreds_of_interleaved_store_calls_stay_in_their_namespace(memory):
    store = SCGStore(memory)

    async def use(number, user):
        thing, name = USERS[user], ("users", user)
        await store.aput(name, f"{number % 7}", {"text": f"the {thing} number {number}", "owner": user})
        found = await store.asearch(name, query="the puppy and the canoe", limit=20)
        got = await store.aget(name, f"{number % 7}")
        listed = await store.asearch(name, limit=20)
        assert {item.value["owner"] for item in [*found, *listed, got]} == {user}
        assert all(thing in item.value["text"] for item in found)

    await asyncio.gather(*(use(number, user) for number in range(30) for user in USERS))
    for user, thing in USERS.items():
        texts = [item.value["text"] for item in store.search(("users", user), limit=99)]
        assert len(texts) == 7
        assert all(thing in text for text in texts)


async def test_hundreds_of_interleaved_tool_calls_stay_with_their_user(memory):
    remember, recall, forget = create_memory_tools(memory, namespace=("users", "{user_id}"), score_threshold=0.0)

    async def use(number, user):
        await remember.ainvoke({"text": f"{user} has the {USERS[user]} number {number}"}, config_of(user))
        told = await recall.ainvoke({"query": "Who has the puppy or the canoe?", "limit": 50}, config_of(user))
        assert told.count(user) == len(told.splitlines()) > 0
        if number % 5 == 0:
            first = told.splitlines()[0].partition("]")[0][1:]
            await forget.ainvoke({"ids": [first]}, config_of(user))

    await asyncio.gather(*(use(number, user) for number in range(30) for user in USERS))


async def test_one_agent_serves_interleaved_users(memory):
    model = ScriptedModel(script=[lambda messages: "Seen: " + " ".join(str(one.text) for one in messages[1:])])
    agent = create_agent(
        model,
        middleware=[SCGMemoryMiddleware(memory, score_threshold=0.0, namespace=("users", "{user_id}"))],
        context_schema=Context,
    )

    async def use(number, user):
        question = f"What about my {USERS[user]} number {number}?"
        result = await agent.ainvoke({"messages": [("user", question)]}, context=Context(user))
        others = set(USERS.values()) - {USERS[user]}
        assert not any(other in str(result["messages"][-1].text) for other in others)

    for start in range(0, 40, 10):
        await asyncio.gather(*(use(number, user) for number in range(start, start + 10) for user in USERS))
    for user, thing in USERS.items():
        said = [entry.text for entry in memory.in_namespace(("users", user)).entries if entry.speaker == "Human"]
        assert sorted(said) == sorted(f"What about my {thing} number {number}?" for number in range(40))
    assert memory.entries == []


def test_one_agent_serves_users_in_threads(memory):
    model = ScriptedModel(script=[lambda messages: "Seen: " + " ".join(str(one.text) for one in messages)])
    agent = create_agent(
        model, middleware=[SCGMemoryMiddleware(memory, score_threshold=0.0, namespace=("users", "{user_id}"))]
    )
    users = [*USERS] * 8
    asked = [{"messages": [("user", f"My {USERS[user]} is number {number}")]} for number, user in enumerate(users)]
    results = agent.batch(asked, [config_of(user) for user in users])
    for user, result in zip(users, results, strict=True):
        [other] = set(USERS.values()) - {USERS[user]}
        assert other not in str(result["messages"][-1].text)
    for user, thing in USERS.items():
        said = [entry.text for entry in memory.in_namespace(("users", user)).entries if entry.speaker == "Human"]
        assert len(said) == 8
        assert all(thing in text for text in said)


def test_deleting_one_users_memories_leaves_the_others(memory):
    store = SCGStore(memory)
    for user in USERS:
        store.put(("users", user), "same key", {"text": USERS[user]})
        store.put(("users", user, "deeper"), "same key", {"text": USERS[user]})
    store.delete(("users", "anna"), "same key")
    assert store.get(("users", "anna"), "same key") is None
    left = {(item.namespace, item.value["text"]) for item in store.search(())}
    assert left == {
        (("users", "anna", "deeper"), "puppy"),
        (("users", "ben"), "canoe"),
        (("users", "ben", "deeper"), "canoe"),
    }


def test_forgetting_reaches_no_other_user(memory):
    remember, recall, forget = create_memory_tools(memory, namespace=("{user_id}",), score_threshold=0.0)
    for user in USERS:
        remember.invoke({"text": "We share this sentence"}, config_of(user))  # the same text has the same id
    [entry] = memory.in_namespace(("anna",)).entries
    forget.invoke({"ids": [entry.id]}, config_of("anna"))
    assert recall.invoke({"query": "sentence"}, config_of("anna")) == "Nothing relevant is remembered."
    assert "We share" in recall.invoke({"query": "sentence"}, config_of("ben"))


def test_every_session_reads_its_own_memory_and_not_the_first_ones(memory):
    model = ScriptedModel()
    agent = create_agent(
        model,
        middleware=[SCGMemoryMiddleware(memory, score_threshold=0.0, namespace=("{user_id}",))],
        context_schema=Context,
    )
    for user, thing in USERS.items():
        memory.in_namespace((user,)).remember(f"The {thing} is mine")
    for user, thing in [*USERS.items(), *USERS.items()]:
        agent.invoke({"messages": [("user", "Is the puppy or the canoe mine?")]}, context=Context(user))
        assert f"The {thing} is mine" in str(model.shown[-1][-1].text)


def test_many_namespaces_in_use_at_once_stay_correct(memory, monkeypatch):
    monkeypatch.setattr(namespaces, "_KEPT", 3)
    [remember, recall, _] = create_memory_tools(memory, namespace=("{user_id}",), score_threshold=0.0)
    for round in range(2):
        for user in range(8):  # more than are kept open
            config = config_of(f"user {user}")
            if round == 0:
                remember.invoke({"text": f"The secret of {user}"}, config)
            assert recall.invoke({"query": "secret", "limit": 5}, config).endswith(f"The secret of {user}")
