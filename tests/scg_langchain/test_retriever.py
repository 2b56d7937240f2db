"""The retriever by itself and in what LangChain builds around retrievers."""

import asyncio
import pickle  # noqa: TID251 - only writes, which must fail
from copy import copy, deepcopy

import pytest
from langchain_classic.chains import create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_classic.retrievers import ContextualCompressionRetriever, EnsembleRetriever, MultiQueryRetriever
from langchain_classic.retrievers.document_compressors import DocumentCompressorPipeline
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import ConfigurableField, RunnableLambda
from langchain_core.tools import create_retriever_tool
from langchain_text_splitters import CharacterTextSplitter
from pydantic import ValidationError

from scg_langchain import SCGMemory, SCGRetriever, UnsupportedError
from scg_langchain.documents import RECALL
from shared_core import Filter, SCGConfig
from shared_core.errors import InvalidInputError

QUESTION = "What pet did she get?"


def ids_of(documents):
    return [document.id for document in documents]


@pytest.fixture
def retriever(open_memory, documents):
    return SCGRetriever.from_documents(documents, memory=open_memory())


@pytest.fixture
def two(sensible):
    """Knows what it is asked, and returns two documents."""
    return SCGRetriever.from_memory(sensible, k=2)


def test_it_recalls_what_the_memory_recalls(retriever, documents):
    recall = retriever.memory.recall(QUESTION)
    found = retriever.invoke(QUESTION)
    assert found == asyncio.run(retriever.ainvoke(QUESTION))
    assert ids_of(found) == [one.entry.id for one in recall.entries]
    plain = {document.id: document for document in documents}
    for document, one in zip(found, recall.entries, strict=True):
        said = document.metadata.pop(RECALL)
        assert document == plain[document.id]
        assert (said["score"], said["relevance"]) == (one.score, one.relevance)
        assert [reason["key"] for reason in said["reasons"]] == [reason.key for reason in one.reasons]


def test_settings_hold_as_fields_and_for_one_call(retriever):
    everything = ids_of(retriever.invoke(QUESTION))
    assert len(everything) == 4
    assert ids_of(SCGRetriever(memory=retriever.memory, k=2).invoke(QUESTION)) == everything[:2]
    assert ids_of(retriever.invoke(QUESTION, k=2)) == everything[:2]
    assert ids_of(retriever.bind(k=2).invoke(QUESTION)) == everything[:2]
    configurable = retriever.configurable_fields(k=ConfigurableField(id="k"))
    assert ids_of(configurable.with_config(configurable={"k": 2}).invoke(QUESTION)) == everything[:2]
    for condition in ({"speaker": "Ben"}, Filter(speaker="Ben")):
        assert set(ids_of(retriever.invoke(QUESTION, filter=condition))) == {"t2", "t3"}
        fixed = SCGRetriever.from_memory(retriever.memory, filter=condition)
        assert set(ids_of(fixed.invoke(QUESTION))) == {"t2", "t3"}
        assert ids_of(fixed.invoke(QUESTION, filter={"channel": "club"})) == ["t4"]
    relevances = [document.metadata[RECALL]["relevance"] for document in retriever.invoke(QUESTION)]
    for least in (0.0, *relevances, 1.0):
        expected = everything[: sum(relevance >= least for relevance in relevances)]
        assert ids_of(retriever.invoke(QUESTION, score_threshold=least)) == expected
        assert ids_of(SCGRetriever(memory=retriever.memory, score_threshold=least).invoke(QUESTION)) == expected
    assert ids_of(retriever.invoke(QUESTION)) == everything


@pytest.mark.parametrize(
    "fields",
    [{"k": 0}, {"score_threshold": 1.5}, {"filter": {"a": {"$ne": 1}}}, {"k": "many"}, {"top_k": 3}, {"namespace": ()}],
)
def test_unusable_settings_are_refused(open_memory, fields):
    with pytest.raises(ValidationError):
        SCGRetriever(memory=open_memory(), **fields)


