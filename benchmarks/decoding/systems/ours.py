"""This project's search over a token tree."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Literal

from benchmarks.decoding.spoken import Schema
from benchmarks.decoding.subject import Subject
from benchmarks.decoding.systems.system import Decode
from shared_core.decoding import SearchOptions, SearchRequest, search


class Ours:
    """The search, by beam or exact.

    Args:
        subject: The model.
        schema: The keys.
        method: How to search.
        kept: Tokens that prompts begin with and whose state is kept from one to the next, as a memory keeps that of
            its examples. Without them only the state of a prompt's first token is kept.
    """

    reads_apart = True

    def __init__(
        self, subject: Subject, schema: Schema, method: Literal["beam", "exact"], *, kept: Sequence[int] = ()
    ) -> None:
        self._subject = subject
        self._schema = schema
        self._method = method
        self._kept = kept

    def read(self, prompt: Sequence[int]) -> Decode:
        """See :meth:`System.read`."""
        # The engine keeps the states of recent root prompts, so what is not to be kept is no part of the root.
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(self._kept, prompt, strict=False)))
        root = max(1, min(shared, len(prompt) - 1))
        tree = self._subject.engine.tree(prompt[:root])
        node = tree.read(prompt[root:])

        def decode(width: int) -> list[int]:
            spoken = self._schema.spoken
            options = SearchOptions(width=width, method=self._method, score="base", calibration=0.0)
            request = SearchRequest(node, spoken.trie, self._subject.terminator, spoken.prior, options)
            return [found.key for found in search(tree, [request])[0]]

        return decode
