"""The index: documents in, answers out, and nothing embedded."""

import asyncio
import re
from functools import partial

import pytest
from llama_index.core import MockEmbedding, StorageContext, load_index_from_storage
from llama_index.core.callbacks import CallbackManager
from llama_index.core.llms import MockLLM
from llama_index.core.memory import Memory
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.schema import Document, IndexNode, TextNode

from scg_llamaindex import (
    SCGIndex,
    SCGPGRetriever,
    SCGRetriever,
    UnsupportedError,
    property_graph_store,
    recall_model,
)
from scg_llamaindex.index_struct import SCGIndexStruct
from shared_core import SCGConfig, SchemaMemory
from shared_core.decoding import ConceptDecoder
from shared_core.errors import InvalidInputError, NotFoundError, StoreError
from shared_core.store import Store

TEXTS = {"d1": "I adopted a puppy named Rex from the shelter!", "d2": "My train to Lyon leaves at seven."}


@pytest.fixture
def documents():
    return [Document(text=text, id_=id, metadata={"source": id}) for id, text in TEXTS.items()]


def texts(index):
    return sorted(entry.text for entry in index.memory.entries)


def test_documents_are_inserted_updated_refreshed_and_deleted(open_memory, documents):
    index = SCGIndex.from_documents(documents, memory=open_memory(), embed_model="not used")
    assert texts(index) == sorted(TEXTS.values())
    assert set(index.ref_doc_info) == set(TEXTS)
    assert index.refresh_ref_docs(documents) == [False, False]
    changed = Document(text="My train to Lyon was cancelled.", id_="d2", metadata={"source": "d2"})
    assert index.refresh_ref_docs([documents[0], changed, Document(text="Tea at five.", id_="d3")]) == [
        False,
        True,
        True,
    ]
    assert texts(index) == sorted([TEXTS["d1"], "My train to Lyon was cancelled.", "Tea at five."])
    index.delete_ref_doc("d1")
    asyncio.run(index.adelete_ref_doc("d3"))
    assert texts(index) == ["My train to Lyon was cancelled."]
    assert len(index.docstore.docs) == 1
    asyncio.run(index.ainsert(documents[0]))
    index.insert_nodes([TextNode(text="One more.", id_="n")])
    assert len(texts(index)) == 3


def test_an_index_is_opened_again_by_its_memory(open_memory, documents):
    memory = open_memory("memory.db")
    SCGIndex.from_documents(documents, memory=memory)
    again = SCGIndex(memory=memory)
    assert again.refresh_ref_docs(documents) == [False, False]
    assert set(again.ref_doc_info) == set(TEXTS)
    again.delete_ref_doc("d1")
    assert texts(again) == [TEXTS["d2"]]


def test_engines(model, documents, scripted):
    with SchemaMemory.open(":memory:", model=model) as memory:
        index = SCGIndex.from_documents(documents, memory=memory, use_model=False)
        llm = scripted("Rex.")
        engine = index.as_query_engine(llm=llm, similarity_top_k=1, response_mode="compact")
        assert str(engine.query("What pet did she get?")) == "Rex."
        assert "puppy" in llm.text()
        assert "Lyon" not in llm.text()
        for mode in ("best", "context", "condense_plus_context", "condense_question", "simple"):
            llm = scripted("Rex.")
            engine = index.as_chat_engine(mode, llm=llm, similarity_top_k=1)
            assert str(engine.chat("What pet did she get?")) == "Rex."
            assert ("puppy" in llm.text()) == (mode != "simple")
        for make in (index.as_query_engine, index.as_chat_engine, partial(index.as_chat_engine, "simple")):
            with pytest.raises(UnsupportedError, match="vector_store_query_mode"):
                make(llm=llm, vector_store_query_mode="mmr")
        with pytest.raises(UnsupportedError, match=r"'react'.*'context'.*tool"):
            index.as_chat_engine("react", llm=llm)


def test_arguments_of_an_engine_reach_whom_they_belong_to(open_memory, documents, scripted):
    index = SCGIndex.from_documents(documents, memory=open_memory(), use_model=False)
    cut = SimilarityPostprocessor(similarity_cutoff=1.0)
    shown = {"verbose": True, "node_postprocessors": [cut], "callback_manager": CallbackManager([])}
    engine = index.as_query_engine(llm=scripted(), **shown)
    assert engine.query("Which puppy?").source_nodes == []
    assert (engine.retriever._verbose, engine.retriever.callback_manager) == (True, shown["callback_manager"])
    memory = Memory.from_defaults(session_id="s")
    chat = index.as_chat_engine("condense_question", llm=scripted(), memory=memory, **shown)
    assert (chat._memory, chat._verbose) == (memory, True)
    assert chat.chat("Which puppy?").source_nodes == []
    chat = index.as_chat_engine("context", llm=scripted(), similarity_top_k=1, context_template="{context_str} it is")
    assert len(chat.chat("Which puppy?").source_nodes) == 1


