"""Prompts of an exact length: the project's few-shot prompt, with more or less of its examples and its text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shared_core import MemoryEntry
from shared_core.decoding import DEFAULT_PROMPT, ConceptDecoder
from shared_core.errors import InvalidInputError

_SEED = 20118
# A turn shorter than this says too little to name a concept.
_WORDS = 8


def build_prompts(
    conversations: Sequence[Sequence[MemoryEntry]], decoder: ConceptDecoder, length: int, count: int
) -> list[list[int]]:
    """Prompts of exactly ``length`` tokens for ``count`` turns, the same turns for every length.

    Raises:
        InvalidInputError: if that is too short to hold any text, or the conversations have too few turns.
    """
    places = [
        (turns, at) for turns in conversations for at, entry in enumerate(turns) if len(entry.text.split()) >= _WORDS
    ]
    if len(places) < count:
        raise InvalidInputError(f"the conversations have {len(places)} turns to ask about, not {count}")
    chosen = np.random.default_rng(_SEED).permutation(len(places))[:count]
    return [_prompt(turns[at:] + turns[:at], decoder, length) for turns, at in (places[place] for place in chosen)]


def _prompt(turns: Sequence[MemoryEntry], decoder: ConceptDecoder, length: int) -> list[int]:
    """The prompt for the first turn, exactly ``length`` tokens long.

    Too long, the examples lose their beginning, then the text its end. Too short, the text goes on with the turns
    after it.
    """
    model = decoder.model
    examples = model.encode(DEFAULT_PROMPT.examples)
    before = [*model.start, *model.encode(DEFAULT_PROMPT.before.rstrip(" "))]
    after = model.encode(DEFAULT_PROMPT.after)
    room = length - len(before) - len(after)
    if room < 1:
        raise InvalidInputError(f"a prompt needs more than {length} tokens")
    texts = [_text(entry, decoder, len(examples) + len(before), len(after)) for entry in turns[:1]]
    for entry in turns[1:]:
        if len(examples) + sum(map(len, texts)) >= room:
            break
        texts.append(_text(entry, decoder, len(examples) + len(before), len(after)))
    text = [token for tokens in texts for token in tokens][: min(room, max(len(texts[0]), room - len(examples)))]
    kept = room - len(text)
    if kept > len(examples):
        raise InvalidInputError(f"the conversation is too short for a prompt of {length} tokens")
    return [*model.start, *examples[len(examples) - kept :], *before[len(model.start) :], *text, *after]


def _text(entry: MemoryEntry, decoder: ConceptDecoder, before: int, after: int) -> list[int]:
    """The tokens of a turn as they stand in its prompt, between what comes before and after."""
    whole = decoder.prompt_tokens(entry.text)
    return whole[before : len(whole) - after]
