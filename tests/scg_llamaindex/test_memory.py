"""The memory block, and the ready memory in agents and chat engines."""

import asyncio
import threading

import pytest
from llama_index.core.agent.workflow import FunctionAgent, ReActAgent
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.memory import Memory

from scg_llamaindex import SCGChatMemory, SCGMemoryBlock
from shared_core import SCGConfig, SchemaMemory
from shared_core.decoding import ConceptDecoder
from shared_core.store import Store


@pytest.fixture
def memory(open_memory):
    return open_memory(config=SCGConfig(assimilate=0))


def chat(memory, session="s", **options):
    return SCGChatMemory.from_memory(memory, session, **({"score_threshold": 0.0} | options))


def said(role, text):
    return ChatMessage(role=role, content=text)


def own_threads():
    """Threads of memories; LlamaIndex's chat stores make one each."""
    return sum(thread.name.startswith("scg") for thread in threading.enumerate())


def texts(messages):
    return [message.content for message in messages]


def injected(messages):
    blocks = [block.text for message in messages for block in message.blocks]
    return "\n".join(text for text in blocks if text.lstrip().startswith("<memory>"))


def test_a_short_chat_is_remembered_and_recalled_in_the_next_session_when_shared(memory):
    first = chat(memory, "1", shared=True)
    first.put(said("user", "I adopted a puppy named Rex"))
    second = chat(memory, "2", shared=True)
    second.put(said("user", "Which puppy?"))
    got = second.get()
    assert "I adopted a puppy named Rex" in injected(got)
    assert "\n".join(texts(got)).count("Which puppy?") == 1
    assert "Which puppy?" not in injected(got)


def test_every_session_reads_its_own_memory_and_not_the_first_ones(memory):
    first, second = chat(memory, "1"), chat(memory, "2")
    first.put(said("user", "The puppy is mine"))
    second.put(said("user", "The canoe is mine"))
    for session, own, other in ((first, "puppy", "canoe"), (second, "canoe", "puppy"), (first, "puppy", "canoe")):
        again = chat(memory, session.session_id)  # a restart: nothing is in the prompt
        text = injected(again.get(input="Is the puppy or the canoe mine?"))
        assert own in text
        assert other not in text
    assert memory.entries == []


def test_one_block_in_plain_memories_keeps_sessions_apart_as_well(memory):
    block = SCGMemoryBlock(memory=memory, score_threshold=0.0)

    async def use():
        for session in ("1", "2"):
            await block.aput([said("user", f"The secret of {session}")], session_id=session)
        plain = [Memory.from_defaults(session_id=session, memory_blocks=[block]) for session in ("1", "2", "3")]
        return await asyncio.gather(*(one.aget(input="secret") for one in plain))

    first, second, third = map(injected, asyncio.run(use()))
    assert "The secret of 1" in first
    assert "The secret of 2" not in first
    assert "The secret of 2" in second
    assert "The secret of 1" not in second
    assert third == ""


def test_the_block_recalls_for_the_newest_question_and_not_for_the_one_before(memory):
    chat(memory, "old", shared=True).put_messages(
        [said("user", "The puppy is called Rex"), said("user", "The train leaves at seven")]
    )
    now = chat(memory, "new", shared=True, k=1)
    asked = []
    recall = SchemaMemory.arecall

    async def listen(self, query, **options):
        asked.append(query)
        return await recall(self, query, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SchemaMemory, "arecall", listen)
        now.put(said("user", "How is the puppy called?"))
        now.get()
        now.put(said("assistant", "Rex."))
        assert "train" in injected(now.get(input="When does the train leave?"))
        assert "train" in injected(now.get(input=said("user", "When does the train leave?")))
        now.put(said("user", "When does the train leave?"))
        for _ in range(3):
            assert "train" in injected(now.get(input="When does the train leave?"))
    assert asked == ["How is the puppy called?", "When does the train leave?", "When does the train leave?"]


