"""Neutral log-probabilities of a trie: the query-free half of calibration and look-ahead."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shared_core.schema import NO_KEY, NO_NODE, ROOT, Ints, Level, Trie

FloatArray: TypeAlias = NDArray[np.float32]
_Floats: TypeAlias = NDArray[np.float64]

Score: TypeAlias = Literal["base", "schema"]
"""``base``: cumulative ``log P_θ``. ``schema``: cumulative ``log P_S`` (Eq. 6), renormalised over what the
trie allows, so that a forced token costs nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Prior:
    """How likely a trie's keys are under a neutral prompt. Natural logarithms throughout.

    Places of numbers that no node or key has are of no meaning in ``prefix``, and ``-inf`` in the others until keys
    are deleted.

    Attributes:
        prefix: Cumulative log-probability of each node's prefix, shape (node limit,).
        total: Log-probability of each key with its terminator, shape (key limit,).
        best: Largest ``total`` among the keys at or below each node, shape (node limit,).
    """

    prefix: FloatArray
    total: FloatArray
    best: FloatArray


def build_prior(trie: Trie, token: FloatArray, end: FloatArray, score: Score = "base") -> Prior:
    """Sum and maximise neutral log-probabilities over a trie.

    Args:
        trie: The trie.
        token: ``log P_θ`` of each node's token after its prefix, shape (node limit,); the root's is ignored.
        end: ``log P_θ`` of the terminator after each key, shape (key limit,).
        score: Which of the two scores the prior is for.
    """
    ends = trie.ends()
    live = np.flatnonzero(ends != NO_NODE)
    node = ends[live]
    # Sums for the score "base" keep to the precision they are stored in, so that growth comes to the very same.
    kind = np.float32 if score == "base" else np.float64
    after: NDArray[Any] = np.full(trie.node_limit, -np.inf, dtype=kind)  # of the terminator after each node
    after[node] = end[live]
    prefix: NDArray[Any] = np.zeros(trie.node_limit, dtype=kind)
    levels = list(trie.levels())
    for nodes, start, child, _ in levels:
        step: NDArray[Any] = token[child].astype(kind)
        count = np.diff(start)
        if score == "schema":
            normaliser = _normaliser(step, start, after[nodes])
            step -= np.repeat(normaliser, count)
            after[nodes] -= normaliser
        prefix[child] = np.repeat(prefix[nodes], count) + step
    total = np.full(trie.key_limit, -np.inf, dtype=np.float32)
    total[live] = prefix[node] + after[node]
    return Prior(prefix.astype(np.float32), total, _below(trie, levels, total, np.maximum))


def _normaliser(step: _Floats, start: Ints, last: _Floats) -> _Floats:
    """``log Σ P_θ`` over everything that may follow each node, the terminator included, shape (nodes,)."""
    highest = np.maximum(last, _by_parent(step, start, np.maximum, -np.inf))
    nothing = highest == -np.inf  # only at the root of an empty trie
    highest[nothing] = 0.0
    mass = np.exp(last - highest)
    mass += _by_parent(np.exp(step - np.repeat(highest, np.diff(start))), start, np.add, 0.0)
    mass[nothing] = 1.0
    normaliser: _Floats = np.log(mass) + highest
    return normaliser


def below(trie: Trie, values: NDArray[np.floating], extreme: np.ufunc) -> FloatArray:
    """Largest (``np.maximum``) or smallest (``np.minimum``) value of the keys at or below each node.

    Args:
        trie: The trie.
        values: A value for each key, shape (key limit,).
        extreme: Which of the two.

    Returns:
        Shape (node limit,); infinite where there is no key.
    """
    return _below(trie, list(trie.levels()), values, extreme)


def _below(trie: Trie, levels: list[Level], values: NDArray[np.floating], extreme: np.ufunc) -> FloatArray:
    nothing = -np.inf if extreme is np.maximum else np.inf
    ends = trie.ends()
    live = np.flatnonzero(ends != NO_NODE)
    result = np.full(trie.node_limit, nothing, dtype=np.float32)
    result[ends[live]] = values[live]
    for nodes, start, child, _ in reversed(levels):
        result[nodes] = extreme(result[nodes], _by_parent(result[child], start, extreme, nothing))
    return result


def _by_parent(values: NDArray[np.floating], start: Ints, combine: np.ufunc, nothing: float) -> NDArray[np.floating]:
    """The values of each node's children combined, ``nothing`` where it has none, shape (nodes,)."""
    combined = np.full(len(start) - 1, nothing, dtype=values.dtype)
    parents = np.flatnonzero(start[1:] > start[:-1])
    if len(parents):
        combined[parents] = combine.reduceat(values, start[parents])
    return combined


