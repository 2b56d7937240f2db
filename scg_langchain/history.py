"""A conversation in the memory as a chat message history."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import BaseMessage

from scg_langchain.messages import is_recalled, message_entry, stored_message
from shared_core import Memory, MemoryEntry
from shared_core.adapting import Namespace, as_memory, memory_in
from shared_core.errors import InvalidInputError


class SCGChatMessageHistory(BaseChatMessageHistory):
    """The messages of one session. What it stores can be recalled, by whatever reads the same namespace.

    Messages that recall put into a prompt are left out.

    Args:
        memory: The memory, or the path of one.
        session: Which conversation.
        namespace: Another namespace of the memory's file.

    Raises:
        InvalidInputError: if the session is no text, or what is added is no message that JSON can carry.
    """

    def __init__(self, memory: Memory | str | Path, session: str, *, namespace: Namespace | None = None) -> None:
        if not isinstance(session, str):
            raise InvalidInputError(f"the session must be text, not {type(session).__name__}")
        self._memory = memory_in(as_memory(memory), namespace)
        self._session = session

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]  # there is nothing to assign to
        """The messages, in the order in which they were added."""
        return [stored_message(entry) for entry in self._memory.entries if entry.session == self._session]

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Add messages."""
        self._memory.remember(self._entries(messages))

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """:meth:`add_messages`, without blocking the event loop."""
        await self._memory.aremember(self._entries(messages))

    def clear(self) -> None:
        """Erase the conversation; other sessions stay."""
        self._memory.forget(session=self._session)

    async def aclear(self) -> None:
        """:meth:`clear`, without blocking the event loop."""
        await self._memory.aforget(session=self._session)

    def _entries(self, messages: Sequence[BaseMessage]) -> list[MemoryEntry]:
        for message in messages:
            if not isinstance(message, BaseMessage):
                raise InvalidInputError(f"pass a list of messages, not of {type(message).__name__}")
        return [message_entry(message, self._session) for message in messages if not is_recalled(message)]
