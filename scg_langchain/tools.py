"""Tools with which an agent remembers, recalls and forgets.

Whose memory they work on is fixed by the application (see :class:`.Scope`); the model has no argument for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import ArgsSchema, BaseTool, ToolException
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr
from pydantic_core import ErrorDetails

from scg_langchain.scope import Scope, running_context
from scg_langchain.threshold import at_least, check_least
from shared_core import Memory, MemoryEntry
from shared_core.entry import check_namespace
from shared_core.errors import InvalidInputError, NotFoundError
from shared_core.recall import RELEVANT, Recall
from shared_core.store import Erased

MEMORY_TOOLS = frozenset({"remember", "recall", "forget"})
"""Names of the tools, whose results are no news to the memory."""


class RememberInput(BaseModel):
    """What the model says to remember something."""

    model_config = ConfigDict(extra="forbid")

    text: str = Field(description="What to remember: a fact in a sentence that is clear without the conversation.")


class RecallInput(BaseModel):
    """What the model says to recall something."""

    model_config = ConfigDict(extra="forbid")

    query: str = Field(description="What you want to know: a question or a few words.")
    limit: int = Field(default=5, ge=1, le=50, description="How many memories to return at most.")


class ForgetInput(BaseModel):
    """What the model says to forget something."""

    model_config = ConfigDict(extra="forbid")

    ids: list[str] = Field(min_length=1, description="Ids of what to forget, as recall shows them in brackets.")


def _explain(error: Any) -> str:
    problems: list[ErrorDetails] = error.errors()
    wrong = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in problems)
    return f"The arguments do not fit ({wrong}). Correct them and call the tool again."


class _MemoryTool(BaseTool):
    """A tool on the memory that a run is about.

    Attributes:
        memory: A memory of the file.
        namespace: Which memory of the file: labels, of which ``"{user_id}"`` stands for a field of the runtime
            context or of ``config["configurable"]``. ``None``: always ``memory`` itself.
    """

    memory: Memory = Field(exclude=True, repr=False)
    namespace: str | tuple[str, ...] | None = None
    handle_tool_error: Any = True
    handle_validation_error: Any = Field(default=_explain)
    _scope: Scope = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Check the namespace."""
        super().model_post_init(context)
        self._scope = Scope(self.memory, self.namespace)

    def _find(self, config: RunnableConfig | None) -> Memory:
        # Not turned into a message to the model: it could not do anything about a missing user.
        return self._scope.find(running_context(), config)


class RememberTool(_MemoryTool):
    """Stores a text; the same text again changes nothing."""

    name: str = "remember"
    description: str = (
        "Store something worth knowing in later conversations: a preference, a fact about the user, a decision. "
        "Do not store what recall has returned."
    )
    args_schema: ArgsSchema | None = RememberInput

    def _run(self, text: str, config: RunnableConfig) -> str:
        memory, entry = self._find(config), _entry(text)
        try:
            memory.get(str(entry.id))
        except NotFoundError:
            memory.remember(entry)
            return _remembered(entry)
        return _remembered_before(entry)

    async def _arun(self, text: str, config: RunnableConfig) -> str:
        memory, entry = self._find(config), _entry(text)
        try:
            await memory.aget(str(entry.id))
        except NotFoundError:
            await memory.aremember(entry)
            return _remembered(entry)
        return _remembered_before(entry)


class RecallTool(_MemoryTool):
    """Recalls what belongs to a query, one memory a line.

    Attributes:
        score_threshold: The relevance in [0, 1] that an entry needs to be returned.
    """

    name: str = "recall"
    description: str = (
        "Look up what was remembered in earlier conversations. Returns one memory a line, best first: its id in "
        "brackets, when and by whom it was said, and what."
    )
    args_schema: ArgsSchema | None = RecallInput
    score_threshold: float = Field(default=RELEVANT, ge=0, le=1)

    def _run(self, query: str, config: RunnableConfig, limit: int = 5) -> str:
        memory = self._find(config)
        with _told():
            return self._tell(memory.recall(query, k=limit))

    async def _arun(self, query: str, config: RunnableConfig, limit: int = 5) -> str:
        memory = self._find(config)
        with _told():
            return self._tell(await memory.arecall(query, k=limit))

    def _tell(self, recall: Recall) -> str:
        return at_least(recall, self.score_threshold).as_text() or "Nothing relevant is remembered."


class ForgetTool(_MemoryTool):
    """Erases memories by their ids."""

    name: str = "forget"
    description: str = (
        "Erase memories for good, when the user asks for it or when they are wrong. Look their ids up with recall "
        "first."
    )
    args_schema: ArgsSchema | None = ForgetInput

    def _run(self, ids: list[str], config: RunnableConfig) -> str:
        memory = self._find(config)
        with _told():
            return _forgotten(ids, memory.forget(ids=_named(ids)))

    async def _arun(self, ids: list[str], config: RunnableConfig) -> str:
        memory = self._find(config)
        with _told():
            return _forgotten(ids, await memory.aforget(ids=_named(ids)))


def create_memory_tools(
    memory: Memory, *, namespace: str | Sequence[str] | None = None, score_threshold: float = RELEVANT
) -> list[BaseTool]:
    """The tools ``remember``, ``recall`` and ``forget`` for an agent.

    Args:
        memory: A memory of the file.
        namespace: Which memory of the file: labels, of which ``"{user_id}"`` stands for a field of the runtime
            context or of ``config["configurable"]``. ``None``: always ``memory`` itself.
        score_threshold: The relevance in [0, 1] that an entry needs to be returned by ``recall``.

    Raises:
        InvalidInputError: if the namespace or the threshold is not one.
    """
    Scope(memory, namespace)  # refuses what is no namespace
    check_least(score_threshold)
    where = None if namespace is None else check_namespace(namespace)
    tools: list[_MemoryTool] = [
        RememberTool(memory=memory, namespace=where),
        RecallTool(memory=memory, namespace=where, score_threshold=score_threshold),
        ForgetTool(memory=memory, namespace=where),
    ]
    return list(tools)


@contextmanager
def _told() -> Iterator[None]:
    """What is wrong with the model's arguments is told to the model."""
    try:
        yield
    except InvalidInputError as error:
        raise ToolException(f"Nothing was done: {error}.") from error


def _entry(text: str) -> MemoryEntry:
    """The entry of a text; its id follows from the text, so that an agent that repeats itself adds nothing."""
    with _told():
        spoken = " ".join(MemoryEntry(text).text.split())
        id = hashlib.sha256(spoken.casefold().encode()).hexdigest()[:12]
        return MemoryEntry(text, id, occurred_at=datetime.now(UTC))


def _remembered(entry: MemoryEntry) -> str:
    return f"Remembered as [{entry.id}]."


def _remembered_before(entry: MemoryEntry) -> str:
    return f"This is remembered already, as [{entry.id}]; nothing was changed."


def _named(ids: Sequence[str]) -> list[str]:
    """The ids; brackets, with which recall shows them, are taken off."""
    return [id[1:-1] if id.startswith("[") and id.endswith("]") else id for id in ids]


def _forgotten(ids: Sequence[str], erased: Erased) -> str:
    count = len(set(_named(ids)))
    if erased.entries == 0:
        raise ToolException("Nothing was forgotten: there is no memory with such an id. Look the ids up with recall.")
    if erased.entries < count:
        return f"Forgot {erased.entries} of {count}: the other ids do not exist. Look them up with recall."
    return f"Forgot {erased.entries}."
