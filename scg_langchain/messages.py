"""Messages and memory entries: one translation, both ways."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    messages_from_dict,
)

from shared_core import MemoryEntry

RECALLED = "scg_recalled"
"""Additional field of a message that recall put into a prompt: the id of its entry, if it has one. Never stored."""

_MESSAGE = "message"
_SPEAKERS: tuple[tuple[type[BaseMessage], str], ...] = (
    (HumanMessage, "Human"),
    (AIMessage, "AI"),
    (SystemMessage, "System"),
    (ToolMessage, "Tool"),
)


def is_recalled(message: BaseMessage) -> bool:
    """Whether recall put the message into a prompt."""
    return RECALLED in message.additional_kwargs


def message_entry(message: BaseMessage, session: str) -> MemoryEntry:
    """The memory entry of a message that was said now.

    A message without text, such as a call of tools, is stored as what it is: ``[call of search]``.
    """
    text = str(message.text)
    fields = message.model_dump(mode="json", exclude_defaults=True)
    if text.strip() and message.content == text:
        fields.pop("content")  # it is the entry's text
    return MemoryEntry(
        text if text.strip() else _wordless(message),
        speaker=speaker_of(message),
        session=session,
        occurred_at=datetime.now().astimezone(),
        metadata={_MESSAGE: {"type": message.type, "data": fields}},
    )


def stored_message(entry: MemoryEntry) -> BaseMessage:
    """The message that was stored, whole; of an entry that was no message, one that says the same."""
    stored: Any = entry.metadata.get(_MESSAGE)
    if not isinstance(stored, Mapping):
        return _plain_message(entry)
    return messages_from_dict([{"type": stored["type"], "data": {"content": entry.text, **stored["data"]}}])[0]


def recalled_message(entry: MemoryEntry) -> BaseMessage:
    """What a recalled entry says, as a message for a prompt, marked as recalled."""
    message = _plain_message(entry)
    message.additional_kwargs[RECALLED] = entry.id
    return message


def _plain_message(entry: MemoryEntry) -> BaseMessage:
    if entry.speaker == "AI":
        return AIMessage(entry.content)
    named = entry.speaker and entry.speaker != "Human"
    return HumanMessage(f"{entry.speaker}: {entry.content}" if named else entry.content)


def speaker_of(message: BaseMessage) -> str:
    """Who said a message: the name that it bears, or else its role."""
    return message.name or next((name for kind, name in _SPEAKERS if isinstance(message, kind)), message.type)


def _wordless(message: BaseMessage) -> str:
    calls = [call["name"] for call in message.tool_calls] if isinstance(message, AIMessage) else []
    return f"[call of {', '.join(calls)}]" if calls else f"[{message.type} message without text]"
