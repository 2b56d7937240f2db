"""BM25, plain and smoothed, against the formula."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

import numpy as np
import pytest

from benchmarks.locomo.dataset import Conversation
from benchmarks.locomo.systems import lexical
from benchmarks.locomo.systems.lexical import BM25, STANDARD, TUNED, Form, WordScores, best
from shared_core import MemoryEntry
from shared_core.recall import RankingWeights


def ignore(done: int) -> None:
    pass


@pytest.mark.parametrize("form", [TUNED, STANDARD])
def test_scores_are_those_of_the_formula(form: Form):
    said = ["apple pear pear", "plum apple apple apple", "cherry", "pear cherry quince fig"]
    turns = [MemoryEntry(text, str(place)) for place, text in enumerate(said)]
    words = [text.split() for text in said]
    scores = WordScores(turns, form).of("pear quince pear banana")
    expected = []
    for word in ("pear", "quince"):
        df = sum(word in own for own in words)
        idf = np.log(1 + (len(words) - df + 0.5) / (df + 0.5))
        counts = np.array([Counter(own)[word] for own in words])
        lengths = np.array([len(own) for own in words])
        saturation = form.k1 * (1 - form.b + form.b * lengths / lengths.mean())
        expected.append(idf * counts / (counts + saturation))
    np.testing.assert_allclose(scores, expected, rtol=1e-5)


def test_a_turn_is_found_by_date_speaker_text_and_caption():
    turn = MemoryEntry("It leaks", "a", "Ylva", occurred_at=datetime(2021, 5, 8), caption="a kayak")
    whole = ["Ylva", "It", "leaks", "a", "kayak", "8", "May", "2021"]
    assert STANDARD.text_of(turn).split() == whole
    assert TUNED.text_of(turn).split() == [*whole, "Ylva"]
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


def smoothed_one_by_one(turns: Sequence[MemoryEntry], by_word: np.ndarray, speakers: set[str]) -> list[float]:
    """The smoothing spelt out for each turn, at the default weights."""
    weights, own = RankingWeights(), by_word.sum(axis=0)
    totals = []
    for at, turn in enumerate(turns):
        session = [place for place, other in enumerate(turns) if other.session == turn.session]
        near = [place for place in session if abs(place - at) <= weights.passage_radius]
        asked = at - 1 in session and turns[at - 1].text.endswith("?")
        passage, answer = weights.passage * own[near].max(), weights.answer * own[at - 1] * asked
        covered = weights.session * by_word[:, session].max(axis=1).sum() if len(by_word) else 0.0
        raised = 1 + weights.speaker * (turn.speaker in speakers)
        reached = own[at] + passage + answer > 0
        totals.append(float(own[at] + passage + answer + covered) * raised * reached)
    return totals


@pytest.mark.parametrize(
    ("query", "speakers"),
    [
        ("How was the afternoon at the museum spent?", set()),
        ("What did Bram bake for Odile?", {"Bram"}),
        ("Did Ylva's kayak leak resin in the fog of June?", {"Ylva"}),
        ("Who are Ylva and Bram?", {"Ylva", "Bram"}),
    ],
)
def test_smoothing_is_that_of_our_ranking(conversations: list[Conversation], query: str, speakers: set[str]):
    turns = conversations[0].turns
    system = BM25(episode=True)
    system.write(turns, ignore)
    by_word = WordScores(turns).of(query)
    expected = np.array(smoothed_one_by_one(turns, by_word, speakers))
    np.testing.assert_allclose(system._smoothed(query, by_word), RankingWeights().lexical * expected, rtol=1e-5)
    found = system.read(query, 35).ids
    assert set(found) == {turns[place].id for place in np.flatnonzero(expected)}
    assert len(found) > 1


def test_without_smoothing_weights_the_two_agree(conversations: list[Conversation], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lexical, "RankingWeights", lambda: RankingWeights(1.0, 0.0, 0.0, 0.0, 2, 0.0, 0.0))
    plain, smoothed = BM25(), BM25(episode=True)
    for system in (plain, smoothed):
        system.write(conversations[0].turns, ignore)
    for question in conversations[0].questions:
        found = plain.read(question.text, 35).ids
        assert smoothed.read(question.text, 35).ids[: len(found)] == found
