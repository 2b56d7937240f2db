"""The turn that an agent is in: what the user said and is not answered yet, and the answer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from scg_langchain.messages import RECALLED, speaker_of
from scg_langchain.spelling import cleaned
from shared_core import MemoryEntry

# Marks of messages that the user did not write: by LangChain's middleware, and by recall.
_NOT_SAID = {"lc_source", RECALLED}


@dataclass(frozen=True, slots=True)
class Turn:
    """What the user said and is not answered yet.

    Attributes:
        asked: The user's messages, in order; none when it is the user's turn.
        visible: Ids of the entries of all messages that the model sees anyway.
        thread: The conversation.
    """

    asked: tuple[HumanMessage, ...]
    visible: frozenset[str]
    thread: str | None

    @classmethod
    def of(cls, messages: Sequence[AnyMessage], thread: str | None) -> Turn:
        """The turn that a conversation is in."""
        asked: list[HumanMessage] = []
        for message in reversed(messages):
            if isinstance(message, HumanMessage):
                if _NOT_SAID.isdisjoint(message.additional_kwargs):
                    asked.append(message)
            elif asked or _is_answer(message):
                break
        return cls(tuple(reversed(asked)), frozenset(_entry_id(one, thread) for one in messages), thread)

    @property
    def query(self) -> str:
        """What to recall for; empty if the user wrote nothing."""
        return "\n".join(cleaned(str(message.text)) for message in self.asked).strip()

    def is_out_of_sight(self, entry: MemoryEntry) -> bool:
        """Whether an entry is no message that the model sees anyway."""
        return entry.id not in self.visible


def answer_entries(
    messages: Sequence[AnyMessage], thread: str | None, now: datetime, recalled: Collection[str]
) -> list[MemoryEntry]:
    """What to remember of the answer that a conversation ends with: one entry at most.

    Args:
        messages: The conversation.
        thread: Which one.
        now: When.
        recalled: Lines that were recalled for this turn. What of the answer repeats one is left out.
    """
    for message in reversed(messages):
        if _is_answer(message):
            return entries_of_message(message, thread, now, recalled)
        if isinstance(message, HumanMessage):
            break
    return []


def _is_answer(message: AnyMessage) -> bool:
    """Whether it is said to the user: calls of tools, and what comes back, are not."""
    return isinstance(message, AIMessage) and not message.tool_calls and not message.invalid_tool_calls


def entries_of_message(
    message: AnyMessage, thread: str | None, now: datetime, recalled: Collection[str] = ()
) -> list[MemoryEntry]:
    """What to remember of one message: an entry, or none if it says nothing but what was recalled.

    Args:
        message: The message.
        thread: The conversation.
        now: When it was said.
        recalled: Lines that were recalled for this turn.
    """
    known = {_plain(line) for line in recalled}
    lines = cleaned(str(message.text)).splitlines()
    text = "\n".join(line for line in lines if _plain(line) not in known).strip()
    if not text:
        return []
    return [MemoryEntry(text, _entry_id(message, thread), cleaned(speaker_of(message)), thread, now)]


def _entry_id(message: AnyMessage, thread: str | None) -> str:
    # Some applications number the messages of every conversation from 1, so thread and text are part of the id.
    parts = json.dumps([thread, message.id, message.type, str(message.text)])
    return hashlib.sha256(parts.encode()).hexdigest()[:32]


def _plain(line: str) -> str:
    """A line as it counts when lines are compared: list marks, case and spaces do not matter."""
    return " ".join(line.strip().lstrip("-*•> ").split()).casefold()
