"""Schema-constrained memory in LlamaIndex: retriever, index, agent memory, property graph.

Every class works on a :class:`shared_core.SchemaMemory`; ``llama-index-core`` is enough for all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shared_core.door import lazy_door
from shared_core.errors import UnsupportedError

if TYPE_CHECKING:
    from scg_llamaindex.chain_models import recall_model
    from scg_llamaindex.chat_memory import SCGChatMemory
    from scg_llamaindex.events import SCGRecallEvent
    from scg_llamaindex.graph import SCGPGRetriever, property_graph_store
    from scg_llamaindex.index import SCGIndex
    from scg_llamaindex.memory_block import SCGMemoryBlock
    from scg_llamaindex.nodes import RecalledNode
    from scg_llamaindex.retriever import SCGRetriever

__all__ = [
    "RecalledNode",
    "SCGChatMemory",
    "SCGIndex",
    "SCGMemoryBlock",
    "SCGPGRetriever",
    "SCGRecallEvent",
    "SCGRetriever",
    "UnsupportedError",
    "property_graph_store",
    "recall_model",
]

_HOMES = {
    "RecalledNode": "nodes",
    "SCGChatMemory": "chat_memory",
    "SCGIndex": "index",
    "SCGMemoryBlock": "memory_block",
    "SCGPGRetriever": "graph",
    "SCGRecallEvent": "events",
    "SCGRetriever": "retriever",
    "property_graph_store": "graph",
    "recall_model": "chain_models",
}

# Loaded when asked for: LlamaIndex takes seconds to import.
__getattr__ = lazy_door(__name__, _HOMES, {"llama_index": "llamaindex"})
