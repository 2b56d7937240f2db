"""Long-term memory of a conversation, as a block of LlamaIndex's ``Memory``."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeAlias

from llama_index.core.base.llms.types import ChatMessage, MessageRole, TextBlock
from llama_index.core.bridge.pydantic import ConfigDict, Field, PrivateAttr
from llama_index.core.memory import BaseMemoryBlock
from llama_index.core.utils import get_tokenizer

from scg_llamaindex.events import tell
from shared_core import Filter, Memory, MemoryEntry, Recall
from shared_core.adapting import memory_in
from shared_core.errors import NotFoundError
from shared_core.recall import RELEVANT, describe

# Recalls that are kept, one for each session: an agent asks for its memory at every step of a turn.
_KEPT: Final = 64
# Messages of the prompt that may stand before what is wanted from a recall.
_IN_PROMPT: Final = 64
_SPEAKERS: Final = {MessageRole.USER: "User", MessageRole.ASSISTANT: "Assistant"}
_INJECTED: Final = "<memory>"  # what LlamaIndex begins the text of memory blocks with
_CALLS: Final = "tool_calls"
_Said: TypeAlias = tuple[str, str]  # speaker and text


@dataclass(frozen=True, slots=True)
class _InNoSession(Filter):
    """What was said in no session."""

    @property
    def is_empty(self) -> bool:
        return False

    def matches(self, entry: MemoryEntry) -> bool:
        return entry.session is None


class SCGMemoryBlock(BaseMemoryBlock[str]):
    """Remembers what user and assistant say, and recalls what is relevant to what the user says now.

    A session sees nothing of another: each has a namespace of its own, below the memory's. With ``shared`` all
    sessions of the memory's namespace, one user's, recall from each other. Messages that are in the prompt anyway are
    not recalled, and of nothing relevant nothing is injected.

    In a plain ``Memory`` the block is given only what no longer fits into the prompt; :class:`SCGChatMemory` gives it
    everything at once.

    Attributes:
        memory: The memory.
        shared: Let the sessions of one namespace recall from each other.
        k: Entries to recall; ``None`` for ``memory.config.k``.
        score_threshold: Least relevance of what is injected.
        use_model: See :meth:`shared_core.SchemaMemory.remember`.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    name: str = "recalled"
    priority: int = 1  # 0 would mean that it is never shortened
    memory: Memory = Field(exclude=True, repr=False)
    shared: bool = False
    k: int | None = Field(default=None, ge=1)
    score_threshold: float = Field(default=RELEVANT, ge=0, le=1)
    use_model: bool = True
    _recalls: OrderedDict[str | None, Recall] = PrivateAttr(default_factory=OrderedDict)
    _lock: Any = PrivateAttr(default_factory=threading.Lock)

    async def aput(
        self, messages: list[ChatMessage], from_short_term_memory: bool = False, session_id: str | None = None
    ) -> None:
        """Remember messages as said now, also what was said before. They are left as they are: others hold them too."""
        if not from_short_term_memory or self.accept_short_term_memory:
            memory, said = self._memory_of(session_id), _said(messages)
            times = {one: await _times_said(memory, session_id, one) for one in set(said)}
            await self._store(memory, _entries(said, session_id, times), session_id)

    async def aset(self, messages: list[ChatMessage], session_id: str | None = None) -> None:
        """Remember what of a conversation is not remembered yet: it may be handed over again and again."""
        memory, said = self._memory_of(session_id), _said(messages)
        entries = _entries(said, session_id, {})
        new = [entry for entry in entries if not await _remembers(memory, entry.id or "")]
        await self._store(memory, new, session_id)

    async def areset(self, session_id: str | None = None) -> None:
        """Erase what was said in a session; without one, everything that was said in none."""
        self._forget_recall(session_id)
        memory = self._memory_of(session_id)
        if self.shared and session_id is not None:
            await memory.aforget(session=session_id)
        elif self.shared:
            await memory.aforget(where=_InNoSession())
        else:
            await memory.aclear()

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """Leave out whole entries, the least relevant first, until enough tokens are saved."""
        count = get_tokenizer()
        lines = content.splitlines() if content else []  # of a block without content LlamaIndex hands over []
        most = len(count("\n".join(lines))) - tokens_to_truncate
        while lines and len(count("\n".join(lines))) > most:
            lines.pop()
        return "\n".join(lines) or None

    async def _aput(self, messages: list[ChatMessage]) -> None:
        await self.aput(messages)

    async def _store(self, memory: Memory, entries: list[MemoryEntry], session: str | None) -> None:
        if any(entry.speaker == _SPEAKERS[MessageRole.USER] for entry in entries):
            self._forget_recall(session)
        if entries:
            await memory.aremember(entries, use_model=self.use_model)

    async def _aget(
        self, messages: list[ChatMessage] | None = None, session_id: str | None = None, **block_kwargs: Any
    ) -> str:
        said = [message for message in messages or () if message.role == MessageRole.USER and _text(message)]
        if not said:
            return ""
        recall = await self._recall(_text(said[-1]), session_id)
        visible = {(session_id, speaker, text) for speaker, text in _said(messages or ())}
        relevant = [
            one.entry
            for one in recall.entries
            if one.relevance >= self.score_threshold
            and (one.entry.session, one.entry.speaker, one.entry.text) not in visible
        ][: self.k or self.memory.config.k]
        # What was forgotten since the recall is not said again.
        held = [entry for entry in relevant if await _remembers(self._memory_of(session_id), entry.id or "")]
        return "\n".join(describe(entry, with_id=False) for entry in held)

    async def _recall(self, query: str, session: str | None) -> Recall:
        """One recall for each thing that a user says, though an agent asks several times."""
        with self._lock:
            kept = self._recalls.get(session)
        if kept is not None and kept.query == query:
            return kept
        memory = self._memory_of(session)
        # More than are wanted, since those that are in the prompt are left out afterwards.
        recall = await memory.arecall(query, k=(self.k or memory.config.k) + _IN_PROMPT)
        tell(recall)
        with self._lock:
            self._recalls[session] = recall
            self._recalls.move_to_end(session)
            if len(self._recalls) > _KEPT:
                self._recalls.popitem(last=False)
        return recall

    def _forget_recall(self, session: str | None) -> None:
        with self._lock:
            self._recalls.pop(session, None)

    def _memory_of(self, session: str | None) -> Memory:
        if self.shared or session is None:
            return self.memory
        return memory_in(self.memory, (*self.memory.namespace, "session", session))