def test_a_persisted_index_is_loaded_with_the_memory_in_its_file(open_memory, documents, tmp_path):
    memory = open_memory("memory.db")
    index = SCGIndex.from_documents(documents, memory=memory, namespace=("users", "anna"), use_model=False)
    index.set_index_id("mine")
    index.storage_context.persist(tmp_path / "storage")

    def load(**options):
        return load_index_from_storage(StorageContext.from_defaults(persist_dir=tmp_path / "storage"), **options)

    for options in ({"memory": None}, {"index_id": "mine", "memory": memory, "namespace": ("users", "anna")}):
        again = load(**options)
        assert (type(again), again.index_id) == (SCGIndex, "mine")
        assert (again.memory.namespace, again.memory.entries) == (("users", "anna"), index.memory.entries)
        assert again._use_model is False
        assert again.refresh_ref_docs(documents) == [False, False]
        assert set(again.ref_doc_info) == set(TEXTS)
        assert again.memory.store.path == memory.store.path
        again.memory.close()
    again.delete_ref_doc("d1")
    assert texts(index) == [TEXTS["d2"]]
    with load().memory as loaded:
        assert [entry.text for entry in loaded.entries] == [TEXTS["d2"]]
    with pytest.raises(StoreError, match="closed"):
        loaded.remember("Too late", use_model=False)


def test_an_index_whose_memory_is_gone_says_so_when_it_is_loaded(open_memory, documents, tmp_path):
    index = SCGIndex.from_documents(documents, memory=open_memory(), use_model=False)
    index.storage_context.persist(tmp_path / "storage")
    context = StorageContext.from_defaults(persist_dir=tmp_path / "storage")
    with pytest.raises(NotFoundError, match=r"kept nowhere.*memory=\"memory.db\""):
        load_index_from_storage(context)
    rescued = SCGIndex([*context.docstore.docs.values()], memory=open_memory("new.db"))
    assert texts(rescued) == sorted(TEXTS.values())
    gone = SCGIndexStruct(path=str(tmp_path / "gone.db"), namespace=["a"])
    with pytest.raises(NotFoundError):
        SCGIndex(index_struct=gone)
    assert not (tmp_path / "gone.db").exists()


def test_without_the_model_means_all_that_is_inserted(open_memory, documents):
    memory = open_memory()
    index = SCGIndex.from_documents(documents[:1], memory=memory, use_model=False)
    index.insert(documents[1])
    asyncio.run(index.ainsert(Document(text="Tea at five.", id_="d3")))
    assert memory.stats().waiting == 3
    SCGIndex(memory=memory).insert(Document(text="Tea at six.", id_="d4"))
    assert memory.stats().waiting == 3


def test_what_index_nodes_stand_for_is_found_through_the_index(open_memory):
    whole = TextNode(text="The whole story of Rex.", id_="whole")
    index = SCGIndex([IndexNode(text="A puppy", id_="s", index_id="story", obj=whole)], memory=open_memory())
    [found] = index.as_retriever(similarity_top_k=1).retrieve("puppy")
    assert found.node_id == "whole"


def test_code_written_for_another_index_may_name_an_embedding_model(open_memory):
    index = SCGIndex([TextNode(text="One.", id_="n")], memory=open_memory(), embed_model=MockEmbedding(3))
    assert texts(index) == ["One."]


def test_an_empty_page_is_passed_over_and_what_cannot_be_stored_is_named(open_memory, documents):
    index = SCGIndex.from_documents([*documents, Document(text="", id_="empty")], memory=open_memory())
    asyncio.run(index.ainsert(Document(text="", id_="another")))
    index.insert(Document(text="", id_="page", metadata={"page": 3}))
    assert texts(index) == sorted(TEXTS.values())
    assert set(index.ref_doc_info) == {*TEXTS, "empty", "another", "page"}
    assert len(SCGRetriever.from_defaults(nodes=[TextNode(text=" ")], memory=open_memory()).memory.entries) == 0
    with pytest.raises(InvalidInputError, match="node 'n' cannot be stored: the text holds a NUL"):
        index.insert_nodes([TextNode(text="One."), TextNode(text="a\x00b", id_="n")])
    assert len(texts(index)) == 2


@pytest.mark.parametrize("update", ["update_ref_doc", "aupdate_ref_doc", "refresh_ref_docs", "arefresh_ref_docs"])
def test_a_document_stays_where_the_new_one_cannot_be_stored(open_memory, documents, update):
    index = SCGIndex.from_documents(documents, memory=open_memory())

    def change(text):
        changed = Document(text=text, id_="d1", metadata={"source": "d1"})
        done = getattr(index, update)([changed] if "refresh" in update else changed)
        return asyncio.run(done) if asyncio.iscoroutine(done) else done

    with pytest.raises(InvalidInputError):
        change("Not\x00 this")
    assert texts(index) == sorted(TEXTS.values())
    assert len(index.docstore.docs) == 2
    assert index.refresh_ref_docs(documents) == [False, False]
    change("A kitten, not a puppy!")
    assert texts(index) == sorted(["A kitten, not a puppy!", TEXTS["d2"]])
    assert sorted(node.text for node in index.docstore.docs.values()) == texts(index)
    assert index.ref_doc_info["d1"].node_ids == [id for id, one in index.docstore.docs.items() if "kitten" in one.text]


