"""The chat message history: what goes in comes out, in order, whatever kind of message it is."""

import asyncio
import json

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, ChatMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables.history import RunnableWithMessageHistory

from scg_langchain import SCGChatMessageHistory
from scg_langchain.messages import RECALLED
from shared_core import MemoryEntry
from shared_core.errors import InvalidInputError

CALL = {"type": "tool_call", "name": "search", "args": {"query": "dogs"}, "id": "c1"}
MESSAGES = [
    SystemMessage("Be brief."),
    HumanMessage("My dog is called Rex", name="Anna", id="m1"),
    AIMessage("", tool_calls=[CALL], usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}),
    ToolMessage("Rex is a king", tool_call_id="c1", artifact={"n": [1, 2]}, status="error"),
    AIMessage(" "),
    HumanMessage([{"type": "text", "text": "Look"}, {"type": "image_url", "image_url": {"url": "http://x/y.png"}}]),
    HumanMessage([{"type": "image_url", "image_url": {"url": "http://x/y.png"}}]),
    AIMessageChunk("A dog", response_metadata={"model": "m"}),
    ChatMessage("Woof", role="dog"),
    HumanMessage("a\x00puppy\ud800", name="An\x00na"),
    AIMessage("", tool_calls=[{**CALL, "name": "se\x00arch", "args": {"query": "dogs\x00"}}]),
    ToolMessage("deep", tool_call_id="c1", artifact=json.loads("[" * 50 + "]" * 50)),
]


@pytest.fixture
def history(open_memory):
    return SCGChatMessageHistory(open_memory(), "s")


def test_messages_come_back_as_they_were(history, open_memory):
    history.add_messages(MESSAGES[:4])
    for message in MESSAGES[4:]:
        history.add_message(message)
    assert history.messages == MESSAGES
    assert asyncio.run(history.aget_messages()) == MESSAGES
    twin = SCGChatMessageHistory(open_memory(), "s", namespace="twin")
    asyncio.run(twin.aadd_messages(MESSAGES))
    assert twin.messages == MESSAGES


def test_the_same_message_twice_is_two_messages(history):
    history.add_messages([MESSAGES[1], MESSAGES[1]])
    assert history.messages == [MESSAGES[1], MESSAGES[1]]


def test_sessions_are_apart_and_one_is_cleared_alone(open_memory):
    memory = open_memory("m.db")
    one, other = (SCGChatMessageHistory(memory, session) for session in ("one", "other"))
    one.add_user_message("Hello")
    other.add_ai_message("Good evening")
    assert (str(one), str(other)) == ("Human: Hello", "AI: Good evening")
    one.clear()
    assert (one.messages, other.messages) == ([], [AIMessage("Good evening")])
    asyncio.run(other.aclear())
    assert not memory.entries


def test_a_session_that_is_no_text_is_refused(open_memory):
    with pytest.raises(InvalidInputError, match="session"):
        SCGChatMessageHistory(open_memory(), 7)


@pytest.mark.parametrize("artifact", [object(), b"\xff"])
def test_a_message_that_json_cannot_carry_is_refused_and_none_is_stored(history, artifact):
    with pytest.raises(InvalidInputError, match="artifact"):
        history.add_messages([HumanMessage("Hello"), ToolMessage("x", tool_call_id="1", artifact=artifact)])
    assert not history.messages


@pytest.mark.parametrize("given", [HumanMessage("Hello"), "Hello", [("human", "Hello")]])
def test_what_is_no_list_of_messages_is_refused(history, given):
    with pytest.raises(InvalidInputError, match="messages"):
        history.add_messages(given)


def test_metadata_of_another_entry_is_not_taken_for_a_message(open_memory):
    memory = open_memory()
    memory.remember(MemoryEntry("Hi", session="s", metadata={"message": {"type": "x"}}))
    assert SCGChatMessageHistory(memory, "s").messages == [HumanMessage("Hi")]


def test_what_is_stored_can_be_recalled(open_memory):
    memory = open_memory()
    SCGChatMessageHistory(memory, "s").add_messages([HumanMessage("My dog is called Rex"), AIMessage("Fine")])
    best = memory.recall("Which dog?", k=1).entries[0].entry
    assert (best.text, best.speaker, best.session) == ("My dog is called Rex", "Human", "s")


def test_entries_that_were_no_messages_are_read_as_some(open_memory):
    memory = open_memory()
    memory.remember([MemoryEntry("Hi", speaker="Anna", session="s"), MemoryEntry("Hello", speaker="AI", session="s")])
    assert SCGChatMessageHistory(memory, "s").messages == [HumanMessage("Anna: Hi"), AIMessage("Hello")]


def test_recalled_messages_are_not_stored(history):
    history.add_messages([HumanMessage("old", additional_kwargs={RECALLED: "t1"}), HumanMessage("new")])
    assert history.messages == [HumanMessage("new")]


def test_with_a_runnable(open_memory, scripted):
    memory, llm = open_memory(), scripted("Hello Anna", "An\x00na")
    prompt = ChatPromptTemplate.from_messages([MessagesPlaceholder("history"), ("human", "{input}")])
    chain = RunnableWithMessageHistory(
        prompt | llm,
        lambda session_id: SCGChatMessageHistory(memory, session_id),
        input_messages_key="input",
        history_messages_key="history",
    )
    config = {"configurable": {"session_id": "s"}}
    chain.invoke({"input": "I am Anna"}, config)
    asyncio.run(chain.ainvoke({"input": "Who am I?"}, config))
    assert [message.content for message in llm.asked[-1]] == ["I am Anna", "Hello Anna", "Who am I?"]
    said = [message.content for message in SCGChatMessageHistory(memory, "s").messages]
    assert said == ["I am Anna", "Hello Anna", "Who am I?", "An\x00na"]
