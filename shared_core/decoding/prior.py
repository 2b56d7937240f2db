"""Neutral log-probabilities of a trie: the query-free half of calibration and look-ahead."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shared_core.schema import ROOT, Trie

FloatArray: TypeAlias = NDArray[np.float32]

Score: TypeAlias = Literal["base", "schema"]
"""``base``: cumulative ``log P_θ``. ``schema``: cumulative ``log P_S`` (Eq. 6), renormalised over what the
trie allows, so that a forced token costs nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Prior:
    """How likely a trie's keys are under a neutral prompt. Natural logarithms throughout.

    Attributes:
        prefix: Cumulative log-probability of each node's prefix, shape (nodes,).
        total: Log-probability of each key with its terminator, shape (keys,).
        best: Largest ``total`` among the keys at or below each node, shape (nodes,).
    """

    prefix: FloatArray
    total: FloatArray
    best: FloatArray


def build_prior(trie: Trie, token: FloatArray, end: FloatArray, score: Score = "base") -> Prior:
    """Sum and maximise neutral log-probabilities over a trie.

    Args:
        trie: The trie.
        token: ``log P_θ`` of each node's token after its prefix, shape (nodes,); the root's is ignored.
        end: ``log P_θ`` of the terminator after each key, shape (keys,).
        score: Which of the two scores the prior is for.
    """
    step = token.astype(np.float64)
    step[ROOT] = 0.0
    last = end.astype(np.float64)
    if score == "schema" and trie.key_count:
        normaliser = _sibling_normaliser(trie, step, last)
        step[1:] -= normaliser[trie.parent[1:]]
        last -= normaliser[trie.end]
    prefix = step
    for low, high in _levels(trie)[1:]:
        prefix[low:high] += prefix[trie.parent[low:high]]
    total = prefix[trie.end] + last
    best = below(trie, total, np.maximum)
    return Prior(prefix.astype(np.float32), total.astype(np.float32), best)


def _levels(trie: Trie) -> list[tuple[int, int]]:
    return list(itertools.pairwise(trie.levels.tolist()))


def _sibling_normaliser(trie: Trie, step: NDArray[np.float64], last: NDArray[np.float64]) -> NDArray[np.float64]:
    """``log Σ P_θ`` over everything that may follow each node, the terminator included, shape (nodes,)."""
    highest = np.full(trie.node_count, -np.inf)
    np.maximum.at(highest, trie.parent[1:], step[1:])
    np.maximum.at(highest, trie.end, last)
    mass = np.zeros(trie.node_count)
    np.add.at(mass, trie.parent[1:], np.exp(step[1:] - highest[trie.parent[1:]]))
    np.add.at(mass, trie.end, np.exp(last - highest[trie.end]))
    normaliser: NDArray[np.float64] = np.log(mass) + highest
    return normaliser


def below(trie: Trie, values: NDArray[np.floating], extreme: np.ufunc) -> FloatArray:
    """Largest (``np.maximum``) or smallest (``np.minimum``) value of the keys at or below each node, shape (nodes,)."""
    result = np.full(trie.node_count, -np.inf if extreme is np.maximum else np.inf, dtype=np.float32)
    result[trie.end] = values
    for low, high in reversed(_levels(trie)[1:]):
        extreme.at(result, trie.parent[low:high], result[low:high])
    return result
