"""The language-model port: the little that the memory asks of a model.

A model reads a *token tree*: a fixed root prompt, and below it branches that share everything above them.
Prompts of several queries are branches of one tree, and so are the beams of a search. One call adds a set
of tokens, each below a node that is already there, in a single forward pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

IntArray: TypeAlias = NDArray[np.int32]
FloatArray: TypeAlias = NDArray[np.float32]

PROMPT = 0
"""Node of a token tree that stands for its whole root prompt."""


class TokenTree(Protocol):
    """A growing tree of tokens with the model's state at every node.

    A tree belongs to one thread at a time. Its memory is freed with it.
    """

    def read(self, tokens: Sequence[int], parent: int = PROMPT) -> int:
        """Append a chain of tokens below ``parent`` and return its last node, which is kept for scoring."""
        ...

    def read_many(self, chains: Sequence[Sequence[int]], parent: int = PROMPT) -> list[int]:
        """Append several chains below ``parent`` in as few forward passes as possible."""
        ...

    def extend(self, tokens: ArrayLike, parents: ArrayLike) -> IntArray:
        """Append one token below each parent, in one forward pass.

        Args:
            tokens: Token ids, shape (n,).
            parents: Nodes of this tree, shape (n,); ``-1 - i`` means the ``i``-th token of this same call,
                which must come before, so that a chain or a whole subtree goes in one pass.

        Returns:
            The new nodes, shape (n,).
        """
        ...

    def logprobs(self, nodes: ArrayLike, tokens: ArrayLike) -> FloatArray:
        """Log-probability of each token right after each node, ``log P(token | path to node)``.

        Natural logarithms, normalised over the whole vocabulary. May be asked for ends of chains that were
        read, for the root prompt, and for the nodes of the latest :meth:`extend`.

        Args:
            nodes: shape (n,).
            tokens: shape (n,).

        Returns:
            shape (n,), float32.
        """
        ...

    def likeliest(self, nodes: ArrayLike, count: int = 1) -> tuple[IntArray, FloatArray]:
        """The likeliest next tokens after each node, best first, and their log-probabilities.

        Args:
            nodes: As in :meth:`logprobs`, shape (n,).
            count: How many tokens; all of the vocabulary if it has fewer.

        Returns:
            Token ids and log-probabilities (natural logarithm), shape (n, count) each.
        """
        ...


class LanguageModel(Protocol):
    """What the memory needs from a causal language model and its tokenizer."""

    @property
    def fingerprint(self) -> str:
        """Changes when weights, precision or tokenizer change: stored log-probabilities depend on it."""
        ...

    @property
    def start(self) -> tuple[int, ...]:
        """Tokens that every prompt of this model begins with (such as BOS); often empty."""
        ...

    @property
    def ends(self) -> frozenset[int]:
        """Tokens with which the model ends a text."""
        ...

    @property
    def window(self) -> int:
        """Largest number of tokens the model can read."""
        ...

    def encode(self, text: str) -> list[int]:
        """Token ids of a text; markers of special tokens inside it are encoded as plain text."""
        ...

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """:meth:`encode` for many texts."""
        ...

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of some tokens."""
        ...

    def tree(self, prompt: Sequence[int]) -> TokenTree:
        """A new token tree below ``prompt`` (non-empty); states of recent root prompts are kept and shared."""
        ...


ModelSource: TypeAlias = str | Path | tuple[Any, Any] | LanguageModel | None
"""A hub id, a local folder, a GGUF file, the address of a model on a vLLM server (``vllm+http://host:port/name``), a
loaded (model, tokenizer) pair, an engine, or None: the embedded one."""
