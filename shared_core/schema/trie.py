"""The prefix trie: which token may follow which, and nothing else.

Three keys, ``new york``, ``new york marathon`` and ``paris``, over word tokens::

    level 0            (0)
                new ┌───┴───┐ paris
    level 1        (1)     (2)■
              york  │
    level 2        (3)■
          marathon  │
    level 3        (4)■                ■ = a key ends here

Nodes are numbered level by level, so the children of a node are consecutive and a node needs one
offset and one token: ``children(v) = first[v] … first[v + 1] - 1``. Siblings are sorted by token.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shared_core.errors import InvalidInputError

IntArray = NDArray[np.int32]
Tokens = tuple[int, ...]

ROOT = 0
NO_KEY = -1


@dataclass(frozen=True, slots=True, eq=False)
class Trie:
    """An immutable prefix trie over token ids; safe to read from any number of threads.

    Attributes:
        first: Offset of each node's first child, shape (nodes + 1,).
        token: Token on the edge into each node, shape (nodes,); -1 at the root.
        parent: Parent of each node, shape (nodes,); -1 at the root.
        key: Key that ends at each node, shape (nodes,); ``NO_KEY`` where none does.
        end: Node at which each key ends, shape (keys,).
        levels: First node of each level, shape (levels + 1,).
    """

    first: IntArray
    token: IntArray
    parent: IntArray
    key: IntArray
    end: IntArray
    levels: IntArray

    @property
    def node_count(self) -> int:
        """Number of nodes, the root included."""
        return len(self.token)

    @property
    def key_count(self) -> int:
        """Number of keys."""
        return len(self.end)

    def allowed_tokens(self, node: int) -> IntArray:
        """Tokens that may follow the prefix at ``node``, ascending, shape (children,)."""
        return self.token[self.first[node] : self.first[node + 1]]

    def children(self, nodes: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """The children of several nodes, one block after the other.

        Returns:
            Where each node's block starts, shape (nodes + 1,); the children; and the tokens into them.
        """
        first = self.first[nodes].astype(np.int64)
        counts = self.first[nodes + 1] - first
        start = np.concatenate([[0], np.cumsum(counts)])
        child = np.arange(start[-1]) + np.repeat(first - start[:-1], counts)
        return start, child, self.token[child].astype(np.int64)

    def keys_at(self, nodes: NDArray[np.integer]) -> NDArray[np.int64]:
        """The key that ends at each node, shape (nodes,); ``NO_KEY`` where none does."""
        keys: NDArray[np.int64] = self.key[nodes].astype(np.int64)
        return keys

    def leaves(self, nodes: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Whether each node has no children, shape (nodes,)."""
        leaves: NDArray[np.bool_] = self.first[nodes] == self.first[nodes + 1]
        return leaves

    def child(self, node: int, token: int) -> int | None:
        """The node reached from ``node`` by ``token``, or ``None`` when that leaves the schema."""
        low, high = int(self.first[node]), int(self.first[node + 1])
        at = low + int(np.searchsorted(self.token[low:high], token))
        return at if at < high and self.token[at] == token else None

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
        return None if node is None or self.key[node] == NO_KEY else int(self.key[node])

    def path(self, node: int) -> Tokens:
        """The tokens from the root to ``node``."""
        tokens: list[int] = []
        while node != ROOT:
            tokens.append(int(self.token[node]))
            node = int(self.parent[node])
        return tuple(reversed(tokens))

    def tokens_of(self, key: int) -> Tokens:
        """The tokens of a key."""
        return self.path(int(self.end[key]))

    def __iter__(self) -> Iterator[Tokens]:
        """The token sequences of all keys, in key order."""
        return (self.tokens_of(key) for key in range(self.key_count))


def build_trie(keys: Sequence[Sequence[int]]) -> Trie:
    """Build a trie; key ``i`` of the trie is ``keys[i]``.

    Args:
        keys: Distinct, non-empty sequences of non-negative token ids.

    Raises:
        InvalidInputError: if a key is empty, repeated, or holds a negative token.
    """
    lengths = np.fromiter((len(key) for key in keys), dtype=np.int32, count=len(keys))
    if len(keys) == 0:
        return _empty_trie()
    if lengths.min() == 0:
        raise InvalidInputError("a key without tokens cannot be stored in a trie")
    flat = np.fromiter((token for key in keys for token in key), dtype=np.int32, count=int(lengths.sum()))
    if flat.min() < 0:
        raise InvalidInputError("token ids must not be negative")
    order = _lexicographic_order(flat, lengths)
    return _link_levels(flat, lengths, order)


