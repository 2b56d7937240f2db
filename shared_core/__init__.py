"""Schema-constrained generative memory: recall by generating concepts that exist, and only those."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shared_core.config import SCGConfig
    from shared_core.entry import MemoryEntry
    from shared_core.errors import SCGError
    from shared_core.filters import Filter
    from shared_core.memory import SchemaMemory
    from shared_core.recall import Recall

__version__ = "0.1.0"

__all__ = ["Filter", "MemoryEntry", "Recall", "SCGConfig", "SCGError", "SchemaMemory", "__version__"]

_HOMES = {
    "Filter": "filters",
    "MemoryEntry": "entry",
    "Recall": "recall",
    "SCGConfig": "config",
    "SCGError": "errors",
    "SchemaMemory": "memory",
}


def __getattr__(name: str) -> object:
    # Loaded when asked for: torch and Transformers take seconds, and not every use of the package needs them.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    home: object = import_module(f"{__name__}.{_HOMES[name]}")
    return getattr(home, name)
