"""Schema-constrained generative memory: recall by generating concepts that exist, and only those."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shared_core.door import lazy_door

if TYPE_CHECKING:
    from shared_core.config import SCGConfig
    from shared_core.entry import MemoryEntry
    from shared_core.errors import SCGError
    from shared_core.filters import Filter
    from shared_core.interface import Memory
    from shared_core.memory import SchemaMemory
    from shared_core.recall import Recall
    from shared_core.remote import RemoteMemory
    from shared_core.retention import Retention

__version__ = "0.1.0"

__all__ = [
    "Filter",
    "Memory",
    "MemoryEntry",
    "Recall",
    "RemoteMemory",
    "Retention",
    "SCGConfig",
    "SCGError",
    "SchemaMemory",
    "__version__",
]

_HOMES = {
    "Filter": "filters",
    "Memory": "interface",
    "MemoryEntry": "entry",
    "Recall": "recall",
    "RemoteMemory": "remote",
    "Retention": "retention",
    "SCGConfig": "config",
    "SCGError": "errors",
    "SchemaMemory": "memory",
}

# Loaded when asked for: torch and Transformers take seconds, and not every use of the package needs them.
__getattr__ = lazy_door(__name__, _HOMES, {"httpx": "client"})
