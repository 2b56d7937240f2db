"""What people write first: nested dictionaries, and a function that generate asks for the allowed tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import torch

from benchmarks.decoding.spoken import Schema
from benchmarks.decoding.subject import Subject
from benchmarks.decoding.systems.generation import beam_search, keys_of
from benchmarks.decoding.systems.system import Decode

Nested: TypeAlias = dict[int, "Nested"]


class Naive:
    """``prefix_allowed_tokens_fn`` over nested dictionaries, as GENRE does it; generate reads the prompt.

    Args:
        subject: The model.
        schema: The keys.
    """

    reads_apart = False

    def __init__(self, subject: Subject, schema: Schema) -> None:
        self._subject = subject
        self._schema = schema
        self._root: Nested = {}
        for tokens in schema.keys.tokens:
            node = self._root
            for token in (*tokens, subject.terminator):
                node = node.setdefault(token, {})

    def read(self, prompt: Sequence[int]) -> Decode:
        """See :meth:`System.read`."""
        length = len(prompt)

        def allowed(_: int, sequence: torch.Tensor) -> list[int]:
            node: Nested | None = self._root
            for token in sequence.tolist()[length:]:
                node = node.get(token) if node is not None else None
            return list(node) if node else [self._subject.end]

        def decode(width: int) -> list[int]:
            beams = beam_search(
                self._subject,
                prompt,
                width,
                max_new_tokens=self._schema.longest + 1,
                ends=[self._subject.terminator],
                allowed=allowed,
            )
            return list(keys_of(beams, self._schema.spoken.trie.find, self._subject.terminator))

        return decode
