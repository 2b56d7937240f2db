"""The index: documents in, answers out, and nothing embedded."""

import asyncio

import pytest
from llama_index.core.llms import MockLLM
from llama_index.core.schema import Document, TextNode

from scg_llamaindex import SCGIndex, UnsupportedError, recall_model
from shared_core import SchemaMemory
from shared_core.errors import InvalidInputError

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
        with pytest.raises(UnsupportedError, match="vector_store_query_mode"):
            index.as_query_engine(llm=llm, vector_store_query_mode="mmr")


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
