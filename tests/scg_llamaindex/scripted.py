"""A language model that says what a script says, and remembers what it was shown."""

from collections.abc import AsyncGenerator, Sequence
from typing import Any

from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    LLMMetadata,
    MessageRole,
)
from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.tools import ToolSelection


class ScriptedLLM(FunctionCallingLLM):
    """Says the lines in order (the last one for ever); a line ``(tool, arguments)`` calls a tool."""

    script: list[Any] = Field(default_factory=lambda: ["Fine."])
    calls_functions: bool = True
    _shown: list[list[ChatMessage]] = PrivateAttr(default_factory=list)

    @property
    def shown(self) -> list[list[ChatMessage]]:
        return self._shown

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_chat_model=True, is_function_calling_model=self.calls_functions)

    def text(self, turn: int = -1) -> str:
        return "\n".join(str(message.content) for message in self._shown[turn])

    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        line = self.script[min(len(self._shown), len(self.script) - 1)]
        self._shown.append([message.model_copy(deep=True) for message in messages])
        line = line(messages) if callable(line) else line
        if isinstance(line, tuple):
            message = ChatMessage(role=MessageRole.ASSISTANT, content="", additional_kwargs={"tool_calls": [line]})
        else:
            message = ChatMessage(role=MessageRole.ASSISTANT, content=line)
        return ChatResponse(message=message, delta=str(message.content))

    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return self.chat(messages, **kwargs)

    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> Any:
        yield self.chat(messages, **kwargs)

    async def astream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> Any:
        async def said() -> AsyncGenerator[ChatResponse, None]:
            yield self.chat(messages)

        return said()

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text=str(self.chat([ChatMessage(role="user", content=prompt)]).message.content))

    async def acomplete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return self.complete(prompt)

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        yield self.complete(prompt)

    async def astream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        async def said() -> AsyncGenerator[CompletionResponse, None]:
            yield self.complete(prompt)

        return said()

    def _prepare_chat_with_tools(
        self, tools: Any, user_msg: Any = None, chat_history: Any = None, **kwargs: Any
    ) -> Any:
        return {"messages": [*(chat_history or [])]}

    def get_tool_calls_from_response(self, response: ChatResponse, **kwargs: Any) -> list[ToolSelection]:
        calls = response.message.additional_kwargs.get("tool_calls", [])
        return [ToolSelection(tool_id=name, tool_name=name, tool_kwargs=arguments) for name, arguments in calls]
