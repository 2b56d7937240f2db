"""Hugging Face's beam search with a grammar engine's mask; the prompt is read once.

An engine constrains the text, not its tokens: a key may be spelled by any tokens that make up its characters. What
is found is told by its text, so two spellings of one key take two beams.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from transformers import LogitsProcessor

from benchmarks.decoding.spoken import Schema
from benchmarks.decoding.subject import Subject
from benchmarks.decoding.systems.engines import ENGINES, Matcher
from benchmarks.decoding.systems.generation import beam_search
from benchmarks.decoding.systems.processor import prefill
from benchmarks.decoding.systems.system import Decode
from shared_core.decoding import DEFAULT_PROMPT


class Grammar:
    """A compiled enumeration of the keys.

    Args:
        subject: The model.
        schema: The keys.
        engine: Name in ``ENGINES``.
    """

    reads_apart = True

    def __init__(self, subject: Subject, schema: Schema, engine: str) -> None:
        self._subject = subject
        self._schema = schema
        self._number = {text: key for key, text in enumerate(schema.keys.texts)}
        # A key spelled byte by byte, led by a space, the terminator and the end.
        self._longest = max(len(text.encode()) for text in schema.keys.texts) + 3
        self._start = ENGINES[engine](subject.folder, subject.vocabulary, schema.keys.texts, subject.threads)

    def read(self, prompt: Sequence[int]) -> Decode:
        """See :meth:`System.read`."""
        cache = prefill(self._subject, prompt)

        def decode(width: int) -> list[int]:
            cache.batch_repeat_interleave(width)
            beams = beam_search(
                self._subject,
                prompt,
                width,
                max_new_tokens=self._longest,
                # The terminator may also come as the last character of a longer token; then the end follows.
                ends=[self._subject.terminator, self._subject.end],
                processor=MaskProcessor(self._start, len(prompt), self._subject),
                cache=cache,
            )
            texts = [self._subject.engine.decode(tokens) for tokens, _ in beams]
            keys = [text.partition(DEFAULT_PROMPT.terminator) for text in texts]
            numbers = [self._number.get(key.strip()) for key, terminator, _ in keys if terminator]
            return list(dict.fromkeys(number for number in numbers if number is not None))

        return decode


class MaskProcessor(LogitsProcessor):
    """A grammar engine's mask, for the beams of one search.

    Args:
        start: The engine's matcher at the beginning of a key.
        prompt_length: Tokens of the prompt.
        subject: The model.
    """

    def __init__(self, start: Matcher, prompt_length: int, subject: Subject) -> None:
        self._start = start
        self._prompt_length = prompt_length
        self._end = subject.end
        # Matchers after what the beams held at the step before.
        self._matchers: dict[tuple[int, ...], Matcher | None] = {}

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        """Mask every token that leaves the grammar; shapes (rows, length) and (rows, vocabulary)."""
        rows = [tuple(row) for row in input_ids[:, self._prompt_length :].tolist()]
        self._matchers = {row: self._matcher(row) for row in dict.fromkeys(rows)}
        words = (scores.shape[1] + 31) // 32
        masks = np.zeros((len(self._matchers), words), dtype=np.int32)
        for mask, matcher in zip(masks, self._matchers.values(), strict=True):
            if matcher is None:  # a beam that generate has given up
                mask.view(np.uint32)[self._end // 32] = 1 << self._end % 32
            else:
                matcher.fill(mask)
        bits = np.unpackbits(masks.view(np.uint8), axis=1, bitorder="little")[:, : scores.shape[1]]
        place = {row: at for at, row in enumerate(self._matchers)}
        allowed = torch.from_numpy(bits.astype(bool))[[place[row] for row in rows]]
        return scores.masked_fill(~allowed, float("-inf"))  # type: ignore[return-value]

    def _matcher(self, row: tuple[int, ...]) -> Matcher | None:
        if not row:
            return self._start
        above = self._matchers.get(row[:-1])
        return None if above is None else above.after(row[-1])
