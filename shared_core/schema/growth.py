"""Growth: a trie that takes keys in and lets them go, and hands out immutable snapshots.

One insert changes one node that was there, the one at which the new key leaves the known prefixes: it gets a new block
of children. One delete changes the node at which the key's own branch leaves the rest. Each makes a new overlay over
the same layout; when the overlay is large, a new layout is read off the trie level by level.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Iterator, Sequence
from math import isqrt

import numpy as np

from shared_core.errors import InvalidInputError
from shared_core.schema.construction import build_trie, build_trie_from_arrays, check_columns
from shared_core.schema.layout import NO_KEY, NO_NODE, ROOT, IntArray, Layout
from shared_core.schema.marks import Ints
from shared_core.schema.trie import Overlay, Tokens, Trie, Twig

# An overlay is copied for each insert, and merged when it is larger than both of these: a number of entries, and this
# many times the square root of the number of nodes, which balances the cost of copying with that of merging.
_SMALLEST_MERGED = 256
_MERGED_PER_ROOT = 4
# When this share of the nodes and more joins at once, sorting all keys again is quicker than growing by them.
_REBUILT_SHARE = 1 / 32

_NOTHING: Ints = np.zeros(0, dtype=np.int64)


class _Draft:
    """An overlay being written, which no reader sees yet."""

    def __init__(self, trie: Trie) -> None:
        self._layout = trie.layout
        self._twigs = dict(trie.overlay.twigs)
        self._ends = dict(trie.overlay.ends)
        self._node_limit = trie.node_limit
        self._key_limit = trie.key_limit
        self._node_count = trie.node_count
        self._key_count = trie.key_count
        self._longest = trie.longest

    def insert(self, key: Tokens) -> bool:
        """Add a key under the next number; ``False`` if it was there."""
        path = self._walk(key)
        node = path[-1]
        above = path[-2] if len(path) > 1 else NO_NODE
        twig = self._twig(node, above, key[len(path) - 2] if len(path) > 1 else 0)
        rest = key[len(path) - 1 :]
        if rest:
            at = int(np.searchsorted(twig.tokens, rest[0]))
            twig = twig._replace(child=_with(twig.child, at, self._node_limit), tokens=_with(twig.tokens, at, rest[0]))
            self._hang_chain(node, rest)
        elif twig.key != NO_KEY:
            return False
        else:
            twig = twig._replace(key=self._key_limit)
            self._ends[self._key_limit] = node
        self._twigs[node] = twig
        self._key_limit += 1
        self._key_count += 1
        self._longest = max(self._longest, len(key))
        return True

    def _hang_chain(self, above: int, tokens: Tokens) -> None:
        """New nodes one below the other, the last of them the end of the next key."""
        first = self._node_limit
        last = first + len(tokens) - 1
        for node, token, following in zip(range(first, last), tokens[:-1], tokens[1:], strict=True):
            self._twigs[node] = Twig(above, token, np.array([node + 1]), np.array([following]), NO_KEY)
            above = node
        self._twigs[last] = Twig(above, tokens[-1], _NOTHING, _NOTHING, self._key_limit)
        self._ends[self._key_limit] = last
        self._node_limit += len(tokens)
        self._node_count += len(tokens)

    def delete(self, key: Tokens) -> bool:
        """Remove a key and the nodes that then lead to none; ``False`` if it was not there."""
        path = self._walk(key)
        if len(path) != len(key) + 1 or not key:
            return False
        twig = self._twig(path[-1], path[-2], key[-1])
        if twig.key == NO_KEY:
            return False
        self._ends[twig.key] = NO_NODE
        twig = twig._replace(key=NO_KEY)
        depth = len(key)
        while depth and not len(twig.child) and twig.key == NO_KEY:
            self._twigs.pop(path[depth], None)
            self._node_count -= 1
            depth -= 1
            twig = self._twig(path[depth], path[depth - 1] if depth else NO_NODE, key[depth - 1] if depth else 0)
            at = int(np.searchsorted(twig.tokens, key[depth]))
            twig = twig._replace(child=_without(twig.child, at), tokens=_without(twig.tokens, at))
        self._twigs[path[depth]] = twig
        self._key_count -= 1
        return True

    def _walk(self, key: Tokens) -> list[int]:
        """The nodes of the longest prefix that is there, the root first."""
        reader = Trie(self._layout, self._overlay())
        path = [ROOT]
        for token in key:
            node = reader.child(path[-1], token)
            if node is None:
                break
            path.append(node)
        return path

    def _twig(self, node: int, above: int, token: int) -> Twig:
        twig = self._twigs.get(node)
        if twig is not None:
            return twig
        low, high = self._layout.span(node)
        tokens = self._layout.token[low:high].astype(np.int64)
        return Twig(above, token, np.arange(low, high), tokens, self._layout.key_at(node))

    def _overlay(self) -> Overlay:
        return Overlay(
            self._twigs,
            self._ends,
            self._node_limit,
            self._key_limit,
            self._node_count,
            self._key_count,
            self._longest,
        )

    def finish(self) -> Trie:
        """The trie as written, merged if the overlay has become large. The draft is not used again."""
        trie = Trie(self._layout, self._overlay())
        large = max(_SMALLEST_MERGED, _MERGED_PER_ROOT * isqrt(self._node_limit))
        return merged(trie) if len(self._twigs) + len(self._ends) > large else trie


def _with(values: Ints, at: int, value: int) -> Ints:
    return np.concatenate([values[:at], [value], values[at:]])


def _without(values: Ints, at: int) -> Ints:
    return np.concatenate([values[:at], values[at + 1 :]])


def merged(trie: Trie) -> Trie:
    """The same keys under the same numbers, with nothing in the overlay; nodes are numbered anew."""
    nodes, tokens, counts = [np.array([ROOT])], [np.array([0])], []
    for _, start, child, token in trie.levels():
        counts.append(np.diff(start))
        nodes.append(child)
        tokens.append(token)
    keys = np.concatenate([trie.keys_at(level) for level in nodes])
    longest = len(counts) - 1
    return Trie(Layout.from_levels(np.concatenate(tokens), np.concatenate(counts), keys, trie.key_limit, longest))


def extend_trie(trie: Trie, flat: IntArray, starts: Ints) -> Trie:
    """A trie with further keys, which get the next numbers in the order given.

    Args:
        trie: The trie; it stays as it is.
        flat: The tokens of the new keys, one key after the other, shape (tokens,).
        starts: Where each new key starts, and the number of tokens, shape (keys + 1,).

    Raises:
        InvalidInputError: if a key is empty, repeated or in the trie already, or holds a negative token.
    """
    check_columns(flat, starts)
    new = len(starts) - 1
    if new > max(_SMALLEST_MERGED, _REBUILT_SHARE * trie.node_limit):
        return _rebuilt(trie, flat, starts)
    draft = _Draft(trie)
    tokens, bounds = flat.tolist(), starts.tolist()
    for low, high in itertools.pairwise(bounds):
        if not draft.insert(tuple(tokens[low:high])):
            raise InvalidInputError("the same key was given twice")
    return draft.finish() if new else trie


def _rebuilt(trie: Trie, flat: IntArray, starts: Ints) -> Trie:
    """As :func:`extend_trie`, for so many keys that the trie is built anew."""
    keys, held, held_starts = trie.columns()
    built = build_trie_from_arrays(
        np.concatenate([held, flat]), np.concatenate([held_starts, held_starts[-1] + starts[1:]])
    )
    numbers = np.append(keys, trie.key_limit + np.arange(len(starts) - 1))
    layout = built.layout
    end = np.full(trie.key_limit + len(starts) - 1, NO_NODE, dtype=np.int32)
    end[numbers] = layout.end
    key = np.append(numbers[layout.key[:-1]], NO_KEY).astype(np.int32)
    return Trie(Layout(layout.token, layout.inner, layout.first, layout.ends, key, end, layout.longest))


def node_origins(before: Trie, after: Trie) -> Ints | None:
    """Where the nodes of a trie were in an earlier one, for arrays by node to be carried over.

    Returns:
        The node of ``before`` with the same prefix, ``NO_NODE`` where there is none, shape (after.node_limit,); or
        ``None`` if nodes have kept their numbers, and those of ``before.node_limit`` and above are new.
    """
    if before.layout is after.layout:
        return None
    origins = np.full(after.node_limit, NO_NODE, dtype=np.int64)
    origins[ROOT] = ROOT
    new = old = np.array([ROOT])
    while len(new):
        start, child, token = after.children(new)
        old_start, old_child, old_token = before.children(old)
        # Siblings ascend, so both sides ascend by parent and token.
        wanted = (np.repeat(np.arange(len(new)), np.diff(start)) << 32) | token
        there = (np.repeat(np.arange(len(old)), np.diff(old_start)) << 32) | old_token
        if not len(there):
            break
        at = np.minimum(np.searchsorted(there, wanted), len(there) - 1)
        same = there[at] == wanted
        new, old = child[same], old_child[at[same]]
        origins[new] = old
    return origins


class PrefixTrie:
    """A trie that grows and shrinks; readers take an immutable :meth:`snapshot`. Safe for threads.

    Args:
        keys: What it holds at first: keys, of which repeated ones count once, or a trie, whose numbers are kept.
    """

    def __init__(self, keys: Iterable[Sequence[int]] | Trie = ()) -> None:
        self._lock = threading.Lock()
        self._trie = keys if isinstance(keys, Trie) else build_trie(list(dict.fromkeys(map(_checked, keys))))

    def insert(self, key: Sequence[int]) -> bool:
        """Add a key, under the next number; ``False`` if it was there.

        Raises:
            InvalidInputError: if the key is empty or holds a negative token.
        """
        tokens = _checked(key)
        with self._lock:
            if tokens in self:
                return False
            draft = _Draft(self._trie)
            draft.insert(tokens)
            self._trie = draft.finish()
            return True

    def delete(self, key: Sequence[int]) -> bool:
        """Remove a key; ``False`` if it was not there. Its number is not given again."""
        with self._lock:
            if key not in self:
                return False
            draft = _Draft(self._trie)
            draft.delete(tuple(map(int, key)))
            self._trie = draft.finish()
            return True

    def __contains__(self, key: Sequence[int]) -> bool:
        return self._trie.find(key) is not None

    def __len__(self) -> int:
        return self._trie.key_count

    def __iter__(self) -> Iterator[Tokens]:
        return iter(self._trie)

    def snapshot(self) -> Trie:
        """The trie as it is now; key numbers follow the order of insertion."""
        return self._trie


def _checked(key: Sequence[int]) -> Tokens:
    tokens = tuple(map(int, key))
    if not tokens or min(tokens) < 0:
        raise InvalidInputError("a key needs at least one token, and no token id may be negative")
    return tokens
