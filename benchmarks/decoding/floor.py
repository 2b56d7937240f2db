"""The floor: the forward passes that no constrained decoder can do without, and nothing else.

One plain pass reads the prompt. Then, for the keys that were found, their prefixes go through the model in as few
passes as possible: a prefix can be run only after what comes before it was scored, except where a chain is forced.
So round ``r`` holds the prefixes with ``r`` branching nodes above them, a branching node being one with more than
one child; the first round also takes those with none, which follow the root of a trie that does not branch.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from transformers import DynamicCache

from benchmarks.decoding.subject import Subject
from benchmarks.decoding.systems import CACHE_ARGUMENT
from shared_core.schema import ROOT, Tokens, Trie


def unavoidable_rounds(trie: Trie, keys: Sequence[Tokens]) -> list[list[Tokens]]:
    """The prefixes on the way to some keys, round by round; within a round a prefix comes after what leads to it."""
    rounds: dict[int, dict[Tokens, None]] = {}
    for key in keys:
        node, branching = ROOT, 0
        for depth, token in enumerate(key, start=1):
            branching += len(trie.allowed_tokens(node)) > 1
            below = trie.child(node, token)
            if below is None:
                raise LookupError("a key that was found is not in the trie")
            node = below
            rounds.setdefault(max(branching, 1), {})[key[:depth]] = None
    return [list(rounds[number]) for number in sorted(rounds)]


@dataclass(frozen=True, eq=False)
class _Round:
    """The arguments of one forward pass.

    Attributes:
        tokens: shape (1, n).
        positions: shape (1, n).
        mask: 0 where a token sees another, the least number elsewhere, shape (1, 1, n, everything before + n).
    """

    tokens: torch.Tensor
    positions: torch.Tensor
    mask: torch.Tensor


class Floor:
    """The floor for one prompt and the keys found after it; everything but the passes is done beforehand.

    Args:
        subject: The model.
        prompt: The prompt's tokens.
        rounds: As from :func:`unavoidable_rounds`.
    """

    def __init__(self, subject: Subject, prompt: Sequence[int], rounds: Sequence[Sequence[Tokens]]) -> None:
        self._model = subject.optimized  # the engine's own layers: what is left is the search
        self._prompt = torch.tensor([prompt])
        self._rounds = _prepare(len(prompt), rounds, subject.optimized.dtype)

    @property
    def rounds(self) -> int:
        """Forward passes after the prompt."""
        return len(self._rounds)

    def run(self) -> tuple[float, float]:
        """Seconds of the prompt's pass, and of the rounds together."""
        start = time.perf_counter()
        cache = DynamicCache()
        with torch.inference_mode():
            self._model(input_ids=self._prompt, use_cache=True, logits_to_keep=1, **{CACHE_ARGUMENT: cache})
            read = time.perf_counter()
            for one in self._rounds:
                self._model(
                    input_ids=one.tokens,
                    position_ids=one.positions,
                    attention_mask=one.mask,
                    use_cache=True,
                    **{CACHE_ARGUMENT: cache},
                )
        return read - start, time.perf_counter() - read


def _prepare(prompt: int, rounds: Sequence[Sequence[Tokens]], dtype: torch.dtype) -> list[_Round]:
    columns = {prefix: prompt + at for at, prefix in enumerate(prefix for members in rounds for prefix in members)}
    prepared = []
    width = prompt
    for members in rounds:
        width += len(members)
        mask = torch.full((len(members), width), torch.finfo(dtype).min, dtype=dtype)
        mask[:, :prompt] = 0.0
        for row, prefix in enumerate(members):
            mask[row, [columns[prefix[:depth]] for depth in range(1, len(prefix) + 1)]] = 0.0
        tokens = torch.tensor([[prefix[-1] for prefix in members]])
        positions = torch.tensor([[prompt + len(prefix) - 1 for prefix in members]])
        prepared.append(_Round(tokens, positions, mask[None, None]))
    return prepared
