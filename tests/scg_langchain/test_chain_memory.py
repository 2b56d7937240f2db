"""The memory of classic chains."""

import asyncio
from datetime import datetime, timedelta, timezone

import pytest
from langchain_classic.chains import ConversationChain, LLMChain
from langchain_classic.memory import CombinedMemory, ConversationBufferWindowMemory
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder, PromptTemplate
from pydantic import ValidationError

from scg_langchain import SCGMemory
from shared_core import MemoryEntry
from shared_core.errors import InvalidInputError

SAID = [
    ({"input": "My dog is called Rex"}, {"response": "A good name for a dog"}),
    ({"input": "I paint the kitchen green"}, {"response": "Send me a picture of the walls"}),
]
QUESTION = {"input": "What is my dog called?"}


@pytest.fixture
def make(open_memory):
    """Makes a chain memory that knows what was said; everything is relevant unless a threshold is given."""

    def make_memory(**fields):
        options = {"memory": fields.pop("memory", None) or open_memory(), "session": "s", "score_threshold": 0.0}
        memory = SCGMemory(**(options | fields))
        for inputs, outputs in SAID:
            memory.save_context(inputs, outputs)
        return memory

    return make_memory


def said_in(memory):
    return [(entry.speaker, entry.text, entry.session) for entry in memory.entries]


def test_what_was_said_is_stored_with_its_source(make):
    memory = make()
    expected = [
        (who, text, "s")
        for inputs, outputs in SAID
        for who, text in (("Human", inputs["input"]), ("AI", outputs["response"]))
    ]
    assert said_in(memory.memory) == expected
    assert all(entry.occurred_at.utcoffset() is not None for entry in memory.memory.entries)
    twin = make(namespace="twin")
    asyncio.run(twin.aclear())
    for inputs, outputs in SAID:
        asyncio.run(twin.asave_context(inputs, outputs))
    assert said_in(twin.memory.in_namespace("twin")) == expected


def test_a_session_is_made_where_none_is_named(open_memory):
    memory = open_memory()
    sessions = {SCGMemory(memory=memory).session for _ in range(3)}
    assert len(sessions) == 3


def test_text_and_messages(make):
    memory = make()
    assert memory.memory_variables == ["history"]
    history = memory.load_memory_variables(QUESTION)["history"]
    assert asyncio.run(memory.aload_memory_variables(QUESTION)) == {"history": history}
    lines = history.splitlines()
    assert len(lines) == 4
    assert lines[0].endswith("Human: My dog is called Rex")
    assert lines[1].endswith("AI: A good name for a dog")
    assert not any("[" in line for line in lines)
    memory = SCGMemory(memory=memory.memory, return_messages=True, memory_key="recalled", score_threshold=0.0)
    assert memory.memory_variables == ["recalled"]
    messages = memory.load_memory_variables(QUESTION)["recalled"]
    kinds = [(type(message), message.content) for message in messages]
    assert kinds == [
        (kind, text)
        for inputs, outputs in SAID
        for kind, text in ((HumanMessage, inputs["input"]), (AIMessage, outputs["response"]))
    ]
    assert (
        len(
            SCGMemory(memory=memory.memory, k=1, score_threshold=0.0)
            .load_memory_variables(QUESTION)["history"]
            .splitlines()
        )
        == 1
    )


def test_entries_from_elsewhere_keep_their_speaker(open_memory):
    memory = open_memory()
    memory.remember(MemoryEntry("My dog is called Rex", speaker="Anna"))
    chain_memory = SCGMemory(memory=memory, return_messages=True, score_threshold=0.0)
    assert [one.content for one in chain_memory.load_memory_variables(QUESTION)["history"]] == [
        "Anna: My dog is called Rex"
    ]


def test_keys(make, open_memory):
    memory = SCGMemory(
        memory=open_memory(), session="s", input_key="question", output_key="answer", score_threshold=0.0
    )
    memory.save_context({"question": "Who?", "style": "short"}, {"answer": "Rex", "source": "none"})
    assert [text for _, text, _ in said_in(memory.memory)] == ["Who?", "Rex"]
    assert "Rex" in memory.load_memory_variables({"question": "Who?", "style": "long"})["history"]
    guessing = make()
    with pytest.raises(InvalidInputError, match="set output_key"):
        guessing.save_context(QUESTION, {"answer": "Rex", "source": "none"})
    with pytest.raises(ValueError, match="One input key expected"):
        guessing.load_memory_variables({"question": "Who?", "style": "long"})
    with pytest.raises(InvalidInputError, match="no input 'question'"):
        memory.load_memory_variables(QUESTION)
    with pytest.raises(InvalidInputError, match="no output 'answer'"):
        memory.save_context({"question": "Who?"}, {"response": "Rex"})
    with pytest.raises(InvalidInputError, match="text or a message, not list"):
        guessing.load_memory_variables({"input": ["What?"]})
    with pytest.raises(ValidationError, match="human_prefix"):
        SCGMemory(memory=memory.memory, human_prefix="Anna")


