"""Which candidate is the answer, if any: arithmetic over log-probabilities, no model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from shared_core.answering.candidates import Candidate
from shared_core.answering.prompt import Asked
from shared_core.recall import content_stems, named

_CHOICE = re.compile(r"\bor\b", re.IGNORECASE)
_WHO = re.compile(r"^who(?:se|m)?\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ChoosingWeights:
    """What a candidate is judged by. Log-probabilities are natural.

    Attributes:
        calibration: Share of the neutral log-probability that is taken off.
        length: Power of the number of tokens that the rest is divided by.
        echo: Taken off in proportion to the share of a candidate's words that the question says itself, unless it
            offers a choice ("by the lake or the sea?").
        stranger: Taken off a candidate whose entry is neither by nor about whom the question names.
        overlap: Added in proportion to the share of the question's words that the entry says.
        told: Taken off the day on which an entry was said, where any entry says more of a time itself.
        name: Added to names where the question asks who.
        least: What a candidate must reach; below it the question is refused.
    """

    calibration: float = 0.6
    length: float = 0.5
    echo: float = 2.0
    stranger: float = 2.0
    overlap: float = 1.0
    told: float = 1.0
    name: float = 0.5
    least: float = -3.0


DEFAULT_WEIGHTS = ChoosingWeights()


def judge(
    asked: Asked, candidates: Sequence[Candidate], weights: ChoosingWeights = DEFAULT_WEIGHTS
) -> list[tuple[Candidate, float]]:
    """Candidates with their scores, best first; of equals the likelier."""
    speakers = sorted({entry.speaker for entry in asked.entries if entry.speaker})
    persons = {speakers[place] for place in named(asked.query, speakers)}
    query = set(content_stems(asked.query))
    fits = [_fit(query, persons, entry.speaker, entry.content, weights) for entry in asked.entries]
    dated = any(one.kind == "date" for one in candidates)
    who, choice = _WHO.match(asked.query.strip()) is not None, _CHOICE.search(asked.query) is not None
    judged = []
    for one in candidates:
        score = (one.logprob - weights.calibration * one.neutral) / one.tokens**weights.length
        score += max((fits[place] for place in one.sources), default=0.0)
        said = set(content_stems(one.text))
        score -= weights.echo * (not choice) * len(said & query) / max(1, len(said))
        score -= weights.told * (one.kind == "told" and dated)
        score += weights.name * (who and one.kind == "name")
        judged.append((one, score))
    return sorted(judged, key=lambda pair: -pair[1])


def _fit(query: set[str], persons: set[str], speaker: str | None, text: str, weights: ChoosingWeights) -> float:
    """How well an entry fits a question, whatever of it is the answer."""
    said = set(content_stems(text))
    names = {stem for person in persons for stem in content_stems(person)}
    strange = bool(persons) and speaker not in persons and said.isdisjoint(names)
    topic = query - names
    return weights.overlap * len(topic & said) / max(1, len(topic)) - weights.stranger * strange