def test_nothing_relevant_is_nothing_injected(sensible):
    memory = SCGChatMemory.from_memory(sensible, "s", shared=True)
    asked = said("user", "What pet did she get?")
    assert "puppy" in injected(memory.get(input="What pet did she get?"))
    assert memory.get(input="How do I reset my router?") == []
    assert memory.get() == []
    assert asked.additional_kwargs == {}


def test_shared_messages_are_left_as_they_are_and_recalled_text_is_not_stored(memory):
    message = said("user", "I adopted a puppy")
    before = message.model_copy(deep=True)
    block = SCGMemoryBlock(memory=memory, score_threshold=0.0)
    asyncio.run(block.aput([message], session_id="s"))
    assert message == before
    one = chat(memory)
    one.put(said("user", "Which puppy?"))
    one.set([*one.get(), said("assistant", "That one.")])
    assert sorted(entry.text for entry in stored(memory)) == ["I adopted a puppy", "That one.", "Which puppy?"]


def stored(memory, session="s"):
    return memory.in_namespace((*memory.namespace, "session", session)).entries


def test_what_is_said_again_is_remembered_again_and_a_conversation_that_comes_back_is_not(memory):
    one = chat(memory)
    spoken = [said("user", "I ran five miles"), said("assistant", "Well done"), said("user", "I ran five miles")]
    for message in spoken:
        one.put(message)
    one.put_messages([said("assistant", "Well done"), *[said("user", "I ran five miles")] * 3])
    expected = ["I ran five miles"] * 5 + ["Well done"] * 2
    before = stored(memory)
    assert sorted(entry.text for entry in before) == expected
    one.set(one.get_all())
    again = chat(memory, chat_history=spoken)
    assert texts(again.get_all()) == texts(spoken)
    assert stored(memory) == before
    again.set([*spoken, said("user", "And six today")])
    again.put(said("user", "I ran five miles"))
    assert sorted(entry.text for entry in stored(memory)) == sorted([*expected, "And six today", "I ran five miles"])


def test_a_history_that_a_memory_begins_with_is_remembered(memory):
    chat(memory, "1", shared=True, chat_history=[said("user", "I adopted a puppy named Rex")])
    assert "puppy named Rex" in injected(chat(memory, "2", shared=True).get(input="Which puppy?"))


def test_what_was_said_before_in_the_prompt_is_not_recalled(memory):
    one = chat(memory)
    for _ in range(2):
        one.put(said("user", "Which puppy?"))
    assert injected(one.get()) == ""


def test_half_a_character_and_a_nul_are_no_end_of_a_conversation(memory):
    one = chat(memory, "1", shared=True)
    one.put(said("user", "A puppy \ud83d\udc36 and\x00 half a canoe \ud83d"))
    assert [entry.text for entry in memory.entries] == ["A puppy 🐶 and half a canoe \ufffd"]
    assert one.get()
    assert "half a canoe" in injected(chat(memory, "2", shared=True).get(input="canoe \ud83d"))


def test_what_is_forgotten_within_a_turn_is_not_said_again(memory):
    chat(memory, "1", shared=True).put(said("user", "The secret word is quince"))
    now = chat(memory, "2", shared=True)
    now.put(said("user", "What is the secret word?"))
    assert "quince" in injected(now.get())
    memory.forget(session="1")  # by a tool, say
    assert "quince" not in injected(now.get())


def test_reset_without_a_session_erases_what_was_said_in_none(memory):
    block = SCGMemoryBlock(memory=memory, shared=True)

    async def use():
        await block.aput([said("user", "Said in none")])
        await block.aput([said("user", "Said in one")], session_id="1")
        await block.areset()

    asyncio.run(use())
    assert [entry.text for entry in memory.entries] == ["Said in one"]


