"""Candidate answers: the constrained decoder over the spans of recalled entries.

Such an answer can only say what the entries say or what their dates mean, and it carries its source. One tree of tokens
holds several questions: below the notes of each stand its question and a neutral one, and what counts is how much
likelier the question makes a span than the neutral one does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from shared_core.answering.asking import Wanted, wanted
from shared_core.answering.prompt import Asked
from shared_core.answering.reading import Reading
from shared_core.answering.spans import Kind, Span, spans
from shared_core.decoding import SearchOptions, SearchRequest, score_trie, search
from shared_core.models import LanguageModel
from shared_core.schema import Tokens, build_trie

_KINDS: Mapping[Wanted, frozenset[Kind]] = {
    "date": frozenset({"date", "told"}),
    "number": frozenset({"number"}),
    "words": frozenset({"number", "name", "phrase"}),
}
_VERDICTS = [Span(text, "verdict") for text in ("Yes", "No", "Likely yes", "Likely no")]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A span that could be the answer.

    Attributes:
        text: The span.
        kind: Its kind.
        sources: Places, among those asked about, of the entries that have it; none of a verdict.
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


def find_candidates(reading: Reading, width: int) -> list[list[Candidate]]:
    """The likeliest spans of the entries of each question, of the kind that it asks for, ``width`` of them at most."""
    spelt = [_spelt(reading.model, one) for one in reading.asked]
    keys = [sorted(own) for own in spelt]
    options = SearchOptions(width, lookahead=False)
    requests = [
        SearchRequest(node, build_trie(own), reading.terminator, None, options)
        for own, node in zip(keys, reading.questions, strict=True)
    ]
    found = search(reading.tree, requests)
    return [
        _weighed(reading, node, {own[one.key]: one.logprob for one in decoded}, origin)
        for node, own, decoded, origin in zip(reading.neutral, keys, found, spelt, strict=True)
    ]


def _spelt(model: LanguageModel, asked: Asked) -> dict[Tokens, tuple[Span, tuple[int, ...]]]:
    """The candidates by their tokens, each with the entries that have it."""
    kind = wanted(asked.query)
    if kind == "verdict":
        found = {one.text: (one, ()) for one in _VERDICTS if asked.entries}
    else:
        found = _found(asked, _KINDS[kind])
    encoded = model.encode_batch([f" {text}" for text in found])
    return {tuple(tokens): pair for tokens, pair in zip(encoded, found.values(), strict=True) if tokens}


def _found(asked: Asked, kinds: frozenset[Kind]) -> dict[str, tuple[Span, tuple[int, ...]]]:
    """The spans of some kinds by their text, each with the entries that have it; the first decides the kind."""
    found: dict[str, tuple[Span, tuple[int, ...]]] = {}
    for place, entry in enumerate(asked.entries):
        for one in spans(entry.content, entry.occurred_at.date() if entry.occurred_at else None):
            if one.kind in kinds:
                first, sources = found.get(one.text, (one, ()))
                found[one.text] = first, (*sources, place)
    return found


def _weighed(
    reading: Reading, neutral: int, found: Mapping[Tokens, float], spelt: Mapping[Tokens, tuple[Span, tuple[int, ...]]]
) -> list[Candidate]:
    """What was found, with its log-probabilities below the neutral question, likeliest first."""
    if not found:
        return []
    keys = sorted(found)
    trie = build_trie(keys)
    token, end = score_trie(reading.tree, neutral, trie, reading.terminator)
    path, starts = trie.paths(np.arange(len(keys)))
    weights = dict(zip(keys, np.add.reduceat(token[path], starts[:-1]) + end, strict=True))
    return [
        Candidate(*spelt[key][0], spelt[key][1], len(key) + 1, logprob, float(weights[key]))
        for key, logprob in found.items()
    ]
