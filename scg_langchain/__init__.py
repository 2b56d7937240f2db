"""Schema-constrained memory in LangChain and LangGraph: retriever, vector store, memories, middleware, store, tools.

Every class works on a :class:`shared_core.SchemaMemory`. ``langchain-core`` is enough for most of them; what needs more
says so when it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scg_langchain.chain_memory import SCGMemory
    from scg_langchain.chain_models import recall_model
    from scg_langchain.errors import UnsupportedError
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
    "UnsupportedError": "errors",
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


def __getattr__(name: str) -> object:
    # Loaded when asked for: not every use has every package of LangChain.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    try:
        home: object = import_module(f"{__name__}.{_HOMES[name]}")
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _EXTRAS:
            raise
        raise ImportError(
            f"{name} needs {package}, which is not installed: pip install 'scg-mem[{_EXTRAS[package]}]'"
        ) from error
    return getattr(home, name)
