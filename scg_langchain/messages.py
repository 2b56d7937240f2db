"""Messages and memory entries: one translation, both ways."""

from __future__ import annotations

import json
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

from scg_langchain.spelling import cleaned
from shared_core import MemoryEntry
from shared_core.errors import InvalidInputError

RECALLED = "scg_recalled"
"""Additional field of a message that recall put into a prompt: the id of its entry, if it has one. Never stored."""

# The whole message as JSON text: it survives however deep it is, and with every character.
_MESSAGE = "scg_message"
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

    Raises:
        InvalidInputError: if a part of it is nothing that JSON can carry.
    """
    text = cleaned(str(message.text))
    try:
        fields = message.model_dump(mode="json", exclude_defaults=True)
    except ValueError as error:  # pydantic's own, and bytes that are no text
        raise InvalidInputError(
            f"the {message.type} message holds what JSON cannot carry: leave it out, if it is the artifact ({error})"
        ) from error
    if text.strip() and message.content == text:
        fields.pop("content")  # it is the entry's text
    return MemoryEntry(
        text if text.strip() else cleaned(_wordless(message)),
        speaker=cleaned(speaker_of(message)),
        session=session,
        occurred_at=datetime.now().astimezone(),
        metadata={_MESSAGE: json.dumps({"type": message.type, "data": fields})},
    )


def stored_message(entry: MemoryEntry) -> BaseMessage:
    """The message that was stored, whole; of an entry that was no message, one that says the same."""
    if _MESSAGE not in entry.metadata:
        return _plain_message(entry)
    stored: dict[str, Any] = json.loads(str(entry.metadata[_MESSAGE]))
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
