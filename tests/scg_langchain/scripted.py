"""A chat model that says what a script says, and remembers what it was shown."""

from collections.abc import Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import PrivateAttr


class ScriptedModel(BaseChatModel):
    """Says the answers in order (the last one for ever); a function among them is given the messages."""

    script: Sequence[Any] = ("Fine.",)  # texts, messages, and functions of the messages shown
    _shown: list[list[BaseMessage]] = PrivateAttr(default_factory=list)
    _tools: list[Any] = PrivateAttr(default_factory=list)

    @property
    def shown(self) -> list[list[BaseMessage]]:
        return self._shown

    @property
    def tools(self) -> list[Any]:
        return self._tools

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> "ScriptedModel":
        self._tools[:] = tools
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        line = self.script[min(len(self._shown), len(self.script) - 1)]
        self._shown.append(list(messages))
        said = line(messages) if callable(line) else line
        message = AIMessage(said) if isinstance(said, str) else said.model_copy(update={"id": None})
        return ChatResult(generations=[ChatGeneration(message=message)])


def calling(tool: str, **args: Any) -> AIMessage:
    """A message that calls a tool."""
    return AIMessage("", tool_calls=[{"name": tool, "args": args, "id": f"call-{tool}", "type": "tool_call"}])
