"""Where nothing relevant is recalled, nothing is put before the model, and a tool says so."""

from __future__ import annotations

import pytest
from langchain.agents import create_agent

from scg_langchain import SCGMemoryMiddleware, SCGStore, create_memory_tools
from tests.scg_langchain.scripted import ScriptedModel


@pytest.fixture
def memory(open_memory):
    memory = open_memory("memory.db")
    memory.remember("I adopted a puppy named Rex", id="1")
    return memory


def shown_for(memory, text, **options):
    model = ScriptedModel()
    create_agent(model, system_prompt="Be kind.", middleware=[SCGMemoryMiddleware(memory, **options)]).invoke(
        {"messages": [("user", text)]}
    )
    return [str(message.text) for message in model.shown[0]]


def test_an_empty_memory_shows_nothing(memory):
    assert shown_for(memory, "Which puppy?", namespace=("someone", "else")) == ["Be kind.", "Which puppy?"]


def test_a_low_relevance_shows_nothing(memory):
    relevance = memory.recall("Which puppy?").entries[0].relevance
    assert shown_for(memory, "Which puppy?", score_threshold=relevance * 1.01) == ["Be kind.", "Which puppy?"]
    assert "Rex" in shown_for(memory, "Which puppy?", score_threshold=relevance * 0.5)[-1]


def test_tools_and_store_return_nothing(memory):
    [_, recall, _] = create_memory_tools(memory.in_namespace("empty"))
    assert recall.invoke({"query": "Which puppy?"}) == "Nothing relevant is remembered."
    store = SCGStore(memory)
    store.put(("a",), "1", {"text": "tea"}, index=False)
    assert store.search(("a",), query="Which puppy?") == []
