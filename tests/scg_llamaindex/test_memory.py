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
    stored = memory.in_namespace((*memory.namespace, "session", "s")).entries
    assert sorted(entry.text for entry in stored) == ["I adopted a puppy", "That one.", "Which puppy?"]


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
    stored = memory.in_namespace((*memory.namespace, "session", "s")).entries
    assert len(stored) == 12
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


@pytest.mark.parametrize(("owner", "name"), [(ConceptDecoder, "decode"), (Store, "write"), (Store, "forget")])
def test_async_never_blocks_the_event_loop_and_makes_no_thread_per_call(memory, monkeypatch, owner, name):
    go, held = threading.Event(), []
    one = chat(memory, "1", shared=True)
    one.put(said("user", "I adopted a puppy"))
    one.get(input="puppy")
    method = getattr(owner, name)

    def wait(*args, **options):
        held.append(name)
        assert go.wait(30), f"the event loop did not run during {name}"
        return method(*args, **options)

    async def use():
        await one.aput(said("user", "Which puppy?"))
        await one.aget()
        await one.areset()

    async def turn():
        while not held:  # noqa: ASYNC110 - another thread holds
            await asyncio.sleep(0.001)
        go.set()

    async def both():
        before = own_threads()
        await asyncio.gather(use(), turn())
        others = [chat(memory, str(number), shared=True) for number in range(20)]
        await asyncio.gather(*(other.aget(input="puppy") for other in others))
        assert own_threads() == before

    monkeypatch.setattr(owner, name, wait)
    asyncio.run(both())
