"""Settings of the method. ``SCGConfig()`` is what measured best; ``SCGConfig.paper()`` is the method as published."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Literal, TypeAlias, get_args, get_type_hints

from shared_core.errors import InvalidInputError

Accommodation: TypeAlias = Literal["phrases", "spans", "generate"]
"""How novel concepts are made from an entry.

``phrases``: every informative phrase of its words, without the model. ``spans``: the model decodes over a trie of
the entry's own spans and keeps the best. ``generate``: the model writes concepts freely; they are validated after.
"""

Gate: TypeAlias = Literal["always", "perplexity", "unknown"]
"""When an entry gets novel concepts: always; when the best assimilated keys are too perplexing; or when an explicit
``unknown`` key beats them."""


@dataclass(frozen=True, slots=True)
class SCGConfig:
    """Every setting of a memory. All have measured defaults.

    Attributes:
        k: Entries that a recall returns.
        width: Beam width ``b``: keys decoded for a query (Eq. 11).
        method: ``beam``, ``exact`` or ``sample``.
        score: ``base`` (cumulative ``log P_θ``) or ``schema`` (cumulative ``log P_S``, Eq. 6).
        calibration: Share of a key's neutral log-probability that is taken off its score.
        lookahead: Judge open prefixes with the best neutral continuation below them.
        generation_weight: Activation of the likeliest generated seed.
        generation_temperature: Log-probability in which a generated seed's activation falls by ``e``.
        mentions: Activate the keys whose words occur in the query.
        mention_weight: Activation of a key that the query mentions in full.
        lexical_weight: Weight of the share of the query that an entry's words cover, beside the concepts.
        anticipation_weight: Weight of how much an entry makes the model expect what the query does. Entries are read
            for that together with assimilation: with ``assimilate=0`` there is nothing to compare.
        passage_weight: Share of the best turn nearby that an entry inherits.
        passage_radius: What is nearby, in turns of the same session.
        answer_weight: Share of a question's score that the turn after it inherits.
        session_weight: Share of its session's coverage that an entry inherits.
        speaker_weight: Relative raise of entries whose speaker the query names.
        hops: Steps over the associative graph; 0 keeps to the seeds.
        fan_out: Context concepts per concept and hop.
        temperature: ``T`` of Eq. 12.
        sample_context: Draw context concepts (Eq. 13) instead of taking the most probable.
        context_weight: Activation of a context concept, times its probability and its seed's activation.
        concept_budget: Most concepts, seeds and context together, that a recall activates (``k`` in the paper);
            0 for no bound.
        accommodation: See :data:`Accommodation`.
        gate: See :data:`Gate`.
        perplexity_threshold: Per-token perplexity of the best keys, as many as ``assimilate``, over which an entry is
            novel.
        new_concepts: Most concepts that ``spans`` and ``generate`` make for an entry.
        grounded: Keep a generated concept only if its words occur in the entry.
        assimilate: Existing concepts that an entry is grounded in, besides those it says; 0 for none.
        assimilate_width: Beam width of that search.
        inferred_weight: Link weight of a concept that was inferred, not said.
        batch: Entries that are distilled together.
        answer_tokens: Most tokens of an answer that the model writes freely.
        seed: Of everything drawn at random.
    """

    k: int = 10
    width: int = 20
    method: Literal["beam", "exact", "sample"] = "beam"
    score: Literal["base", "schema"] = "base"
    calibration: float = 0.6
    lookahead: bool = True
    generation_weight: float = 1.0
    generation_temperature: float = 3.0
    mentions: bool = False
    mention_weight: float = 0.3
    lexical_weight: float = 4.0
    anticipation_weight: float = 7.0
    passage_weight: float = 0.7
    passage_radius: int = 2
    answer_weight: float = 0.6
    session_weight: float = 0.2
    speaker_weight: float = 0.7
    hops: int = 0
    fan_out: int = 1
    temperature: float = 1.0
    sample_context: bool = False
    context_weight: float = 0.1
    concept_budget: int = 0
    accommodation: Accommodation = "phrases"
    gate: Gate = "always"
    perplexity_threshold: float = 20.0
    new_concepts: int = 8
    grounded: bool = True
    assimilate: int = 6
    assimilate_width: int = 8
    inferred_weight: float = 0.6
    batch: int = 8
    answer_tokens: int = 48
    seed: int = 0

    def __post_init__(self) -> None:
        hints = get_type_hints(SCGConfig)
        for field in fields(self):
            value, hint = getattr(self, field.name), hints[field.name]
            _check_value(field.name, value, hint)
        for name in ("k", "width", "assimilate_width", "batch", "new_concepts", "answer_tokens"):
            if getattr(self, name) < 1:
                raise InvalidInputError(f"{name} must be at least 1, not {getattr(self, name)}")
        for name in ("temperature", "generation_temperature", "perplexity_threshold"):
            if not getattr(self, name) > 0:
                raise InvalidInputError(f"{name} must be above 0, not {getattr(self, name)}")
        if not 0 < self.inferred_weight <= 1:
            raise InvalidInputError(f"inferred_weight must be in (0, 1], not {self.inferred_weight}")

    @classmethod
    def paper(cls) -> SCGConfig:
        """SCG-MEM as published: 35 concepts, one hop, sampled context, nothing but seeds and graph in the ranking.

        What the paper does not name is what measured best with the embedded model: as many seeds as concepts
        (``width``), and what inferred links and context count beside them.
        """
        return cls(
            width=35,
            score="schema",
            calibration=0.0,
            lookahead=False,
            lexical_weight=0.0,
            anticipation_weight=0.0,
            passage_weight=0.0,
            answer_weight=0.0,
            session_weight=0.0,
            speaker_weight=0.0,
            hops=1,
            fan_out=3,
            sample_context=True,
            context_weight=0.3,
            concept_budget=35,
            accommodation="generate",
            gate="perplexity",
            perplexity_threshold=3.0,  # at 20 a small model finds hardly anything novel
            grounded=False,
            assimilate=8,
            inferred_weight=0.3,
        )

    def replace(self, **changes: object) -> SCGConfig:
        """A copy with some settings changed.

        Raises:
            InvalidInputError: if a setting is unknown or its value unusable.
        """
        unknown = sorted(set(changes) - {field.name for field in fields(self)})
        if unknown:
            named = ", ".join(unknown)
            raise InvalidInputError(f"unknown settings: {named:.200}")
        return replace(self, **changes)  # type: ignore[arg-type]


def _check_value(name: str, value: object, hint: object) -> None:
    choices = get_args(hint)
    if choices:
        if value not in choices:
            raise InvalidInputError(f"{name} must be one of {', '.join(map(repr, choices))}, not {value!r:.80}")
    elif hint is float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
            raise InvalidInputError(f"{name} must be a number of at least 0, not {value!r:.80}")
    elif hint is int:
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise InvalidInputError(f"{name} must be a whole number of at least 0, not {value!r:.80}")
    elif not isinstance(value, bool):
        raise InvalidInputError(f"{name} must be True or False, not {value!r:.80}")
