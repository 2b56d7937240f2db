"""Candidate answers: the constrained decoder over the spans of recalled entries.

Such an answer can only say what the entries say or what their dates mean, and it carries its source. One tree of tokens
holds several questions: below the notes of each stand its question and a neutral one, and what counts is how much
likelier the question makes a span than the neutral one does.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from shared_core.answering.asking import Wanted, options, wanted
from shared_core.answering.prompt import Asked
from shared_core.answering.reading import Reading
from shared_core.answering.spans import Kind, Span, spans
from shared_core.decoding import score_trie
from shared_core.models import LanguageModel
from shared_core.recall import content_stems
from shared_core.schema import Tokens, build_trie

_KINDS: Mapping[Wanted, frozenset[Kind]] = {
    "date": frozenset({"date", "told"}),
    "number": frozenset({"number"}),
    "words": frozenset({"number", "name", "phrase"}),
}
# Tokens of candidates that are scored for a question, those of one candidate at most, and the share of its neutral
# log-probability that the first one is judged without.
_SCORED_TOKENS = 160
_LONGEST_TOKENS = 48
_CALIBRATION = 0.6
_VERDICTS = [Span(text, "verdict") for text in ("Yes", "No", "Likely yes", "Likely no")]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A span that could be the answer.

    Attributes:
        text: The span.
        kind: Its kind.
        sources: Places, among those asked about, of the entries that have it; none of a verdict, nor of a choice that
            the question offers and no entry speaks of.
        tokens: Its number of tokens, the end counted.
        logprob: Its log-probability with the end after the question (natural logarithm).
        neutral: The same after a neutral question.
    """

    text: str
    kind: Kind
    sources: tuple[int, ...]
    tokens: int
    logprob: float
    neutral: float


def find_candidates(reading: Reading) -> list[list[Candidate]]:
    """The likeliest spans of the entries of each question, of the kind that it asks for.

    Every span that begins likely enough is scored, in two forward passes a question; two more for each token that
    more spans begin with than a pass takes.
    """
    found = []
    for asked, *nodes in zip(reading.asked, reading.questions, reading.neutral, strict=True):
        spelt = _spelt(reading.model, asked)
        found.append(_scored(reading, nodes, _promising(reading, nodes, sorted(spelt)), spelt))
    return found


def _promising(
    reading: Reading, nodes: Sequence[int], keys: Sequence[Tokens], depth: int = 0, room: int = _SCORED_TOKENS
) -> list[Tokens]:
    """Keys that go on with what the question, more than the neutral one, makes likely: as many as a pass takes.

    Args:
        reading: The questions.
        nodes: After these two, the question's and the neutral one's, the keys go on.
        keys: Sorted, the same in their first ``depth`` tokens.
        depth: How many tokens of each key have been read.
        room: Tokens that may be scored.
    """
    if _size(keys, depth) <= room:
        return list(keys)
    groups = {token: list(group) for token, group in itertools.groupby(_longer(keys, depth), lambda key: key[depth])}
    first = np.array(list(groups))
    asked, neutral = (reading.tree.logprobs(np.full(len(first), node), first) for node in nodes)
    kept = [key for key in keys if len(key) == depth]
    best, *others = first[np.argsort(-(asked - _CALIBRATION * neutral), kind="stable")].tolist()
    if _size(groups[best], depth) > room:  # the likeliest beginning of a long text may be that of very many spans
        below = [reading.tree.read([best], node) for node in nodes]
        kept += _promising(reading, below, groups[best], depth + 1, room - 1)
    else:
        others = [best, *others]
    room -= _size(kept, depth)
    for token in others:
        size = _size(groups[token], depth)
        if size <= room:
            kept += groups[token]
            room -= size
    return sorted(kept)


def _longer(keys: Sequence[Tokens], depth: int) -> list[Tokens]:
    return [key for key in keys if len(key) > depth]


def _size(keys: Sequence[Tokens], depth: int) -> int:
    """Nodes of the trie of some keys below a depth up to which they are the same; sorted, a key adds what is new."""
    size = 0
    for before, key in zip([(), *keys], keys, strict=False):
        shared = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(before, key, strict=False)))
        size += len(key) - max(shared, depth)
    return size


def _spelt(model: LanguageModel, asked: Asked) -> dict[Tokens, tuple[Span, tuple[int, ...]]]:
    """The candidates by their tokens, each with the entries that have it."""
    kind = wanted(asked.query)
    found: dict[str, tuple[Span, tuple[int, ...]]] = {}
    if kind == "words":
        found = _offered(asked) or _found(asked, _KINDS[kind])
    elif kind != "verdict":
        found = _found(asked, _KINDS[kind])
    elif asked.entries:
        found = {one.text: (one, ()) for one in _VERDICTS}
    encoded = model.encode_batch([f" {text}" for text in found])
    return {
        tuple(tokens): pair
        for tokens, pair in zip(encoded, found.values(), strict=True)
        if 0 < len(tokens) <= _LONGEST_TOKENS
    }


def _offered(asked: Asked) -> dict[str, tuple[Span, tuple[int, ...]]]:
    """What the question offers to choose from, each with the entries that speak of it."""
    offered = options(asked.query)
    if not offered or not asked.entries:
        return {}
    said = [set(content_stems(entry.content)) for entry in asked.entries]
    found: dict[str, tuple[Span, tuple[int, ...]]] = {}
    for option in offered:
        own = content_stems(option)
        places = tuple(place for place, stems in enumerate(said) if not stems.isdisjoint(own))
        found[option] = Span(option, "phrase"), places
    return found


def _found(asked: Asked, kinds: frozenset[Kind]) -> dict[str, tuple[Span, tuple[int, ...]]]:
    """The spans of some kinds by their text, each with the entries that have it; the first decides the kind."""
    found: dict[str, tuple[Span, tuple[int, ...]]] = {}
    for place, entry in enumerate(asked.entries):
        for one in spans(entry.content, entry.occurred_at.date() if entry.occurred_at else None):
            if one.kind in kinds:
                first, sources = found.get(one.text, (one, ()))
                found[one.text] = first, (*sources, place)
    return found


def _scored(
    reading: Reading,
    nodes: Sequence[int],
    keys: Sequence[Tokens],
    spelt: Mapping[Tokens, tuple[Span, tuple[int, ...]]],
) -> list[Candidate]:
    """Keys with their log-probabilities after both questions."""
    if not keys:
        return []
    trie = build_trie(keys)
    path, starts = trie.paths(np.arange(len(keys)))
    both = []
    for node in nodes:
        token, end = score_trie(reading.tree, node, trie, reading.terminator)
        both.append((np.add.reduceat(token[path], starts[:-1]) + end).tolist())
    return [
        Candidate(*spelt[key][0], spelt[key][1], len(key) + 1, asked, neutral)
        for key, asked, neutral in zip(keys, *both, strict=True)
    ]
