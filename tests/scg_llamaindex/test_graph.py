"""The associative graph in LlamaIndex's property graphs."""

import asyncio

from llama_index.core import PropertyGraphIndex

from scg_llamaindex import SCGPGRetriever, property_graph_store


def test_the_store_holds_concepts_associations_and_entries(sensible, nodes):
    store = property_graph_store(sensible)
    graph = sensible.graph.to_networkx()
    triplets = store.graph.get_triplets()
    assert {frozenset((first.id, second.id)) for first, _, second in triplets} == {
        frozenset(edge) for edge in graph.edges if len(set(edge)) == 2
    }
    for first, relation, second in triplets:
        assert relation.properties["weight"] == graph[first.id][second.id]["weight"]
    assert {one.name for one in store.get() if hasattr(one, "name")} == set(sensible.schema.keys)
    assert [one.node_id for one in store.get_llama_nodes([node.node_id for node in nodes])] == ["t1", "t2", "t3", "t4"]


def test_it_is_a_sub_retriever_of_a_property_graph_index(sensible, scripted):
    store = property_graph_store(sensible)
    index = PropertyGraphIndex.from_existing(store, llm=scripted(), embed_kg_nodes=False, kg_extractors=[])
    retriever = index.as_retriever(
        sub_retrievers=[SCGPGRetriever(store, sensible, similarity_top_k=1)], use_async=False
    )
    found = retriever.retrieve("What pet did she get?")
    assert found[0].node.node_id == "t1"
    assert all(" -> ASSOCIATED_WITH -> " in one.text for one in found[1:])
    assert [one.text for one in asyncio.run(retriever.aretrieve("What pet did she get?"))] == [
        one.text for one in found
    ]
