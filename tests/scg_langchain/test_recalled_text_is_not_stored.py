"""Recalled text never becomes new memory, however often it is recalled and repeated."""

from __future__ import annotations

from langchain.agents import create_agent
from langgraph.checkpoint.memory import InMemorySaver

from scg_langchain import SCGMemoryMiddleware
from tests.scg_langchain.scripted import ScriptedModel

FACTS = ["I adopted a puppy named Rex", "Rex sleeps on the sofa", "Rex is afraid of thunder"]


def parrot(messages):
    """Repeats all that it was shown behind the question."""
    return str(messages[-1].text)


def test_a_model_that_repeats_its_memory_does_not_fill_it(open_memory):
    memory = open_memory("memory.db")
    for fact in FACTS:
        memory.remember(fact, speaker="Anna")
    agent = create_agent(
        ScriptedModel(script=[parrot]),
        middleware=[SCGMemoryMiddleware(memory, score_threshold=0.0)],
        checkpointer=InMemorySaver(),
    )
    for turn in range(12):
        agent.invoke({"messages": [("user", "What about Rex?")]}, config={"configurable": {"thread_id": str(turn)}})
    recalled = [entry for entry in memory.entries if any(fact in entry.text for fact in FACTS)]
    assert [entry.text for entry in recalled] == FACTS
    assert {entry.speaker for entry in memory.entries} == {"Anna", "Human"}


def test_what_the_answer_adds_to_its_memory_is_stored(open_memory):
    memory = open_memory("memory.db")
    memory.remember(FACTS[0], id="1", speaker="Anna")
    model = ScriptedModel(script=[f"* {FACTS[0].upper()}\nHe must be two by now.\n- [1] Anna: {FACTS[0]}"])
    agent = create_agent(model, middleware=[SCGMemoryMiddleware(memory, score_threshold=0.0)])
    agent.invoke({"messages": [("user", "What about the puppy?")]})
    assert memory.entries[-1].text == "He must be two by now."
