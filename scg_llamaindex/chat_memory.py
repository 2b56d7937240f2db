"""A ready memory for agents and chat engines."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self, cast

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import InsertMethod, Memory
from llama_index.core.storage.chat_store.base_db import MessageStatus

from scg_llamaindex.memory_block import SCGMemoryBlock
from shared_core import Memory as AnyMemory
from shared_core.adapting import Namespace, as_memory, memory_in
from shared_core.recall import RELEVANT


class SCGChatMemory(Memory):
    """LlamaIndex's ``Memory`` with a schema-constrained one behind it; make one with :meth:`from_memory`.

    Every message is remembered when it is said, so that a short conversation is remembered as well. What is put was
    said now, be it once more; a conversation that comes back from elsewhere is set, or passed as ``chat_history``, and
    nothing of it is stored twice. A reset erases what was remembered of the session.
    """

    @classmethod
    def class_name(cls) -> str:
        """The name in serialised components."""
        return "SCGChatMemory"

    @classmethod
    def from_memory(
        cls,
        memory: AnyMemory | str | Path,
        session_id: str,
        *,
        namespace: Namespace | None = None,
        shared: bool = False,
        k: int | None = None,
        score_threshold: float = RELEVANT,
        use_model: bool = True,
        **settings: Any,
    ) -> Self:
        """The memory of one session.

        Args:
            memory: The memory, or the path of one.
            session_id: Which conversation.
            namespace: Another namespace of the memory's file, such as a user's.
            shared: Let the sessions of the namespace recall from each other; by default a session sees only itself.
            k: See :class:`SCGMemoryBlock`.
            score_threshold: See :class:`SCGMemoryBlock`.
            use_model: See :class:`SCGMemoryBlock`.
            settings: As for ``Memory.from_defaults``: ``token_limit``, ``chat_store``, ``insert_method`` and others. A
                ``chat_history`` is set as by :meth:`aset`.
        """
        block = SCGMemoryBlock(
            memory=memory_in(as_memory(memory), namespace),
            shared=shared,
            k=k,
            use_model=use_model,
            accept_short_term_memory=False,  # it has got everything before
            score_threshold=score_threshold,
        )
        # Not into a system message, which LlamaIndex's ReAct agent drops.
        settings.setdefault("insert_method", InsertMethod.USER)
        blocks = [block, *(settings.pop("memory_blocks", None) or ())]
        history = settings.pop("chat_history", None)
        made = cast("Self", cls.from_defaults(session_id=session_id, memory_blocks=blocks, **settings))
        if history:
            made.set(history)
        return made

    async def aget(self, input: str | ChatMessage | None = None, **block_kwargs: Any) -> list[ChatMessage]:
        """The messages, with what is relevant to the newest thing the user said, or to ``input``."""
        text = input.content if isinstance(input, ChatMessage) else input
        return await super().aget(text, **block_kwargs)

    async def aput(self, message: ChatMessage) -> None:
        """Add a message, and remember it."""
        await self.aput_messages([message])

    async def aput_messages(self, messages: list[ChatMessage]) -> None:
        """Add messages, and remember them."""
        for block in self._blocks:
            await block.aput(messages, session_id=self.session_id)
        await super().aput_messages(messages)

    async def aset(self, messages: list[ChatMessage]) -> None:
        """Make these the messages of the prompt, and remember those that are not remembered yet."""
        for block in self._blocks:
            await block.aset(messages, session_id=self.session_id)
        await super().aset(messages)

    async def areset(self, status: MessageStatus | None = None) -> None:
        """Erase the session: its messages, and without a ``status`` what was remembered of them as well."""
        await super().areset(status)
        if status is None:
            for block in self._blocks:
                await block.areset(self.session_id)

    @property
    def _blocks(self) -> list[SCGMemoryBlock]:
        return [block for block in self.memory_blocks if isinstance(block, SCGMemoryBlock)]
