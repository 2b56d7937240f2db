"""The arrays of a compact trie: 15 to 19 bytes a key at a million phrase-like keys.

Nodes are numbered level by level, so the children of a node are consecutive::

    level 0            (0)
                new ┌───┴───┐ paris        node    0    1    2    3    4
    level 1        (1)     (2)■            token   .  new paris york marathon
              york  │                      inner   1    1    0    1    0      first  1 3 4 5
    level 2        (3)■                    ends    0    0    1    1    1      key    2 0 1
          marathon  │
    level 3        (4)■                ■ = a key ends here

Two bits a node tell whether it has children and whether a key ends at it. The offset of the first child is stored
only for nodes that have children, and a key's number only for nodes at which one ends; counting bits finds the place.
A parent is not stored: it is the inner node whose children a node falls among.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from shared_core.schema.marks import Ints, Marks

IntArray: TypeAlias = NDArray[np.int32]

ROOT = 0
NO_KEY = -1
NO_NODE = -1


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """A trie in few arrays, immutable.

    Attributes:
        token: Token on the edge into each node, 0 at the root, shape (nodes,); 16 bits wide where that is enough.
        inner: Which nodes have children.
        first: First child of each node that has children, and the number of nodes, shape (inner nodes + 1,).
        ends: At which nodes a key ends.
        key: Number of the key at each of these, and ``NO_KEY``, shape (keys + 1,).
        end: Node at which each key ends, ``NO_NODE`` for numbers without a key, shape (key limit,).
        longest: Tokens of the longest key.
    """

    token: NDArray[np.integer]
    inner: Marks
    first: IntArray
    ends: Marks
    key: IntArray
    end: IntArray
    longest: int

    @classmethod
    def from_levels(cls, token: Ints, count: Ints, key: Ints, key_limit: int, longest: int) -> Layout:
        """Lay out nodes given level by level, siblings in the order of their tokens.

        Args:
            token: Token into each node, shape (nodes,); the root's is ignored.
            count: Number of children of each node, shape (nodes,).
            key: Number of the key that ends at each node, ``NO_KEY`` where none does, shape (nodes,).
            key_limit: One more than the largest key number that may be in use.
            longest: Tokens of the longest key.
        """
        token[ROOT] = 0
        parents = count > 0
        first = np.ones(int(parents.sum()) + 1, dtype=np.int32)
        first[1:] += np.cumsum(count[parents], dtype=np.int32)
        ending = key != NO_KEY
        nodes = np.flatnonzero(ending)
        numbers = np.append(key[nodes], NO_KEY).astype(np.int32)
        end = np.full(key_limit, NO_NODE, dtype=np.int32)
        end[numbers[:-1]] = nodes
        narrow = np.uint16 if token.max() < 1 << 16 else np.uint32
        return cls(token.astype(narrow), Marks(parents), first, Marks(ending), numbers, end, longest)

    @property
    def node_count(self) -> int:
        """Number of nodes, the root included."""
        return len(self.token)

    @property
    def key_count(self) -> int:
        """Number of keys."""
        return len(self.key) - 1

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return int(sum(part.nbytes for part in (self.token, self.inner, self.first, self.ends, self.key, self.end)))

    def span(self, node: int) -> tuple[int, int]:
        """The children of a node: the first, and one past the last."""
        at = self.inner.find(node)
        if at < 0:
            return 0, 0
        first = self.first.item
        return first(at), first(at + 1)

    def child(self, node: int, token: int) -> int | None:
        """The node reached from a node by a token, or ``None``."""
        low, high = self.span(node)
        tokens = self.token[low:high]
        # Looked for as one of its own type (if it is one): otherwise numpy converts all of them.
        if token >> (8 * tokens.itemsize):
            return None
        at = int(tokens.searchsorted(tokens.dtype.type(token)))
        return low + at if at < high - low and tokens.item(at) == token else None

    def spans(self, nodes: Ints) -> tuple[Ints, Ints]:
        """First child and number of children of each node, shape (n,) each."""
        has, at = self.inner.rank(nodes)
        low = self.first[at].astype(np.int64)
        return low, self.first[at + has] - low

    def key_at(self, node: int) -> int:
        """The key that ends at a node, or ``NO_KEY``."""
        at = self.ends.find(node)
        return NO_KEY if at < 0 else self.key.item(at)

    def keys_at(self, nodes: Ints) -> Ints:
        """The key that ends at each node, or ``NO_KEY``, shape (n,)."""
        has, at = self.ends.rank(nodes)
        return np.where(has, self.key[at], NO_KEY).astype(np.int64)

    def parents(self, nodes: Ints) -> Ints:
        """Parent of each node, shape (n,); the root may not be among them."""
        # Needles of the same type as what is searched: otherwise numpy copies all of it.
        at = np.searchsorted(self.first, nodes.astype(np.int32), side="right") - 1
        return self.inner.select(at)
