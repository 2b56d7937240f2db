"""Long-term memory of a conversation, as a block of LlamaIndex's ``Memory``."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from llama_index.core.base.llms.types import ChatMessage, MessageRole, TextBlock
from llama_index.core.bridge.pydantic import ConfigDict, Field, PrivateAttr
from llama_index.core.memory import BaseMemoryBlock
from llama_index.core.utils import get_tokenizer

from scg_llamaindex.events import tell
from shared_core import MemoryEntry, Recall, SchemaMemory
from shared_core.adapting import memory_in
from shared_core.recall import RELEVANT, describe

# Recalls that are kept, one for each session: an agent asks for its memory at every step of a turn.
_KEPT: Final = 64
# Messages of the prompt that may stand before what is wanted from a recall.
_IN_PROMPT: Final = 64
_SPEAKERS: Final = {MessageRole.USER: "User", MessageRole.ASSISTANT: "Assistant"}
_INJECTED: Final = "<memory>"  # what LlamaIndex begins the text of memory blocks with
_CALLS: Final = "tool_calls"


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
    memory: SchemaMemory = Field(exclude=True, repr=False)
    shared: bool = False
    k: int | None = Field(default=None, ge=1)
    score_threshold: float = Field(default=RELEVANT, ge=0, le=1)
    use_model: bool = True
    _recalls: OrderedDict[str | None, Recall] = PrivateAttr(default_factory=OrderedDict)
    _lock: Any = PrivateAttr(default_factory=threading.Lock)

    async def aput(
        self, messages: list[ChatMessage], from_short_term_memory: bool = False, session_id: str | None = None
    ) -> None:
        """Remember messages. They are left as they are: others hold them as well."""
        if not from_short_term_memory or self.accept_short_term_memory:
            await self._store(messages, session_id)

    async def areset(self, session_id: str | None = None) -> None:
        """Erase what was said in a session; without one, everything that was said in none."""
        self._forget_recall(session_id)
        memory = self._memory_of(session_id)
        if self.shared and session_id is not None:
            await memory.aforget(session=session_id)
        elif self.shared:
            said_in_none = [entry.id for entry in memory.entries if entry.session is None]
            await memory.aforget(ids=[id for id in said_in_none if id is not None])
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
        await self._store(messages, None)

    async def _store(self, messages: Sequence[ChatMessage], session: str | None) -> None:
        entries = [entry for message in messages for entry in _entries_of(message, session)]
        if any(entry.speaker == _SPEAKERS[MessageRole.USER] for entry in entries):
            self._forget_recall(session)
        if entries:
            unique = list({entry.id: entry for entry in entries}.values())
            await self._memory_of(session).aremember(unique, use_model=self.use_model)

    async def _aget(
        self, messages: list[ChatMessage] | None = None, session_id: str | None = None, **block_kwargs: Any
    ) -> str:
        said = [message for message in messages or () if message.role == MessageRole.USER and _text(message)]
        if not said:
            return ""
        recall = await self._recall(_text(said[-1]), session_id)
        visible = {entry.id for message in messages or () for entry in _entries_of(message, session_id)}
        relevant = [
            one for one in recall.entries if one.relevance >= self.score_threshold and one.entry.id not in visible
        ][: self.k or self.memory.config.k]
        return "\n".join(describe(one.entry, with_id=False) for one in relevant)

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

    def _memory_of(self, session: str | None) -> SchemaMemory:
        if self.shared or session is None:
            return self.memory
        return memory_in(self.memory, (*self.memory.namespace, "session", session))


def _text(message: ChatMessage) -> str:
    """What was said; text that a memory put before it is not."""
    said = (block.text for block in message.blocks if isinstance(block, TextBlock))
    return "\n".join(text for text in said if not text.lstrip().startswith(_INJECTED)).replace("\x00", "").strip()


def _entries_of(message: ChatMessage, session: str | None) -> list[MemoryEntry]:
    """What to remember of a message: what user and assistant say, without calls of tools and what comes back."""
    text = _text(message)
    speaker = _SPEAKERS.get(message.role)
    if speaker is None or not text or message.additional_kwargs.get(_CALLS):
        return []
    # The same message is stored once, however often LlamaIndex hands it over.
    id = hashlib.sha256(json.dumps([session, speaker, text]).encode()).hexdigest()[:32]
    return [MemoryEntry(text, id, speaker, session, datetime.now().astimezone())]
