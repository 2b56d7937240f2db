"""What one model knows of a memory's keys: how they are spelled in tokens, and how likely they are anyway."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence

from shared_core.decoding.columns import KeyColumns
from shared_core.decoding.decoder import ConceptDecoder
from shared_core.decoding.prior import FloatArray, Score
from shared_core.decoding.spoken import SpokenSchema
from shared_core.schema import Tokens


class KeyVoice:
    """Token sequences and neutral log-probabilities of keys, computed once and kept. Safe for threads.

    It keeps what it was asked for, key by key; a whole memory's keys go from the store into a
    :meth:`SpokenSchema.from_columns` without it.
    """

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

    def forget(self, keys: Sequence[str] | None = None) -> None:
        """Let go of what is known of some keys, or of all: once it is stored, or when they were erased."""
        with self._lock:
            for key in list(self._tokens) if keys is None else keys:
                tokens = self._tokens.pop(key, None)
                if tokens is not None:
                    self._neutral.pop(tokens, None)

    def tokens(self, keys: Sequence[str]) -> list[Tokens | None]:
        """Token sequence of each key; ``None`` where the tokenizer cannot spell it."""
        with self._lock:
            new = [key for key in dict.fromkeys(keys) if key not in self._tokens]
            self._tokens.update(zip(new, self.decoder.encode_keys(new), strict=True))
            return [self._tokens[key] for key in keys]

    def weigh(self, keys: Sequence[str]) -> Iterator[dict[str, tuple[Tokens, FloatArray]]]:
        """Every key that the model can say with its neutral log-probabilities: what is known, then what is computed.

        Computes in groups, in an order fixed by the keys alone. Nothing has to be looked up afterwards, when another
        thread may have let :meth:`forget` it.

        Yields:
            For each key its tokens and their log-probabilities: first of all that were known, then of each group, to be
            stored.
        """
        known = self.known(keys)
        if known:
            yield known
        rest = [key for key in keys if key not in known]
        spelled = {tokens: key for key, tokens in zip(rest, self.tokens(rest), strict=True) if tokens is not None}
        for group in self.decoder.neutral_scores(list(spelled)):
            with self._lock:
                self._neutral.update(group)
            yield {spelled[tokens]: (tokens, scores) for tokens, scores in group.items()}

    def known(self, keys: Sequence[str]) -> dict[str, tuple[Tokens, FloatArray]]:
        """Those of the keys that were computed, each with its tokens and their neutral log-probabilities."""
        spelled = zip(keys, self.tokens(keys), strict=True)
        with self._lock:
            return {
                key: (tokens, self._neutral[tokens])
                for key, tokens in spelled
                if tokens is not None and tokens in self._neutral
            }

    def columns(self, keys: Sequence[str]) -> KeyColumns:
        """The keys as the model spells them, with what is known of them: what a :class:`SpokenSchema` is made from."""
        known = self.known(keys)
        return KeyColumns.of(self.tokens(keys), [known[key][1] if key in known else None for key in keys])

    def speak(self, keys: Sequence[str], score: Score) -> SpokenSchema:
        """The schema of these keys, as the model can say it."""
        return SpokenSchema.from_columns(self.columns(keys), score)
