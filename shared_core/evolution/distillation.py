"""Distilling entries with the model: assimilation, the novelty gate, and accommodation, in one reading each."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from shared_core.config import SCGConfig
from shared_core.decoding import (
    ConceptDecoder,
    Constraint,
    DecodedKey,
    KeyVoice,
    Reading,
    SearchOptions,
    SpokenSchema,
    trie_keys,
)
from shared_core.entry import MemoryEntry
from shared_core.evolution.accommodation import said_concepts, validated
from shared_core.schema import Trie, build_trie
from shared_core.store import Anticipation, ConceptLink

# Words of a long entry that are read at once. Concepts of a text fade when it grows much beyond a paragraph.
_PIECE_WORDS = 160
# Characters after which even text without spaces is cut.
_PIECE_CHARACTERS = 1200
_UNKNOWN = "unknown"

# By what is sought: over what, and what was found.
_Searches: TypeAlias = dict[str, Constraint]
_Found: TypeAlias = dict[str, list[DecodedKey]]


@dataclass(frozen=True, slots=True, eq=False)
class Vocabulary:
    """The schema that entries are assimilated into.

    Attributes:
        concepts: Each a key and its display form.
        spoken: The concepts as the model can say them.
    """

    concepts: Sequence[tuple[str, str]]
    spoken: SpokenSchema

    def link(self, decoded: DecodedKey, weight: float) -> ConceptLink:
        """An inferred link to a decoded concept."""
        key, surface = self.concepts[int(self.spoken.concept[decoded.key])]
        return ConceptLink(key, surface, weight, "inferred")


def read_in_pieces(entry: MemoryEntry) -> list[str]:
    """What the model reads of an entry: who said what, a long text in pieces that it can take in."""
    lead = f"{entry.speaker}: " if entry.speaker else ""
    pieces: list[str] = []
    words: list[str] = []
    size = 0
    for word in _bounded_words(entry.content):
        if words and (len(words) == _PIECE_WORDS or size + len(word) > _PIECE_CHARACTERS):
            pieces.append(lead + " ".join(words))
            words, size = [], 0
        words.append(word)
        size += len(word) + 1
    return [*pieces, lead + " ".join(words)]


def _bounded_words(text: str) -> Iterator[str]:
    for word in text.split():
        yield from re.findall(f".{{1,{_PIECE_CHARACTERS}}}", word, re.DOTALL)


@dataclass(frozen=True, slots=True, eq=False)
class Assimilated:
    """What assimilation gives for one entry.

    Attributes:
        links: Inferred links.
        anticipation: What the model expects its concepts to begin with.
    """

    links: list[ConceptLink]
    anticipation: Anticipation


class Distiller:
    """Finds the concepts of entries with the model.

    Args:
        voice: The model's knowledge of keys.
        config: The memory's settings.
    """

    def __init__(self, voice: KeyVoice, config: SCGConfig) -> None:
        self._voice = voice
        self._decoder: ConceptDecoder = voice.decoder
        self._config = config
        self._assimilation = SearchOptions(
            width=config.assimilate_width,
            score=config.score,
            calibration=config.calibration,
            lookahead=config.lookahead,
        )

    def assimilate(
        self, entries: Sequence[MemoryEntry], said: Sequence[NDArray[np.int64]], vocabulary: Vocabulary
    ) -> list[Assimilated]:
        """The best existing concepts of each entry that it does not say itself (Eq. 7).

        Args:
            entries: The entries.
            said: Concepts of the vocabulary that each entry is linked to already, shape (n,) each.
            vocabulary: The schema.

        Returns:
            At most ``config.assimilate`` inferred links per piece of an entry, and what the model expects of it.
        """
        constraints = [self._constraint(vocabulary, concepts) for concepts in said]
        results = []
        for pieces in self._decode(entries, [[constraint] for constraint in constraints]):
            best: dict[int, DecodedKey] = {}
            for piece in pieces:
                for one in piece.keys[0][: self._config.assimilate]:
                    if one.key not in best or one.score > best[one.key].score:
                        best[one.key] = one
            links = [vocabulary.link(one, self._config.inferred_weight) for one in best.values()]
            results.append(Assimilated(links, _together([piece.anticipation for piece in pieces])))
        return results

    def anticipate(self, entries: Sequence[MemoryEntry]) -> list[Anticipation]:
        """What the model expects the concepts of each entry to begin with."""
        decoded = self._decode(entries, [[] for _ in entries])
        return [_together([piece.anticipation for piece in pieces]) for pieces in decoded]

    def evolve(self, entries: Sequence[MemoryEntry], vocabulary: Vocabulary) -> list[list[ConceptLink]]:
        """Assimilation and accommodation of each entry, both from one reading (Eq. 7 to 9).

        Returns:
            The links of each entry. An entry for which the model finds nothing, or nothing new though it is novel,
            keeps its own phrases, so that it can be recalled.
        """
        config = self._config
        shared = self._searches(vocabulary)
        spans = [self._spans(entry) for entry in entries]
        searches = [shared | ({"spans": Constraint(trie, self._span_search())} if trie else {}) for trie, _ in spans]
        decoded = self._found(entries, searches)
        novel = [self._is_novel(pieces, vocabulary) for pieces in decoded]
        written = self._write(entries, novel) if config.accommodation == "generate" else {}
        results = []
        for place, (entry, pieces) in enumerate(zip(entries, decoded, strict=True)):
            links: dict[str, ConceptLink] = {}
            if novel[place]:
                surfaces = written.get(place) or [
                    spans[place][1][one.key] for found in pieces for one in found.get("spans", ())
                ]
                for link in validated(
                    surfaces, entry, limit=config.new_concepts * len(pieces), grounded=config.grounded
                ):
                    links[link.key] = link
            known = {link.key: link for link in said_concepts(entry)}
            for found in pieces:
                for one in found.get("assimilated", ())[: config.assimilate]:
                    inferred = vocabulary.link(one, config.inferred_weight)
                    links.setdefault(inferred.key, known.get(inferred.key, inferred))
            if (novel[place] or not links) and not any(link.is_grounding for link in links.values()):
                links.update(list(known.items())[: config.new_concepts])
            results.append(list(links.values()))
        return results

    def _found(self, entries: Sequence[MemoryEntry], searches: Sequence[_Searches]) -> list[list[_Found]]:
        """For each entry, and each of its pieces, the keys that each search finds; unread where nothing is sought."""
        if not any(searches):
            return [[{} for _ in read_in_pieces(entry)] for entry in entries]
        decoded = self._decode(entries, [list(wanted.values()) for wanted in searches])
        return [
            [dict(zip(wanted, piece.keys, strict=True)) for piece in pieces]
            for wanted, pieces in zip(searches, decoded, strict=True)
        ]

    def _decode(self, entries: Sequence[MemoryEntry], constraints: Sequence[list[Constraint]]) -> list[list[Reading]]:
        """For each entry the readings of its pieces."""
        texts = [(place, piece) for place, entry in enumerate(entries) for piece in read_in_pieces(entry)]
        results: list[list[Reading]] = [[] for _ in entries]
        for start in range(0, len(texts), self._config.batch):
            group = texts[start : start + self._config.batch]
            found = self._decoder.decode([text for _, text in group], [constraints[place] for place, _ in group])
            for (place, _), reading in zip(group, found, strict=True):
                results[place].append(reading)
        return results

    def _constraint(self, vocabulary: Vocabulary, said: NDArray[np.int64] | None = None) -> Constraint:
        spoken = vocabulary.spoken
        excluded = None if said is None else trie_keys(spoken, said)
        return Constraint(spoken.trie, self._assimilation, spoken.prior, excluded)

    def _searches(self, vocabulary: Vocabulary) -> _Searches:
        """What is sought for every entry: concepts to ground it in, and what the gate compares.

        The gate compares by ``log P_θ``, whatever the score: ``log P_S`` of the only key there is would be 0.
        """
        config = self._config
        searches = {"assimilated": self._constraint(vocabulary)} if config.assimilate else {}
        if config.gate != "always":
            base = SearchOptions(width=config.assimilate_width, score="base", lookahead=False)
            searches["best"] = Constraint(vocabulary.spoken.trie, base)
        if config.gate == "unknown":
            (tokens,) = self._voice.tokens([_UNKNOWN])
            trie = build_trie([tokens] if tokens else [])
            searches["unknown"] = Constraint(trie, SearchOptions(width=1, score="base"))
        return searches

    def _spans(self, entry: MemoryEntry) -> tuple[Trie | None, list[str]]:
        """The trie of an entry's own spans, and their display forms."""
        if self._config.accommodation != "spans":
            return None, []
        links = said_concepts(entry)
        spelled = [
            (tokens, link.surface)
            for tokens, link in zip(self._voice.tokens([link.key for link in links]), links, strict=True)
            if tokens is not None
        ]
        return build_trie([tokens for tokens, _ in spelled]), [surface for _, surface in spelled]

    def _span_search(self) -> SearchOptions:
        return SearchOptions(width=self._config.new_concepts, score=self._config.score, lookahead=False)

    def _is_novel(self, pieces: Sequence[_Found], vocabulary: Vocabulary) -> bool:
        """Whether the schema does not represent an entry, in any of its pieces, well enough."""
        config = self._config
        if config.gate == "always":
            return True
        for found in pieces:
            if not found["best"]:
                return True
            if config.gate == "unknown":
                unknown = found["unknown"]
                novel = bool(unknown) and unknown[0].logprob > found["best"][0].logprob
            else:
                # One key that fits, or that its first token gives away, does not make the schema fit.
                best = found["best"][: max(1, config.assimilate)]
                steps = sum(len(vocabulary.spoken.trie.tokens_of(one.key)) + 1 for one in best)
                novel = math.exp(-sum(one.logprob for one in best) / steps) > config.perplexity_threshold
            if novel:
                return True
        return False

    def _write(self, entries: Sequence[MemoryEntry], novel: Sequence[bool]) -> dict[int, list[str]]:
        """Freely generated concepts of the novel entries, by place."""
        texts = [
            (place, piece) for place, entry in enumerate(entries) if novel[place] for piece in read_in_pieces(entry)
        ]
        config = self._config
        # Of those that have to be in the entry's own words many are not: the more are written, the more are left.
        most = 0 if config.grounded else config.new_concepts
        written: dict[int, list[str]] = {}
        for start in range(0, len(texts), config.batch):
            group = texts[start : start + config.batch]
            lines = self._decoder.generate([text for _, text in group], max_tokens=6 * config.new_concepts, most=most)
            for (place, _), line in zip(group, lines, strict=True):
                written.setdefault(place, []).extend(line.split(","))
        return written


def _together(pieces: Sequence[Anticipation]) -> Anticipation:
    """What the pieces of one entry make the model expect: of each token the most that any of them does."""
    if len(pieces) == 1:
        return pieces[0]
    tokens = np.concatenate([piece.tokens for piece in pieces])
    logprobs = np.concatenate([piece.logprobs for piece in pieces])
    order = np.argsort(-logprobs, kind="stable")
    _, firsts = np.unique(tokens[order], return_index=True)
    kept = order[np.sort(firsts)[: len(pieces[0].tokens)]]
    return Anticipation(tokens[kept], logprobs[kept])
