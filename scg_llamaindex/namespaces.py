"""Which memory a call means."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from shared_core import SchemaMemory

Namespace: TypeAlias = str | Sequence[str]


def as_memory(memory: SchemaMemory | str | Path) -> SchemaMemory:
    """An open memory, or the one at a path, with the embedded model."""
    return memory if isinstance(memory, SchemaMemory) else SchemaMemory.open(memory)


def memory_in(memory: SchemaMemory, namespace: Namespace | None) -> SchemaMemory:
    """The memory of a namespace in the same file; of ``None``, the memory itself.

    Raises:
        InvalidInputError: if the namespace is not one.
    """
    return memory if namespace is None else memory.in_namespace(namespace)