def test_messages_may_be_input_and_output(open_memory):
    memory = SCGMemory(memory=open_memory(), session="s")
    memory.save_context({"input": HumanMessage("Who barks?", name="Anna")}, {"output": AIMessage("Rex")})
    assert said_in(memory.memory) == [("Anna", "Who barks?", "s"), ("AI", "Rex", "s")]
    assert memory.load_memory_variables({"input": HumanMessage(" ")}) == {"history": ""}


def test_odd_characters_break_no_chain(open_memory, scripted):
    memory = SCGMemory(memory=open_memory(), session="s", score_threshold=0.0)
    chain = ConversationChain(llm=scripted("Re\x00x"), memory=memory)
    for _ in range(2):
        chain.invoke({"input": "My pup\x00py\ud800?"})
    assert [text for _, text, _ in said_in(memory.memory)] == ["My pup\ufffdpy\ufffd?", "Re\ufffdx"] * 2


def test_what_was_said_in_several_time_zones_reads_in_its_order(open_memory):
    memory = open_memory()
    summer, winter = timezone(timedelta(hours=2)), timezone(timedelta(hours=1))
    night = datetime(2025, 10, 26, 2, 30)
    times = [None, night.replace(tzinfo=summer), night.replace(tzinfo=winter, minute=10), night.replace(minute=50)]
    entries = [MemoryEntry(f"My dog said {n}", occurred_at=time) for n, time in enumerate(times)]
    memory.remember(entries[::-1])
    history = SCGMemory(memory=memory, return_messages=True, score_threshold=0.0).load_memory_variables(QUESTION)
    assert [message.content[-1] for message in history["history"]] == ["0", "1", "2", "3"]


def test_nothing_said_is_nothing_stored(open_memory):
    memory = SCGMemory(memory=open_memory(), session="s")
    memory.save_context({"input": " "}, {"output": ""})
    assert not memory.memory.entries
    assert memory.load_memory_variables({"input": "Anything?"}) == {"history": ""}
    assert asyncio.run(memory.aload_memory_variables({"input": ""})) == {"history": ""}


def test_clear_erases_its_namespace_alone(make):
    one = make()
    other = make(memory=one.memory, namespace="other")
    other.clear()
    assert not other.memory.in_namespace("other").entries
    assert len(one.memory.entries) == 4
    asyncio.run(one.aclear())
    assert not one.memory.entries


def test_a_conversation_chain_remembers_beyond_its_window(open_memory, model, scripted):
    memory = SCGMemory(memory=open_memory(model=model), session="s")
    llm = scripted("A good name", "Send me a picture", "Rex")
    chain = ConversationChain(llm=llm, memory=memory)
    for said in ("My dog is called Rex", "I paint the kitchen green"):
        chain.invoke({"input": said})
    result = chain.invoke(QUESTION)
    assert result["response"] == "Rex"
    assert "My dog is called Rex" in result["history"]
    assert "Human: My dog is called Rex" in llm.asked[-1][0].content
    # Stored is what was said, and nothing of what the prompt held besides.
    assert [text for _, text, _ in said_in(memory.memory)] == [
        "My dog is called Rex",
        "A good name",
        "I paint the kitchen green",
        "Send me a picture",
        "What is my dog called?",
        "Rex",
    ]


def test_messages_go_into_a_chat_prompt(make, scripted):
    llm = scripted("Rex")
    prompt = ChatPromptTemplate.from_messages([MessagesPlaceholder("history"), ("human", "{input}")])
    chain = LLMChain(llm=llm, prompt=prompt, memory=make(return_messages=True))
    assert asyncio.run(chain.ainvoke(QUESTION))["text"] == "Rex"
    assert [message.type for message in llm.asked[0]] == ["human", "ai", "human", "ai", "human"]


def test_beside_a_window_of_the_conversation(make, scripted):
    recalled = make(memory_key="recalled", input_key="input")
    window = ConversationBufferWindowMemory(k=1, memory_key="history", input_key="input")
    prompt = PromptTemplate.from_template("{recalled}\n\n{history}\nHuman: {input}\nAI:")
    chain = ConversationChain(
        llm=scripted("Rex", "A terrier"), prompt=prompt, memory=CombinedMemory(memories=[recalled, window])
    )
    chain.invoke(QUESTION)
    result = chain.invoke({"input": "What kind of dog?"})
    assert result["history"] == "Human: What is my dog called?\nAI: Rex"
    assert "My dog is called Rex" in result["recalled"]
