"""Decoding concepts for texts: a model, a prompt, and tries of any size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shared_core.decoding.constrained_search import DecodedKey, SearchOptions, SearchRequest, search
from shared_core.decoding.generation import generate
from shared_core.decoding.prior import FloatArray, Prior
from shared_core.decoding.prompts import DEFAULT_PROMPT, ConceptPrompt
from shared_core.models import LanguageModel, TokenTree
from shared_core.schema import NO_NODE, ROOT, Ints, Level, Tokens, Trie, build_trie
from shared_core.store import Anticipation

# Keys scored in one forward pass when all are wanted; a pass of 256 tokens is where CPUs reach full speed.
SCORED_TOGETHER = 96
# Tokens kept of what a text makes the model expect. Beyond them recall gains nothing.
_ANTICIPATED = 128
# Tokens of one text that are read at most, and room left for a key in the model's window.
_READ = 1024
_LONGEST_KEY = 128


@dataclass(frozen=True, slots=True, eq=False)
class Constraint:
    """What to decode over, and how.

    Attributes:
        trie: The keys.
        options: How to search.
        prior: Neutral log-probabilities of the keys, where there are any.
        excluded: Keys that are not wanted in the result.
    """

    trie: Trie
    options: SearchOptions
    prior: Prior | None = None
    excluded: NDArray[np.integer] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """What one reading of a text gives.

    Attributes:
        keys: For each constraint the decoded keys, best first.
        anticipation: What the model expects a concept of the text to begin with, free of any constraint.
    """

    keys: list[list[DecodedKey]]
    anticipation: Anticipation


class ConceptDecoder:
    """Decodes, for a text, the concepts that a language model would name, out of a given set.

    Args:
        model: The language model.
        prompt: The few-shot prompt.
    """

    def __init__(self, model: LanguageModel, prompt: ConceptPrompt = DEFAULT_PROMPT) -> None:
        self.model = model
        self._prompt = prompt
        self._examples = [*model.start, *model.encode(prompt.examples)]
        self._before = model.encode(prompt.before.rstrip(" "))
        self._after = model.encode(prompt.after)
        room = model.window - len(self._examples) - len(self._before) - len(self._after)
        self._room = max(2, min(_READ, room - _LONGEST_KEY))
        self._longest_key = max(_LONGEST_KEY, room - self._room)
        # As it is tokenised after a word, not at the start of a text.
        self.terminator = model.encode("a" + prompt.terminator)[-1]

    @property
    def fingerprint(self) -> str:
        """Of the model and the prompt: what stored neutral log-probabilities depend on."""
        return f"{self.model.fingerprint}-{self._prompt.fingerprint}"

    def encode_keys(self, keys: Sequence[str]) -> list[Tokens | None]:
        """Tokens of keys as they stand in the prompt, led by a space.

        ``None`` for a key that the tokenizer cannot spell so that decoding gives it back, or only with more tokens
        than there is room for in the model's window: such a key stays out of the trie, since a path must mean its
        text. A key that merely starts with another's text is no trouble.
        """
        texts = [" " + key for key in keys]
        encoded = self.model.encode_batch(texts)
        return [
            tuple(tokens) if 0 < len(tokens) <= self._longest_key and self._reads_back(tokens, key) else None
            for tokens, key in zip(encoded, keys, strict=True)
        ]

    def _reads_back(self, tokens: list[int], key: str) -> bool:
        return self.model.decode(tokens).strip() == key.strip()

    def decode(self, texts: Sequence[str], constraints: Sequence[Sequence[Constraint]]) -> list[Reading]:
        """Decode for several texts at once; each text is read once for all its constraints.

        Args:
            texts: What to find concepts for. Of a text of over a thousand tokens (or too long for the model's
                window) only the beginning and the end are read; callers that want all of it pass pieces.
            constraints: For each text what to decode over; there may be nothing.
        """
        tree = self.model.tree(self._examples)
        nodes = self._read(tree, texts)
        tokens, logprobs = tree.likeliest(nodes, _ANTICIPATED)
        requests = [
            SearchRequest(node, one.trie, self.terminator, one.prior, one.options, one.excluded)
            for node, several in zip(nodes, constraints, strict=True)
            for one in several
        ]
        found = iter(search(tree, requests))
        return [
            Reading([next(found) for _ in several], Anticipation(*row))
            for several, row in zip(constraints, zip(tokens, logprobs, strict=True), strict=True)
        ]

    def generate(self, texts: Sequence[str], *, max_tokens: int, most: int = 0) -> list[str]:
        """What the model would write as the concepts of each text, free of any constraint: one line each.

        No two concepts of a line begin with the same token.

        Args:
            texts: The texts.
            max_tokens: Most tokens of a line.
            most: Most concepts of a line; 0 for as many as come.
        """
        tree = self.model.tree(self._examples)
        nodes = self._read(tree, texts)
        return generate(
            self.model,
            tree,
            nodes,
            max_tokens=max_tokens,
            stop=("\n",),
            separator=self._prompt.terminator,
            items=most,
        )

    def prompt_tokens(self, text: str) -> list[int]:
        """The whole prompt after which the concepts of a text are decoded."""
        return [*self._examples, *self._chains([text])[0]]

    def _read(self, tree: TokenTree, texts: Sequence[str]) -> list[int]:
        return tree.read_many(self._chains(texts))

    def _chains(self, texts: Sequence[str]) -> list[list[int]]:
        encoded = self.model.encode_batch([" " + " ".join(text.split()) for text in texts])
        return [[*self._before, *_shortened(tokens, self._room), *self._after] for tokens in encoded]

    def neutral_scores(self, keys: Sequence[Tokens]) -> Iterator[dict[Tokens, FloatArray]]:
        """Log-probabilities of keys after the prompt for no text in particular; see :meth:`score`."""
        return self.score(self._prompt.neutral, keys)

    def score(self, text: str, keys: Sequence[Tokens]) -> Iterator[dict[Tokens, FloatArray]]:
        """Log-probabilities of every given key after a text: what a search finds without scoring them all.

        Args:
            text: The text.
            keys: Token sequences, distinct.

        Yields:
            Groups of keys, in the order of their tokens, each with ``log P_θ`` of its tokens and of the
            terminator, shape (len(key) + 1,).
        """
        ordered = sorted(keys)
        for start in range(0, len(ordered), SCORED_TOGETHER):
            group = ordered[start : start + SCORED_TOGETHER]
            tree = self.model.tree(self._examples)
            (node,) = self._read(tree, [text])
            trie = build_trie(group)
            token, end = score_trie(tree, node, trie, self.terminator)
            nodes, starts = trie.paths(np.arange(len(group)))
            scores = np.split(token[nodes], starts[1:-1])
            yield {key: np.append(scores[place], end[place]) for place, key in enumerate(group)}


def _shortened(tokens: list[int], room: int) -> list[int]:
    """The tokens, or as many as there is room for from both ends."""
    if len(tokens) <= room:
        return tokens
    return tokens[: room - room // 2] + tokens[len(tokens) - room // 2 :]


def score_trie(tree: TokenTree, node: int, trie: Trie, terminator: int) -> tuple[FloatArray, FloatArray]:
    """Score a whole (small) trie in one forward pass.

    Returns:
        ``log P_θ`` of the token into each node, shape (node limit,), 0 at the root; and of the terminator after each
        key, shape (key limit,).
    """
    token = np.zeros(trie.node_limit, dtype=np.float32)
    children, parents, tokens = (np.concatenate(parts) for parts in zip(*map(_edges, trie.levels()), strict=True))
    # The pass takes nodes from the root down: each after its parent, whose place in the pass is known by then.
    place = np.zeros(trie.node_limit, dtype=np.int64)
    place[children] = np.arange(len(children))
    top = parents == ROOT
    below = tree.extend(tokens, np.where(top, node, -1 - place[parents]))
    token[children[top]] = tree.logprobs(np.full(int(top.sum()), node), tokens[top])
    if not top.all():
        token[children[~top]] = tree.logprobs(below[place[parents[~top]]], tokens[~top])
    ends = trie.ends()
    live = np.flatnonzero(ends != NO_NODE)
    end = np.zeros(trie.key_limit, dtype=np.float32)
    end[live] = tree.logprobs(below[place[ends[live]]], np.full(len(live), terminator))
    return token, end


def _edges(level: Level) -> tuple[Ints, Ints, Ints]:
    nodes, start, child, token = level
    return child, np.repeat(nodes, np.diff(start)), token


def gather_scores(trie: Trie, scores: Sequence[FloatArray]) -> tuple[FloatArray, FloatArray]:
    """Lay the scores of single keys out over their trie, the inverse of taking them from it.

    Args:
        trie: The trie of the keys, none deleted.
        scores: For each key of the trie, shape (len(key) + 1,) each.

    Returns:
        As :func:`score_trie`.
    """
    token = np.zeros(trie.node_limit, dtype=np.float32)
    flat = np.concatenate(list(scores)).astype(np.float32) if len(scores) else np.zeros(0, dtype=np.float32)
    nodes, starts = trie.paths(np.arange(trie.key_count))
    last = starts[1:] + np.arange(trie.key_count)
    ending = np.zeros(len(flat), dtype=bool)
    ending[last] = True
    token[nodes] = flat[~ending]
    return token, flat[last]
