"""Long-term memory for an agent of :func:`langchain.agents.create_agent`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import HumanMessage
from langchain_core.tools import BaseTool
from langgraph.config import get_config
from langgraph.runtime import Runtime

from scg_langchain.messages import RECALLED
from scg_langchain.scope import Scope
from scg_langchain.selection import Selection
from scg_langchain.spelling import cleaned
from scg_langchain.threshold import at_least, check_least
from scg_langchain.tools import create_memory_tools
from scg_langchain.turn import Turn, answer_entries, entries_of_message
from shared_core import Memory, MemoryEntry
from shared_core.errors import InvalidInputError
from shared_core.recall import RELEVANT, Recall, check_count, describe

_HEADER = (
    "Recalled from the memory of earlier conversations, as background to the message above. The user did not write "
    "this now. Use what helps; ignore the rest."
)


class TurnNote(TypedDict):
    """What is known of the current turn, in the agent's state.

    Attributes:
        asked: Ids of the user's messages.
        asked_at: When they came, as ISO 8601 text.
        entries: What to store of each when the turn is over and it is no longer in the conversation, by its id.
        block: What is shown to the model; empty if nothing relevant was recalled.
        recalled: The recalled lines and texts, none of which is stored again.
    """

    asked: list[str]
    asked_at: str
    entries: dict[str, dict[str, Any]]
    block: str
    recalled: list[str]


class MemoryState(AgentState[Any]):
    """The agent's state with the current turn; the addition is neither input nor output of the agent."""

    scg_turn: NotRequired[Annotated[TurnNote | None, PrivateStateAttr]]


