"""The memory of a classic chain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from langchain_classic.base_memory import BaseMemory
from langchain_classic.memory.utils import get_prompt_input_key
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from pydantic import ConfigDict, Field, field_validator
from pydantic.json_schema import SkipJsonSchema

from scg_langchain.messages import is_recalled, message_entry, recalled_message
from scg_langchain.spelling import cleaned
from shared_core import Memory, MemoryEntry, Recall
from shared_core.adapting import memory_in
from shared_core.entry import check_namespace
from shared_core.errors import InvalidInputError
from shared_core.filters import instant
from shared_core.recall import RELEVANT


class SCGMemory(BaseMemory):
    """Injects what the memory recalls for a chain's input, and stores what was said.

    Where nothing relevant is recalled, nothing is injected. Stored are the input and the output alone, never what was
    injected. What was said last is not injected as such: combine it with a window of the conversation
    (``CombinedMemory``) where that is needed. Several objects on one ``memory`` serve several namespaces.

    Attributes:
        memory: The memory.
        namespace: Another namespace of its file to use.
        session: The conversation that is stored; a new one unless it is named.
        memory_key: The variable to inject.
        input_key: Which input is what the user says; ``None`` where there is one.
        output_key: Which output is the answer; ``None`` where there is one.
        return_messages: Inject messages instead of text.
        k: Entries to recall; ``None`` for ``memory.config.k``.
        score_threshold: Least relevance of what is injected.
    """

    model_config = ConfigDict(extra="forbid", validate_assignment=True)

    memory: SkipJsonSchema[Memory] = Field(exclude=True, repr=False)
    namespace: str | tuple[str, ...] | None = None
    session: str = Field(default_factory=lambda: uuid4().hex)
    memory_key: str = "history"
    input_key: str | None = None
    output_key: str | None = None
    return_messages: bool = False
    k: int | None = Field(default=None, ge=1)
    score_threshold: float = Field(default=RELEVANT, ge=0, le=1)

    @field_validator("namespace")
    @classmethod
    def _check(cls, namespace: str | tuple[str, ...] | None) -> tuple[str, ...] | None:
        return None if namespace is None else check_namespace(namespace)

    @property
    def memory_variables(self) -> list[str]:
        """The variable that is injected."""
        return [self.memory_key]

    def load_memory_variables(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """What is recalled for an input: text, a line for each entry, or messages; empty if nothing is relevant."""
        query = cleaned(_text(self._input(inputs)))
        return self._injected(self._memory.recall(query, k=self.k) if query.strip() else Recall(query))

    async def aload_memory_variables(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """:meth:`load_memory_variables`, without blocking the event loop."""
        query = cleaned(_text(self._input(inputs)))
        return self._injected(await self._memory.arecall(query, k=self.k) if query.strip() else Recall(query))

    def save_context(self, inputs: dict[str, Any], outputs: dict[str, Any]) -> None:
        """Store what was asked and answered."""
        self._memory.remember(self._said(inputs, outputs))

    async def asave_context(self, inputs: dict[str, Any], outputs: dict[str, Any]) -> None:
        """:meth:`save_context`, without blocking the event loop."""
        await self._memory.aremember(self._said(inputs, outputs))

    def clear(self) -> None:
        """Erase everything in the namespace, whatever its session."""
        self._memory.clear()

    async def aclear(self) -> None:
        """:meth:`clear`, without blocking the event loop."""
        await self._memory.aclear()

    @property
    def _memory(self) -> Memory:
        return memory_in(self.memory, self.namespace)

    def _injected(self, recall: Recall) -> dict[str, Any]:
        relevant = [one for one in recall.entries if one.relevance >= self.score_threshold]
        relevant.sort(key=lambda one: _when(one.entry))  # read like a conversation
        if self.return_messages:
            return {self.memory_key: [recalled_message(one.entry) for one in relevant]}
        return {self.memory_key: replace(recall, entries=tuple(relevant)).as_text(ids=False)}

    def _said(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> list[MemoryEntry]:
        said = [_message(self._input(inputs), HumanMessage), _message(self._output(outputs), AIMessage)]
        return [message_entry(one, self.session) for one in said if one.text.strip() and not is_recalled(one)]

    def _input(self, inputs: Mapping[str, Any]) -> Any:
        return _value(inputs, self.input_key or get_prompt_input_key(dict(inputs), self.memory_variables), "input")

    def _output(self, outputs: Mapping[str, Any]) -> Any:
        if self.output_key is None and len(outputs) != 1:
            raise InvalidInputError(f"the chain has the outputs {sorted(outputs)}: set output_key to the answer's")
        return _value(outputs, self.output_key or next(iter(outputs)), "output")


def _value(values: Mapping[str, Any], key: str, kind: str) -> Any:
    if key not in values:
        raise InvalidInputError(f"there is no {kind} {key!r:.200} among {sorted(values)}: set {kind}_key")
    return values[key]


def _message(value: Any, kind: type[BaseMessage]) -> BaseMessage:
    return value if isinstance(value, BaseMessage) else kind(_text(value))


def _when(entry: MemoryEntry) -> datetime:
    """When it was said; what has no time comes first."""
    return datetime.min.replace(tzinfo=UTC) if entry.occurred_at is None else instant(entry.occurred_at)


def _text(value: Any) -> str:
    if isinstance(value, BaseMessage):
        return str(value.text)
    if not isinstance(value, str):
        raise InvalidInputError(f"memory takes text or a message, not {type(value).__name__}")
    return value
