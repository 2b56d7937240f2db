"""BM25 over the words of turns, plain and with the episode smoothing of this project's ranking."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import bm25s  # type: ignore[import-untyped]
import numpy as np
import Stemmer  # type: ignore[import-not-found]
from bm25s.stopwords import STOPWORDS_EN, STOPWORDS_EN_PLUS  # type: ignore[import-untyped]
from numpy.typing import NDArray

from benchmarks.locomo.systems.system import Cost, Ranked, Report
from shared_core import MemoryEntry
from shared_core.graph import Incidence
from shared_core.recall import RankingWeights, Turns, named, rank_entries, searchable_text


@dataclass(frozen=True, slots=True)
class Form:
    """How BM25 reads turns. Words are stemmed in any case.

    Attributes:
        k1: Saturation of a word's count.
        b: Length normalisation.
        stop_words: List of bm25s: "en" has 33 words, "en_plus" the question words as well.
        speaker_twice: Speaker, text, caption and date, and the speaker again: a question mostly names whose turn it
            wants. And words of one letter or digit, such as a day of the month.
    """

    k1: float
    b: float
    stop_words: Literal["en", "en_plus"]
    speaker_twice: bool

    def text_of(self, turn: MemoryEntry) -> str:
        """What a turn is found by."""
        parts = (searchable_text(turn), turn.speaker if self.speaker_twice else None)
        return " ".join(part for part in parts if part)


STANDARD = Form(1.5, 0.75, "en", speaker_twice=False)
"""bm25s as it comes, over speaker, text, caption and date."""

TUNED = Form(0.9, 0.0, "en_plus", speaker_twice=True)
"""The best of those tried, see the README."""

_STOP_WORDS = {"en": STOPWORDS_EN, "en_plus": STOPWORDS_EN_PLUS}


class WordScores:
    """BM25 scores of turns, word by word.

    Args:
        turns: The turns, at least one.
        form: How they are read.
    """

    def __init__(self, turns: Sequence[MemoryEntry], form: Form = TUNED) -> None:
        self._form = form
        self._stemmer = Stemmer.Stemmer("english")
        self._index = bm25s.BM25(k1=form.k1, b=form.b)
        words = self._words([form.text_of(turn) for turn in turns])
        # An index of no words at all cannot be built.
        self._size = len(turns)
        self._known = {word for own in words for word in own}
        if self._known:
            self._index.index(words, show_progress=False)

    def _words(self, texts: Sequence[str]) -> list[list[str]]:
        words: list[list[str]] = bm25s.tokenize(
            list(texts),
            stopwords=list(_STOP_WORDS[self._form.stop_words]),
            stemmer=self._stemmer,
            token_pattern=r"(?u)\b\w+\b" if self._form.speaker_twice else r"(?u)\b\w\w+\b",
            return_ids=False,
            show_progress=False,
        )
        return words

    def of(self, query: str) -> NDArray[np.float32]:
        """Score of every turn for each distinct word of a query, shape (words, turns)."""
        words = [word for word in dict.fromkeys(self._words([query])[0]) if word in self._known]
        scores = [self._index.get_scores([word]) for word in words]
        return np.array(scores, dtype=np.float32).reshape(len(words), self._size)


def best(ids: Sequence[str], scores: NDArray[np.floating], k: int) -> list[str]:
    """Ids of the turns with the highest scores above 0; of equals the earlier turn."""
    order = np.argsort(-scores, kind="stable")[:k]
    return [ids[place] for place in order[scores[order] > 0].tolist()]


class BM25:
    """BM25, or with ``episode`` BM25 scores smoothed as our ranking smooths its own.

    With ``episode`` a turn inherits from the question before it, from turns nearby and from its session, and is raised
    if its speaker is named, at the weights of the default configuration. What our memory adds to that is generation.
    """

    def __init__(self, form: Form = TUNED, *, episode: bool = False) -> None:
        self._form = form
        self._episode = episode

    def write(self, turns: Sequence[MemoryEntry], report: Report) -> Cost:
        start = time.perf_counter()
        self._ids = [str(turn.id) for turn in turns]
        self._scores = WordScores(turns, self._form)
        self._episodes, self._speakers = Turns.empty().extend(turns).arrange()
        cost = Cost(time.perf_counter() - start)
        report(len(turns))
        return cost

    def read(self, query: str, k: int) -> Ranked:
        start = time.perf_counter()
        by_word = self._scores.of(query)
        scores = self._smoothed(query, by_word) if self._episode else by_word.sum(axis=0)
        ids = best(self._ids, scores, k)
        return Ranked(ids, Cost(time.perf_counter() - start))

    def _smoothed(self, query: str, by_word: NDArray[np.float32]) -> NDArray[np.floating]:
        sessions = np.zeros((int(self._episodes.sessions.max()) + 1, len(by_word)), dtype=np.float32)
        np.maximum.at(sessions, self._episodes.sessions, by_word.T)
        nothing = np.zeros(0, dtype=np.int64)
        ranked = rank_entries(
            Incidence.from_links(nothing, nothing, nothing.astype(np.float32), 0),
            nothing.astype(np.float64),
            nothing.astype(np.float64),
            self._episodes,
            by_word.sum(axis=0),
            sessions.sum(axis=1),
            named=named(query, self._speakers),
            weights=RankingWeights(),
        )
        # Being in the right session alone does not bring a turn, as in our recall.
        return np.where(ranked.lexical + ranked.answer + ranked.passage > 0, ranked.total, 0.0)

    def close(self) -> None:
        """Nothing is held but arrays."""
