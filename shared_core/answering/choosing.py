"""Which candidate is the answer, if any: arithmetic over log-probabilities, no model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from shared_core.answering.asking import asks_for_several, offers_choice
from shared_core.answering.candidates import Candidate
from shared_core.answering.prompt import Asked
from shared_core.entry import MemoryEntry
from shared_core.recall import content_stems, named

_WHO = re.compile(r"^who(?:se|m)?\b", re.IGNORECASE)
# A name that is called out speaks to somebody, not of them: "Thanks, Mira!"
_CALLED = (
    r"(?:^|[,.!?…—-]\s*|\b(?:hey|hi|hello|bye|thanks|thank you|thx|wow|yeah|yes|yep|no|oh|ok|okay|sure|sorry|well|dear"
    r"|congrats|congratulations|right|agreed|absolutely|definitely|totally|cool|great|awesome|nice|so|and|morning"
    r"|evening|you)\s+)(?:{names})\s*(?:[,.!?…;:—-]|$)"
)


@dataclass(frozen=True, slots=True)
class ChoosingWeights:
    """What a candidate is judged by. Log-probabilities are natural.

    Attributes:
        calibration: Share of the neutral log-probability that is taken off.
        length: Power of the number of tokens that the rest is divided by.
        echo: Taken off in proportion to the share of a candidate's words that the question says itself, unless it
            offers a choice ("by the lake or the sea?").
        overlap: Added in proportion to the share of the question's words that the entry says.
        rank: Taken off for each entry that is recalled before the candidate's.
        told: Taken off the day on which an entry was said, where any entry says more of a time itself.
        name: Added to names where the question asks who.
        least: What a candidate must reach; below it the question is refused.
        several: How far below the best one another may be that is said beside it, where several are asked for.
        most: Of those, the best one counted, at most.
        rival: By how much an answer must be better than what is said of somebody else; closer, the question is refused.
    """

    calibration: float = 0.6
    length: float = 0.5
    echo: float = 2.0
    overlap: float = 1.0
    rank: float = 0.1
    told: float = 1.0
    name: float = 0.5
    least: float = -3.0
    several: float = 1.0
    most: int = 3
    rival: float = 0.25


DEFAULT_WEIGHTS = ChoosingWeights()


class Judged(NamedTuple):
    """A candidate as it is judged.

    Attributes:
        candidate: The candidate.
        score: How well it answers; comparable within one model.
        sources: Places of the entries that it rests on: those that have it or, of a yes or no and of a choice that no
            entry speaks of, the one that fits the question best.
        strange: Whether it rests only on entries that are neither by nor about whom the question names.
    """

    candidate: Candidate
    score: float
    sources: tuple[int, ...]
    strange: bool


def judge(asked: Asked, candidates: Sequence[Candidate], weights: ChoosingWeights = DEFAULT_WEIGHTS) -> list[Judged]:
    """Candidates with their scores, best first; of equals the likelier."""
    speakers = sorted({*asked.speakers, *(entry.speaker for entry in asked.entries if entry.speaker)})
    persons = _meant(asked.query, [speakers[place] for place in named(asked.query, speakers)])
    strange = [bool(persons) and not _concerns(entry, persons) for entry in asked.entries]
    query = set(content_stems(asked.query))
    topic = query - {stem for person in persons for stem in content_stems(person)}
    fits = [
        weights.overlap * len(topic & set(content_stems(entry.content))) / max(1, len(topic)) - weights.rank * place
        for place, entry in enumerate(asked.entries)
    ]
    best = (int(np.argmax(fits)),) if fits else ()
    dated = any(one.kind == "date" for one in candidates)
    who, choice = _WHO.match(asked.query.strip()) is not None, offers_choice(asked.query)
    judged = []
    for one in candidates:
        score = (one.logprob - weights.calibration * one.neutral) / one.tokens**weights.length
        score += max((fits[place] for place in one.sources), default=0.0)
        said = set(content_stems(one.text))
        score -= weights.echo * (not choice) * len(said & query) / max(1, len(said))
        score -= weights.told * (one.kind == "told" and dated)
        score += weights.name * (who and one.kind == "name")
        sources = one.sources or best
        judged.append(Judged(one, score, sources, all(strange[place] for place in sources)))
    return sorted(judged, key=lambda one: -one.score)


def choose(asked: Asked, judged: Sequence[Judged], weights: ChoosingWeights = DEFAULT_WEIGHTS) -> list[Judged]:
    """What to answer with, best first: one candidate, or several where the question asks for several, or none.

    None is good enough where the best is below ``weights.least``, and none is right where what is said of somebody else
    than the question names fits as well, or nearly: then the question is about what that other person did.

    Args:
        asked: The question.
        judged: Its candidates, as :func:`judge` gives them.
        weights: The same as there.
    """
    if not judged or judged[0].score < weights.least:
        return []
    if any(one.strange and one.score >= judged[0].score - weights.rival for one in judged):
        return []
    chosen = [judged[0]]
    if asks_for_several(asked.query):
        said = set(content_stems(judged[0].candidate.text))
        for one in judged[1:]:
            if len(chosen) >= weights.most or one.score < max(judged[0].score - weights.several, weights.least):
                break
            own = set(content_stems(one.candidate.text))
            if own and said.isdisjoint(own) and not one.strange:
                chosen.append(one)
                said |= own
    return chosen


def _meant(query: str, persons: Sequence[str]) -> list[str]:
    """Of the persons whom a question names by any word those it may mean: "Ann Lee" is not Ann Smith."""
    asked = set(content_stems(query))
    names = {person: set(content_stems(person)) for person in persons}
    whole = [name for name in names.values() if name <= asked]
    return [
        person for person, name in names.items() if name <= asked or not any(name & asked < other for other in whole)
    ]


def _concerns(entry: MemoryEntry, persons: Sequence[str]) -> bool:
    """Whether an entry is by one of some persons, or speaks of one; calling one by name is not to speak of them."""
    if entry.speaker in persons:
        return True
    words = {word for person in persons for word in person.split() if content_stems(word)}
    if not words:
        return False
    names = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
    text = re.sub(_CALLED.format(names=rf"(?:{names})(?:\s+(?:{names}))*"), " ", entry.content, flags=re.I | re.M)
    return not {stem for word in words for stem in content_stems(word)}.isdisjoint(content_stems(text))
