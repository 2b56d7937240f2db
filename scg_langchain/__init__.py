"""Schema-constrained memory in LangChain and LangGraph: retriever, vector store, memories, middleware, store, tools.

Every class works on a :class:`shared_core.SchemaMemory`. ``langchain-core`` is enough for most of them; what needs more
says so when it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shared_core.door import lazy_door
from shared_core.errors import UnsupportedError

if TYPE_CHECKING:
    from scg_langchain.chain_memory import SCGMemory
    from scg_langchain.chain_models import recall_model
    from scg_langchain.history import SCGChatMessageHistory
    from scg_langchain.middleware import SCGMemoryMiddleware
    from scg_langchain.retriever import SCGRetriever
    from scg_langchain.store import SCGStore
    from scg_langchain.tools import ForgetTool, RecallTool, RememberTool, create_memory_tools
    from scg_langchain.vectorstore import SCGVectorStore

__all__ = [
    "ForgetTool",
    "RecallTool",
    "RememberTool",
    "SCGChatMessageHistory",
    "SCGMemory",
    "SCGMemoryMiddleware",
    "SCGRetriever",
    "SCGStore",
    "SCGVectorStore",
    "UnsupportedError",
    "create_memory_tools",
    "recall_model",
]

_HOMES = {
    "ForgetTool": "tools",
    "RecallTool": "tools",
    "RememberTool": "tools",
    "SCGChatMessageHistory": "history",
    "SCGMemory": "chain_memory",
    "SCGMemoryMiddleware": "middleware",
    "SCGRetriever": "retriever",
    "SCGStore": "store",
    "SCGVectorStore": "vectorstore",
    "create_memory_tools": "tools",
    "recall_model": "chain_models",
}
# The extra that brings each package which is not needed by all.
_EXTRAS = {
    "langchain": "langgraph",
    "langchain_classic": "langchain-classic",
    "langchain_core": "langchain",
    "langgraph": "langgraph",
}

# Loaded when asked for: not every use has every package of LangChain.
__getattr__ = lazy_door(__name__, _HOMES, _EXTRAS)
