"""Schema-constrained search: the keys that a model finds likeliest after a prompt, and no other text.

One round, for all searches of a token tree together:

1. each search takes its most promising open prefixes, and with them their likely continuations;
2. the tokens of all go through the model in one forward pass;
3. what may follow each is scored: a terminator completes a key, a token opens a longer prefix;
4. a search is over when no open prefix promises more than the keys it already has, or, looking ahead, when it has
   keys enough after two rounds.

A completed key never competes with open prefixes for a place in the beam, so short keys are not lost. What a prefix
promises is known from its own log-probability and, for what follows, from the neutral log-probabilities of the keys
(look-ahead); these also say which continuations the model may as well read in the same pass, so that most keys take
one or two passes, whatever their length.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shared_core.decoding.pool import Batch, Floats, Ints, Pool, forced_chains, largest, likely_continuations
from shared_core.decoding.prior import FloatArray, Prior, Score, below
from shared_core.errors import InvalidInputError
from shared_core.models import TokenTree
from shared_core.schema import NO_KEY, ROOT, Trie

Method: TypeAlias = Literal["beam", "exact", "sample"]
"""``beam``: bounded work. ``exact``: the true best keys. ``sample``: keys drawn from ``P_S`` without replacement."""

# Rows of a round: the width, and at least so many, since fewer take a processor hardly less time.
_LEAST_ROWS = 24
# Rounds of a search that looks ahead and has keys enough. Measured: a third brings a few keys that hardly score more,
# and takes as long as the second.
_ROUNDS = 2
# Open prefixes kept, as a multiple of the rows of a round.
_RETAINED = 4
# Prefixes an exact search expands in one forward pass.
_EXACT_BATCH = 128


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """How to search.

    Attributes:
        width: Number of keys wanted (the beam width ``b``). As many prefixes are expanded in a round, or a few more
            when looking ahead.
        method: See :data:`Method`.
        score: See :data:`Score`.
        calibration: Share of a key's neutral log-probability that is taken off its score (0: none).
        lookahead: Whether open prefixes are judged with the best neutral continuation below them.
        seed: Of the random numbers of ``sample``.
    """

    width: int = 20
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
                np.where(batch.parents < 0, batch.parents - offset, batch.parents)
                for batch, offset in zip(batches, offsets[:-1], strict=True)
            ]
        )
        nodes = tree.extend(tokens, parents)
        for one, batch, start, stop in zip(active, batches, offsets[:-1], offsets[1:], strict=True):
            one.expand(tree, batch, nodes[start:stop].astype(np.int64))
    return [one.result() for one in searches]


class _Search:
    """The state of one request: a pool of open prefixes, and the keys completed so far."""

    def __init__(self, request: SearchRequest) -> None:
        if request.prior is None and request.options.calibration:
            raise InvalidInputError("calibration needs the neutral log-probabilities of the keys")
        self._request = request
        self._trie = request.trie
        self._options = options = request.options
        self._random = np.random.default_rng(options.seed)
        self._looks_ahead = request.prior is not None and options.lookahead and options.method != "sample"
        # Without look-ahead a batch holds prefixes of the pool and what is forced after them: the beam of Eq. 11.
        self._rows = options.width
        if options.method == "exact":
            self._rows = _EXACT_BATCH
        elif self._looks_ahead:
            self._rows = max(_LEAST_ROWS, options.width)
        self._rounds = 0
        self._worst: FloatArray | None = None
        if request.prior is not None and (options.method == "exact" or not options.lookahead):
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
        root = np.array([ROOT])
        self._pool = Pool(root, root, np.array([request.node]), zero, zero, zero, zero)

    def begin(self, tree: TokenTree) -> None:
        """Score what may follow the prompt itself; that takes no forward pass."""
        root = self._pool
        self._pool = root[:0]
        if self._trie.key_count:
            none = np.full(1, -1)
            self.expand(tree, Batch(root, root.prefix, root.token, none, none, (0, 1)), root.parent)

    def unfinished(self) -> bool:
        """Whether an open prefix is left that could still matter."""
        threshold = self._threshold()
        if self._looks_ahead and self._options.method == "beam" and self._rounds >= _ROUNDS and threshold > -np.inf:
            return False
        return len(self._pool) > 0 and bool(self._pool.bound.max() >= threshold)

    def take(self) -> Batch:
        """Take the most promising prefixes off the pool, and add tokens after them that are worth reading with them."""
        options = self._options
        self._rounds += 1
        chosen = largest(self._pool.promise, self._rows)
        taken = self._pool[chosen]
        if options.method == "beam" and self._looks_ahead:
            batch = likely_continuations(self._trie, taken, self._ahead, self._rows, self._threshold())
        else:
            batch = forced_chains(self._trie, taken)
        rest = np.ones(len(self._pool), dtype=bool)
        rest[chosen[: len(batch.taken)]] = False
        self._pool = self._pool[rest]
        return batch

    def expand(self, tree: TokenTree, batch: Batch, nodes: Ints) -> None:
        """Score what may follow each row of a batch that went through the model as ``nodes``."""
        options = self._options
        start, row, child, token, ends = self._continuations(batch)
        step = tree.logprobs(nodes[row], token).astype(np.float64)
        if options.score == "schema" or options.method == "sample":
            step -= _logsumexp(step, start)[row]

        logprob, perturbed = np.empty(len(row)), np.empty(len(row))
        above = np.concatenate([batch.taken.logprob, np.empty(len(batch.prefix) - len(batch.taken))])
        noisy = np.concatenate([batch.taken.perturbed, np.empty(len(batch.prefix) - len(batch.taken))])
        inside = np.full(len(batch.prefix), -1)  # where each row stands among the continuations of the row above
        for low, high in itertools.pairwise(batch.levels):
            if low:
                inside[low:high] = start[batch.above[low:high]] + batch.place[low:high]
                above[low:high] = logprob[inside[low:high]]
                noisy[low:high] = perturbed[inside[low:high]]
            level = slice(start[low], start[high])
            logprob[level] = above[row[level]] + step[level]
            if options.method == "sample":
                perturbed[level] = self._perturb(logprob[level], noisy[row[level]], start[low : high + 1] - start[low])
        self._complete(self._trie.keys_at(batch.prefix[row[ends]]), logprob[ends], perturbed[ends])
        opened = ~ends
        opened[inside[len(batch.taken) :]] = False
        if self._excluded is not None:  # a leaf leads to its own key only
            ended = np.flatnonzero(self._excluded[self._trie.keys_at(child)])
            opened[ended[np.diff(self._trie.children(child[ended])[0]) == 0]] = False
        self._open(
            Pool(
                child[opened],
                token[opened],
                nodes[row[opened]],
                logprob[opened],
                perturbed[opened],
                *self._judge(child[opened], logprob[opened], perturbed[opened]),
            )
        )

    def _continuations(self, batch: Batch) -> tuple[Ints, Ints, Ints, Ints, NDArray[np.bool_]]:
        """What may follow each row, its children first, then the terminator if a key ends there.

        Returns:
            Where each row's continuations start; and of each continuation its row, its trie node (the root for a
            terminator), its token, and whether it is the terminator.
        """
        first, child, token = self._trie.children(batch.prefix)
        children = np.diff(first)
        counts = children + (self._trie.keys_at(batch.prefix) != NO_KEY)
        start = np.concatenate([[0], np.cumsum(counts)])
        row = np.repeat(np.arange(len(counts)), counts)
        ends = np.arange(len(row)) - start[row] == children[row]
        nodes, tokens = np.full(len(row), ROOT), np.full(len(row), self._request.terminator)
        nodes[~ends], tokens[~ends] = child, token
        return start, row, nodes, tokens, ends

    def _judge(self, prefix: Ints, logprob: Floats, perturbed: Floats) -> tuple[Floats, Floats]:
        """What open prefixes promise, and what bounds them."""
        options, prior = self._options, self._request.prior
        if options.method == "sample":
            return perturbed, perturbed
        promise = logprob
        if self._looks_ahead and prior is not None:
            # Neutral scores stand in for what is not decoded yet, the query's own for what is.
            promise = logprob - prior.prefix[prefix] + self._ahead(prefix)
        if options.method == "exact" or not self._looks_ahead:
            return promise, logprob if self._worst is None else logprob - options.calibration * self._worst[prefix]
        return promise, promise

    def _ahead(self, prefix: Ints) -> Floats:
        """Neutral score of the best key below each prefix."""
        assert self._request.prior is not None
        ahead: Floats = (1 - self._options.calibration) * self._request.prior.best[prefix].astype(np.float64)
        return ahead

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

    def _threshold(self) -> float:
        """What a key must score to be among the best ``width`` so far."""
        width = self._options.width
        return float(np.partition(self._scores, -width)[-width]) if len(self._scores) >= width else -np.inf

    def _open(self, opened: Pool) -> None:
        """Add open prefixes, and close those that cannot, or promise not to, reach the best ``width`` keys."""
        least = self._threshold()
        self._pool = self._pool[self._pool.bound >= least] + opened[opened.bound >= least]
        if self._options.method == "beam" and len(self._pool) > _RETAINED * self._rows:
            self._pool = self._pool[largest(self._pool.promise, _RETAINED * self._rows)]

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


def _logsumexp(values: Floats, start: Ints) -> Floats:
    """``log Σ exp`` of each run ``start[i] : start[i + 1]`` of the values."""
    highest = np.maximum.reduceat(values, start[:-1])
    summed = np.add.reduceat(np.exp(values - np.repeat(highest, np.diff(start))), start[:-1])
    result: Floats = highest + np.log(summed)
    return result
