"""Schema-constrained search: the keys that a model finds likeliest after a prompt, and no other text.

One round, for all searches of a token tree together:

1. each search takes its most promising open prefixes, up to its width;
2. their tokens go through the model in one forward pass, together with the tokens that are forced after them;
3. what may follow each is scored: a terminator completes a key, a token opens a longer prefix;
4. a search is over when no open prefix promises more than the keys it already has.

A completed key never competes with open prefixes for a place in the beam, so short keys are not lost.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shared_core.decoding.prior import FloatArray, Prior, Score, below
from shared_core.errors import InvalidInputError
from shared_core.models import TokenTree
from shared_core.schema import NO_KEY, ROOT, Trie

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]

Method: TypeAlias = Literal["beam", "exact", "sample"]
"""``beam``: bounded work. ``exact``: the true best keys. ``sample``: keys drawn from ``P_S`` without replacement."""

# Forced tokens that may join one prefix in a forward pass.
_CHAIN = 8
# Open prefixes kept, as a multiple of the width. Measured: 1 loses a tenth of the best keys, more than 4 finds none.
_RETAINED = 4
# How far, in log-probability, an open prefix may promise less than the keys in hand. Promises err by about this.
_MARGIN = 1.0
# Prefixes an exact search expands in one forward pass.
_EXACT_BATCH = 128


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """How to search.

    Attributes:
        width: Number of keys wanted, and of prefixes expanded in a round (the beam width ``b``).
        method: See :data:`Method`.
        score: See :data:`Score`.
        calibration: Share of a key's neutral log-probability that is taken off its score (0: none).
        lookahead: Whether open prefixes are judged with the best neutral continuation below them.
        seed: Of the random numbers of ``sample``.
    """

    width: int = 50
    method: Method = "beam"
    score: Score = "base"
    calibration: float = 0.0
    lookahead: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        if self.width < 1:
            raise InvalidInputError(f"the width must be at least 1, not {self.width}")
        if self.calibration < 0:
            raise InvalidInputError(f"calibration must not be negative, not {self.calibration}")


@dataclass(frozen=True, slots=True)
class DecodedKey:
    """A key that was decoded.

    Attributes:
        key: Its number in the trie.
        logprob: Its log-probability with the terminator, under the search's score (natural logarithm).
        score: What it is ranked by: ``logprob`` less the calibration, or the perturbed log-probability of
            a sampled key.
    """

    key: int
    logprob: float
    score: float


@dataclass(frozen=True, slots=True, eq=False)
class SearchRequest:
    """One search: a trie, below one node of the token tree.

    Attributes:
        node: Node of the token tree after which the keys are decoded.
        trie: The keys. Each is decoded as its tokens followed by ``terminator``.
        terminator: The token that ends a key.
        prior: Neutral log-probabilities; needed for calibration and look-ahead, otherwise optional.
        options: How to search.
        excluded: Keys that are not wanted in the result.
    """

    node: int
    trie: Trie
    terminator: int
    prior: Prior | None = None
    options: SearchOptions = SearchOptions()
    excluded: NDArray[np.integer] | None = None


def search(tree: TokenTree, requests: Sequence[SearchRequest]) -> list[list[DecodedKey]]:
    """Decode the best keys of each request, best first; ties go to the lower key number.

    Returns:
        For each request ``min(width, keys)`` distinct keys of its trie, the excluded ones left out.

    Raises:
        InvalidInputError: if calibration is asked for without a prior.
    """
    searches = [_Search(request) for request in requests]
    for one in searches:
        one.begin(tree)
    while active := [one for one in searches if one.unfinished()]:
        batches = [one.take() for one in active]
        tokens = np.concatenate([batch.token for batch in batches])
        offsets = np.cumsum([0, *(len(batch.token) for batch in batches)])
        parents = np.concatenate(
            [
                np.where(batch.parent < 0, batch.parent - offset, batch.parent)
                for batch, offset in zip(batches, offsets[:-1], strict=True)
            ]
        )
        nodes = tree.extend(tokens, parents)
        for one, batch, start, stop in zip(active, batches, offsets[:-1], offsets[1:], strict=True):
            one.expand(tree, batch, nodes[start:stop].astype(np.int64))
    return [one.result() for one in searches]


@dataclass(frozen=True, slots=True, eq=False)
class _Pool:
    """Open prefixes, each waiting to be run through the model.

    Attributes:
        prefix: Trie node, shape (n,).
        token: Token into it, shape (n,).
        parent: Node of the token tree that the prefix's last token comes after, shape (n,).
        logprob: Cumulative log-probability, shape (n,).
        perturbed: Cumulative log-probability with Gumbel noise, shape (n,); only when sampling.
        promise: Orders the pool, shape (n,).
        bound: No key below is taken to score more than this, shape (n,).
    """

    prefix: Ints
    token: Ints
    parent: Ints
    logprob: Floats
    perturbed: Floats
    promise: Floats
    bound: Floats

    def __getitem__(self, chosen: NDArray[np.bool_] | Ints | slice) -> _Pool:
        return _Pool(*(getattr(self, name)[chosen] for name in self.__slots__))

    def __add__(self, other: _Pool) -> _Pool:
        pairs = ((getattr(self, name), getattr(other, name)) for name in self.__slots__)
        return _Pool(*(np.concatenate(pair) for pair in pairs))

    def __len__(self) -> int:
        return len(self.prefix)


@dataclass(frozen=True, slots=True, eq=False)
class _Batch:
    """Prefixes to run through the model: those taken off the pool, then their forced continuations.

    Attributes:
        taken: The prefixes taken off the pool.
        prefix: Trie node of each row, shape (rows,); the first rows are ``taken``.
        token: Token into each row, shape (rows,).
        parent: Token-tree node above each row, or ``-1 - i`` for row ``i`` of this batch, shape (rows,).
        levels: Where each level of the forced chains starts, and the number of rows.
    """

    taken: _Pool
    prefix: Ints
    token: Ints
    parent: Ints
    levels: tuple[int, ...]


class _Search:
    """The state of one request: a pool of open prefixes, and the keys completed so far."""

    def __init__(self, request: SearchRequest) -> None:
        if request.prior is None and request.options.calibration:
            raise InvalidInputError("calibration needs the neutral log-probabilities of the keys")
        self._request = request
        self._trie = request.trie
        self._options = request.options
        self._random = np.random.default_rng(request.options.seed)
        self._worst: FloatArray | None = None
        if request.prior is not None and (request.options.method == "exact" or not request.options.lookahead):
            self._worst = below(request.trie, request.prior.total, np.minimum)
        self._excluded: NDArray[np.bool_] | None = None
        if request.excluded is not None:
            # One more place than there are keys, so that NO_KEY (-1) is never excluded.
            self._excluded = np.zeros(request.trie.key_limit + 1, dtype=bool)
            self._excluded[request.excluded] = True
        self._keys = np.zeros(0, dtype=np.int64)
        self._logprobs = np.zeros(0)
        self._scores = np.zeros(0)
        zero = np.zeros(1)
        self._pool = _Pool(np.array([ROOT]), np.array([0]), np.array([request.node]), zero, zero, zero, zero)

    def begin(self, tree: TokenTree) -> None:
        """Score what may follow the prompt itself; that takes no forward pass."""
        if self._trie.key_count == 0:
            self._pool = self._pool[:0]
            return
        root = self._pool
        batch = _Batch(root, root.prefix, root.prefix, root.parent, (0, 1))
        self._pool = root[:0]
        self.expand(tree, batch, root.parent)

    def unfinished(self) -> bool:
        """Whether an open prefix is left that could still matter."""
        return len(self._pool) > 0

    def take(self) -> _Batch:
        """Take the most promising prefixes off the pool, and add the tokens forced after them."""
        limit = _EXACT_BATCH if self._options.method == "exact" else self._options.width
        chosen = _largest(self._pool.promise, limit)
        taken = self._pool[chosen]
        rest = np.ones(len(self._pool), dtype=bool)
        rest[chosen] = False
        self._pool = self._pool[rest]

        prefixes, parents, levels = [taken.prefix], [taken.parent], [0, len(taken)]
        tokens = [taken.token]
        rows = np.arange(len(taken))
        for _ in range(_CHAIN):
            above = prefixes[-1]
            start, child, token = self._trie.children(above)
            forced = np.diff(start) == 1
            if not forced.any():
                break
            prefixes.append(child[start[:-1][forced]])
            tokens.append(token[start[:-1][forced]])
            parents.append(-1 - rows[forced])
            rows = np.arange(levels[-1], levels[-1] + len(prefixes[-1]))
            levels.append(levels[-1] + len(rows))
        prefix = np.concatenate(prefixes)
        return _Batch(taken, prefix, np.concatenate(tokens), np.concatenate(parents), tuple(levels))

    def expand(self, tree: TokenTree, batch: _Batch, nodes: Ints) -> None:
        """Score what may follow each row of a batch that went through the model as ``nodes``."""
        trie, options = self._trie, self._options
        row, child, token, ends, start = self._continuations(batch)
        step = tree.logprobs(nodes[row], token).astype(np.float64)
        if options.score == "schema" or options.method == "sample":
            step -= _logsumexp(step, start)[row]

        logprob, perturbed = np.empty(len(row)), np.empty(len(row))
        continued = np.zeros(len(batch.prefix), dtype=bool)
        above_logprob, above_perturbed = batch.taken.logprob, batch.taken.perturbed
        for low, high in itertools.pairwise(batch.levels):
            if low:  # forced rows: each continues the first (and only) child of a row above
                above = -1 - batch.parent[low:high]
                continued[above] = True
                above_logprob, above_perturbed = logprob[start[above]], perturbed[start[above]]
            level = slice(start[low], start[high])
            logprob[level] = above_logprob[row[level] - low] + step[level]
            if options.method == "sample":
                perturbed[level] = self._perturb(
                    logprob[level], above_perturbed[row[level] - low], start[low : high + 1] - start[low]
                )
        self._complete(trie.keys_at(batch.prefix[row[ends]]), logprob[ends], perturbed[ends])
        opened = ~ends & ~continued[row]
        if self._excluded is not None:  # a leaf leads to its own key only
            leaf = np.diff(trie.children(child)[0]) == 0
            opened &= ~(leaf & self._excluded[trie.keys_at(child)])
        self._pool += self._judge(child[opened], token[opened], nodes[row[opened]], logprob[opened], perturbed[opened])
        self._prune()

    def _continuations(self, batch: _Batch) -> tuple[Ints, Ints, Ints, NDArray[np.bool_], Ints]:
        """What may follow each row: its row, node and token, whether it is the terminator; and where rows start."""
        below, node, into = self._trie.children(batch.prefix)
        children = np.diff(below)
        counts = children + (self._trie.keys_at(batch.prefix) != NO_KEY)
        start = np.concatenate([[0], np.cumsum(counts)])
        row = np.repeat(np.arange(len(counts)), counts)
        ends = np.arange(len(row)) - start[row] == children[row]
        child, token = np.full(len(row), ROOT), np.full(len(row), self._request.terminator)
        child[~ends], token[~ends] = node, into
        return row, child, token, ends, start

    def _judge(self, prefix: Ints, token: Ints, parent: Ints, logprob: Floats, perturbed: Floats) -> _Pool:
        options, prior = self._options, self._request.prior
        if options.method == "sample":
            return _Pool(prefix, token, parent, logprob, perturbed, perturbed, perturbed)
        promise = logprob
        if options.lookahead and prior is not None:
            # Neutral scores stand in for what is not decoded yet, the query's own for what is.
            promise = logprob - prior.prefix[prefix] + (1 - options.calibration) * prior.best[prefix]
        bound = promise
        if options.method == "exact" or not options.lookahead:
            bound = logprob if self._worst is None else logprob - options.calibration * self._worst[prefix]
        return _Pool(prefix, token, parent, logprob, perturbed, promise, bound)

    def _complete(self, keys: Ints, logprobs: Floats, perturbed: Floats) -> None:
        options, prior = self._options, self._request.prior
        if self._excluded is not None:
            wanted = ~self._excluded[keys]
            keys, logprobs, perturbed = keys[wanted], logprobs[wanted], perturbed[wanted]
        scores = logprobs
        if options.method == "sample":
            scores = perturbed
        elif options.calibration and prior is not None:
            scores = logprobs - options.calibration * prior.total[keys]
        self._keys = np.concatenate([self._keys, keys])
        self._logprobs = np.concatenate([self._logprobs, logprobs])
        self._scores = np.concatenate([self._scores, scores])

    def _prune(self) -> None:
        """Close the prefixes that cannot, or promise not to, reach the best ``width`` keys."""
        width = self._options.width
        if len(self._scores) >= width:
            threshold = np.partition(self._scores, -width)[-width]
            self._pool = self._pool[
                self._pool.bound >= threshold - (_MARGIN if self._options.method == "beam" else 0.0)
            ]
        if self._options.method == "beam" and len(self._pool) > _RETAINED * width:
            self._pool = self._pool[_largest(self._pool.promise, _RETAINED * width)]

    def _perturb(self, logprob: Floats, above: Floats, start: Ints) -> Floats:
        """Gumbel noise for the continuations of each row, given the row's own perturbed log-probability.

        Top-down sampling of Gumbel variables under a given maximum (Kool et al., 2019, arXiv 1903.06059,
        Appendix B.3); the best ``width`` leaves are then a sample without replacement.
        """
        noisy = logprob + self._random.gumbel(size=len(logprob))
        highest = np.repeat(np.maximum.reduceat(noisy, start[:-1]), np.diff(start))
        with np.errstate(divide="ignore"):  # the maximum itself: log(0)
            shift = above - noisy + np.log1p(-np.exp(noisy - highest))
        shifted: Floats = above - np.maximum(0.0, shift) - np.log1p(np.exp(-np.abs(shift)))
        return shifted

    def result(self) -> list[DecodedKey]:
        """The best keys so far, best first."""
        order = np.lexsort((self._keys, -self._scores))[: self._options.width]
        return [DecodedKey(int(self._keys[at]), float(self._logprobs[at]), float(self._scores[at])) for at in order]


def _largest(values: Floats, count: int) -> Ints:
    """Indices of the ``count`` largest values, largest first."""
    chosen = np.arange(len(values))
    if len(values) > count:
        chosen = np.argpartition(-values, count - 1)[:count]
    ordered: Ints = chosen[np.argsort(-values[chosen], kind="stable")]
    return ordered


def _logsumexp(values: Floats, start: Ints) -> Floats:
    """``log Σ exp`` of each run ``start[i] : start[i + 1]`` of the values."""
    highest = np.maximum.reduceat(values, start[:-1])
    summed = np.add.reduceat(np.exp(values - np.repeat(highest, np.diff(start))), start[:-1])
    result: Floats = highest + np.log(summed)
    return result
