"""A token tree that is kept here and asked about there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shared_core.models.port import PROMPT, FloatArray, IntArray


class Oracle(Protocol):
    """Who knows what follows a prompt."""

    def logprobs(self, prompts: Sequence[list[int]], wanted: Sequence[NDArray[np.int64]]) -> list[dict[int, float]]:
        """Log-probabilities of tokens after each prompt.

        Args:
            prompts: Token ids, distinct.
            wanted: For each prompt distinct tokens, ascending.
        """
        ...

    def likeliest(self, prompts: Sequence[list[int]], count: int) -> list[list[tuple[int, float]]]:
        """The likeliest tokens after each prompt, best first, with their log-probabilities."""
        ...


class PromptTree:
    """See :class:`TokenTree`: reading adds to a table of tokens, and scoring sends the paths to the nodes asked about.

    The server keeps what it has computed for prompts with the same beginning, so a path costs little but its end. Any
    node may be asked about, at any time.

    Args:
        oracle: Who is asked.
        prompt: The root prompt.
    """

    def __init__(self, oracle: Oracle, prompt: Sequence[int]) -> None:
        self._oracle = oracle
        self._prompt = list(prompt)
        self._token = [-1]
        self._parent = [PROMPT]

    def read(self, tokens: Sequence[int], parent: int = PROMPT) -> int:
        """See :meth:`TokenTree.read`."""
        return self.read_many([tokens], parent)[0]

    def read_many(self, chains: Sequence[Sequence[int]], parent: int = PROMPT) -> list[int]:
        """See :meth:`TokenTree.read_many`."""
        if not all(map(len, chains)):
            raise ValueError("a chain needs at least one token")
        self._check(np.array([parent]))
        ends = []
        for chain in chains:
            first = len(self._token)
            self._token.extend(map(int, chain))
            self._parent.extend([int(parent), *range(first, first + len(chain) - 1)])
            ends.append(len(self._token) - 1)
        return ends

    def extend(self, tokens: ArrayLike, parents: ArrayLike) -> IntArray:
        """See :meth:`TokenTree.extend`."""
        new, above = np.asarray(tokens, dtype=np.int64), np.asarray(parents, dtype=np.int64)
        first = len(self._token)
        nodes = np.arange(first, first + len(new))
        above = np.where(above < 0, first - 1 - above, above)
        if (above >= nodes).any():
            raise ValueError("a token's parent must come before it")
        self._token.extend(new.tolist())
        self._parent.extend(above.tolist())
        return nodes.astype(np.int32)

    def logprobs(self, nodes: ArrayLike, tokens: ArrayLike) -> FloatArray:
        """See :meth:`TokenTree.logprobs`."""
        wanted = np.asarray(tokens, dtype=np.int64)
        asked, row = self._asked(nodes)
        order = np.lexsort((wanted, row))
        parts = np.split(wanted[order], np.cumsum(np.bincount(row, minlength=len(asked)))[:-1]) if len(asked) else []
        found = self._oracle.logprobs(asked, [np.unique(part) for part in parts])
        result = np.empty(len(wanted), dtype=np.float32)
        result[order] = [scores[token] for scores, part in zip(found, parts, strict=True) for token in part.tolist()]
        return result

    def likeliest(self, nodes: ArrayLike, count: int = 1) -> tuple[IntArray, FloatArray]:
        """See :meth:`TokenTree.likeliest`."""
        asked, row = self._asked(nodes)
        if not asked:
            return np.empty((0, count), dtype=np.int32), np.empty((0, count), dtype=np.float32)
        found = self._oracle.likeliest(asked, count)
        tokens = np.array([[token for token, _ in best] for best in found], dtype=np.int32)
        scores = np.array([[score for _, score in best] for best in found], dtype=np.float32)
        return tokens[row], scores[row]

    def _asked(self, nodes: ArrayLike) -> tuple[list[list[int]], NDArray[np.intp]]:
        """The distinct paths to some nodes, and which of them each node's is."""
        given = np.asarray(nodes, dtype=np.int64)
        self._check(given)
        distinct, row = np.unique(given, return_inverse=True)
        places: dict[tuple[int, ...], int] = {}
        of_node = [places.setdefault(tuple(self._path(node)), len(places)) for node in distinct.tolist()]
        return [list(path) for path in places], np.array(of_node, dtype=np.intp)[row.reshape(-1)]

    def _path(self, node: int) -> list[int]:
        below = []
        while node != PROMPT:
            below.append(self._token[node])
            node = self._parent[node]
        return self._prompt + below[::-1]

    def _check(self, nodes: NDArray[np.int64]) -> None:
        if ((nodes < 0) | (nodes >= len(self._token))).any():
            raise ValueError("there is no such node in the tree")
