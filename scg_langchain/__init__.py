"""Schema-constrained memory in LangChain and LangGraph: agent middleware, store, tools.

Every class works on a :class:`shared_core.SchemaMemory`. ``langchain-core`` is enough for the tools; what needs more
says so when it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scg_langchain.middleware import SCGMemoryMiddleware
    from scg_langchain.store import SCGStore
    from scg_langchain.tools import ForgetTool, RecallTool, RememberTool, create_memory_tools

__all__ = [
    "ForgetTool",
    "RecallTool",
    "RememberTool",
    "SCGMemoryMiddleware",
    "SCGStore",
    "create_memory_tools",
]

_HOMES = {
    "ForgetTool": "tools",
    "RecallTool": "tools",
    "RememberTool": "tools",
    "SCGMemoryMiddleware": "middleware",
    "SCGStore": "store",
    "create_memory_tools": "tools",
}
# The extra that brings each package which is not needed by all.
_EXTRAS = {"langchain_core": "langchain", "langchain": "langgraph", "langgraph": "langgraph"}


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