def _text(message: ChatMessage) -> str:
    """What was said, as it can be stored; text that a memory put before it is not."""
    said = (block.text for block in message.blocks if isinstance(block, TextBlock))
    text = "\n".join(text for text in said if not text.lstrip().startswith(_INJECTED)).replace("\x00", "")
    # A model that is cut off within a character leaves half of it.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").strip()


def _said(messages: Sequence[ChatMessage]) -> list[_Said]:
    """What to remember of messages: what user and assistant say, without calls of tools and what comes back."""
    heard = [message for message in messages if not message.additional_kwargs.get(_CALLS)]
    said = [(_SPEAKERS.get(message.role), _text(message)) for message in heard]
    return [(speaker, text) for speaker, text in said if speaker is not None and text]


def _entries(said: Sequence[_Said], session: str | None, times: Mapping[_Said, int]) -> list[MemoryEntry]:
    """Entries of what was said in a session, where each of it had been said some times before."""
    count = Counter(times)
    entries = []
    for speaker, text in said:
        count[speaker, text] += 1
        id = _id(session, (speaker, text), count[speaker, text])
        entries.append(MemoryEntry(text, id, speaker, session, datetime.now().astimezone()))
    return entries


def _id(session: str | None, said: _Said, time: int) -> str:
    """The first, second, … time that something was said in a session has an id, so that no time is stored twice."""
    return hashlib.sha256(json.dumps([session, *said, time]).encode()).hexdigest()[:32]


async def _times_said(memory: Memory, session: str | None, said: _Said) -> int:
    """How often something was said in a session: the last time that is remembered, by doubling and halving."""
    least, most = 0, 1
    while await _remembers(memory, _id(session, said, most)):
        least, most = most, 2 * most
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (middle, most) if await _remembers(memory, _id(session, said, middle)) else (least, middle)
    return least


async def _remembers(memory: Memory, id: str) -> bool:
    try:
        await memory.aget(id)
    except NotFoundError:
        return False
    return True