class SCGMemoryMiddleware(AgentMiddleware[MemoryState, Any]):
    """Recalls before an agent answers, and remembers what was said after it did.

    With ``mode="inject"`` the memory is asked once for what the user has just said. What is relevant is shown to the
    model in a message right behind the user's; it never enters the conversation itself. System prompt and earlier
    messages stay as they are, and within a turn the message keeps its place, so that prompt caches hold. When
    nothing relevant is recalled, nothing is shown. After the answer the user's messages and the answer are
    remembered, as the conversation has them by then; calls of tools, their results, and lines that repeat what was
    recalled are not. A result that is the answer itself (``return_direct``), and structured output, are.

    With ``mode="tools"`` the model gets the tools ``remember``, ``recall`` and ``forget`` instead.

    Args:
        memory: A memory of the file.
        namespace: Which memory of the file: labels, of which ``"{user_id}"`` stands for a field of the runtime
            context or of ``config["configurable"]``. ``None``: always ``memory`` itself.
        mode: ``"inject"`` or ``"tools"``.
        k: How many entries to recall at most; ``None`` for ``memory.config.k``.
        score_threshold: The relevance in [0, 1] that an entry needs to be shown.

    Raises:
        InvalidInputError: if an argument cannot be used.
    """

    state_schema = MemoryState

    def __init__(
        self,
        memory: Memory,
        *,
        namespace: str | Sequence[str] | None = None,
        mode: Literal["inject", "tools"] = "inject",
        k: int | None = None,
        score_threshold: float = RELEVANT,
    ) -> None:
        super().__init__()
        if mode not in ("inject", "tools"):
            raise InvalidInputError(f"mode must be 'inject' or 'tools', not {mode!r:.200}")
        check_count(k)
        check_least(score_threshold)
        if k is not None and mode == "tools":
            raise InvalidInputError("with mode='tools' the model says how many entries it wants: leave k out")
        self._scope = Scope(memory, namespace)
        self._injects = mode == "inject"
        self._k = k
        self._score_threshold = score_threshold
        self.tools: list[BaseTool] = (
            [] if self._injects else create_memory_tools(memory, namespace=namespace, score_threshold=score_threshold)
        )

    def before_agent(self, state: MemoryState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Recall for what the user said."""
        if not self._injects:
            return None
        memory, turn = self._find(runtime), _turn(state)
        where = Selection(turn.is_out_of_sight)
        return self._noted(turn, memory.recall(turn.query, k=self._k, where=where) if turn.query else Recall(""))

    async def abefore_agent(self, state: MemoryState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Recall for what the user said, without blocking the event loop."""
        if not self._injects:
            return None
        memory, turn = self._find(runtime), _turn(state)
        where = Selection(turn.is_out_of_sight)
        return self._noted(turn, await memory.arecall(turn.query, k=self._k, where=where) if turn.query else Recall(""))

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Show the model what was recalled for this turn."""
        return handler(_shown(request))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """Show the model what was recalled for this turn."""
        return await handler(_shown(request))

    def after_agent(self, state: MemoryState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Remember what was said in this turn."""
        if not self._injects:
            return None
        if entries := _said(state):
            self._find(runtime).remember(entries)
        return {"scg_turn": None}

    async def aafter_agent(self, state: MemoryState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Remember what was said in this turn, without blocking the event loop."""
        if not self._injects:
            return None
        if entries := _said(state):
            await self._find(runtime).aremember(entries)
        return {"scg_turn": None}

    def _find(self, runtime: Runtime[Any]) -> Memory:
        return self._scope.find(runtime.context, get_config())

    def _noted(self, turn: Turn, recall: Recall) -> dict[str, Any]:
        entries = [one.entry for one in at_least(recall, self._score_threshold).entries]
        lines = [describe(entry) for entry in entries]
        now = datetime.now(UTC)
        note: TurnNote = {
            "asked": [str(message.id) for message in turn.asked],
            "asked_at": now.isoformat(),
            "entries": {
                str(message.id): entry.to_dict()
                for message in turn.asked
                for entry in entries_of_message(message, turn.thread, now)
            },
            "recalled": [_HEADER, *lines, *(line for entry in entries for line in entry.content.splitlines())],
            "block": "\n".join([_HEADER, *(f"- {line}" for line in lines)]) if lines else "",
        }
        return {"scg_turn": note}


def _thread() -> str | None:
    thread = get_config().get("configurable", {}).get("thread_id")
    return None if thread is None else cleaned(str(thread))


def _turn(state: MemoryState) -> Turn:
    return Turn.of(state["messages"], _thread())


def _shown(request: ModelRequest[Any]) -> ModelRequest[Any]:
    note: TurnNote | None = request.state.get("scg_turn")  # type: ignore[assignment]
    if not note or not note["block"]:
        return request
    asked = set(note["asked"])
    places = [place for place, message in enumerate(request.messages) if message.id in asked]
    at = places[-1] + 1 if places else len(request.messages)
    # Marked, so that nothing that keeps what models are shown stores it again.
    recalled = HumanMessage(note["block"], additional_kwargs={RECALLED: True})
    return request.override(messages=[*request.messages[:at], recalled, *request.messages[at:]])


def _said(state: MemoryState) -> list[MemoryEntry]:
    """What this turn adds to the memory."""
    note = state.get("scg_turn")
    if not note or not note["asked"]:
        return []
    structured = state.get("structured_response") is not None
    answer = answer_entries(state["messages"], _thread(), datetime.now(UTC), note["recalled"], structured=structured)
    return [*_asked(state, note), *answer]


def _asked(state: MemoryState, note: TurnNote) -> list[MemoryEntry]:
    """What the user said, as the conversation has it by now: another middleware may have taken secrets out of it."""
    now_said = {str(message.id): message for message in state["messages"]}
    asked_at = datetime.fromisoformat(note["asked_at"])
    entries: list[MemoryEntry] = []
    for id in note["asked"]:
        if id in now_said:
            entries += entries_of_message(now_said[id], _thread(), asked_at)
        elif id in note["entries"]:  # it was summarised away
            entries.append(MemoryEntry.from_dict(note["entries"][id]))
    return entries
