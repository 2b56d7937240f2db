"""Whose memory a call is about: a namespace that the application fixes, never the model."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from uuid import UUID

from langchain_core.runnables import RunnableConfig

from shared_core import Memory
from shared_core.adapting import memory_in
from shared_core.entry import check_namespace
from shared_core.errors import InvalidInputError

_FIELD = re.compile(r"\{([^\W\d]\w*)\}")


class Scope:
    """Finds the memory of a run from its runtime context or its configuration.

    Args:
        memory: A memory of the file.
        namespace: Labels of the namespace. A label ``"{user_id}"`` stands for the field ``user_id`` of the runtime
            context or, where that has none, of ``config["configurable"]``. ``None``: always ``memory`` itself.

    Raises:
        InvalidInputError: if the namespace is not one.
    """

    def __init__(self, memory: Memory, namespace: str | Sequence[str] | None) -> None:
        check_memory(memory)
        self._memory = memory
        self._labels = memory.namespace if namespace is None else check_namespace(namespace)
        self._fields = [None if namespace is None else _field_of(label) for label in self._labels]

    def find(self, context: object, config: RunnableConfig | None) -> Memory:
        """The memory of a run.

        Raises:
            InvalidInputError: if a field of the namespace is missing: there is no memory for everyone to fall into.
        """
        configurable = (config or {}).get("configurable", {})
        labels = [
            label if field is None else _value_of(field, context, configurable)
            for label, field in zip(self._labels, self._fields, strict=True)
        ]
        return memory_in(self._memory, labels)


def check_memory(memory: object) -> None:
    """Refuse what is no memory.

    Raises:
        InvalidInputError: if it is none.
    """
    if not isinstance(memory, Memory):
        raise InvalidInputError(f"memory must be a SchemaMemory or a RemoteMemory, not {type(memory).__name__}")


def running_context() -> object:
    """The runtime context of the graph that is running, if one is."""
    module = sys.modules.get("langgraph.runtime")  # where no graph was ever loaded, none is running
    if module is None:
        return None
    try:
        runtime = module.get_runtime()
    except (RuntimeError, LookupError):
        return None
    return getattr(runtime, "context", None)


def _field_of(label: str) -> str | None:
    match = _FIELD.fullmatch(label)
    if match is None and ("{" in label or "}" in label):
        raise InvalidInputError(
            f"the label {label!r:.200} mixes text and a field: a field like '{{user_id}}' stands alone"
        )
    return match[1] if match else None


def _value_of(field: str, context: object, configurable: Mapping[str, object]) -> str:
    value = context.get(field) if isinstance(context, Mapping) else getattr(context, field, None)
    if value is None:
        value = configurable.get(field)
    if isinstance(value, UUID) or (isinstance(value, int) and not isinstance(value, bool)):
        value = str(value)
    if not isinstance(value, str) or not value.strip():
        raise InvalidInputError(
            f"the namespace needs the field {field!r:.200}: pass it in the runtime context, "
            f"or as config={{'configurable': {{{field!r:.200}: ...}}}}"
        )
    return value