def test_settings_have_a_json_schema_without_the_memory():
    for settings in (SCGRetriever, SCGMemory):
        fields = settings.model_json_schema()["properties"]
        assert "namespace" in fields
        assert "memory" not in fields


def test_copies_share_the_memory(retriever):
    wrapped = RunnableLambda(lambda question: question) | retriever
    expected = ids_of(retriever.invoke(QUESTION))
    for copied in (deepcopy(retriever), copy(retriever), retriever.model_copy(deep=True), deepcopy(wrapped).last):
        assert copied is not retriever
        assert copied.memory is retriever.memory
        assert ids_of(copied.invoke(QUESTION)) == expected
    with pytest.raises(UnsupportedError, match="open it again where it is needed"):
        pickle.dumps(retriever)


def test_unusable_arguments_of_a_call_are_refused(retriever):
    with pytest.raises(UnsupportedError):
        retriever.invoke(QUESTION, filter={"a": {"$ne": 1}})
    for call in (
        lambda: retriever.invoke(QUESTION, fetch_k=20),
        lambda: asyncio.run(retriever.ainvoke(QUESTION, where={"a": 1})),
        lambda: retriever.bind(search_kwargs={"k": 1}).invoke(QUESTION),
    ):
        with pytest.raises(UnsupportedError, match=r"fetch_k|where|search_kwargs"):
            call()
    for least in (7, -0.1, "0.5", True, float("nan")):
        with pytest.raises(InvalidInputError, match="score_threshold"):
            retriever.invoke(QUESTION, score_threshold=least)
    for name, value in (("k", 0), ("filter", {"a": {"$ne": 1}}), ("score_threshold", 7)):
        with pytest.raises(ValidationError):
            setattr(retriever, name, value)
    with pytest.raises(InvalidInputError):
        retriever.invoke(QUESTION, k=0)
    with pytest.raises(InvalidInputError):
        retriever.invoke(QUESTION, namespace=())
    with pytest.raises(InvalidInputError):
        retriever.invoke(" ")


def test_constructors(open_memory, tmp_path, documents):
    texts = [document.page_content for document in documents]
    metadatas = [document.metadata for document in documents]
    ids = ids_of(documents)
    memory = open_memory("m.db")
    retriever = SCGRetriever.from_texts(texts, metadatas, ids=ids, memory=memory, namespace=("users", "anna"), k=1)
    assert len(retriever.invoke(QUESTION)) == 1
    assert not memory.entries
    full = open_memory(config=SCGConfig())
    assert SCGRetriever.from_texts(["x"], memory=full, use_model=False).memory.stats().waiting == 1
    again = SCGRetriever.from_memory(tmp_path / "m.db", namespace=("users", "anna"))
    with again.memory:
        assert len(again.memory.in_namespace(("users", "anna")).entries) == 4


def test_callbacks_are_told(retriever):
    class Told(BaseCallbackHandler):
        def __init__(self):
            self.events = []

        def on_retriever_start(self, serialized, query, **kwargs):
            self.events.append((query, kwargs["metadata"], kwargs["tags"]))

        def on_retriever_end(self, documents, **kwargs):
            self.events.append(ids_of(documents))

        def on_retriever_error(self, error, **kwargs):
            self.events.append(type(error))

    class ToldAsync(AsyncCallbackHandler):
        def __init__(self):
            self.told = Told()

        async def on_retriever_start(self, *args, **kwargs):
            self.told.on_retriever_start(*args, **kwargs)

        async def on_retriever_end(self, *args, **kwargs):
            self.told.on_retriever_end(*args, **kwargs)

        async def on_retriever_error(self, *args, **kwargs):
            self.told.on_retriever_error(*args, **kwargs)

    told, told_async = Told(), ToldAsync()
    config = {"tags": ["mine"], "metadata": {"who": "me"}}
    found = ids_of(retriever.invoke(QUESTION, {**config, "callbacks": [told]}))
    with pytest.raises(InvalidInputError):
        retriever.invoke(" ", {"callbacks": [told]})
    (query, metadata, tags), ended, _, failed = told.events
    assert (query, ended, failed) == (QUESTION, found, InvalidInputError)
    assert metadata["who"] == "me"
    assert metadata["ls_retriever_name"] == "scg"
    assert metadata["ls_vector_store_provider"] == "SchemaMemory"
    assert tags == ["mine"]

    async def use():
        await retriever.ainvoke(QUESTION, {**config, "callbacks": [told_async]})
        with pytest.raises(InvalidInputError):
            await retriever.ainvoke(" ", {"callbacks": [told_async]})

    asyncio.run(use())
    assert told_async.told.events == told.events


