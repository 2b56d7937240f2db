"""What one model knows of a memory's keys: how they are spelled in tokens, and how likely they are anyway."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shared_core.decoding.decoder import ConceptDecoder, gather_scores
from shared_core.decoding.prior import FloatArray, Prior, Score, build_prior
from shared_core.schema import Tokens, Trie, build_trie

# Stand-ins for neutral log-probabilities that were not computed yet: the means of English phrases under the
# embedded model for a first token, a later token, and the terminator.
_UNKNOWN_FIRST, _UNKNOWN_LATER, _UNKNOWN_END = -10.7, -8.4, -0.5


@dataclass(frozen=True, slots=True, eq=False)
class SpokenSchema:
    """The schema as one model can say it, immutable.

    Attributes:
        trie: Every key that the tokenizer can spell.
        concept: Index, in the keys it was made from, of each key of the trie, shape (trie keys,).
        prior: Neutral log-probabilities, with stand-ins where they were not computed.
        known: Whether each key's are computed, shape (trie keys,).
    """

    trie: Trie
    concept: NDArray[np.int64]
    prior: Prior
    known: NDArray[np.bool_]


class KeyVoice:
    """Token sequences and neutral log-probabilities of keys, computed once and kept. Safe for threads."""

    def __init__(self, decoder: ConceptDecoder) -> None:
        self.decoder = decoder
        self._lock = threading.Lock()
        self._tokens: dict[str, Tokens | None] = {}
        self._neutral: dict[Tokens, FloatArray] = {}

    def learn(self, scores: Mapping[str, tuple[Sequence[int], FloatArray | None]]) -> None:
        """Take over what was computed before: for each key its tokens, and its neutral log-probabilities if any."""
        with self._lock:
            for key, (token_ids, neutral) in scores.items():
                tokens = tuple(int(token) for token in token_ids)
                self._tokens[key] = tokens
                if neutral is not None:
                    self._neutral[tokens] = neutral

    def tokens(self, keys: Sequence[str]) -> list[Tokens | None]:
        """Token sequence of each key; ``None`` where the tokenizer cannot spell it."""
        with self._lock:
            new = [key for key in dict.fromkeys(keys) if key not in self._tokens]
            self._tokens.update(zip(new, self.decoder.encode_keys(new), strict=True))
            return [self._tokens[key] for key in keys]

    def compute(self, keys: Sequence[str]) -> Iterator[dict[str, tuple[Tokens, FloatArray]]]:
        """Compute the missing neutral log-probabilities, group by group, in an order fixed by the keys alone.

        Yields:
            What was just computed, for each key its tokens and their log-probabilities, to be stored.
        """
        spelled = {
            tokens: key
            for key, tokens in zip(keys, self.tokens(keys), strict=True)
            if tokens is not None and tokens not in self._neutral
        }
        for group in self.decoder.neutral_scores(list(spelled)):
            with self._lock:
                self._neutral.update(group)
            yield {spelled[tokens]: (tokens, scores) for tokens, scores in group.items()}

    def known(self, keys: Sequence[str]) -> dict[str, tuple[Tokens, FloatArray]]:
        """Those of the keys that were computed, each with its tokens and their neutral log-probabilities."""
        spelled = zip(keys, self.tokens(keys), strict=True)
        return {
            key: (tokens, self._neutral[tokens])
            for key, tokens in spelled
            if tokens is not None and tokens in self._neutral
        }

    def missing(self, keys: Sequence[str]) -> int:
        """How many of the keys have no neutral log-probabilities yet."""
        return sum(tokens is not None and tokens not in self._neutral for tokens in self.tokens(keys))

    def speak(self, keys: Sequence[str], score: Score) -> SpokenSchema:
        """The schema of these keys, as the model can say it."""
        spelled = [(concept, tokens) for concept, tokens in enumerate(self.tokens(keys)) if tokens is not None]
        trie = build_trie([tokens for _, tokens in spelled])
        found = [self._neutral.get(tokens) for _, tokens in spelled]
        scores = [
            _stand_in(len(tokens)) if neutral is None else neutral
            for neutral, (_, tokens) in zip(found, spelled, strict=True)
        ]
        return SpokenSchema(
            trie,
            np.array([concept for concept, _ in spelled], dtype=np.int64),
            build_prior(trie, *gather_scores(trie, scores), score),
            np.array([neutral is not None for neutral in found], dtype=bool),
        )


def _stand_in(length: int) -> FloatArray:
    scores = np.full(length + 1, _UNKNOWN_LATER, dtype=np.float32)
    scores[0], scores[-1] = _UNKNOWN_FIRST, _UNKNOWN_END
    return scores
