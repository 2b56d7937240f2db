"""The prefix trie: which token may follow which, and nothing else.

A trie is a compact layout and, while it grows, a small overlay: for each node that has changed since the layout was
made, a twig with all that is true of the node now. Both are immutable, so readers need no lock and writers share
with older tries whatever has not changed.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shared_core.errors import InvalidInputError
from shared_core.schema.layout import NO_KEY, NO_NODE, ROOT, IntArray, Layout
from shared_core.schema.marks import Ints

Tokens: TypeAlias = tuple[int, ...]
Level: TypeAlias = tuple[Ints, Ints, Ints, Ints]
"""Nodes of one level, shape (n,), and their children: where each node's start, shape (n + 1,), the children and the
tokens into them, shape (m,) each."""

# The share of a trie's nodes up to which looking up parents is quicker than deriving those of all nodes.
_FEW = 1 / 16
_NOTHING: Ints = np.zeros(0, dtype=np.int64)


class Twig(NamedTuple):
    """A node that the layout does not hold, or no longer as it is.

    Attributes:
        above: Its parent; ``NO_NODE`` at the root.
        token: Token on the edge into it.
        child: Its children, shape (m,).
        tokens: The tokens into these, ascending, shape (m,).
        key: The key that ends at it, or ``NO_KEY``.
    """

    above: int
    token: int
    child: Ints
    tokens: Ints
    key: int


@dataclass(frozen=True, slots=True)
class Overlay:
    """What has changed since the layout was made.

    Attributes:
        twigs: The changed nodes. New ones are numbered from the layout's node count up.
        ends: Node at which each key ends that is not as in the layout; ``NO_NODE`` for a deleted one.
        node_limit: One more than the largest node number in use.
        key_limit: One more than the largest key number ever in use.
        node_count: Number of nodes, the root included.
        key_count: Number of keys.
        longest: No key has more tokens.
    """

    twigs: Mapping[int, Twig]
    ends: Mapping[int, int]
    node_limit: int
    key_limit: int
    node_count: int
    key_count: int
    longest: int


class Trie:
    """An immutable prefix trie over token ids; safe to read from any number of threads.

    Nodes and keys are numbered. Arrays by node have :attr:`node_limit` places and arrays by key :attr:`key_limit`,
    which is as many as there are until keys are deleted: numbers are not given twice.
    """

    __slots__ = ("_changed", "_ended", "layout", "overlay")

    def __init__(self, layout: Layout, overlay: Overlay | None = None) -> None:
        """Use :func:`build_trie` or :class:`PrefixTrie`."""
        self.layout = layout
        self.overlay = overlay or Overlay(
            {}, {}, layout.node_count, len(layout.end), layout.node_count, layout.key_count, layout.longest
        )
        self._changed: Ints | None = None
        self._ended: tuple[Ints, Ints] | None = None

    @property
    def node_count(self) -> int:
        """Number of nodes, the root included."""
        return self.overlay.node_count

    @property
    def node_limit(self) -> int:
        """One more than the largest node number in use."""
        return self.overlay.node_limit

    @property
    def key_count(self) -> int:
        """Number of keys."""
        return self.overlay.key_count

    @property
    def key_limit(self) -> int:
        """One more than the largest key number ever in use."""
        return self.overlay.key_limit

    @property
    def longest(self) -> int:
        """No key has more tokens; exact unless keys were deleted."""
        return self.overlay.longest

    @property
    def nbytes(self) -> int:
        """Bytes held: the layout's arrays, and about what the overlay takes."""
        twigs = self.overlay.twigs.values()
        objects = [*twigs, *(part for twig in twigs for part in (twig.child, twig.tokens))]
        tables = sys.getsizeof(self.overlay.twigs) + sys.getsizeof(self.overlay.ends)
        return self.layout.nbytes + tables + sum(map(sys.getsizeof, objects))

    def allowed_tokens(self, node: int) -> NDArray[np.integer]:
        """Tokens that may follow the prefix at ``node``, ascending, shape (children,).

        Not to be written to, and of the width they are stored in: 16 bits overflow, so convert before calculating.
        """
        twig = self.overlay.twigs.get(node)
        if twig is not None:
            return twig.tokens
        low, high = self.layout.span(node)
        return self.layout.token[low:high]

    def child(self, node: int, token: int) -> int | None:
        """The node reached from ``node`` by ``token``, or ``None`` when that leaves the schema."""
        twig = self.overlay.twigs.get(node)
        if twig is not None:
            at = int(np.searchsorted(twig.tokens, token))
            return int(twig.child[at]) if at < len(twig.tokens) and twig.tokens[at] == token else None
        return self.layout.child(node, token)

    def key_at(self, node: int) -> int:
        """The key that ends at ``node``, or ``NO_KEY``."""
        twig = self.overlay.twigs.get(node)
        return self.layout.key_at(node) if twig is None else twig.key

    def walk(self, tokens: Iterable[int]) -> int | None:
        """The node of a prefix, or ``None`` when no key starts with it."""
        node = ROOT
        for token in tokens:
            below = self.child(node, token)
            if below is None:
                return None
            node = below
        return node

    def find(self, tokens: Sequence[int]) -> int | None:
        """The key made of exactly these tokens, or ``None``."""
        node = self.walk(tokens)
        key = NO_KEY if node is None else self.key_at(node)
        return None if key == NO_KEY else key

    def path(self, node: int) -> Tokens:
        """The tokens from the root to ``node``."""
        tokens: list[int] = []
        while node != ROOT:
            twig = self.overlay.twigs.get(node)
            tokens.append(self.layout.token.item(node) if twig is None else twig.token)
            node = int(self.layout.parents(np.array([node]))[0]) if twig is None else twig.above
        return tuple(reversed(tokens))

    def tokens_of(self, key: int) -> Tokens:
        """The tokens of a key.

        Raises:
            InvalidInputError: if no key has this number.
        """
        node = int(self.ends(np.array([key]))[0]) if 0 <= key < self.key_limit else NO_NODE
        if node == NO_NODE:
            raise InvalidInputError(f"no key of the trie has the number {key}")
        return self.path(node)

    def __iter__(self) -> Iterator[Tokens]:
        """The token sequences of all keys, by number."""
        _, flat, starts = self.columns()
        tokens, bounds = flat.tolist(), starts.tolist()
        return (tuple(tokens[low:high]) for low, high in itertools.pairwise(bounds))

    def children(self, nodes: NDArray[np.integer]) -> tuple[Ints, Ints, Ints]:
        """What may follow each of some nodes, shape (n,).

        Returns:
            Where the children of each node start in what follows, shape (n + 1,); the children, and the tokens into
            them, ascending for each node, shape (m,) each.
        """
        places: Ints = nodes.astype(np.int64)
        rows, twigs = self._grown_over(places)
        places[rows] = ROOT
        low, count = self.layout.spans(places)
        low[rows] = 0
        count[rows] = [len(twig.child) for twig in twigs]
        start = np.zeros(len(places) + 1, dtype=np.int64)
        np.cumsum(count, out=start[1:])
        child = np.repeat(low - start[:-1], count)
        child += np.arange(len(child))
        token = self.layout.token.take(child, mode="clip").astype(np.int64)
        for row, twig in zip(rows, twigs, strict=True):
            child[start[row] : start[row + 1]] = twig.child
            token[start[row] : start[row + 1]] = twig.tokens
        return start, child, token

    def keys_at(self, nodes: NDArray[np.integer]) -> Ints:
        """The key that ends at each node, ``NO_KEY`` where none does, shape (n,)."""
        places: Ints = nodes.astype(np.int64)
        rows, twigs = self._grown_over(places)
        places[rows] = ROOT
        keys = self.layout.keys_at(places)
        keys[rows] = [twig.key for twig in twigs]
        return keys

    def parents(self, nodes: NDArray[np.integer]) -> Ints:
        """Parent of each node, ``NO_NODE`` of the root, shape (n,)."""
        places: Ints = nodes.astype(np.int64)
        parents = np.full(len(places), NO_NODE, dtype=np.int64)
        rows, twigs = self._grown_over(places)
        compact = places != ROOT
        compact[rows] = False
        parents[compact] = self.layout.parents(places[compact])
        parents[rows] = [twig.above for twig in twigs]
        return parents

    def ends(self, keys: NDArray[np.integer] | None = None) -> Ints:
        """Node at which each key ends, ``NO_NODE`` for numbers without a key; all numbers if none are given."""
        if keys is None:
            ends = np.full(self.key_limit, NO_NODE, dtype=np.int64)
            ends[: len(self.layout.end)] = self.layout.end
            if self.overlay.ends:
                changed, nodes = self._ends_changed()
                ends[changed] = nodes
            return ends
        wanted: Ints = keys.astype(np.int64)
        if not self.overlay.ends:
            held: Ints = self.layout.end[wanted].astype(np.int64)
            return held
        changed, nodes = self._ends_changed()
        at = np.minimum(np.searchsorted(changed, wanted), len(changed) - 1)
        there = changed[at] == wanted
        found = np.where(there, nodes[at], NO_NODE)
        found[~there] = self.layout.end[wanted[~there]]
        return found

    def levels(self) -> Iterator[Level]:
        """The trie from the root down, level by level."""
        nodes = np.array([ROOT])
        while len(nodes):
            start, child, token = self.children(nodes)
            yield nodes, start, child, token
            nodes = child

    def columns(self) -> tuple[Ints, IntArray, Ints]:
        """All keys without a Python object for each: what :func:`build_trie_from_arrays` takes.

        Returns:
            The numbers of the keys, ascending, shape (keys,); their tokens one after the other, shape (tokens,); and
            where each key's start, shape (keys + 1,).
        """
        ends = self.ends()
        keys = np.flatnonzero(ends != NO_NODE)
        nodes, starts = self.paths(keys)
        into = np.zeros(self.node_limit, dtype=np.int32)
        for _, _, child, token in self.levels():
            into[child] = token
        return keys, into[nodes], starts

    def paths(self, keys: Ints) -> tuple[Ints, Ints]:
        """The nodes on the way to each of some keys, one for each token.

        Returns:
            The nodes of the first key, from the top to its end, then those of the next, shape (tokens,); and where
            each key's start, and the number of tokens, shape (keys + 1,).
        """
        above = self._all_parents() if len(keys) > _FEW * self.node_limit else None
        steps = []
        rows, node = np.arange(len(keys)), self.ends(keys)
        while len(rows):
            steps.append((rows, node))
            node = self.parents(node) if above is None else above[node]
            alive = node != ROOT
            rows, node = rows[alive], node[alive]
        starts = np.zeros(len(keys) + 1, dtype=np.int64)
        for rows, _ in steps:  # no key is twice in a step
            starts[rows + 1] += 1
        np.cumsum(starts, out=starts)
        nodes = np.empty(int(starts[-1]), dtype=np.int64)
        for back, (rows, node) in enumerate(steps, start=1):
            nodes[starts[rows + 1] - back] = node
        return nodes, starts

    def _all_parents(self) -> Ints:
        parents = np.full(self.node_limit, NO_NODE, dtype=np.int64)
        for nodes, start, child, _ in self.levels():
            parents[child] = np.repeat(nodes, np.diff(start))
        return parents

    def _grown_over(self, nodes: Ints) -> tuple[Ints, list[Twig]]:
        """Which of the nodes have a twig, as indices, and the twigs."""
        twigs = self.overlay.twigs
        if not twigs:
            return _NOTHING, []
        if self._changed is None:  # made by the first reader that needs it: most tries on a writer's way have none
            self._changed = np.sort(np.fromiter(twigs, dtype=np.int64, count=len(twigs)))
        at = np.searchsorted(self._changed, nodes)
        rows = np.flatnonzero(self._changed.take(at, mode="clip") == nodes)
        return rows, [twigs[node] for node in nodes[rows].tolist()]

    def _ends_changed(self) -> tuple[Ints, Ints]:
        if self._ended is None:
            ends = self.overlay.ends
            keys = np.fromiter(ends, dtype=np.int64, count=len(ends))
            order = np.argsort(keys)
            self._ended = keys[order], np.fromiter(ends.values(), dtype=np.int64, count=len(ends))[order]
        return self._ended
