"""Faults that users met in other memories and retrievers. Each kind has a test that this adapter does not have it."""

import asyncio
import threading

import pytest
from langchain_classic.chains import ConversationChain
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage
from langchain_core.vectorstores import VectorStoreRetriever

from scg_langchain import SCGChatMessageHistory, SCGMemory, SCGRetriever, SCGVectorStore, UnsupportedError
from scg_langchain.documents import RECALL
from shared_core import SCGConfig, SchemaMemory
from shared_core.decoding import ConceptDecoder
from shared_core.recall import RELEVANT

QUESTION = "What pet did she get?"
WORDS = SCGConfig(assimilate=0, generation_weight=0, hops=0)  # recalls what a query names, and nothing else


def ids_of(documents):
    return [document.id for document in documents]


@pytest.fixture
def memory(open_memory, documents):
    memory = open_memory("m.db")
    SCGVectorStore(memory).add_documents(documents)
    return memory


def test_no_session_reads_the_memory_of_the_first(memory):
    retriever = SCGRetriever.from_memory(memory, filter={"channel": "club"})
    calls = [{"session": "May"}, {"session": "June"}, None, {"session": "May"}]
    expected = [{"t1", "t2"}, {"t3"}, {"t4"}, {"t1", "t2"}]
    assert [set(ids_of(retriever.invoke(QUESTION, filter=call))) for call in calls] == expected

    async def use():
        return await asyncio.gather(*(retriever.ainvoke(QUESTION, filter=call) for call in calls))

    assert [set(ids_of(found)) for found in asyncio.run(use())] == expected
    search = SCGVectorStore(memory).as_retriever(search_kwargs={"filter": {"channel": "club"}})
    assert [set(ids_of(search.invoke(QUESTION, **({"filter": call} if call else {})))) for call in calls] == expected


def test_what_was_recalled_is_never_stored_again(memory, scripted):
    before = memory.entries
    store = SCGVectorStore(memory)
    store.add_documents(SCGRetriever.from_memory(memory).invoke(QUESTION))
    store.add_documents(store.similarity_search(QUESTION))
    assert memory.entries == before
    chain_memory = SCGMemory(memory=memory, session="s", score_threshold=0.0)
    llm = scripted("A puppy", "Green", "Monday")
    chain = ConversationChain(llm=llm, memory=chain_memory)
    asked = [QUESTION, "Which colour?", "When does the train leave?"]
    for question in asked:
        chain.invoke({"input": question})
    assert "a puppy named Rex" in llm.asked[0][0].content
    messages = SCGMemory(memory=memory, return_messages=True, score_threshold=0.0)
    shown = messages.load_memory_variables({"input": QUESTION})["history"]
    length = len(memory.entries)
    messages.save_context({"input": shown[0]}, {"output": " "})
    assert len(memory.entries) == length
    history = SCGChatMessageHistory(memory, "s")
    history.add_messages([*messages.load_memory_variables({"input": QUESTION})["history"], HumanMessage("Thanks")])
    said = [text for pair in zip(asked, ["A puppy", "Green", "Monday"], strict=True) for text in pair]
    assert [entry.text for entry in memory.entries[len(before) :]] == [*said, "Thanks"]


def test_async_never_blocks_the_event_loop_nor_takes_a_thread_for_each_call(memory, monkeypatch):
    go, waiting = threading.Event(), threading.Event()

    def held(call):
        def wait(*args, **kwargs):
            waiting.set()
            assert go.wait(60), "the event loop did not run meanwhile"
            return call(*args, **kwargs)

        return wait

    for owner, name in [(ConceptDecoder, "decode"), (SchemaMemory, "remember"), (SchemaMemory, "forget")]:
        monkeypatch.setattr(owner, name, held(getattr(owner, name)))
    monkeypatch.setattr(SchemaMemory, "clear", held(SchemaMemory.clear))
    retriever, store = SCGRetriever.from_memory(memory), SCGVectorStore(memory)
    chain_memory, history = SCGMemory(memory=memory), SCGChatMessageHistory(memory, "s")
    calls = {
        "retriever": lambda: retriever.ainvoke(QUESTION),
        "search": lambda: store.asimilarity_search(QUESTION),
        "scores": lambda: store.asimilarity_search_with_score(QUESTION),
        "relevance": lambda: store.asimilarity_search_with_relevance_scores(QUESTION),
        "load": lambda: chain_memory.aload_memory_variables({"input": QUESTION}),
        "texts": lambda: store.aadd_texts(["x"]),
        "documents": lambda: store.aadd_documents(store.get_by_ids(["t1"])),
        "save": lambda: chain_memory.asave_context({"input": "x"}, {"output": "y"}),
        "messages": lambda: history.aadd_messages([HumanMessage("x")]),
        "delete": lambda: store.adelete(["t4"]),
        "forget": history.aclear,
        "clear": chain_memory.aclear,
    }

    async def use():
        for name, call in calls.items():
            go.clear()
            waiting.clear()
            task = asyncio.create_task(call())
            while not waiting.is_set():
                assert not task.done(), name
                await asyncio.sleep(0.001)
            assert not task.done(), name
            go.set()
            await task
        before = threading.active_count()
        go.clear()
        tasks = [asyncio.create_task(retriever.ainvoke(QUESTION)) for _ in range(50)]
        await asyncio.sleep(0.05)
        threads = threading.active_count()
        go.set()
        await asyncio.gather(*tasks)
        return threads - before

    try:
        assert asyncio.run(use()) <= 2
    finally:
        go.set()