def test_reset_reaches_the_block_and_no_other_session(memory):
    for shared in (False, True):
        first, second = chat(memory, "1", shared=shared), chat(memory, "2", shared=shared)
        for one in (first, second):
            one.put(said("user", f"The secret of {one.session_id}"))
        first.reset()
        assert first.get() == []
        assert "The secret of 1" not in injected(chat(memory, "1", shared=shared).get(input="secret"))
        assert "The secret of 2" in injected(chat(memory, "2", shared=shared).get(input="secret"))


def test_truncation_leaves_out_whole_entries_the_least_relevant_first(memory):
    block = SCGMemoryBlock(memory=memory)
    lines = ["Anna: I adopted a puppy", "Ben: The train leaves", "Ben: Tea is ready"]

    def shortened(by):
        return asyncio.run(block.atruncate("\n".join(lines), by))

    assert shortened(1) == "\n".join(lines[:2])
    assert shortened(8) == lines[0]
    assert shortened(1000) is None
    assert asyncio.run(block.atruncate([], 3)) is None


def test_a_flood_of_messages_overflows_without_doubling_what_is_remembered(memory):
    one = chat(memory, token_limit=60, token_flush_size=10)
    for number in range(12):
        one.put(said("user", f"My number {number} is a lucky number"))
    assert len(stored(memory)) == 12
    assert one.get()


@pytest.mark.parametrize("kind", [FunctionAgent, ReActAgent])
def test_an_agent_remembers(memory, scripted, kind):
    def weather(place: str) -> str:
        """The weather."""
        return f"Rain in {place}."

    call = ("weather", {"place": "Lyon"})
    if kind is ReActAgent:
        call = 'Thought: I need it.\nAction: weather\nAction Input: {"place": "Lyon"}'
    final = "Rex is wet." if kind is FunctionAgent else "Thought: I can answer.\nAnswer: Rex is wet."
    llm = scripted("Noted." if kind is FunctionAgent else "Thought: I can answer.\nAnswer: Noted.", call, final)

    async def run():
        agent = kind(tools=[weather], llm=llm, streaming=False)
        await agent.run("I adopted a puppy named Rex", memory=chat(memory, "1", shared=True))
        return await agent.run("Is the puppy wet?", memory=chat(memory, "2", shared=True))

    assert "Rex is wet." in str(asyncio.run(run()))
    assert "I adopted a puppy named Rex" in llm.text(1)
    assert llm.text(1).count("Is the puppy wet?") == 1
    assert "Rain in Lyon" in llm.text(2)
    assert sorted(entry.text for entry in memory.entries if entry.speaker == "User") == [
        "I adopted a puppy named Rex",
        "Is the puppy wet?",
    ]


def test_a_chat_engine_remembers(memory, scripted):
    llm = scripted("Nice.", "Rex.")
    SimpleChatEngine.from_defaults(llm=llm, memory=chat(memory, "1", shared=True)).chat("My puppy is Rex")
    engine = SimpleChatEngine.from_defaults(llm=llm, memory=chat(memory, "2", shared=True))
    assert str(engine.chat("Which puppy?")) == "Rex."
    assert "My puppy is Rex" in llm.text()
    engine.reset()
    assert {entry.session for entry in memory.entries} == {"1"}


@pytest.mark.parametrize(
    ("owner", "name"), [(ConceptDecoder, "decode"), *((Store, name) for name in ("write", "forget", "get"))]
)
def test_async_never_blocks_the_event_loop_and_makes_no_thread_per_call(memory, stalled, owner, name):
    one = chat(memory, "1", shared=True)
    one.put(said("user", "I adopted a puppy"))
    one.get(input="puppy")

    async def use():
        before = own_threads()
        await one.aput(said("user", "Which puppy?"))
        await one.aget()
        await one.areset()
        await SCGMemoryBlock(memory=memory, shared=True).areset()
        others = [chat(memory, str(number), shared=True) for number in range(20)]
        await asyncio.gather(*(other.aget(input="puppy") for other in others))
        assert own_threads() == before

    stalled(owner, name, use)
