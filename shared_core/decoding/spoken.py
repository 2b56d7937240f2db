"""The schema as one model can say it: keys in tokens, and how likely they are anyway. It grows with the memory."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shared_core.decoding.columns import KeyColumns
from shared_core.decoding.prior import FloatArray, Prior, PriorChange, Score, build_prior, carry_over, update_prior
from shared_core.errors import InvalidInputError
from shared_core.schema import IntArray, Ints, Trie, build_trie_from_arrays, extend_trie, node_origins

# Stand-ins for neutral log-probabilities that were not computed yet: the means of English phrases under the
# embedded model for a first token, a later token, and the terminator.
UNKNOWN_FIRST, UNKNOWN_LATER, UNKNOWN_END = -10.7, -8.4, -0.5

_NONE = np.iinfo(np.int32).max


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """``log P_θ`` under a neutral prompt, laid out over a trie.

    Attributes:
        token: Of the token into each node, shape (node limit,); a stand-in where no known key passes through.
        source: The first of the weighed keys that pass through each node, which ``token`` is from, ``_NONE`` where
            there is none, shape (node limit,).
        end: Of the terminator after each key, shape (key limit,).
    """

    token: FloatArray
    source: IntArray
    end: FloatArray

    @classmethod
    def unwritten(cls, trie: Trie) -> Weights:
        """Those of a trie of which nothing is known yet: not a number."""
        nodes = np.full(trie.node_limit, np.nan, dtype=np.float32)
        return cls(
            nodes, np.full(trie.node_limit, _NONE, dtype=np.int32), np.full(trie.key_limit, np.nan, dtype=np.float32)
        )

    def grown(self, trie: Trie, origins: Ints | None) -> Weights:
        """A copy for a later trie, see :func:`~shared_core.schema.node_origins`; not a number at what is new."""
        return Weights(
            carry_over(self.token, origins, trie.node_limit, np.nan),
            carry_over(self.source, origins, trie.node_limit, _NONE),
            carry_over(self.end, None, trie.key_limit, np.nan),
        )

    def lay(self, trie: Trie, keys: Ints, neutral: FloatArray, known: NDArray[np.bool_]) -> PriorChange:
        """Write the log-probabilities of some keys in place.

        What was weighed replaces stand-ins, and of several weighed keys the first counts, so that the result does not
        depend on the order in which they come: the same prefix comes out a little different in another batch.

        Args:
            trie: The trie.
            keys: The keys, ascending, shape (n,).
            neutral: As in :class:`KeyColumns`, for these keys.
            known: The same.

        Returns:
            What has changed.

        Raises:
            InvalidInputError: if there are not as many log-probabilities as the keys take.
        """
        nodes, starts = trie.paths(keys)
        if len(neutral) != len(nodes) + len(keys):
            raise InvalidInputError(f"{len(nodes) + len(keys)} log-probabilities are needed, not {len(neutral)}")
        last = np.zeros(len(neutral), dtype=bool)
        last[starts[1:] + np.arange(len(keys))] = True
        first = np.zeros(len(nodes), dtype=bool)
        first[starts[:-1]] = True

        new = np.flatnonzero(np.isnan(self.token[nodes]))
        self.token[nodes[new]] = np.where(first[new], UNKNOWN_FIRST, UNKNOWN_LATER)
        # Backwards: of several keys that pass through a node the last one written counts, which is to be the first.
        source = np.repeat(keys, np.diff(starts))
        better = np.flatnonzero(np.repeat(known, np.diff(starts)) & (source < self.source[nodes]))[::-1]
        self.token[nodes[better]] = neutral[~last][better]
        self.source[nodes[better]] = source[better]
        self.end[keys] = np.where(known, neutral[last], UNKNOWN_END)
        touched = np.zeros(trie.node_limit, dtype=bool)
        touched[nodes[new]] = touched[nodes[better]] = True
        changed = np.flatnonzero(touched)
        return PriorChange(changed, keys)


@dataclass(frozen=True, slots=True, eq=False)
class SpokenSchema:
    """The schema as one model can say it, immutable.

    Attributes:
        trie: Every key that the tokenizer can spell.
        concept: Index, in the keys it was made from, of each key of the trie, shape (trie keys,).
        prior: Neutral log-probabilities, with stand-ins where they were not computed.
        known: Whether each key's are computed, shape (trie keys,).
        concepts: Number of keys it was made from.
        weights: What the prior sums up.
        score: Which of the two scores the prior is for.
    """

    trie: Trie
    concept: Ints
    prior: Prior
    known: NDArray[np.bool_]
    concepts: int
    weights: Weights
    score: Score

    @classmethod
    def from_columns(cls, columns: KeyColumns, score: Score) -> SpokenSchema:
        """The schema of some keys.

        Raises:
            InvalidInputError: if two keys have the same tokens.
        """
        concept = np.flatnonzero(columns.lengths)
        sayable = columns.take(columns.lengths > 0)
        trie = build_trie_from_arrays(sayable.tokens, sayable.starts)
        weights = Weights.unwritten(trie)
        weights.lay(trie, np.arange(len(sayable)), sayable.neutral, sayable.known)
        prior = build_prior(trie, weights.token, weights.end, score)
        return cls(trie, concept, prior, sayable.known, len(columns), weights, score)

    def extended(self, columns: KeyColumns) -> SpokenSchema:
        """The schema with further keys, which follow those it was made from: as made anew from all of them.

        Takes time for the new keys, for what lies below a first token that had a stand-in, and for copying arrays;
        under the score ``schema`` the prior is built anew.

        Raises:
            InvalidInputError: if two keys have the same tokens.
        """
        concept = np.append(self.concept, self.concepts + np.flatnonzero(columns.lengths))
        sayable = columns.take(columns.lengths > 0)
        trie = extend_trie(self.trie, sayable.tokens, sayable.starts)
        keys = self.trie.key_limit + np.arange(len(sayable))
        prior, weights = self._weigh(trie, keys, sayable.neutral, sayable.known)
        known = np.append(self.known, sayable.known)
        return SpokenSchema(trie, concept, prior, known, self.concepts + len(columns), weights, self.score)

    def learned(self, keys: Ints, neutral: FloatArray) -> SpokenSchema:
        """The schema with log-probabilities computed meanwhile, in place of stand-ins.

        Args:
            keys: Distinct keys of the trie, ascending, shape (n,).
            neutral: As in :class:`KeyColumns`, for these keys.

        Raises:
            InvalidInputError: if there are not as many log-probabilities as the keys take.
        """
        prior, weights = self._weigh(self.trie, keys, neutral, np.ones(len(keys), dtype=bool))
        known = self.known.copy()
        known[keys] = True
        return replace(self, prior=prior, weights=weights, known=known)

    def _weigh(self, trie: Trie, keys: Ints, neutral: FloatArray, known: NDArray[np.bool_]) -> tuple[Prior, Weights]:
        origins = node_origins(self.trie, trie)
        weights = self.weights.grown(trie, origins)
        change = weights.lay(trie, keys, neutral, known)
        if self.score == "schema":
            return build_prior(trie, weights.token, weights.end, self.score), weights
        return update_prior(self.prior, trie, origins, change, weights.token, weights.end), weights
