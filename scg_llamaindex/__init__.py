"""Schema-constrained memory in LlamaIndex: retriever, index, agent memory, property graph.

Every class works on a :class:`shared_core.SchemaMemory`; ``llama-index-core`` is enough for all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scg_llamaindex.chain_models import recall_model
    from scg_llamaindex.chat_memory import SCGChatMemory
    from scg_llamaindex.errors import UnsupportedError
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
    "UnsupportedError": "errors",
    "property_graph_store": "graph",
    "recall_model": "chain_models",
}


def __getattr__(name: str) -> object:
    # Loaded when asked for: LlamaIndex takes seconds to import.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    try:
        home: object = import_module(f"{__name__}.{_HOMES[name]}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "llama_index":
            raise
        raise ImportError(
            f"{name} needs llama_index, which is not installed: pip install 'scg-mem[llamaindex]'"
        ) from error
    return getattr(home, name)