class Killed(BaseException):
    """As if the process were."""


@pytest.mark.parametrize("comes_back", ["old", "new"])
def test_a_document_whose_update_was_cut_short_is_refreshed_by_the_next_process(
    open_memory, documents, monkeypatch, comes_back
):
    memory = open_memory("memory.db")
    index = SCGIndex.from_documents(documents, memory=memory)
    changed = Document(text="A kitten, not a puppy!", id_="d1", metadata={"source": "d1"})

    def kill(*args, **options):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Store, "forget", kill)
        with pytest.raises(Killed):
            index.refresh_ref_docs([changed])
    assert texts(index) == sorted([changed.text, *TEXTS.values()])  # neither is lost
    document = changed if comes_back == "new" else documents[0]
    again = SCGIndex(memory=open_memory("memory.db"))
    assert again.refresh_ref_docs([document, documents[1]]) == [True, False]
    assert texts(again) == sorted([document.text, TEXTS["d2"]])


def test_a_document_of_which_a_beginning_was_written_is_refreshed_by_the_next_process(open_memory, monkeypatch):
    splitter = SentenceSplitter(chunk_size=20, chunk_overlap=0)
    pages = [Document(text=f"The {word} leaves at seven. " * 6, id_=word) for word in ("train", "bus")]
    write, written = Store.write, []

    def cut(store, namespace, entries, *args, **options):
        if written:
            raise Killed
        written.extend(entries)
        return write(store, namespace, entries, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr("shared_core.evolution.evolution._STORED_TOGETHER", 4)
        patch.setattr(Store, "write", cut)
        with pytest.raises(Killed):
            SCGIndex.from_documents(pages, memory=open_memory("memory.db"), transformations=[splitter])
    again = SCGIndex(memory=open_memory("memory.db"), transformations=[splitter])
    assert 0 < len(texts(again)) < len(splitter(pages))
    assert any(again.refresh_ref_docs(pages))
    assert texts(again) == sorted(node.text for node in splitter(pages))
    assert SCGIndex(memory=open_memory("memory.db")).refresh_ref_docs(pages) == [False, False]


def test_an_update_may_keep_the_ids_of_nodes(open_memory):
    splitter = SentenceSplitter(id_func=lambda number, document: f"{document.id_}-{number}")
    memory = open_memory()
    index = SCGIndex.from_documents([Document(text="One.", id_="d")], memory=memory, transformations=[splitter])
    for text in ("Two.", "Three."):
        index.update_ref_doc(Document(text=text, id_="d"))
        assert [(entry.id, entry.text) for entry in memory.entries] == [("d-0", text)]
        assert [*index.docstore.docs] == ["d-0"]


def test_a_field_that_the_index_needs_for_itself_is_refused_and_not_lost(open_memory):
    index = SCGIndex(memory=open_memory())
    with pytest.raises(InvalidInputError, match="'_node' is taken"):
        index.insert_nodes([TextNode(text="One.", metadata={"_node": "mine"})])
    assert index.docstore.docs == {}


def test_a_model_in_this_process_recalls_and_one_behind_an_api_is_refused(embedded):
    llm = MockLLM()
    with pytest.raises(InvalidInputError, match=r"log-probabilities.*embedded one recalls"):
        recall_model(llm)
    local = MockLLM()
    object.__setattr__(local, "_model", embedded._model)
    object.__setattr__(local, "_tokenizer", embedded._tokenizer)
    with SchemaMemory.open(":memory:", model=recall_model(local)) as memory:
        assert memory.model._model is embedded._model
    assert recall_model("model.gguf") == "model.gguf"


@pytest.mark.parametrize(("owner", "name"), [(ConceptDecoder, "decode"), (Store, "write"), (Store, "forget")])
def test_async_never_blocks_the_event_loop(open_memory, documents, scripted, stalled, owner, name):
    memory = open_memory(config=SCGConfig(assimilate=0))
    index = SCGIndex.from_documents(documents, memory=memory)
    graph = SCGPGRetriever(property_graph_store(memory), memory)

    async def use():
        await index.ainsert(Document(text="Tea at five.", id_="d3"))
        await index.arefresh_ref_docs([Document(text="Tea at six.", id_="d3")])
        assert (await index.as_query_engine(llm=scripted()).aquery("When is tea?")).source_nodes
        assert await graph.aretrieve("When is tea?")
        await index.adelete_ref_doc("d3")

    stalled(owner, name, use)
    assert texts(index) == sorted(TEXTS.values())


@pytest.mark.parametrize("place", ["http://localhost:1", "postgresql+psycopg://anna:***@db/memories"])
def test_an_index_whose_memory_is_elsewhere_says_where(place):
    struct = SCGIndexStruct(path=place, namespace=["a"], use_model=False)
    with pytest.raises(NotFoundError, match=f"is at {re.escape(place)}.*memory=memory"):
        SCGIndex(index_struct=struct)
