"""BM25, plain and smoothed, against the formula."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

import numpy as np
import pytest

from benchmarks.locomo.dataset import Conversation
from benchmarks.locomo.systems.lexical import BM25, SETTINGS, WordScores, best, text_of
from shared_core import MemoryEntry


def ignore(done: int) -> None:
    pass


def test_scores_are_those_of_the_formula():
    said = ["apple pear pear", "plum apple apple apple", "cherry", "pear cherry quince fig"]
    turns = [MemoryEntry(text, str(place)) for place, text in enumerate(said)]
    words = [text.split() for text in said]
    scores = WordScores(turns).of("pear quince pear banana")
    expected = []
    for word in ("pear", "quince"):
        df = sum(word in own for own in words)
        idf = np.log(1 + (len(words) - df + 0.5) / (df + 0.5))
        counts = np.array([Counter(own)[word] for own in words])
        assert SETTINGS["b"] == 0  # length does not matter
        expected.append(idf * counts / (counts + SETTINGS["k1"]))
    np.testing.assert_allclose(scores, expected, rtol=1e-5)


def test_a_turn_is_found_by_date_speaker_text_and_caption():
    turn = MemoryEntry("It leaks", "a", "Ylva", occurred_at=datetime(2021, 5, 8), caption="a kayak")
    assert text_of(turn).split() == ["Ylva", "It", "leaks", "a", "kayak", "8", "May", "2021", "Ylva"]
    other = MemoryEntry("Nothing", "b", "Bram")
    system = BM25()
    system.write([other, turn], ignore)
    for query in ("Who leaked?", "When was Ylva there?", "the 8th, or 8 June", "kayaks"):
        assert system.read(query, 5).ids == ["a"], query
    assert system.read("What did you do?", 5).ids == []


def test_nothing_but_function_words_is_no_trouble():
    system = BM25(episode=True)
    system.write([MemoryEntry("What is it?", "a"), MemoryEntry("It was", "b")], ignore)
    assert system.read("what was it", 5).ids == []


def test_the_best_come_first_and_of_equals_the_earlier():
    scores = np.array([0.0, 2.0, 1.0, 2.0, 3.0])
    assert best("abcde", scores, 3) == ["e", "b", "d"]
    assert best("abcde", scores, 9) == ["e", "b", "d", "c"]


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        # The answer follows the question, and is brought by it.
        ("How was the afternoon spent?", ["D2:2", "D2:3", "D2:1"]),
        # A turn nearby is reached; of two the one whose speaker is named comes first.
        ("Where is Ylva's stern?", ["D1:1", "D1:3"]),
    ],
)
def test_smoothing_brings_the_turns_around(conversations: list[Conversation], query: str, ids: list[str]):
    plain, smoothed = BM25(), BM25(episode=True)
    for system in (plain, smoothed):
        system.write(conversations[0].turns, ignore)
    assert smoothed.read(query, len(ids)).ids == ids
    assert set(plain.read(query, 9).ids) < set(smoothed.read(query, 9).ids)


def test_without_smoothing_weights_the_two_agree(conversations: list[Conversation], monkeypatch: pytest.MonkeyPatch):
    from benchmarks.locomo.systems import lexical
    from shared_core.recall import RankingWeights

    monkeypatch.setattr(lexical, "RankingWeights", lambda: RankingWeights(1.0, 0.0, 0.0, 2, 0.0, 0.0))
    plain, smoothed = BM25(), BM25(episode=True)
    for system in (plain, smoothed):
        system.write(conversations[0].turns, ignore)
    for question in conversations[0].questions:
        found = plain.read(question.text, 35).ids
        assert smoothed.read(question.text, 35).ids[: len(found)] == found
