"""The adapters over a memory that a service keeps: the same as over one in this process."""

import asyncio

import pytest

from scg_langchain import SCGChatMessageHistory, SCGRetriever, SCGStore, SCGVectorStore, create_memory_tools
from shared_core import RemoteMemory
from shared_core.errors import UnsupportedError
from shared_core.serving import make_app
from tests.scg_langchain.conftest import QUICK
from tests.served import running


@pytest.fixture
def memories(tmp_path, tiny, open_memory):
    """A remote memory and a local one."""
    app = make_app(tmp_path / "served.db", model=tiny("llama"), config=QUICK)
    with running(app) as address, RemoteMemory(address) as remote:
        yield remote, open_memory()


def test_the_retriever_retrieves_the_same(memories, documents):
    retrieved = []
    for memory in memories:
        retriever = SCGRetriever.from_documents(documents, memory=memory, k=2, namespace=("users", "anna"))
        retrieved.append(
            (
                retriever.invoke("What pet did she get?"),
                retriever.invoke("train", k=1, filter={"speaker": ["Ben"], "occurred_at": {"$gte": "2024-05-20"}}),
                retriever.invoke("train", namespace="nobody"),
                asyncio.run(retriever.ainvoke("the puppy")),
            )
        )
    remote, local = retrieved
    assert remote == local
    assert [len(found) for found in local] == [2, 1, 0, 2]


def test_vector_store_history_and_tools_work(memories, documents):
    remote, local = memories
    for memory in memories:
        store = SCGVectorStore(memory.in_namespace("store"))
        ids = store.add_documents(documents, use_model=False)
        assert [one.id for one in store.get_by_ids([ids[1], "none", ids[0]])] == [ids[1], ids[0]]
        store.delete(ids[:1])
        history = SCGChatMessageHistory(memory, "monday", namespace="chats")
        history.add_user_message("I adopted a puppy named Rex")
        history.add_ai_message("How nice")
        assert [one.content for one in history.messages] == ["I adopted a puppy named Rex", "How nice"]
        history.clear()
        assert history.messages == []
    for found in zip(
        *(SCGVectorStore(one.in_namespace("store")).similarity_search("train") for one in memories), strict=True
    ):
        assert found[0] == found[1]
    told = [
        [
            tool.invoke({"query": "train"})
            for tool in create_memory_tools(memory.in_namespace("store"))
            if "recall" in tool.name
        ]
        for memory in memories
    ]
    assert told[0] == told[1]
    with pytest.raises(UnsupportedError, match="its store"):
        SCGStore(remote)
    assert local.store
