"""Which memory a call means."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias, TypeVar, cast
from weakref import WeakKeyDictionary

from shared_core.entry import check_namespace
from shared_core.interface import Memory
from shared_core.memory import SchemaMemory

Namespace: TypeAlias = str | Sequence[str]
_M = TypeVar("_M", bound=Memory)

# Namespaces of one memory that stay open: a recall in one of them need not read it anew.
_KEPT = 64
_open: WeakKeyDictionary[Memory, OrderedDict[tuple[str, ...], Memory]] = WeakKeyDictionary()
_lock = threading.Lock()


def as_memory(memory: Memory | str | Path) -> Memory:
    """An open memory, or the one at a path, with the embedded model."""
    return memory if isinstance(memory, Memory) else SchemaMemory.open(memory)


def memory_in(memory: _M, namespace: Namespace | None) -> _M:
    """The memory of a namespace in the same place; of ``None``, the memory itself.

    The same object comes back while the namespace is in use, and the one that was used longest ago is let go when
    there are many. It is not closed, since a call may still run on it; it has no threads of its own.

    Raises:
        InvalidInputError: if the namespace is not one.
    """
    if namespace is None:
        return memory
    name = check_namespace(namespace)
    if name == memory.namespace:
        return memory
    with _lock:
        opened = _open.setdefault(memory, OrderedDict())
        if name not in opened:
            opened[name] = memory.in_namespace(name)
        opened.move_to_end(name)
        if len(opened) > _KEPT:
            opened.popitem(last=False)
        return cast("_M", opened[name])
