"""Query and chat engines over a retriever: each argument goes where it means something, and no other is let pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from inspect import signature
from typing import Any, Final

from llama_index.core.chat_engine import (
    CondensePlusContextChatEngine,
    CondenseQuestionChatEngine,
    ContextChatEngine,
    SimpleChatEngine,
)
from llama_index.core.chat_engine.types import BaseChatEngine, ChatMode
from llama_index.core.llms.llm import LLM
from llama_index.core.query_engine import RetrieverQueryEngine

from scg_llamaindex.retriever import SCGRetriever
from shared_core.errors import UnsupportedError, refuse

_CHAT_ENGINES: Final[Mapping[str, Any]] = {
    ChatMode.BEST: CondensePlusContextChatEngine,
    ChatMode.CONDENSE_PLUS_CONTEXT: CondensePlusContextChatEngine,
    ChatMode.CONDENSE_QUESTION: CondenseQuestionChatEngine,
    ChatMode.CONTEXT: ContextChatEngine,
    ChatMode.SIMPLE: SimpleChatEngine,
}
# What an index itself hands over.
_GIVEN: Final = frozenset({"memory", "object_map", "retriever", "query_engine", "llm", "kwargs"})

Arguments = Mapping[str, Any]
Retrieving = Callable[[Arguments], SCGRetriever]


def _arguments_of(call: Callable[..., Any], given: Set[str] = _GIVEN) -> frozenset[str]:
    return frozenset(signature(call).parameters) - given


_OF_RETRIEVER: Final = _arguments_of(SCGRetriever)
_OF_QUERY_ENGINE: Final = _arguments_of(RetrieverQueryEngine.from_args)


def check_retriever_arguments(arguments: Arguments) -> None:
    """Refuse what a retriever does not take.

    Raises:
        UnsupportedError: if there is any.
    """
    _check(arguments, _OF_RETRIEVER)


def query_engine(retrieving: Retrieving, llm: LLM, arguments: Arguments) -> RetrieverQueryEngine:
    """A query engine.

    Args:
        retrieving: Makes the retriever from its arguments.
        llm: What answers.
        arguments: Of the retriever and of ``RetrieverQueryEngine.from_args``.

    Raises:
        UnsupportedError: for arguments of neither.
    """
    _check(arguments, _OF_RETRIEVER | _OF_QUERY_ENGINE)
    retriever = retrieving(_those(arguments, _OF_RETRIEVER))
    return RetrieverQueryEngine.from_args(retriever, llm=llm, **_those(arguments, _OF_QUERY_ENGINE))


def chat_engine(mode: ChatMode | str, retrieving: Retrieving, llm: LLM, arguments: Arguments) -> BaseChatEngine:
    """A chat engine.

    Args:
        mode: Which one.
        retrieving: Makes the retriever from its arguments.
        llm: What answers.
        arguments: Of the retriever, of the query engine, and of the chat engine's ``from_defaults``.

    Raises:
        UnsupportedError: for arguments of none of them, and for another mode.
    """
    engine = _CHAT_ENGINES.get(mode)
    if engine is None:
        modes = ", ".join(repr(ChatMode(one).value) for one in _CHAT_ENGINES)
        raise UnsupportedError(
            f"there is no chat mode {mode!r:.200} (supported: {modes}): agents take as_query_engine() as a tool"
        )
    # A memory is the chat engine's: which one is recalled from, the index says.
    own = _arguments_of(engine.from_defaults, _GIVEN - {"memory"})
    _check(arguments, _OF_RETRIEVER | _OF_QUERY_ENGINE | own)
    takes = signature(engine.from_defaults).parameters
    source: dict[str, Any] = {}
    if "query_engine" in takes:
        source["query_engine"] = query_engine(retrieving, llm, _those(arguments, _OF_RETRIEVER | _OF_QUERY_ENGINE))
    if "retriever" in takes:
        source["retriever"] = retrieving(_those(arguments, _OF_RETRIEVER))
    made: BaseChatEngine = engine.from_defaults(llm=llm, **source, **_those(arguments, own))
    return made


def _check(arguments: Arguments, known: Set[str]) -> None:
    refuse(_those(arguments, arguments.keys() - known), ", ".join(sorted(known)))


def _those(arguments: Arguments, names: Set[str]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if name in names}
