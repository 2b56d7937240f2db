"""Keeping a memory sound: checking it, and rebuilding what is derived from its entries."""

from shared_core.upkeep.checking import Checked, check_memory, check_store
from shared_core.upkeep.repairing import Mended, Salvaged, rebuild_memory, repair_memory, salvage_memory

__all__ = [
    "Checked",
    "Mended",
    "Salvaged",
    "check_memory",
    "check_store",
    "rebuild_memory",
    "repair_memory",
    "salvage_memory",
]
