"""This project's search over a token tree."""

from __future__ import annotations

from collections.abc import Sequence
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
    """

    reads_apart = True

    def __init__(self, subject: Subject, schema: Schema, method: Literal["beam", "exact"]) -> None:
        self._subject = subject
        self._schema = schema
        self._method = method

    def read(self, prompt: Sequence[int]) -> Decode:
        """See :meth:`System.read`."""
        # States of recent root prompts are kept, so the root is one token only and the rest is read each time.
        tree = self._subject.engine.tree(prompt[:1])
        node = tree.read(prompt[1:])

        def decode(width: int) -> list[int]:
            spoken = self._schema.spoken
            options = SearchOptions(width=width, method=self._method, score="base", calibration=0.0)
            request = SearchRequest(node, spoken.trie, self._subject.terminator, spoken.prior, options)
            return [found.key for found in search(tree, [request])[0]]

        return decode