def test_nothing_that_cannot_be_done_is_ignored_in_silence(memory, open_memory):
    store = SCGVectorStore(memory)
    condition = {"price": {"$gt": 3}}
    for call in (
        lambda: store.similarity_search(QUESTION, filter=condition),
        lambda: store.similarity_search(QUESTION, where={"a": 1}),
        lambda: store.similarity_search(QUESTION, score_threshold=0.5),
        lambda: store.similarity_search_with_score(QUESTION, fetch_k=20),
        lambda: store.similarity_search_with_relevance_scores(QUESTION, lambda_mult=0.5),
        lambda: asyncio.run(store.asimilarity_search(QUESTION, filter=condition)),
        lambda: asyncio.run(store.asimilarity_search_with_score(QUESTION, filter=lambda document: True)),
        lambda: asyncio.run(store.asimilarity_search_with_relevance_scores(QUESTION, fetch_k=20)),
        lambda: store.as_retriever(search_kwargs={"k": 2, "pre_filter": {"a": 1}}),
        lambda: store.as_retriever(search_kwargs={"filter": condition}),
        lambda: store.as_retriever(search_kwargs={"score_threshold": 0.5}),
        lambda: VectorStoreRetriever(vectorstore=store, search_kwargs={"fetch_k": 9}).invoke(QUESTION),
        lambda: store.as_retriever().invoke(QUESTION, namespace="anna"),
        lambda: store.as_retriever(k=2),
        lambda: store.as_retriever(search_type="mmr"),
        lambda: store.add_texts(["x"], collection="a"),
        lambda: store.add_documents([], overwrite=True),
        lambda: asyncio.run(store.aadd_documents([], overwrite=True)),
        lambda: store.delete(["t1"], where={"a": 1}),
        lambda: asyncio.run(store.adelete(where={"a": 1})),
        lambda: SCGVectorStore.from_texts(["x"], None, memory=open_memory(), persist_directory="x"),
        lambda: SCGRetriever.from_memory(memory).invoke(QUESTION, filter=condition),
        lambda: SCGRetriever.from_memory(memory).invoke(QUESTION, fetch_k=9),
    ):
        with pytest.raises(UnsupportedError, match=r"support|vectors"):
            call()
    assert ids_of(store.get_by_ids(["t1"])) == ["t1"]
    assert len(memory.entries) == 4


def test_scores_come_with_the_documents(sensible):
    found = SCGRetriever.from_memory(sensible).invoke(QUESTION)
    said = [document.metadata[RECALL] for document in found]
    for name in ("score", "relevance"):
        assert [one[name] for one in said] == sorted((one[name] for one in said), reverse=True)
    assert all(0 <= one["relevance"] <= 1 for one in said)
    assert found[0].id == "t1"
    assert "puppy" in [reason["key"] for reason in said[0]["reasons"]]


def test_a_count_over_the_size_of_the_memory_returns_what_there_is(memory, open_memory):
    store = SCGVectorStore(memory)
    assert len(store.similarity_search(QUESTION, k=1000)) == 4
    assert len(SCGRetriever.from_memory(memory, k=1000).invoke(QUESTION)) == 4
    assert SCGVectorStore(open_memory()).similarity_search(QUESTION, k=1000) == []
    # And a store that was opened again recalls the same, with the same settings.
    again = SCGVectorStore(open_memory("m.db", config=memory.config)).as_retriever(search_kwargs={"k": 3})
    assert again.invoke(QUESTION) == store.as_retriever(search_kwargs={"k": 3}).invoke(QUESTION)


def test_what_the_filter_leaves_out_never_comes_back(memory):
    store, retriever = SCGVectorStore(memory), SCGRetriever.from_memory(memory, k=1000)
    for condition, allowed in (
        ({"channel": "phone"}, {"t1", "t2"}),
        ({"places": 0}, {"t4"}),
        ({"channel": "x"}, set()),
    ):
        assert set(ids_of(retriever.invoke(QUESTION, filter=condition))) == allowed
        assert set(ids_of(store.similarity_search(QUESTION, k=1000, filter=condition))) == allowed
        for search in (store.similarity_search_with_score, store.similarity_search_with_relevance_scores):
            assert {document.id for document, _ in search(QUESTION, k=1000, filter=condition)} == allowed
        found = asyncio.run(store.asimilarity_search(QUESTION, k=1000, filter=condition))
        found += asyncio.run(retriever.ainvoke(QUESTION, filter=condition))
        assert set(ids_of(found)) == allowed