def _empty_trie() -> Trie:
    none = np.zeros(0, dtype=np.int32)
    return Trie(
        first=np.array([1, 1], dtype=np.int32),
        token=np.array([-1], dtype=np.int32),
        parent=np.array([-1], dtype=np.int32),
        key=np.array([NO_KEY], dtype=np.int32),
        end=none,
        levels=np.array([0, 1], dtype=np.int32),
    )


def _lexicographic_order(flat: IntArray, lengths: IntArray) -> NDArray[np.intp]:
    # Big-endian bytes of token + 1 compare like the token sequences themselves, and a shorter key, being
    # zero-padded, sorts before its extensions; numpy then sorts fixed-width byte strings at C speed.
    width = int(lengths.max())
    padded = np.zeros((len(lengths), width), dtype=">u4")
    rows = np.repeat(np.arange(len(lengths)), lengths)
    columns = np.arange(len(flat)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    padded[rows, columns] = flat + 1
    return np.argsort(padded.view(f"S{4 * width}").ravel(), kind="stable")


def _link_levels(flat: IntArray, lengths: IntArray, order: NDArray[np.intp]) -> Trie:
    starts = np.cumsum(lengths) - lengths
    tokens, parents, keys = [np.array([-1])], [np.array([-1])], [np.array([NO_KEY])]
    levels = [0, 1]
    end = np.empty(len(lengths), dtype=np.int32)
    alive = order  # keys long enough for the level, in lexicographic order
    above = np.zeros(len(alive), dtype=np.int64)  # each such key's node one level up
    depth = 0
    while len(alive):
        token = flat[starts[alive] + depth]
        # A new node begins where the prefix differs from the previous key's.
        begins = np.ones(len(alive), dtype=bool)
        begins[1:] = (token[1:] != token[:-1]) | (above[1:] != above[:-1])
        node = levels[-1] + np.cumsum(begins) - 1
        tokens.append(token[begins])
        parents.append(above[begins])
        ends = lengths[alive] == depth + 1
        level_keys = np.full(int(begins.sum()), NO_KEY, dtype=np.int64)
        level_keys[node[ends] - levels[-1]] = alive[ends]
        if int((level_keys != NO_KEY).sum()) != int(ends.sum()):
            raise InvalidInputError("the same key was given twice")
        end[alive[ends]] = node[ends]
        keys.append(level_keys)
        levels.append(levels[-1] + len(level_keys))
        alive, above = alive[~ends], node[~ends]
        depth += 1
    parent = np.concatenate(parents).astype(np.int32)
    # Level order makes parents ascend, so a node's children start where its parents' entries do.
    first = np.searchsorted(parent[1:], np.arange(len(parent) + 1)).astype(np.int32) + 1
    return Trie(
        first=first.astype(np.int32),
        token=np.concatenate(tokens).astype(np.int32),
        parent=parent,
        key=np.concatenate(keys).astype(np.int32),
        end=end,
        levels=np.array(levels, dtype=np.int32),
    )


class PrefixTrie:
    """A trie that grows and shrinks; readers take an immutable :meth:`snapshot`. Safe for threads."""

    def __init__(self, keys: Iterable[Sequence[int]] = ()) -> None:
        self._lock = threading.Lock()
        self._keys: dict[Tokens, None] = {}
        self._snapshot: Trie | None = None
        for key in keys:
            self.insert(key)

    def insert(self, key: Sequence[int]) -> bool:
        """Add a key; ``False`` if it was there.

        Raises:
            InvalidInputError: if the key is empty or holds a negative token.
        """
        tokens = tuple(map(int, key))
        if not tokens or min(tokens) < 0:
            raise InvalidInputError("a key needs at least one token, and no token id may be negative")
        with self._lock:
            if tokens in self._keys:
                return False
            self._keys[tokens] = None
            self._snapshot = None
            return True

    def delete(self, key: Sequence[int]) -> bool:
        """Remove a key; ``False`` if it was not there."""
        with self._lock:
            if self._keys.pop(tuple(map(int, key)), self) is self:
                return False
            self._snapshot = None
            return True

    def __contains__(self, key: Sequence[int]) -> bool:
        return tuple(map(int, key)) in self._keys

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[Tokens]:
        return iter(list(self._keys))

    def snapshot(self) -> Trie:
        """The trie as it is now; key numbers follow the order of insertion."""
        # Locked while building: a snapshot finished after a later insert would hide that key.
        with self._lock:
            if self._snapshot is None:
                self._snapshot = build_trie(list(self._keys))
            return self._snapshot
