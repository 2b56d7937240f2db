"""What every retriever of this project keeps to, in both frameworks."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from langchain_core.documents import Document
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

import scg_langchain
import scg_llamaindex
from shared_core import SchemaMemory

TEXTS = {"a": "I adopted a puppy", "b": "The train leaves at seven", "c": "子犬を飼い始めた 🐕 café"}
METADATA = {"channel": "phone", "nested": {"list": [1, 2.5, None, True]}, "名前": "é"}


class LangChain:
    """LangChain's side."""

    @staticmethod
    def add(memory, texts, metadata):
        documents = [Document(text, id=id, metadata=metadata) for id, text in texts.items()]
        scg_langchain.SCGVectorStore(memory).add_documents(documents, use_model=False)

    @staticmethod
    def make(memory, k=None, channel=None):
        condition = {"channel": channel} if channel else None
        return scg_langchain.SCGRetriever.from_memory(memory, k=k, filter=condition)

    @staticmethod
    def found(retriever, query):
        return [LangChain.parts(one) for one in retriever.invoke(query)]

    @staticmethod
    async def afound(retriever, query):
        return [LangChain.parts(one) for one in await retriever.ainvoke(query)]

    @staticmethod
    def parts(one):
        metadata = {name: value for name, value in one.metadata.items() if name != "recall"}
        return one.id, one.page_content, metadata, one.metadata["recall"]["relevance"]


class LlamaIndex:
    """LlamaIndex's side."""

    @staticmethod
    def add(memory, texts, metadata):
        nodes = [TextNode(text=text, id_=id, metadata=metadata) for id, text in texts.items()]
        scg_llamaindex.SCGIndex(nodes, memory=memory, use_model=False)

    @staticmethod
    def make(memory, k=None, channel=None):
        condition = MetadataFilters(filters=[MetadataFilter(key="channel", value=channel)]) if channel else None
        return scg_llamaindex.SCGRetriever(memory, similarity_top_k=k, filters=condition)

    @staticmethod
    def found(retriever, query):
        return [LlamaIndex.parts(one) for one in retriever.retrieve(query)]

    @staticmethod
    async def afound(retriever, query):
        return [LlamaIndex.parts(one) for one in await retriever.aretrieve(query)]

    @staticmethod
    def parts(one):
        return one.node.node_id, one.node.get_content(), one.node.metadata, one.score


@pytest.fixture(params=[LangChain, LlamaIndex], ids=lambda side: side.__name__)
def side(request):
    return request.param


@pytest.fixture
def filled(open_memory, side):
    memory = open_memory()
    side.add(memory, TEXTS, METADATA)
    return memory


def ids_of(found):
    return {id for id, *_ in found}


def test_an_empty_corpus_gives_nothing(open_memory, side):
    assert side.found(side.make(open_memory()), "puppy") == []


def test_one_item_is_found(open_memory, side):
    memory = open_memory()
    side.add(memory, {"a": TEXTS["a"]}, {})
    assert ids_of(side.found(side.make(memory, 1), "puppy")) == {"a"}


def test_more_than_there_are_gives_what_there_is_best_first(filled, side):
    found = side.found(side.make(filled, 1000), "puppy train 子犬")
    assert ids_of(found) == set(TEXTS)
    assert len(found) == len(TEXTS)
    assert len(side.found(side.make(filled, 1), "puppy")) == 1


def test_duplicates_stay_apart_and_the_same_id_is_one(filled, side):
    side.add(filled, {"a": TEXTS["a"], "d": TEXTS["a"]}, METADATA)
    assert ids_of(side.found(side.make(filled), "puppy")) >= {"a", "d"}
    assert len(filled.entries) == 4


def test_updates_and_deletions_are_seen_at_once(filled, side):
    retriever = side.make(filled, 10)
    side.found(retriever, "puppy")
    side.add(filled, {"a": "I adopted a kitten"}, METADATA)
    assert "I adopted a kitten" in {text for _, text, *_ in side.found(retriever, "adopted")}
    filled.forget(ids=["a"])
    assert "a" not in ids_of(side.found(retriever, "puppy kitten adopted train"))


def test_metadata_and_text_of_any_script_come_back(filled, side):
    for id, text, metadata, _ in side.found(side.make(filled), "子犬 puppy train café"):
        assert text == TEXTS[id]
        assert metadata == METADATA


def test_async_equals_sync_also_for_many_at_once(filled, side):
    retriever = side.make(filled)
    queries = ["puppy", "train", "子犬"] * 3
    expected = [side.found(retriever, query) for query in queries]

    async def every():
        return await asyncio.gather(*(side.afound(retriever, query) for query in queries))

    with ThreadPoolExecutor(4) as pool:
        threaded = list(pool.map(lambda query: side.found(retriever, query), queries))
    for found in (asyncio.run(every()), threaded):
        for one, other in zip(found, expected, strict=True):
            assert [id for id, *_ in one] == [id for id, *_ in other]
            assert [item[3] for item in one] == pytest.approx([item[3] for item in other], rel=1e-3)


def test_filters_leave_out_the_rest(filled, side):
    side.add(filled, {"x": "Another puppy"}, {"channel": "letter"})
    assert ids_of(side.found(side.make(filled, 10, "letter"), "puppy")) == {"x"}
    assert side.found(side.make(filled, 10, "none"), "puppy") == []


def test_what_a_file_keeps_is_found_again_as_before(open_memory, side):
    memory = open_memory("memory.db")
    side.add(memory, TEXTS, METADATA)
    queries = ("puppy", "When does the train leave?", "子犬")
    expected = [side.found(side.make(memory, 10, "phone"), query) for query in queries]
    memory.close()
    again = open_memory("memory.db")
    assert [side.found(side.make(again, 10, "phone"), query) for query in queries] == expected
    assert all(expected)
    side.add(again, {"a": "I adopted a kitten"}, METADATA)
    assert sorted(entry.text for entry in again.entries) == sorted(["I adopted a kitten", TEXTS["b"], TEXTS["c"]])


def test_the_same_file_is_the_same_memory_from_both_frameworks(tmp_path, tiny):
    place = tmp_path / "memory.db"
    with SchemaMemory.open(place, model=tiny("llama")) as memory:
        LangChain.add(memory, {"a": TEXTS["a"]}, METADATA)
        LlamaIndex.add(memory, {"b": TEXTS["b"], "c": TEXTS["c"]}, METADATA)
        entries = memory.entries
    for _ in range(2):
        with SchemaMemory.open(place, model=tiny("llama")) as memory:
            assert memory.entries == entries
            for query in ("puppy", "When does the train leave?", "子犬"):
                chain, index = (side.found(side.make(memory), query) for side in (LangChain, LlamaIndex))
                assert chain == index
                assert chain
