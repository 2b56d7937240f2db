"""Key sets of any size: what accommodation takes from real conversations, then phrases recombined from its words.

The sets are nested: one of a thousand keys is the beginning of one of a million.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from shared_core import MemoryEntry
from shared_core.decoding import ConceptDecoder
from shared_core.errors import InvalidInputError
from shared_core.evolution import extract_phrases
from shared_core.schema import Tokens

_SEED = 20117
# Candidates drawn or encoded at once. Part of what a seed stands for: another number draws other phrases.
_CHUNK = 20_000
# Chunks in a row that may bring nothing new before the words count as used up.
_PATIENCE = 5


@dataclass(frozen=True, eq=False)
class KeySet:
    """Distinct keys in a fixed order.

    Attributes:
        texts: The keys.
        tokens: Tokens of each as it stands in the prompt, led by a space; none holds the terminator.
        real: How many of them, from the start, come from the conversations.
    """

    texts: Sequence[str]
    tokens: Sequence[Tokens]
    real: int

    def first(self, count: int) -> KeySet:
        """The first ``count`` keys."""
        return KeySet(self.texts[:count], self.tokens[:count], min(self.real, count))

    def __len__(self) -> int:
        return len(self.texts)


def real_keys(conversations: Sequence[Sequence[MemoryEntry]]) -> list[str]:
    """Every key that accommodation takes from the entries' own words, distinct, in a seeded order."""
    found = {
        phrase.key: None
        for turns in conversations
        for entry in turns
        for phrase in extract_phrases(entry.content, speaker=entry.speaker)
    }
    keys = sorted(found)
    return [keys[at] for at in np.random.default_rng(_SEED).permutation(len(keys))]


def synthetic_keys(real: Sequence[str]) -> Iterator[list[str]]:
    """Phrases recombined from the words of real keys, chunk by chunk, without end; repeats are the caller's to drop.

    A word is as frequent as among the real keys. So is a length, of two words or more: every single word that could
    be drawn is within the real keys, and most of these are keys already.
    """
    random = np.random.default_rng(_SEED + 1)
    words = np.array([word for key in real for word in key.split()])
    lengths = np.array([len(key.split()) for key in real])
    lengths = lengths[lengths > 1]
    while True:
        counts = random.choice(lengths, size=_CHUNK)
        drawn = iter(random.choice(words, size=int(counts.sum())).tolist())
        yield [" ".join(islice(drawn, count)) for count in counts.tolist()]


def build_keys(conversations: Sequence[Sequence[MemoryEntry]], decoder: ConceptDecoder, count: int) -> KeySet:
    """The first ``count`` keys, real ones first; those that the decoder cannot spell are left out.

    Raises:
        InvalidInputError: if the conversations have too few words for so many.
    """
    real = real_keys(conversations)
    texts: dict[str, None] = {}
    tokens: list[Tokens] = []

    def take(candidates: Sequence[str]) -> int:
        new = [key for key in dict.fromkeys(candidates) if key not in texts and "," not in key][: count - len(texts)]
        spelled = [
            (key, ids)
            for key, ids in zip(new, decoder.encode_keys(new), strict=True)
            if ids is not None and decoder.terminator not in ids
        ]
        texts.update(dict.fromkeys(key for key, _ in spelled))
        tokens.extend(ids for _, ids in spelled)
        return len(spelled)

    for start in range(0, len(real), _CHUNK):
        take(real[start : start + _CHUNK])
    from_conversations = len(texts)
    barren = 0
    for chunk in synthetic_keys(real):
        if len(texts) >= count:
            break
        barren = 0 if take(chunk) else barren + 1
        if barren == _PATIENCE:
            raise InvalidInputError(f"the conversations give {len(texts)} keys, not {count}: pass a larger file")
    return KeySet(list(texts), tokens, from_conversations)
