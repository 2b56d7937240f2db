"""The vector-store face: the interface beyond LangChain's suite, and what insists on vector stores."""

import asyncio

import pytest
from langchain_classic.memory import VectorStoreRetrieverMemory
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.indexing import InMemoryRecordManager, aindex, index
from langchain_core.vectorstores import VectorStoreRetriever

from scg_langchain import SCGRetriever, SCGVectorStore, UnsupportedError
from shared_core import SCGConfig
from shared_core.errors import InvalidInputError

EMBEDDING = DeterministicFakeEmbedding(size=8)
QUESTION = "What pet did she get?"


def ids_of(documents):
    return [document.id for document in documents]


@pytest.fixture
def store(open_memory, documents):
    store = SCGVectorStore(open_memory())
    store.add_documents(documents)
    return store


def test_from_texts_and_documents_take_an_embedding_and_do_without(open_memory, documents):
    texts, metadatas = [document.page_content for document in documents], [document.metadata for document in documents]
    ids = ids_of(documents)
    for make in (
        lambda memory: SCGVectorStore.from_documents(documents, EMBEDDING, memory=memory),
        lambda memory: SCGVectorStore.from_documents(documents, memory=memory),
        lambda memory: SCGVectorStore.from_texts(texts, EMBEDDING, metadatas, ids=ids, memory=memory),
        lambda memory: SCGVectorStore.from_texts(
            texts, embedding=EMBEDDING, metadatas=metadatas, ids=ids, memory=memory
        ),
        lambda memory: asyncio.run(SCGVectorStore.afrom_documents(documents, EMBEDDING, memory=memory)),
        lambda memory: asyncio.run(SCGVectorStore.afrom_texts(texts, EMBEDDING, metadatas, ids=ids, memory=memory)),
    ):
        store = make(open_memory())
        assert store.embeddings is None
        assert store.get_by_ids(ids) == documents


def test_it_is_kept_at_a_path(open_memory, tmp_path, documents):
    store = SCGVectorStore.from_documents(documents, EMBEDDING, memory=open_memory("m.db"))
    found = store.similarity_search_with_score(QUESTION)
    assert SCGVectorStore(open_memory("m.db")).similarity_search_with_score(QUESTION) == found
    opened = SCGVectorStore(tmp_path / "m.db")
    with opened.memory:
        assert opened.get_by_ids(["t1"]) == documents[:1]


def test_searches_agree(store):
    documents = store.similarity_search(QUESTION, k=3)
    scored = store.similarity_search_with_score(QUESTION, k=3)
    relevant = store.similarity_search_with_relevance_scores(QUESTION, k=3)
    assert len(documents) == 3
    assert [document for document, _ in scored] == [document for document, _ in relevant] == documents
    for pairs in (scored, relevant):
        assert [score for _, score in pairs] == sorted((score for _, score in pairs), reverse=True)
    assert all(0 <= score <= 1 for _, score in relevant)

    async def use():
        return (
            await store.asimilarity_search(QUESTION, k=3),
            await store.asimilarity_search_with_score(QUESTION, k=3),
            await store.asimilarity_search_with_relevance_scores(QUESTION, k=3),
            await store.asearch(QUESTION, "similarity", k=3),
            await store.as_retriever(search_kwargs={"k": 3}).ainvoke(QUESTION),
        )

    assert asyncio.run(use()) == (documents, scored, relevant, documents, documents)
    assert store.search(QUESTION, "similarity", k=3) == documents
    assert store.as_retriever(search_kwargs={"k": 3}).invoke(QUESTION) == documents
    least = relevant[1][1]
    for search in (
        lambda: store.search(QUESTION, "similarity_score_threshold", k=3, score_threshold=least),
        lambda: store.as_retriever(
            search_type="similarity_score_threshold", search_kwargs={"k": 3, "score_threshold": least}
        ).invoke(QUESTION),
    ):
        assert search() == [document for document, relevance in relevant if relevance >= least]


def test_ids_update_delete_and_get(store, documents):
    assert store.add_documents([Document("new", id="t1")], ids=["t2"]) == ["t2"]
    assert store.get_by_ids(["t2", "t1", "t2", "none"]) == [Document("new", id="t2"), documents[0]]
    assert store.add_texts(["a", "b"], [{"n": 1}, {"n": 2}], ids=["t1", "t9"]) == ["t1", "t9"]
    assert asyncio.run(store.aadd_texts(["c"], ids=["t9"])) == ["t9"]
    assert store.get_by_ids(["t9"]) == [Document("c", id="t9")]
    assert store.delete(["t9", "none"]) is True
    assert store.delete([]) is True
    assert len(store.memory.entries) == 4
    assert store.delete() is True
    assert not store.memory.entries
    store.add_texts(["x"])
    assert asyncio.run(store.adelete()) is True
    assert not store.memory.entries


@pytest.mark.parametrize("least", [2, -0.5, "0.5", True])
def test_a_threshold_that_is_none_is_refused(store, least):
    with pytest.raises(InvalidInputError, match="score_threshold"):
        store.similarity_search_with_relevance_scores(QUESTION, score_threshold=least)
    with pytest.raises(InvalidInputError, match="score_threshold"):
        asyncio.run(store.asimilarity_search_with_relevance_scores(QUESTION, score_threshold=least))


@pytest.mark.parametrize(
    "search", [["k"], {"k": 0}, {"k": "2"}, {"k": 2, "filter": "x"}, {"score_threshold": 3.0}, {"score_threshold": "1"}]
)
def test_searches_of_no_use_are_refused_before_the_first_question(store, search):
    thresholds = "score_threshold" in search
    with pytest.raises(InvalidInputError):
        store.as_retriever(
            search_type="similarity_score_threshold" if thresholds else "similarity", search_kwargs=search
        )


