"""Grammar engines: the keys as one enumeration over text, compiled against the tokenizer's vocabulary."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoTokenizer

from shared_core.decoding import DEFAULT_PROMPT


class Matcher(Protocol):
    """Follows a text through a grammar; never changes."""

    def after(self, token: int) -> Matcher | None:
        """The matcher one token further; ``None`` where the grammar does not take that token, or is over with it."""
        ...

    def fill(self, mask: NDArray[np.int32]) -> None:
        """Set the bits of the tokens that may follow, shape (vocabulary / 32, rounded up)."""
        ...


@dataclass(frozen=True)
class _XGrammarMatcher:
    matcher: Any
    allocate: Callable[[int, int], torch.Tensor]

    def after(self, token: int) -> _XGrammarMatcher | None:
        further = self.matcher.fork()
        if not further.accept_token(token) or further.is_terminated():
            return None
        return _XGrammarMatcher(further, self.allocate)

    def fill(self, mask: NDArray[np.int32]) -> None:
        rows = self.allocate(1, 32 * len(mask))
        self.matcher.fill_next_token_bitmask(rows)
        mask[:] = rows[0].numpy()


@dataclass(frozen=True)
class _LLGuidanceMatcher:
    matcher: Any
    fill_rows: Callable[[Any, NDArray[np.int32], int], None]

    def after(self, token: int) -> _LLGuidanceMatcher | None:
        further = self.matcher.deep_copy()
        if not further.consume_token(token) or further.is_error():
            return None
        return _LLGuidanceMatcher(further, self.fill_rows)

    def fill(self, mask: NDArray[np.int32]) -> None:
        self.fill_rows(self.matcher, mask[None], 0)


def _xgrammar(folder: Path, vocabulary: int, texts: Sequence[str], threads: int) -> Matcher:
    """XGrammar, given an EBNF of alternatives."""
    xgrammar = import_module("xgrammar")
    ebnf = f"root ::= key {json.dumps(DEFAULT_PROMPT.terminator)}\nkey ::= {_alternatives(texts)}\n"
    information = xgrammar.TokenizerInfo.from_huggingface(AutoTokenizer.from_pretrained(folder), vocab_size=vocabulary)
    compiled = xgrammar.GrammarCompiler(information, max_threads=threads).compile_grammar(ebnf)
    return _XGrammarMatcher(xgrammar.GrammarMatcher(compiled), xgrammar.allocate_token_bitmask)


def _llguidance(folder: Path, vocabulary: int, texts: Sequence[str], threads: int) -> Matcher:
    """llguidance, given a Lark grammar of alternatives; it compiles on one thread."""
    llguidance = import_module("llguidance")
    lark = f"start: KEY {json.dumps(DEFAULT_PROMPT.terminator)}\nKEY: {_alternatives(texts)}\n"
    tokenizer = import_module("llguidance.hf").from_tokenizer(AutoTokenizer.from_pretrained(folder), n_vocab=vocabulary)
    matcher = llguidance.LLMatcher(tokenizer, llguidance.LLMatcher.grammar_from_lark(lark))
    start = _LLGuidanceMatcher(matcher, import_module("llguidance.numpy").fill_next_token_bitmask)
    # Much of the work is done when a mask is first asked for, and some limits show only then.
    start.fill(np.zeros((vocabulary + 31) // 32, dtype=np.int32))
    if matcher.is_error():
        raise ValueError(matcher.get_error())
    return start


def _alternatives(texts: Sequence[str]) -> str:
    # Both grammars quote as JSON does.
    return " | ".join(json.dumps(" " + text, ensure_ascii=False) for text in texts)


ENGINES: dict[str, Callable[[Path, int, Sequence[str], int], Matcher]] = {
    "xgrammar": _xgrammar,
    "llguidance": _llguidance,
}
"""What compiles the keys, by the name of its package.

Given the folder of the tokenizer, the width of the model's logits, the keys, and the number of threads it may use.
"""
