"""The keys as the model can say them: their trie, and how likely they are anyway (the prior of the search).

Neutral log-probabilities cost a forward pass over all keys, once for a schema. They are kept on disk, and computed
for as many keys as asked for; the rest gets the project's stand-ins, as in a memory that has just been loaded.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.decoding.keys import KeySet
from shared_core.decoding import ConceptDecoder, FloatArray, KeyVoice, SpokenSchema
from shared_core.schema import Tokens

# Groups of keys after which what was computed is written down.
_GROUPS_SAVED = 20


@dataclass(frozen=True, eq=False)
class Schema:
    """One key set, ready to be decoded over.

    Attributes:
        keys: The keys; key ``i`` of the trie is ``keys.texts[i]``.
        spoken: Their trie and prior.
        seconds: What building both took, the neutral log-probabilities not included.
    """

    keys: KeySet
    spoken: SpokenSchema
    seconds: float

    @property
    def longest(self) -> int:
        """Tokens of the longest key."""
        return max(map(len, self.keys.tokens))

    @property
    def known(self) -> float:
        """Share of keys whose neutral log-probabilities are computed."""
        return float(self.spoken.known.mean())


class NeutralScores:
    """Neutral log-probabilities, on disk and in memory.

    Args:
        decoder: The decoder they belong to.
        folder: Where they are kept.
    """

    def __init__(self, decoder: ConceptDecoder, folder: Path) -> None:
        self._decoder = decoder
        self._file = folder / f"neutral-{decoder.fingerprint}.npz"
        self.scores: dict[Tokens, FloatArray] = {}
        self.seconds = 0.0
        """What computing them took in all, in this run or an earlier one."""
        if self._file.is_file():
            with np.load(self._file) as stored:
                self.seconds = float(stored["seconds"])
                self.scores = _unpack(stored["lengths"], stored["tokens"], stored["scores"])

    @property
    def count(self) -> int:
        """Keys that are computed."""
        return len(self.scores)

    def compute(self, keys: Sequence[Tokens], progress: Callable[[int], None]) -> None:
        """Compute those that are missing; an interrupted run goes on where it was.

        Args:
            keys: Tokens of the keys.
            progress: Told the number of keys done.
        """
        missing = [tokens for tokens in keys if tokens not in self.scores]
        progress(len(keys) - len(missing))
        start = time.perf_counter()
        for number, group in enumerate(self._decoder.neutral_scores(missing), start=1):
            self.scores.update(group)
            progress(len(group))
            if number % _GROUPS_SAVED == 0:
                start = self._save(start)
        if missing:
            self._save(start)

    def _save(self, start: float) -> float:
        now = time.perf_counter()
        self.seconds += now - start
        self._file.parent.mkdir(parents=True, exist_ok=True)
        working = self._file.with_suffix(f".{os.getpid()}.npz")
        np.savez(
            working,
            seconds=self.seconds,
            lengths=np.fromiter(map(len, self.scores), dtype=np.int64, count=len(self.scores)),
            tokens=np.fromiter((token for tokens in self.scores for token in tokens), dtype=np.int32),
            scores=np.concatenate(list(self.scores.values())),
        )
        working.replace(self._file)
        return time.perf_counter()


def _unpack(lengths: np.ndarray, tokens: np.ndarray, scores: np.ndarray) -> dict[Tokens, FloatArray]:
    ends = np.cumsum(lengths)
    # A key has one more score than tokens: the terminator's.
    spelled = np.split(tokens, ends[:-1])
    scored = np.split(scores, (ends + np.arange(1, len(ends) + 1))[:-1])
    return {tuple(key.tolist()): values for key, values in zip(spelled, scored, strict=True)}


def speak(keys: KeySet, neutral: NeutralScores, decoder: ConceptDecoder) -> Schema:
    """Build trie and prior of a key set, with the neutral log-probabilities that there are."""
    voice = KeyVoice(decoder)
    voice.learn(
        {text: (tokens, neutral.scores.get(tokens)) for text, tokens in zip(keys.texts, keys.tokens, strict=True)}
    )
    start = time.perf_counter()
    spoken = voice.speak(keys.texts, "base")
    return Schema(keys, spoken, time.perf_counter() - start)