def test_nothing_relevant_is_nothing_injected(open_memory, model, documents, scripted):
    memory, llm = open_memory(model=model), scripted("4,194,304")
    SCGVectorStore(memory).add_documents(documents, use_model=False)
    chain_memory = SCGMemory(memory=memory)
    for question in ("What pet did she get?", "What is the puppy from the shelter called?"):
        related = chain_memory.load_memory_variables({"input": question})["history"]
        assert "a puppy named Rex" in related
        assert "quince jelly" not in related
    as_messages = SCGMemory(memory=memory, return_messages=True)
    assert as_messages.load_memory_variables({"input": "Write a haiku about the moon."}) == {"history": []}
    assert SCGRetriever.from_memory(memory, score_threshold=RELEVANT).invoke("Write a haiku about the moon.") == []
    unrelated = ConversationChain(llm=llm, memory=chain_memory).invoke({"input": "Multiply 2048 by itself."})
    assert unrelated["history"] == ""
    assert "Rex" not in llm.asked[0][0].content


def test_an_update_is_found_by_what_it_says_now_and_touches_no_other(memory, open_memory):
    store = SCGVectorStore(open_memory(config=WORDS))
    store.add_texts(["a puppy from the shelter", "a canoe on the lake"], ids=["0", "1"])
    store.add_texts(["a violin in the attic"], ids=["0"])
    assert store.similarity_search("puppy") == []
    assert ids_of(store.similarity_search("violin")) == ["0"]
    assert ids_of(store.similarity_search("canoe")) == ["1"]
    # Ranks are not ids: what was found can be written back, in any order, and nothing moves.
    store.add_documents(store.similarity_search("violin or canoe")[::-1])
    assert [entry.text for entry in store.memory.entries] == ["a violin in the attic", "a canoe on the lake"]


def test_the_same_again_deletes_and_doubles_nothing(memory, documents):
    store, before = SCGVectorStore(memory), memory.entries
    for _ in range(2):
        assert store.add_documents(documents) == ids_of(documents)
    assert memory.entries == before

    async def use():
        await asyncio.gather(*(store.aadd_documents(documents) for _ in range(10)))

    asyncio.run(use())
    assert memory.entries == before


def test_a_text_longer_than_the_models_window_is_stored_whole(open_memory):
    memory = open_memory(config=SCGConfig())  # the model, which reads 256 tokens at most, takes part in the writing
    text = "The pelican flew over the harbour. " * 200 + "The violin is in the attic."
    SCGVectorStore(memory).add_texts([text], ids=["long"])
    SCGMemory(memory=memory).save_context({"input": text}, {"output": "Noted."})
    assert [entry.text for entry in memory.entries] == [text, text, "Noted."]
    assert "long" in ids_of(SCGRetriever.from_memory(memory, k=9).invoke("Where is the violin? " * 200))


@pytest.mark.parametrize("text", ["...", "?!", "\N{DOG FACE}", "the of and", "7"])
def test_texts_that_say_nothing_break_nothing(open_memory, text):
    memory = open_memory()
    store, chain_memory = SCGVectorStore(memory), SCGMemory(memory=memory)
    assert store.similarity_search(text) == []
    store.add_texts([text], ids=["1"])
    assert store.get_by_ids(["1"]) == [Document(text, id="1")]
    chain_memory.save_context({"input": text}, {"output": text})
    chain_memory.load_memory_variables({"input": text})
    SCGRetriever.from_memory(memory).invoke(text)


@pytest.mark.parametrize(
    ("texts", "query"),
    [
        (["我收养了一只小狗", "火车七点开往里昂"], "小狗"),
        (["子犬を引き取りました", "列車は七時に出ます"], "子犬"),
        (["강아지를 입양했어요", "기차는 일곱 시에 떠나요"], "강아지"),
    ],
)
def test_no_writing_system_is_invisible(open_memory, texts, query):
    store = SCGVectorStore.from_texts(texts, memory=open_memory(config=WORDS), ids=["pet", "train"])
    assert ids_of(store.as_retriever().invoke(query)) == ["pet"]


def test_what_was_deleted_is_in_no_file(memory, tmp_path):
    def written():
        return b"".join(file.read_bytes() for file in tmp_path.iterdir() if file.name.startswith("m.db"))

    store, chain_memory = SCGVectorStore(memory), SCGMemory(memory=memory, namespace="chain")
    history = SCGChatMessageHistory(memory, "s", namespace="history")
    store.add_texts(["the pelican's secret"], ids=["x"])
    chain_memory.save_context({"input": "the pangolin's secret"}, {"output": "Noted."})
    history.add_user_message("the platypus's secret")
    for word, erase in (
        (b"pelican", lambda: store.delete(["x"])),
        (b"pangolin", chain_memory.clear),
        (b"platypus", history.clear),
    ):
        assert word in written()
        erase()
        assert word not in written()
    assert len(memory.entries) == 4
