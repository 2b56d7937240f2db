"""The associative graph as a property graph of LlamaIndex, and recall as its sub-retriever."""

from __future__ import annotations

from typing import Any, Final

from llama_index.core.graph_stores import SimplePropertyGraphStore
from llama_index.core.graph_stores.types import (
    TRIPLET_SOURCE_KEY,
    ChunkNode,
    EntityNode,
    PropertyGraphStore,
    Relation,
    Triplet,
)
from llama_index.core.indices.property_graph import BasePGRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.vector_stores.utils import node_to_metadata_dict

from scg_llamaindex.events import tell
from scg_llamaindex.nodes import found_node, node_of
from shared_core import Memory, Recall, SchemaMemory

ASSOCIATED: Final = "ASSOCIATED_WITH"
"""Label of the relation between concepts that occur together; its property ``weight`` is Eq. 10's."""


def property_graph_store(memory: SchemaMemory) -> SimplePropertyGraphStore:
    """The associative graph of now as a property graph: a copy, which later writes do not reach.

    Concepts are entities by their keys, with their display forms as property; entries are text chunks.
    """
    store = SimplePropertyGraphStore()
    surfaces = dict(zip(memory.schema.keys, memory.schema.surfaces, strict=True))
    store.upsert_nodes(
        [EntityNode(name=key, label="concept", properties={"surface": surfaces[key]}) for key in surfaces]
    )
    chunks = []
    for entry in memory.entries:
        node = node_of(entry)
        chunks.append(ChunkNode(text=entry.content, id_=entry.id, properties=node_to_metadata_dict(node)))
    store.upsert_nodes(chunks)
    store.upsert_relations(
        [
            Relation(label=ASSOCIATED, source_id=first, target_id=second, properties={"weight": float(weight)})
            for first, second, weight in memory.graph.to_networkx().edges.data("weight")
        ]
    )
    return store


class SCGPGRetriever(BasePGRetriever):
    """A sub-retriever of a property graph index that recalls: what is said, then what the concepts belong with.

    Results are recalled nodes, as of :class:`scg_llamaindex.SCGRetriever`, and after them the associations that the
    recall went along, ``seed -> ASSOCIATED_WITH -> concept``, with their probability as score.

    Args:
        graph_store: The store of the property graph index.
        memory: The memory.
        similarity_top_k: Nodes to recall; ``None`` for ``memory.config.k``.
        kwargs: As for LlamaIndex's sub-retrievers.
    """

    def __init__(
        self,
        graph_store: PropertyGraphStore,
        memory: Memory,
        *,
        similarity_top_k: int | None = None,
        **kwargs: Any,
    ) -> None:
        self._memory = memory
        self._k = similarity_top_k
        super().__init__(graph_store, **{"include_text": False, **kwargs})

    def retrieve_from_graph(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """Recall."""
        return self._nodes(self._memory.recall(query_bundle.query_str, k=self._k))

    async def aretrieve_from_graph(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """:meth:`retrieve_from_graph`, without blocking the event loop."""
        return self._nodes(await self._memory.arecall(query_bundle.query_str, k=self._k))

    def _nodes(self, recall: Recall) -> list[NodeWithScore]:
        tell(recall)
        source = {reason.key: one.entry.id for one in reversed(recall.entries) for reason in one.reasons}
        triplets: list[Triplet] = [
            (
                EntityNode(name=concept.seed, properties={TRIPLET_SOURCE_KEY: source[concept.key]}),
                Relation(label=ASSOCIATED, source_id=concept.seed, target_id=concept.key),
                EntityNode(name=concept.key),
            )
            for concept in recall.context
            if concept.key in source
        ]
        scores = [concept.probability for concept in recall.context if concept.key in source]
        found: list[NodeWithScore] = [found_node(one) for one in recall.entries]
        return [*found, *self._get_nodes_with_score(triplets, scores)]
