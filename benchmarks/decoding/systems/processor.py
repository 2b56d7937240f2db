"""Hugging Face's beam search with this project's constraint; the prompt is read once, or once for each beam."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from transformers import DynamicCache

from benchmarks.decoding.spoken import Schema
from benchmarks.decoding.subject import Subject
from benchmarks.decoding.systems.generation import CACHE_ARGUMENT, beam_search, keys_of
from benchmarks.decoding.systems.system import Decode
from shared_core.decoding import SchemaLogitsProcessor


class Processor:
    """The constraint as a logits processor.

    Args:
        subject: The model.
        schema: The keys.
        cached: Whether the prompt is read once and its state repeated for each beam, rather than read by generate.
        optimized: Whether generate runs on the engine's layers, rather than on those of Transformers.
    """

    def __init__(self, subject: Subject, schema: Schema, *, cached: bool, optimized: bool = False) -> None:
        self._subject = replace(subject, model=subject.optimized) if optimized else subject
        self._schema = schema
        self._cached = cached

    @property
    def reads_apart(self) -> bool:
        """See :meth:`System.reads_apart`."""
        return self._cached

    def read(self, prompt: Sequence[int]) -> Decode:
        """See :meth:`System.read`."""
        cache = prefill(self._subject, prompt) if self._cached else None

        def decode(width: int) -> list[int]:
            return list(self.scored(prompt, cache, width))

        return decode

    def scored(
        self, prompt: Sequence[int], cache: DynamicCache | None, width: int, *, keep: bool = False
    ) -> dict[int, float]:
        """The keys found, best first, with their scores where these are to be kept."""
        trie = self._schema.spoken.trie
        if cache is not None:
            cache.batch_repeat_interleave(width)
        constraint = SchemaLogitsProcessor(
            trie, terminator=self._subject.terminator, end=self._subject.end, prompt_length=len(prompt)
        )
        beams = beam_search(
            self._subject,
            prompt,
            width,
            # A sequence is over with its terminator, so that no round is spent on the end-of-sequence token.
            max_new_tokens=constraint.max_new_tokens - 1,
            ends=[self._subject.terminator],
            processor=constraint,
            cache=cache,
            scored=keep,
        )
        return keys_of(beams, trie.find, self._subject.terminator)


def prefill(subject: Subject, prompt: Sequence[int]) -> DynamicCache:
    """Read all of a prompt but its last token, which generate insists on running itself, in a batch of one."""
    cache = DynamicCache()
    with torch.inference_mode():
        subject.model(
            input_ids=torch.tensor([prompt[:-1]]), use_cache=True, logits_to_keep=1, **{CACHE_ARGUMENT: cache}
        )
    return cache
