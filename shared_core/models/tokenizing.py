"""Text and tokens, by a tokenizer of Transformers: text is data, and never becomes a special token."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any


class TextTokens:
    """A tokenizer as the port wants it. Safe for threads.

    Args:
        tokenizer: A tokenizer of Transformers.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        # Fast tokenizers keep settings of a call in shared state and fail when borrowed by two threads.
        self._lock = threading.Lock()
        self.start = _start_tokens(tokenizer)

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """See :meth:`LanguageModel.encode_batch`."""
        if not texts:
            return []
        with self._lock:
            encoded = self._tokenizer(list(texts), add_special_tokens=False, split_special_tokens=True)
        return [list(map(int, ids)) for ids in encoded["input_ids"]]

    def decode(self, tokens: Sequence[int]) -> str:
        """See :meth:`LanguageModel.decode`."""
        with self._lock:
            text = self._tokenizer.decode(
                list(map(int, tokens)), skip_special_tokens=False, clean_up_tokenization_spaces=False
            )
        return str(text)


def _start_tokens(tokenizer: Any) -> tuple[int, ...]:
    """What the tokenizer puts before a text on its own accord (BOS)."""
    whole = tokenizer("a")["input_ids"]
    plain = tokenizer("a", add_special_tokens=False)["input_ids"]
    for start in range(len(whole) - len(plain) + 1):
        if plain and whole[start : start + len(plain)] == plain:
            return tuple(map(int, whole[:start]))
    return ()


def end_tokens(*holders: Any) -> frozenset[int]:
    """Tokens that end a text, as a tokenizer and configurations of a model name them.

    Of the generation config these alone are read: nothing else in it may interfere.
    """
    ends: set[int] = set()
    for holder in holders:
        found = getattr(holder, "eos_token_id", None)
        ends.update([found] if isinstance(found, int) else found or [])
    return frozenset(map(int, ends))


def vocabulary_lines(tokenizer: Any) -> Iterator[bytes]:
    """The vocabulary, for a digest: each token with its number."""
    for token, number in sorted(tokenizer.get_vocab().items()):
        yield f"{number} {token}\n".encode(errors="surrogatepass")