def test_one_thing_is_not_taken_for_a_list_of_things(store, documents):
    for call in (
        lambda: store.add_texts("I adopted a puppy"),
        lambda: store.add_texts(["I adopted a puppy", None]),
        lambda: store.add_texts(None),
        lambda: store.add_texts(["a", "b"], ids="ab"),
        lambda: store.add_texts(["a"], {"channel": "club"}),
        lambda: store.add_texts(["a"], [None]),
        lambda: store.add_documents(documents[0]),
        lambda: store.add_documents(["I adopted a puppy"]),
        lambda: store.add_documents([{"page_content": "I adopted a puppy"}]),
        lambda: store.add_documents(documents[:2], ids="ab"),
        lambda: asyncio.run(store.aadd_texts("I adopted a puppy")),
        lambda: SCGVectorStore.from_texts("I adopted a puppy", EMBEDDING, memory=store.memory),
        lambda: SCGRetriever.from_texts("I adopted a puppy", memory=store.memory),
        lambda: SCGRetriever.from_documents("I adopted a puppy", memory=store.memory),
    ):
        with pytest.raises(InvalidInputError, match=r"list|type"):
            call()
    assert len(store.memory.entries) == 4
    assert store.add_documents(iter(documents[:1]), ids=iter(["t9"])) == ["t9"]
    assert len(store.add_texts(text for text in ("a", "b"))) == 2


def test_ids_are_a_list(store):
    for call in (store.get_by_ids, store.delete):
        with pytest.raises(InvalidInputError, match="ids"):
            call("t1")
    assert len(store.memory.entries) == 4


def test_batches_and_bulk(open_memory):
    store = SCGVectorStore(open_memory(config=SCGConfig()))
    ids = store.add_texts([f"text {number}" for number in range(7)], batch_size=3, use_model=False)
    assert len(set(ids)) == 7
    assert store.memory.stats().waiting == 7
    for size in (0, True, "3", 2.5):
        with pytest.raises(InvalidInputError, match="batch_size"):
            store.add_texts(["x"], batch_size=size)


def test_what_does_not_fit_together_is_refused_before_anything_is_stored(store):
    for call in (
        lambda: store.add_texts(["a", "b"], [{}]),
        lambda: store.add_texts(["a", "b"], ids=["1"]),
        lambda: store.add_documents([Document("a"), Document("b")], ids=["1"]),
        lambda: store.add_documents([Document("a"), Document("")]),
    ):
        with pytest.raises(InvalidInputError):
            call()
    assert len(store.memory.entries) == 4


@pytest.mark.parametrize("asynchronous", [False, True])
def test_indexing(open_memory, documents, asynchronous):
    store, records = SCGVectorStore(open_memory()), InMemoryRecordManager("m")
    records.create_schema()

    def run(batch, cleanup):
        options = {"cleanup": cleanup, "source_id_key": "channel", "key_encoder": "sha256", "batch_size": 2}
        call = aindex if asynchronous else index
        result = call(batch, records, store, **options)
        result = asyncio.run(result) if asynchronous else result
        return result["num_added"], result["num_updated"], result["num_skipped"], result["num_deleted"]

    assert run(documents, "full") == (4, 0, 0, 0)
    assert run(documents, "full") == (0, 0, 4, 0)
    changed = [Document("The quince jelly is finished.", metadata={"channel": "club"})]
    assert run(changed, "incremental") == (1, 0, 0, 1)
    assert run([*documents[:1], *changed], "scoped_full") == (0, 0, 2, 1)  # of its sources, phone and club, t2 is gone
    assert run(documents[:2], None) == (1, 0, 1, 0)  # deletes nothing
    assert len(store.memory.entries) == 4
    assert run([*documents[:2], *changed], "full") == (0, 0, 3, 1)
    assert {entry.text for entry in store.memory.entries} == {
        document.page_content for document in [*documents[:2], *changed]
    }


def test_a_vector_store_memory(open_memory):
    store = SCGVectorStore(open_memory())
    memory = VectorStoreRetrieverMemory(retriever=store.as_retriever(search_kwargs={"k": 1}))
    memory.save_context({"input": "My dog is called Rex"}, {"output": "A good name"})
    memory.save_context({"input": "I paint the kitchen green"}, {"output": "Send me a picture"})
    assert "Rex" in memory.load_memory_variables({"input": "What is my dog called?"})["history"]
    assert "Rex" in asyncio.run(memory.aload_memory_variables({"input": "What is my dog called?"}))["history"]


def test_what_needs_vectors_is_refused(store):
    retriever = VectorStoreRetriever(vectorstore=store, search_type="mmr")
    for call in (
        lambda: store.as_retriever(search_type="mmr"),
        lambda: store.max_marginal_relevance_search(QUESTION),
        lambda: store.search(QUESTION, "mmr"),
        lambda: store.similarity_search_by_vector([0.1]),
        lambda: store.max_marginal_relevance_search_by_vector([0.1]),
        lambda: retriever.invoke(QUESTION),
        lambda: asyncio.run(store.amax_marginal_relevance_search(QUESTION)),
        lambda: asyncio.run(store.asimilarity_search_by_vector([0.1])),
        lambda: asyncio.run(store.amax_marginal_relevance_search_by_vector([0.1])),
    ):
        with pytest.raises(UnsupportedError, match="vectors"):
            call()
