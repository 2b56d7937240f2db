"""BM25 over the words of turns, plain and with the episode smoothing of this project's ranking."""

from __future__ import annotations

import time
from collections.abc import Sequence

import bm25s  # type: ignore[import-untyped]
import numpy as np
import Stemmer  # type: ignore[import-not-found]
from bm25s.stopwords import STOPWORDS_EN_PLUS  # type: ignore[import-untyped]
from numpy.typing import NDArray

from benchmarks.locomo.systems.system import Cost, Ranked, Report
from shared_core import MemoryEntry
from shared_core.graph import Incidence
from shared_core.recall import RankingWeights, Turns, named, rank_entries, searchable_text

SETTINGS = {"k1": 0.9, "b": 0.0, "stemmer": "english", "stop_words": "bm25s en_plus", "text": "date, speaker twice"}
"""The best of those tried, see the README."""


def text_of(turn: MemoryEntry) -> str:
    """Date, speaker, text and caption, and the speaker again: a question mostly names whose turn it wants."""
    return " ".join(part for part in (searchable_text(turn), turn.speaker) if part)


class WordScores:
    """BM25 scores of turns, word by word.

    Args:
        turns: The turns, at least one.
    """

    def __init__(self, turns: Sequence[MemoryEntry]) -> None:
        self._stemmer = Stemmer.Stemmer(SETTINGS["stemmer"])
        self._index = bm25s.BM25(k1=SETTINGS["k1"], b=SETTINGS["b"])
        words = self._words([text_of(turn) for turn in turns])
        # An index of no words at all cannot be built.
        self._size = len(turns)
        self._known = {word for own in words for word in own}
        if self._known:
            self._index.index(words, show_progress=False)

    def _words(self, texts: Sequence[str]) -> list[list[str]]:
        words: list[list[str]] = bm25s.tokenize(
            list(texts),
            stopwords=list(STOPWORDS_EN_PLUS),
            stemmer=self._stemmer,
            token_pattern=r"(?u)\b\w+\b",  # days of a month have a single digit
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

    def __init__(self, *, episode: bool = False) -> None:
        self._episode = episode

    def write(self, turns: Sequence[MemoryEntry], report: Report) -> Cost:
        start = time.perf_counter()
        self._ids = [str(turn.id) for turn in turns]
        self._scores = WordScores(turns)
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
            named(query, self._speakers),
            RankingWeights(),
        )
        # Being in the right session alone does not bring a turn, as in our recall.
        return np.where(ranked.lexical + ranked.answer + ranked.passage > 0, ranked.total, 0.0)

    def close(self) -> None:
        """Nothing is held but arrays."""
