"""Hugging Face's beam search, set up so that it ranks keys as the others do."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
from transformers import Cache, GenerationConfig, LlamaForCausalLM, LogitsProcessor, LogitsProcessorList

from benchmarks.decoding.subject import Subject

CACHE_ARGUMENT = "cache" if "cache" in inspect.signature(LlamaForCausalLM.forward).parameters else "past_key_values"
"""What this version of Transformers calls the cache."""

Beam: TypeAlias = tuple[list[int], float]
"""Tokens generated, and their cumulative log-probability."""


def beam_search(
    subject: Subject,
    prompt: Sequence[int],
    width: int,
    *,
    max_new_tokens: int,
    ends: Sequence[int],
    processor: LogitsProcessor | None = None,
    allowed: Callable[[int, torch.Tensor], list[int]] | None = None,
    cache: Cache | None = None,
    scored: bool = False,
) -> list[Beam]:
    """Generate ``width`` sequences after a prompt, best first.

    Args:
        subject: The model.
        prompt: The prompt's tokens.
        width: Number of beams.
        max_new_tokens: The longest key and its terminator must fit.
        ends: Tokens that complete a sequence.
        processor: The constraint, as a processor of log-probabilities.
        allowed: The constraint, as ``prefix_allowed_tokens_fn``.
        cache: State after all of the prompt but its last token, a row for each beam; it is used up.
        scored: Whether scores are wanted. Transformers then keeps the log-probabilities of every step, so they are
            0 otherwise.
    """
    settings = GenerationConfig(  # type: ignore[no-untyped-call]
        num_beams=width,
        num_return_sequences=width,
        do_sample=False,
        # The sum of log-probabilities, whatever the length; and no end before no open beam can do better.
        length_penalty=0.0,
        early_stopping=False,
        max_new_tokens=max_new_tokens,
        eos_token_id=list(ends),
        pad_token_id=subject.end,
        use_cache=True,
        return_dict_in_generate=True,
        output_scores=scored,
    )
    ids = torch.tensor([prompt])
    with torch.inference_mode():
        output = subject.model.generate(  # type: ignore[operator]
            ids,
            attention_mask=torch.ones_like(ids),
            generation_config=settings,
            logits_processor=LogitsProcessorList([] if processor is None else [processor]),
            prefix_allowed_tokens_fn=allowed,
            **({} if cache is None else {CACHE_ARGUMENT: cache}),
        )
    sequences = output.sequences[:, len(prompt) :].tolist()
    scores = output.sequences_scores.tolist() if scored else [0.0] * len(sequences)
    return list(zip(sequences, scores, strict=True))


def keys_of(beams: Sequence[Beam], find: Callable[[Sequence[int]], int | None], terminator: int) -> dict[int, float]:
    """The distinct keys among generated sequences, each with its score, in their order.

    Args:
        beams: What was generated.
        find: The key made of exactly these tokens, if any.
        terminator: Ends a key; no key holds it.
    """
    found: dict[int, float] = {}
    for tokens, score in beams:
        if terminator in tokens:
            key = find(tokens[: tokens.index(terminator)])
            if key is not None:
                found.setdefault(key, score)
    return found