@dataclass(frozen=True, slots=True, eq=False)
class PriorChange:
    """Which log-probabilities are new or no longer what they were.

    Attributes:
        nodes: Nodes, distinct, shape (n,); every node that an earlier trie did not have must be among them.
        keys: Keys, distinct, shape (m,); every new key must be among them.
    """

    nodes: Ints
    keys: Ints


def carry_over(values: NDArray[Any], origins: Ints | None, limit: int, new: float) -> NDArray[Any]:
    """A copy of an array by number, with ``new`` at numbers that are new.

    ``origins`` is ``None`` if numbers were kept, and otherwise what :func:`~shared_core.schema.node_origins` says.
    """
    if origins is None:
        carried = np.empty(limit, dtype=values.dtype)
        carried[: len(values)] = values
        carried[len(values) :] = new
        return carried
    carried = np.full(limit, new, dtype=values.dtype)
    kept = np.flatnonzero(origins != NO_NODE)
    carried[kept] = values[origins[kept]]
    return carried


def update_prior(
    prior: Prior, after: Trie, origins: Ints | None, change: PriorChange, token: FloatArray, end: FloatArray
) -> Prior:
    """The prior, for the score ``base``, of a trie that has grown: exactly as built anew.

    Takes time for the nodes on the way to what changes and below it, and for copying the arrays.

    Args:
        prior: The prior of a trie.
        after: The same trie, or one with further keys; nothing may have been deleted in between.
        origins: What :func:`~shared_core.schema.node_origins` says of the two.
        change: What is new or different.
        token: As in :func:`build_prior`, for ``after``.
        end: The same.
    """
    prefix = carry_over(prior.prefix, origins, after.node_limit, 0.0)
    best = carry_over(prior.best, origins, after.node_limit, -np.inf)
    total = carry_over(prior.total, None, after.key_limit, -np.inf)
    moved = []
    for nodes in _move_prefixes(after, prefix, change.nodes, token):
        keys = after.keys_at(nodes)
        ended = keys != NO_KEY
        total[keys[ended]] = prefix[nodes[ended]] + end[keys[ended]]
        moved.append(nodes)
    ends = after.ends(change.keys)
    total[change.keys] = prefix[ends] + end[change.keys]
    for nodes in _upwards(after, moved, _by_depth(after, ends)):
        start, child, _ = after.children(nodes)
        keys = after.keys_at(nodes)
        own = np.where(keys == NO_KEY, -np.inf, total.take(keys, mode="clip")).astype(np.float32)
        best[nodes] = np.maximum(own, _by_parent(best[child], start, np.maximum, -np.inf))
    return Prior(prefix, total, best)


def _move_prefixes(trie: Trie, prefix: FloatArray, changed: Ints, token: FloatArray) -> Iterator[Ints]:
    """Set the prefixes of the changed nodes, in place, and of what is below those that moved.

    Yields:
        The nodes concerned, depth by depth from 0.
    """
    by_depth = _by_depth(trie, changed)
    dragged = nothing = changed[:0]
    depth = 0
    while depth < len(by_depth) or len(dragged):
        given = by_depth[depth] if depth < len(by_depth) else nothing
        depth += 1
        nodes = _distinct([given, dragged])
        below = nodes[nodes != ROOT]  # nothing is said before the root
        before = prefix[below]
        prefix[below] = prefix[trie.parents(below)] + token[below]
        yield nodes
        dragged = trie.children(below[prefix[below] != before])[1]


def _by_depth(trie: Trie, nodes: Ints) -> list[Ints]:
    """The nodes of each depth, from the root's, 0, to the deepest."""
    depth = np.zeros(len(nodes), dtype=np.int64)
    alive, above = np.arange(len(nodes)), nodes
    while len(alive):
        inside = above != ROOT
        alive, above = alive[inside], trie.parents(above[inside])
        depth[alive] += 1
    return [nodes[depth == one] for one in range(int(depth.max(initial=0)) + 1)]


def _upwards(trie: Trie, *families: list[Ints]) -> Iterator[Ints]:
    """Nodes given by depth, and all above them, once each, from the deepest to the root."""
    above = np.zeros(0, dtype=np.int64)
    for levels in reversed(list(itertools.zip_longest(*families, fillvalue=above))):
        nodes = _distinct([*levels, above])
        yield nodes
        above = trie.parents(nodes)


def _distinct(parts: list[Ints]) -> Ints:
    """The nodes of all parts once each, ascending; for millions of them much quicker than ``np.unique``."""
    nodes = np.sort(np.concatenate(parts))
    return nodes[np.diff(nodes, prepend=NO_NODE) > 0]
