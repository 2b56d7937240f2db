"""The adapters over a memory that a service keeps: the same as over one in this process."""

import asyncio

import pytest
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters

from scg_llamaindex import SCGChatMemory, SCGIndex, SCGRetriever
from shared_core import Filter, RemoteMemory, SCGConfig, SchemaMemory
from shared_core.errors import UnsupportedError
from shared_core.serving import make_app
from tests.served import running

NODES = [
    TextNode(id_="n1", text="I adopted a puppy named Rex from the shelter!", metadata={"speaker": "Anna"}),
    TextNode(id_="n2", text="We spent the weekend painting the kitchen green.", metadata={"speaker": "Ben", "n": [1]}),
    TextNode(id_="n3", text="My train to Lyon leaves at seven on Monday.", metadata={"speaker": "Ben"}),
]
QUICK = SCGConfig(assimilate=0)


@pytest.fixture
def memories(tmp_path, tiny):
    """A remote memory and a local one."""
    model = tiny("llama")
    with (
        running(make_app(tmp_path / "served.db", model=model, config=QUICK)) as address,
        RemoteMemory(address) as remote,
        SchemaMemory.open(":memory:", model=model, config=QUICK) as local,
    ):
        yield remote, local


def test_the_retriever_retrieves_the_same(memories):
    retrieved = []
    for memory in memories:
        retriever = SCGRetriever.from_defaults(nodes=NODES, memory=memory, similarity_top_k=2, namespace="papers")
        retriever_of_ben = SCGRetriever(retriever.memory, filters=Filter(speaker="Ben"))
        retrieved.append(
            (
                retriever.retrieve("What is the puppy called?"),
                retriever_of_ben.retrieve("the puppy or the train"),
                asyncio.run(retriever.aretrieve("the kitchen")),
            )
        )
    remote, local = retrieved
    assert remote == local
    assert {one.node.metadata["speaker"] for one in local[1]} == {"Ben"}
    conditions = MetadataFilters(filters=[MetadataFilter(key="speaker", value="Ben")])
    of_ben = SCGRetriever(memories[0], filters=conditions)
    with pytest.raises(UnsupportedError, match="MetadataCondition"):
        of_ben.retrieve("the train")


def test_index_and_chat_memory_work(memories):
    for memory in memories:
        index = SCGIndex(NODES, memory=memory, namespace="index", use_model=False)
        index.delete_nodes(["n2"])
        again = SCGIndex(memory=memory, namespace="index")
        assert [one.node_id for one in again.as_retriever(similarity_top_k=1).retrieve("puppy")] == ["n1"]
        chat = SCGChatMemory.from_memory(memory.in_namespace("chats"), "monday")
        chat.put(ChatMessage("I adopted a puppy named Rex from the shelter!"))
        assert [entry.text for entry in memory.in_namespace(("chats", "session", "monday")).entries] == [
            "I adopted a puppy named Rex from the shelter!"
        ]
