"""Ranking: from activated concepts and full-text scores to entries. Arrays only, no text.

An entry is scored as a turn of an episode, at three scales:

1. *Turn*: Σ over its concepts of activation · IDF · link weight, as a share of the best entry's; plus the share of
   the query that its words cover; plus how much it makes the model expect what the query does.
2. *Passage*: the best turn score within a few turns; and an answer inherits from the question before it.
3. *Session*: what the session covers as a whole, each concept and each word counted once, where it scores
   best.

Then entries whose speaker the query names are raised.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from shared_core.graph import Incidence

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
AnyInts: TypeAlias = NDArray[np.integer]
AnyFloats: TypeAlias = NDArray[np.floating]


@dataclass(frozen=True, slots=True)
class RankingWeights:
    """How much each part of an entry's score counts; concepts count 1.

    The defaults are the best of a flat optimum on dialogues: each part pays, no value within a third of its
    default loses a point of recall.

    Attributes:
        lexical: The share of the query that the entry's own words cover.
        anticipation: How much of what the query makes the model expect the entry does as well.
        answer: Share of the previous turn's score that a turn inherits when that turn asked a question.
        passage: Share of the best turn score within ``passage_radius`` turns of the same session.
        passage_radius: Turns to either side.
        session: Share of the session's coverage.
        speaker: Relative raise when the query names the entry's speaker.
    """

    lexical: float = 4.0
    anticipation: float = 7.0
    answer: float = 0.6
    passage: float = 0.7
    passage_radius: int = 2
    session: float = 0.2
    speaker: float = 0.7


@dataclass(frozen=True, slots=True, eq=False)
class Episodes:
    """Where each entry stands in its conversation.

    Attributes:
        sessions: Session of each entry, numbered from 0, shape (entries,). An entry outside any session is a
            session of its own.
        speakers: Speaker of each entry, -1 when unknown, shape (entries,).
        asks: Whether the entry ends in a question, shape (entries,).
        sequence: Entries ordered by session, then by time, shape (entries,).
    """

    sessions: Ints
    speakers: Ints
    asks: NDArray[np.bool_]
    sequence: Ints

    @classmethod
    def arrange(
        cls,
        sessions: AnyInts,
        speakers: AnyInts,
        asks: NDArray[np.bool_],
        order: AnyInts | AnyFloats,
    ) -> Episodes:
        """Arrange entries by session and time.

        Args:
            sessions: Session of each entry in any numbering, negative outside any session, shape (entries,).
            speakers: Speaker of each entry in any numbering, -1 when unknown, shape (entries,).
            asks: Whether the entry ends in a question, shape (entries,).
            order: Sorts the entries of a session by time, shape (entries,).
        """
        numbers = sessions.astype(np.int64)
        alone = np.flatnonzero(numbers < 0)
        numbers[alone] = int(numbers.max(initial=-1)) + 1 + np.arange(len(alone))
        dense = np.unique(numbers, return_inverse=True)[1].astype(np.int64)
        sequence = np.lexsort((order, dense)).astype(np.int64)
        return cls(dense, speakers.astype(np.int64), asks, sequence)


@dataclass(frozen=True, slots=True, eq=False)
class EntryScores:
    """The score of every entry and its parts, each of shape (entries,).

    ``total = (concepts + lexical + anticipation + answer + passage + session) · speaker``.

    Attributes:
        total: What entries are ranked by; 0 when nothing of the query is near.
        concepts: From the entry's own concepts, at most 1.
        lexical: From its own words, about ``RankingWeights.lexical`` where they cover the whole query.
        anticipation: From what the model expects of it, at most ``RankingWeights.anticipation``.
        answer: Inherited from the question before it.
        passage: From the best entry nearby, itself included.
        session: From its session.
        speaker: Factor, 1 unless the query names the speaker.
    """

    total: Floats
    concepts: Floats
    lexical: Floats
    anticipation: Floats
    answer: Floats
    passage: Floats
    session: Floats
    speaker: Floats


def rank_entries(
    incidence: Incidence,
    idf: AnyFloats,
    activations: AnyFloats,
    episodes: Episodes,
    lexical: AnyFloats,
    lexical_sessions: AnyFloats,
    anticipation: AnyFloats | None = None,
    named: Collection[int] = (),
    weights: RankingWeights | None = None,
) -> EntryScores:
    """Score every entry for a query.

    Args:
        incidence: The entries of each concept.
        idf: Inverse document frequency of each concept, shape (concepts,).
        activations: Activation of each concept, 0 or more, shape (concepts,).
        episodes: Where the entries stand.
        lexical: Share of the query that each entry's words cover, shape (entries,). Not relative to the best
            entry: a query whose words hardly occur is left to the concepts.
        lexical_sessions: The same for each session of ``episodes``, shape (sessions,).
        anticipation: See :meth:`.AnticipationIndex.similarities`, shape (entries,); None where nothing is known.
        named: Speakers the query names.
        weights: The parts' weights; None takes the defaults.
    """
    share = weights or RankingWeights()
    entries, evidence, owners = _evidence(incidence, idf, activations)
    concepts = np.zeros(len(episodes.sessions))
    np.add.at(concepts, entries, evidence)
    best_concepts = _best(concepts)
    concepts /= best_concepts
    words = share.lexical * lexical.astype(np.float64)
    expected = np.zeros(len(words))
    if anticipation is not None:
        expected += share.anticipation * anticipation
    turn = concepts + words + expected

    covered = _coverage(owners, episodes.sessions[entries], evidence, len(lexical_sessions)) / best_concepts
    covered += share.lexical * lexical_sessions.astype(np.float64)
    session = share.session * covered[episodes.sessions]
    answer = share.answer * _asked_before(turn, episodes)
    passage = share.passage * _best_nearby(turn, episodes, share.passage_radius)
    speaker = np.where(np.isin(episodes.speakers, list(named)), 1 + share.speaker, 1.0)
    total = (turn + answer + passage + session) * speaker
    return EntryScores(total, concepts, words, expected, answer, passage, session, speaker)


def _evidence(incidence: Incidence, idf: AnyFloats, activations: AnyFloats) -> tuple[NDArray[np.int32], Floats, Ints]:
    """Entry, summand and concept of every link of an active concept, each shape (links,)."""
    active = np.flatnonzero(activations)
    positions, sizes = incidence.rows(active)
    strength = (activations[active] * idf[active]).astype(np.float64)
    summands = np.repeat(strength, sizes) * incidence.weights[positions]
    return incidence.members[positions], summands, np.repeat(active, sizes)


def _best(scores: AnyFloats) -> float:
    """The highest score, to divide by; infinite when there is none, so that nothing counts."""
    return float(scores.max(initial=0.0)) or np.inf


def _coverage(owners: Ints, sessions: Ints, evidence: Floats, session_count: int) -> Floats:
    """Per session, the sum over concepts of the best summand there, shape (sessions,)."""
    if not len(owners):
        return np.zeros(session_count)
    pairs = owners * session_count + sessions
    order = np.argsort(pairs, kind="stable")
    firsts = np.flatnonzero(np.diff(pairs[order], prepend=-1))
    best = np.maximum.reduceat(evidence[order], firsts)
    return np.bincount(sessions[order[firsts]], weights=best, minlength=session_count).astype(np.float64)


def _asked_before(turn: Floats, episodes: Episodes) -> Floats:
    """The turn score of the question each entry follows, else 0, shape (entries,)."""
    sequence = episodes.sequence
    sessions = episodes.sessions[sequence]
    follows = (sessions[1:] == sessions[:-1]) & episodes.asks[sequence[:-1]]
    inherited = np.zeros_like(turn)
    inherited[sequence[1:]] = np.where(follows, turn[sequence[:-1]], 0)
    return inherited


def _best_nearby(turn: Floats, episodes: Episodes, radius: int) -> Floats:
    """The best turn score within so many turns of a session, the entry's own included, shape (entries,)."""
    sequence = episodes.sequence
    scores, sessions = turn[sequence], episodes.sessions[sequence]
    best = scores.copy()
    for distance in range(1, radius + 1):
        together = sessions[distance:] == sessions[:-distance]
        later, earlier = best[distance:], best[:-distance]
        np.maximum(later, scores[:-distance], out=later, where=together)
        np.maximum(earlier, scores[distance:], out=earlier, where=together)
    passage = np.empty_like(best)
    passage[sequence] = best
    return passage
