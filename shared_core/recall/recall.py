"""The read path: activate seeds, propagate, rank, and give back entries with reasons (Eq. 11 to 13)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from shared_core.config import SCGConfig
from shared_core.decoding import Constraint, DecodedKey, SearchOptions, SpokenSchema
from shared_core.errors import InvalidInputError
from shared_core.filters import Filter
from shared_core.graph import Hop, Propagation
from shared_core.recall.mentions import named
from shared_core.recall.ranking import EntryScores, RankingWeights, rank_entries
from shared_core.recall.relevance import relevances
from shared_core.recall.results import ContextConcept, Reason, Recall, RecalledEntry, Seed, Source
from shared_core.recall.snapshot import Snapshot
from shared_core.store import ORIGINS


@dataclass(frozen=True, slots=True)
class Question:
    """One thing to recall.

    Attributes:
        query: The query.
        k: Entries to return at most; ``None`` for every entry that is reached.
        concepts: Concepts to activate at most; ``None`` for no bound.
        where: Which entries may come back.
    """

    query: str
    k: int | None
    concepts: int | None = None
    where: Filter | None = None


def check_count(k: object) -> None:
    """Refuse what is no number of things to recall; ``None`` leaves it to the configuration.

    Raises:
        InvalidInputError: if it is no whole number, or below 1.
    """
    if k is not None and (isinstance(k, bool) or not isinstance(k, int) or k < 1):
        raise InvalidInputError(f"k must be a whole number of at least 1, not {k!r:.200}")


def check_threshold(least: object) -> None:
    """Refuse what is no least relevance; ``None`` is none.

    Raises:
        InvalidInputError: if it is no number in [0, 1].
    """
    if least is None:
        return
    if isinstance(least, bool) or not isinstance(least, int | float) or not 0 <= least <= 1:
        raise InvalidInputError(f"score_threshold must be a number from 0 to 1, not {least!r:.200}")


def seed_constraint(spoken: SpokenSchema, config: SCGConfig) -> Constraint:
    """What seeds are decoded over, and how (Eq. 11)."""
    options = SearchOptions(
        width=config.width,
        method=config.method,
        score=config.score,
        calibration=config.calibration,
        lookahead=config.lookahead,
        seed=config.seed,
    )
    return Constraint(spoken.trie, options, spoken.prior)


def unweighed(decoded: Sequence[DecodedKey], spoken: SpokenSchema) -> NDArray[np.int64]:
    """Keys among the decoded whose calibration rests on a stand-in, ascending, shape (n,)."""
    return np.array(sorted(one.key for one in decoded if not spoken.known[one.key]), dtype=np.int64)


def generated_seeds(
    decoded: Sequence[DecodedKey], spoken: SpokenSchema, config: SCGConfig
) -> list[tuple[int, float, float]]:
    """Decoded keys as concepts: (index, log-probability, score), best first.

    Scores are taken from the prior of ``spoken``, which may know more than the one that was searched with.
    """
    if config.method != "sample":
        calibrated = [(one, one.logprob - config.calibration * float(spoken.prior.total[one.key])) for one in decoded]
    else:
        calibrated = [(one, one.score) for one in decoded]
    calibrated.sort(key=lambda pair: (-pair[1], pair[0].key))
    return [(int(spoken.concept[one.key]), one.logprob, score) for one, score in calibrated]


class Recaller:
    """Answers questions on one snapshot.

    Args:
        snapshot: The memory.
        config: Its settings.
    """

    def __init__(self, snapshot: Snapshot, config: SCGConfig) -> None:
        self._snapshot = snapshot
        self._config = config
        self._weights = RankingWeights(
            lexical=config.lexical_weight,
            anticipation=config.anticipation_weight,
            answer=config.answer_weight,
            passage=config.passage_weight,
            passage_radius=config.passage_radius,
            session=config.session_weight,
            speaker=config.speaker_weight,
        )

    def recall(
        self,
        question: Question,
        generated: Sequence[tuple[int, float, float]],
        evidence: float = 0.0,
        anticipation: NDArray[np.float64] | None = None,
    ) -> Recall:
        """Constructive recall for one question.

        Args:
            question: What to recall.
            generated: The seeds that were generated for it, see :func:`generated_seeds`.
            evidence: What they say of its relevance, see :func:`generated_evidence`.
            anticipation: How much of what the query makes the model expect each entry does, shape (entries,).
        """
        seeds = self._seeds(question, generated)
        hops = self._propagate(list(seeds))
        activation, context = self._activate(seeds, hops, question.concepts)
        scores, held = self._rank(question.query, activation, anticipation)
        relevance = relevances(scores, held, self._weights, evidence)
        chosen = self._choose(question, scores)
        kept_seeds = {concept: seed for concept, seed in seeds.items() if activation[concept] > 0}
        return Recall(
            query=question.query,
            entries=tuple(
                self._explain(entry, scores, activation, kept_seeds, context, float(relevance[entry]))
                for entry in chosen
            ),
            seeds=tuple(kept_seeds.values()),
            context=tuple(self._context_concept(hop, activation, context) for hop in context.values()),
        )

    def _seeds(self, question: Question, generated: Sequence[tuple[int, float, float]]) -> dict[int, Seed]:
        """Generated and mentioned seeds by concept, strongest first."""
        config, snapshot = self._config, self._snapshot
        found: dict[int, tuple[float, float | None, Source]] = {}
        best = generated[0][2] if generated else 0.0
        for concept, decoded, score in generated:
            strength = config.generation_weight * float(np.exp((score - best) / config.generation_temperature))
            found[concept] = strength, decoded, "generated"
        if config.mentions:
            for concept, coverage in snapshot.mentions.find(question.query):
                strength, logprob, _ = found.get(concept, (0.0, None, "mentioned"))
                source: Source = "both" if concept in found else "mentioned"
                found[concept] = strength + config.mention_weight * coverage, logprob, source
        active = [concept for concept in found if found[concept][0] > 0]
        order = sorted(active, key=lambda concept: (-found[concept][0], concept))
        return {
            concept: Seed(
                snapshot.keys[concept],
                snapshot.surfaces[concept],
                found[concept][2],
                found[concept][0],
                found[concept][1],
            )
            for concept in order
        }

    def _propagate(self, seeds: Sequence[int]) -> list[Hop]:
        config = self._config
        options = Propagation(
            hops=config.hops,
            fan_out=config.fan_out,
            temperature=config.temperature,
            sample=config.sample_context,
            seed=config.seed,
        )
        return self._snapshot.graph.propagate(seeds, options)

    def _activate(
        self, seeds: dict[int, Seed], hops: Sequence[Hop], budget: int | None
    ) -> tuple[NDArray[np.float64], dict[int, Hop]]:
        """Activation of every concept, shape (concepts,), and the hop that reached each context concept."""
        activation = np.zeros(len(self._snapshot.keys))
        distance = np.zeros(len(activation))
        for concept, seed in seeds.items():
            activation[concept] = seed.activation
        for hop in hops:
            distance[hop.concept] = hop.hops
            activation[hop.concept] = self._config.context_weight * hop.probability * seeds[hop.seed].activation
        if budget is not None and np.count_nonzero(activation) > budget:
            order = np.lexsort((distance, -activation))  # of equals, what others were reached from stays
            activation[order[budget:]] = 0.0
        return activation, {hop.concept: hop for hop in hops if activation[hop.concept] > 0}

    def _rank(
        self, query: str, activation: NDArray[np.float64], anticipation: NDArray[np.float64] | None
    ) -> tuple[EntryScores, EntryScores]:
        """The scores of all entries, and the same without anticipations."""
        snapshot = self._snapshot
        whole = max(snapshot.lexical.whole(query), 1e-9)
        rank = partial(
            rank_entries,
            snapshot.evidence,
            snapshot.rarity,
            activation,
            snapshot.episodes,
            snapshot.lexical.scores(query) / whole,
            snapshot.lexical.group_scores(query, snapshot.episodes.sessions) / whole,
            named=named(query, snapshot.speakers),
            weights=self._weights,
        )
        held = rank()
        return (held if anticipation is None else rank(anticipation)), held

    def _choose(self, question: Question, scores: EntryScores) -> list[int]:
        """The entries to return, best first; ties go to the earlier entry."""
        total = scores.total.astype(np.float64)
        # Being in the right session alone does not bring an entry: it or its neighbours must be reached.
        wanted = scores.concepts + scores.lexical + scores.anticipation + scores.answer + scores.passage > 0
        if question.concepts is not None:
            wanted &= scores.concepts > 0
        if question.where is not None and not question.where.is_empty:
            matching = (question.where.matches(one.entry) for one in self._snapshot.entries)
            wanted &= np.fromiter(matching, dtype=bool, count=len(total))
        places = np.flatnonzero(wanted)
        ordered = places[np.argsort(-total[places], kind="stable")]
        return [int(place) for place in ordered[: question.k]]

    def _explain(
        self,
        entry: int,
        scores: EntryScores,
        activation: NDArray[np.float64],
        seeds: dict[int, Seed],
        context: dict[int, Hop],
        relevance: float,
    ) -> RecalledEntry:
        snapshot = self._snapshot
        concepts, _ = snapshot.graph.by_entry.row(entry)
        reasons = [
            self._reason(int(concept), entry, activation, seeds, context)
            for concept in concepts
            if activation[concept] > 0
        ]
        # Ranking puts concept scores on a scale of its own; the reasons add up to what is left of them.
        total = sum(reason.contribution for reason in reasons)
        scale = float(scores.concepts[entry]) / total if total else 0.0
        reasons = [replace(reason, contribution=reason.contribution * scale) for reason in reasons]
        parts = ("concepts", "lexical", "anticipation", "answer", "passage", "session", "speaker")
        return RecalledEntry(
            snapshot.entries[entry].entry,
            float(scores.total[entry]),
            tuple(sorted(reasons, key=lambda reason: (-reason.contribution, reason.key))),
            {part: float(getattr(scores, part)[entry]) for part in parts},
            relevance,
        )

    def _reason(
        self,
        concept: int,
        entry: int,
        activation: NDArray[np.float64],
        seeds: dict[int, Seed],
        context: dict[int, Hop],
    ) -> Reason:
        snapshot = self._snapshot
        members, weights = snapshot.graph.by_concept.row(concept)
        at = int(np.flatnonzero(members == entry)[0])
        hop = context.get(concept)
        return Reason(
            key=snapshot.keys[concept],
            surface=snapshot.surfaces[concept],
            source="context" if hop else seeds[concept].source,
            seed=snapshot.keys[hop.seed] if hop else None,
            origin=ORIGINS[int(snapshot.origin[snapshot.graph.by_concept.starts[concept] + at])],
            contribution=float(activation[concept] * snapshot.rarity[concept] * weights[at]),
        )

    def _context_concept(self, hop: Hop, activation: NDArray[np.float64], context: dict[int, Hop]) -> ContextConcept:
        snapshot = self._snapshot
        path = [hop.concept]
        step = hop
        while step.source != step.seed and step.source in context:
            step = context[step.source]
            path.append(step.concept)
        path.append(hop.seed)
        return ContextConcept(
            key=snapshot.keys[hop.concept],
            surface=snapshot.surfaces[hop.concept],
            seed=snapshot.keys[hop.seed],
            path=tuple(snapshot.keys[concept] for concept in reversed(path)),
            probability=hop.probability,
            activation=float(activation[hop.concept]),
        )
