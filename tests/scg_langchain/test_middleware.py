"""An agent with the middleware: what it shows to the model, and what it remembers."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import PIIMiddleware, SummarizationMiddleware
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from scg_langchain import SCGMemoryMiddleware
from scg_langchain.messages import is_recalled
from shared_core.errors import InvalidInputError
from tests.scg_langchain.scripted import ScriptedModel, calling

PUPPY = "I adopted a puppy named Rex from the shelter"


@dataclass
class Context:
    user_id: str


@tool
def weather(town: str) -> str:
    """The weather of a town."""
    return f"It rains in {town}, says the puppy report."


@pytest.fixture
def memory(open_memory):
    memory = open_memory()
    memory.remember(PUPPY, id="rex", speaker="Anna")
    memory.remember("The kitchen was painted green", id="green", speaker="Ben")
    return memory


def texts(messages):
    return [str(message.text) for message in messages]


def said_in(memory):
    return [(entry.speaker, entry.text) for entry in memory.entries]


def ask(agent, text, **options):
    return agent.invoke({"messages": [("user", text)]}, **options)


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_what_is_recalled_is_shown_last_and_enters_no_state(memory, asynchronous):
    model = ScriptedModel(script=["Rex!"])
    agent = create_agent(
        model, system_prompt="Be kind.", middleware=[SCGMemoryMiddleware(memory, score_threshold=0.0, k=1)]
    )
    question = {"messages": [("user", "What is the puppy called?")]}
    result = await agent.ainvoke(question) if asynchronous else agent.invoke(question)
    [shown] = model.shown
    assert [type(message) for message in shown] == [SystemMessage, HumanMessage, HumanMessage]
    assert texts(shown)[:2] == ["Be kind.", "What is the puppy called?"]
    assert f"- [rex] Anna: {PUPPY}" in texts(shown)[2].splitlines()
    assert [is_recalled(message) for message in shown] == [False, False, True]
    assert texts(result["messages"]) == ["What is the puppy called?", "Rex!"]
    assert set(result) == {"messages"}
    assert said_in(memory)[2:] == [("Human", "What is the puppy called?"), ("AI", "Rex!")]


def test_one_recall_a_turn_in_one_place_while_tools_are_called(memory, monkeypatch):
    recalls = []
    recall = type(memory).recall
    monkeypatch.setattr(
        type(memory),
        "recall",
        lambda memory, query, **options: recalls.append(query) or recall(memory, query, **options),
    )
    model = ScriptedModel(script=[calling("weather", town="Lyon"), calling("weather", town="Bonn"), "Wet.", "Yes."])
    agent = create_agent(
        model,
        tools=[weather],
        middleware=[SCGMemoryMiddleware(memory, score_threshold=0.0, k=1)],
        checkpointer=InMemorySaver(),
    )
    thread = {"configurable": {"thread_id": "1"}}
    ask(agent, "Does the puppy get wet?", config=thread)
    assert recalls == ["Does the puppy get wet?"]
    first, second, third = model.shown
    assert second[: len(first)] == first  # what the model has read stays as it is: its cache holds
    assert third[: len(second)] == second
    assert [type(message) for message in second[2:]] == [AIMessage, ToolMessage]
    ask(agent, "Is the puppy at home?", config=thread)
    assert recalls[1:] == ["Is the puppy at home?"]
    fourth = model.shown[3]
    history = ["Does the puppy get wet?", "", "It rains in Lyon, says the puppy report.", ""]
    assert texts(fourth)[:4] == history
    assert texts(fourth)[4:7] == ["It rains in Bonn, says the puppy report.", "Wet.", "Is the puppy at home?"]
    assert len(fourth) == 8


def test_a_turn_that_was_interrupted_goes_on_with_what_it_recalled(memory, monkeypatch):
    recalls = []
    recall = type(memory).recall
    monkeypatch.setattr(
        type(memory),
        "recall",
        lambda memory, query, **options: recalls.append(query) or recall(memory, query, **options),
    )
    model = ScriptedModel(script=[calling("weather", town="Lyon"), "Wet."])
    agent = create_agent(
        model,
        tools=[weather],
        middleware=[SCGMemoryMiddleware(memory, score_threshold=0.0, k=1)],
        checkpointer=InMemorySaver(),
        interrupt_before=["tools"],
    )
    thread = {"configurable": {"thread_id": "1"}}
    ask(agent, "Does the puppy get wet?", config=thread)
    assert len(memory.entries) == 2
    agent.invoke(None, config=thread)
    assert recalls == ["Does the puppy get wet?"]
    assert model.shown[1][: len(model.shown[0])] == model.shown[0]
    assert said_in(memory)[2:] == [("Human", "Does the puppy get wet?"), ("AI", "Wet.")]
    assert agent.get_state(thread).values.get("scg_turn") is None


def test_neither_tool_calls_nor_their_results_are_remembered(memory):
    model = ScriptedModel(script=[calling("weather", town="Lyon"), "Wet."])
    agent = create_agent(model, tools=[weather], middleware=[SCGMemoryMiddleware(memory, score_threshold=0.0)])
    ask(agent, "And today?")
    assert said_in(memory)[2:] == [("Human", "And today?"), ("AI", "Wet.")]


def test_a_conversation_that_is_sent_again_and_again_is_stored_once(memory):
    agent = create_agent(
        ScriptedModel(script=["Nice.", "Good."]), middleware=[SCGMemoryMiddleware(memory, score_threshold=0.0)]
    )
    first = ask(agent, "I bought a kite")
    agent.invoke({"messages": [*texts_with_roles(first["messages"]), ("user", "It is red")]})
    assert [text for _, text in said_in(memory)[2:]] == ["I bought a kite", "Nice.", "It is red", "Good."]


def texts_with_roles(messages):
    """As a client sends them that keeps no ids."""
    return [("user" if isinstance(message, HumanMessage) else "assistant", str(message.text)) for message in messages]


def test_nothing_happens_when_the_user_has_said_nothing_new(memory):
    model = ScriptedModel()
    agent = create_agent(
        model, middleware=[SCGMemoryMiddleware(memory, score_threshold=0.0)], checkpointer=InMemorySaver()
    )
    thread = {"configurable": {"thread_id": "1"}}
    ask(agent, "A puppy!", config=thread)
    before = memory.entries
    agent.invoke({"messages": []}, config=thread)
    assert texts(model.shown[-1]) == ["A puppy!", "Fine."]
    assert memory.entries == before


def test_what_the_model_sees_anyway_is_not_recalled(memory):
    model = ScriptedModel()
    agent = create_agent(
        model, middleware=[SCGMemoryMiddleware(memory, score_threshold=0.0, k=9)], checkpointer=InMemorySaver()
    )
    thread = {"configurable": {"thread_id": "1"}}
    ask(agent, "My puppy ate the kite", config=thread)
    ask(agent, "Which puppy ate the kite?", config=thread)
    *_, shown = texts(model.shown[-1])
    assert "rex" in shown
    assert "ate the kite" not in shown
    other = {"configurable": {"thread_id": "2"}}
    ask(agent, "Which puppy ate the kite?", config=other)
    assert "Human: My puppy ate the kite" in texts(model.shown[-1])[-1]


def test_messages_that_are_numbered_anew_in_every_thread_stay_apart(memory):
    model = ScriptedModel(script=["A fine kite.", "A fine boat."])
    agent = create_agent(
        model, middleware=[SCGMemoryMiddleware(memory, score_threshold=0.0)], checkpointer=InMemorySaver()
    )
    for thread, text in (("1", "I bought a kite"), ("2", "I sold a boat")):
        agent.invoke({"messages": [HumanMessage(text, id="1")]}, config={"configurable": {"thread_id": thread}})
    assert [entry.text for entry in memory.entries][2:] == [
        "I bought a kite",
        "A fine kite.",
        "I sold a boat",
        "A fine boat.",
    ]
    assert {entry.session for entry in memory.entries[2:]} == {"1", "2"}


def test_a_message_that_was_never_answered_belongs_to_the_next_turn(memory):
    def fail(messages):
        raise TimeoutError

    model = ScriptedModel(script=[fail, "Rex."])
    agent = create_agent(
        model, middleware=[SCGMemoryMiddleware(memory, score_threshold=0.0)], checkpointer=InMemorySaver()
    )
    thread = {"configurable": {"thread_id": "1"}}
    with pytest.raises(TimeoutError):
        ask(agent, "I have a question about the puppy", config=thread)
    assert len(memory.entries) == 2
    ask(agent, "What is it called?", config=thread)
    assert [text for _, text in said_in(memory)[2:]] == [
        "I have a question about the puppy",
        "What is it called?",
        "Rex.",
    ]


def test_texts_in_parts_with_odd_characters_and_without_text(memory):
    model = ScriptedModel(script=["One.", "Two."])
    agent = create_agent(model, middleware=[SCGMemoryMiddleware(memory, score_threshold=0.0)])
    image = {"type": "image", "url": "https://example.org/x.png"}
    agent.invoke({"messages": [HumanMessage([image])]})
    agent.invoke({"messages": [HumanMessage([{"type": "text", "text": "a\x00puppy\ud800"}, image], name="Kofi")]})
    assert said_in(memory)[2:] == [("AI", "One."), ("Kofi", "a\ufffdpuppy\ufffd"), ("AI", "Two.")]
    assert len(model.shown[0]) == 1
    assert len(model.shown[1]) == 2


def test_a_summary_by_another_middleware_is_nothing_the_user_said(memory):
    model = ScriptedModel(script=["One.", "Two.", "Three."])
    summary = SummarizationMiddleware(ScriptedModel(script=["SUMMARY"]), trigger=("messages", 4), keep=("messages", 1))
    agent = create_agent(
        model, middleware=[summary, SCGMemoryMiddleware(memory, score_threshold=0.0)], checkpointer=InMemorySaver()
    )
    thread = {"configurable": {"thread_id": "1"}}
    for text in ("First puppy", "Second puppy", "Third puppy"):
        ask(agent, text, config=thread)
    assert any("SUMMARY" in text for text in texts(model.shown[-1]))
    assert not any("SUMMARY" in entry.text for entry in memory.entries)
    assert [text for speaker, text in said_in(memory) if speaker == "Human"] == [
        "First puppy",
        "Second puppy",
        "Third puppy",
    ]


@pytest.mark.parametrize("first", [True, False])
def test_what_another_middleware_takes_out_of_the_conversation_is_not_remembered(memory, first):
    model = ScriptedModel()
    redacting = PIIMiddleware("email", apply_to_output=True)
    remembering = SCGMemoryMiddleware(memory, score_threshold=0.0, k=9)
    agent = create_agent(
        model,
        middleware=[remembering, redacting] if first else [redacting, remembering],
        checkpointer=InMemorySaver(),
    )
    thread = {"configurable": {"thread_id": "1"}}
    ask(agent, "My puppy's address is rex@example.org", config=thread)
    ask(agent, "Which address has my puppy?", config=thread)
    said = [text for _, text in said_in(memory)[2:]]
    assert said == ["My puppy's address is [REDACTED_EMAIL]", "Fine.", "Which address has my puppy?", "Fine."]
    assert "rex@example.org" not in str(model.shown)
    assert "REDACTED" not in texts(model.shown[-1])[-1]  # the model sees it in the conversation anyway


def test_the_namespace_comes_from_the_runtime_context(memory):
    model = ScriptedModel()
    agent = create_agent(
        model,
        middleware=[SCGMemoryMiddleware(memory, score_threshold=0.0, namespace=("users", "{user_id}"))],
        context_schema=Context,
    )
    ask(agent, "My boat is blue", context=Context("anna"))
    ask(agent, "Is my boat blue?", context=Context("ben"))
    assert len(model.shown[-1]) == 1
    ask(agent, "Is my boat blue?", context=Context("anna"))
    assert "Human: My boat is blue" in texts(model.shown[-1])[-1]
    assert len(memory.entries) == 2
    with pytest.raises(InvalidInputError, match="user_id"):
        ask(agent, "Is my boat blue?")


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_with_tools_the_model_remembers_and_recalls_itself(memory, asynchronous):
    model = ScriptedModel(script=[calling("remember", text="The boat is blue"), calling("recall", query="boat"), "Ok."])
    agent = create_agent(
        model,
        middleware=[SCGMemoryMiddleware(memory, score_threshold=0.0, namespace=("users", "{user_id}"), mode="tools")],
        context_schema=Context,
    )
    question = {"messages": [("user", "Remember my puppy boat")]}
    if asynchronous:
        result = await agent.ainvoke(question, context=Context("anna"))
    else:
        result = agent.invoke(question, context=Context("anna"))
    assert {one.name for one in model.tools} == {"remember", "recall", "forget"}
    anna = memory.in_namespace(("users", "anna"))
    assert [entry.text for entry in anna.entries] == ["The boat is blue"]
    assert "The boat is blue" in texts(result["messages"])[4]
    assert len(memory.entries) == 2
    assert len(model.shown[0]) == 1


@pytest.mark.parametrize(
    "options",
    [
        {"mode": "auto"},
        {"k": 0},
        {"k": True},
        {"mode": "tools", "k": 3},
        {"namespace": ("a{b}",)},
        {"score_threshold": 2},
        {"score_threshold": None},
        {"score_threshold": None, "mode": "tools"},
    ],
)
def test_arguments_that_mean_nothing_are_refused(memory, options):
    with pytest.raises(InvalidInputError):
        SCGMemoryMiddleware(memory, **options)


def test_an_agent_remembers_over_conversations_with_the_embedded_model(open_memory, model):
    chat = ScriptedModel(script=["How lovely!", "All right.", lambda messages: str(messages[-1].text)])
    agent = create_agent(
        chat,
        middleware=[SCGMemoryMiddleware(open_memory(model=model), namespace=("{user_id}",), k=1, score_threshold=0.0)],
        context_schema=Context,
    )
    ask(agent, PUPPY, context=Context("anna"))
    ask(agent, "My train to Lyon leaves at seven on Monday", context=Context("anna"))
    answer = ask(agent, "What pet did she get?", context=Context("anna"))["messages"][-1]
    assert f"Human: {PUPPY}" in str(answer.text)
