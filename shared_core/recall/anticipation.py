"""What the model expects of a query against what it expects of the entries.

After the prompt, a model says with its first token what a concept of a text would begin with, whether the text has that
word or not. Two texts that make it expect the same are about the same. Most of what it expects it expects of any text
of this memory, so a token counts by how much likelier than on the average of the entries it is.

The idea is that of PromptReps (Zhuang et al., 2024, arXiv 2404.18424), whose sparse half is the logits after a prompt
for one word; here they are lifted over the memory's average, and come with the reading that assimilation needs anyway.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shared_core.decoding import KeyVoice
from shared_core.store import Anticipation, Anticipations, NamespaceState, Store

Floats = NDArray[np.float64]

# Added to every mean, and about the share of one token in a vocabulary: of a token that is less likely than by chance
# it says nothing that one entry expects it and others do not.
_NEGLIGIBLE = 3e-5


@dataclass(frozen=True, slots=True, eq=False)
class AnticipationIndex:
    """The anticipations of all entries, ready to be compared with a query's.

    Attributes:
        columns: The anticipations.
        mean: Mean probability of each token over the entries, and a little more, shape (largest token + 1,).
        lifts: How much likelier than that each entry makes its tokens, in nats, 0 where it does not, in the order of
            ``columns.tokens``.
        norms: Length of each entry's lifts as a vector, shape (entries of ``columns``,).
    """

    columns: Anticipations
    mean: Floats
    lifts: Floats
    norms: Floats

    @classmethod
    def build(cls, columns: Anticipations) -> AnticipationIndex:
        """Index the anticipations of a memory."""
        counted = max(len(columns.entry), 1)
        total = np.bincount(columns.tokens, weights=np.exp(columns.logprobs.astype(np.float64)))
        mean = total / counted + _NEGLIGIBLE
        lifts = _lifts(columns.logprobs, mean[columns.tokens])
        norms = np.sqrt(_sums(lifts * lifts, columns.starts))
        return cls(columns, mean, lifts, norms)

    def similarities(self, query: Anticipation, entries: int) -> Floats:
        """Cosine of the query's lifts and each entry's, in [0, 1], shape (entries,); 0 where nothing is known."""
        found = np.zeros(entries)
        known = query.tokens < len(self.mean)
        mean = np.full(len(query.tokens), _NEGLIGIBLE)
        mean[known] = self.mean[query.tokens[known]]
        lifts = _lifts(query.logprobs, mean)
        length = float(np.sqrt((lifts * lifts).sum()))
        if not length:
            return found
        by_token = np.zeros(len(self.mean))
        by_token[query.tokens[known]] = lifts[known]
        products = _sums(by_token[self.columns.tokens] * self.lifts, self.columns.starts)
        found[self.columns.entry] = products / (np.where(self.norms > 0, self.norms, 1.0) * length)
        return found


class FollowedAnticipations:
    """The index of one memory and model, kept up to date with what is stored. Safe for threads.

    Args:
        store: The store.
        namespace: Which memory of it.
        voice: Gives the model's knowledge of keys; called only when the index is asked for.
    """

    def __init__(self, store: Store, namespace: tuple[str, ...], voice: Callable[[], KeyVoice]) -> None:
        self._store = store
        self._namespace = namespace
        self._voice = voice
        self._lock = threading.Lock()
        self._index: AnticipationIndex | None = None

    def current(self, state: NamespaceState) -> AnticipationIndex:
        """The index for a state."""
        fingerprint = self._voice().decoder.fingerprint
        with self._lock:
            known = None if self._index is None else self._index.columns
            if self._index is None or known is None or known.generation != state.generation:
                columns = self._store.load_anticipations(self._namespace, fingerprint, state, known)
                self._index = AnticipationIndex.build(columns)
            return self._index

    def drop(self) -> None:
        """Let nothing of what was erased live on in this process."""
        with self._lock:
            self._index = None


def _lifts(logprobs: NDArray[np.float32], mean: Floats) -> Floats:
    """How much likelier than the mean some tokens are, in nats, 0 where they are not."""
    lifts: Floats = np.maximum(logprobs - np.log(mean), 0.0)
    return lifts


def _sums(values: Floats, starts: NDArray[np.int64]) -> Floats:
    """The sum of each row's values, shape (rows,)."""
    ends = np.concatenate([np.zeros(1), np.cumsum(values)])
    sums: Floats = ends[starts[1:]] - ends[starts[:-1]]
    return sums