def test_a_retrieval_chain_answers_from_what_was_recalled(two, scripted):
    llm = scripted("Rex")
    prompt = ChatPromptTemplate.from_template("Answer from this:\n{context}\nQuestion: {input}")
    chain = create_retrieval_chain(two, create_stuff_documents_chain(llm, prompt))
    result = chain.invoke({"input": QUESTION})
    assert result["answer"] == "Rex"
    assert ids_of(result["context"])[0] == "t1"
    assert "a puppy named Rex" in llm.asked[0][0].content
    assert asyncio.run(chain.ainvoke({"input": QUESTION})) == result


def test_in_an_ensemble(two):
    class Other(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            return two.invoke("the train to Lyon", k=1)

    ensemble = EnsembleRetriever(retrievers=[two, Other()], weights=[0.6, 0.4])
    found = ids_of(ensemble.invoke(QUESTION))
    assert found[0] == "t1"
    assert "t3" in found
    assert len(found) == len(set(found))
    assert ids_of(asyncio.run(ensemble.ainvoke(QUESTION))) == found


def test_in_a_compressor(two):
    splitter = DocumentCompressorPipeline(
        transformers=[CharacterTextSplitter(separator=" ", chunk_size=24, chunk_overlap=0)]
    )
    compressed = ContextualCompressionRetriever(base_compressor=splitter, base_retriever=two)
    pieces = compressed.invoke(QUESTION)
    assert " ".join(piece.page_content for piece in pieces).startswith("I adopted a puppy named Rex")
    assert pieces[0].metadata[RECALL]["score"] > 0
    assert asyncio.run(compressed.ainvoke(QUESTION)) == pieces


def test_in_a_multi_query_retriever_each_document_comes_once(two, scripted):
    def make():
        llm = scripted("Which animal was adopted?\nWho lives in the kennel?")
        return MultiQueryRetriever.from_llm(two, llm, include_original=True)

    found = ids_of(make().invoke(QUESTION))
    assert "t1" in found
    assert len(found) == len(set(found))
    assert set(ids_of(asyncio.run(make().ainvoke(QUESTION)))) == set(found)


def test_as_a_tool(two):
    tool = create_retriever_tool(two, "recall", "Remembers.", response_format="content_and_artifact")
    call = {"type": "tool_call", "name": "recall", "args": {"query": QUESTION}, "id": "1"}
    message = tool.invoke(call)
    assert message.content.startswith("I adopted a puppy")
    assert message.artifact[0].metadata[RECALL]["reasons"]
    assert asyncio.run(tool.ainvoke(call)) == message


def test_events_are_streamed(two):
    async def use():
        return [event async for event in two.astream_events(QUESTION, version="v2")]

    events = asyncio.run(use())
    assert [event["event"] for event in events] == ["on_retriever_start", "on_retriever_end"]
    assert ids_of(events[-1]["data"]["output"])[0] == "t1"


def test_batches(retriever):
    queries = [QUESTION, "Who painted?", "Lyon"]
    expected = [retriever.invoke(query, k=2) for query in queries]
    assert retriever.batch(queries, k=2) == expected
    assert asyncio.run(retriever.abatch(queries, k=2)) == expected
