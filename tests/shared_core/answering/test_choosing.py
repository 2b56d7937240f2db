"""Which candidate is the answer: each weight does what it says."""

from __future__ import annotations

from shared_core import MemoryEntry
from shared_core.answering import Asked, Candidate, ChoosingWeights, judge

PLAIN = ChoosingWeights(0, 0, 0, 0, 0, 0, 0, 0)
ENTRIES = [MemoryEntry("I repaired the violin in Lindau", "1", "Oskar"), MemoryEntry("I sold a boat", "2", "Mira")]


def order(query: str, candidates: list[Candidate], weights: ChoosingWeights) -> list[str]:
    return [one.text for one, _ in judge(Asked(query, ENTRIES), candidates, weights)]


def candidate(text: str, logprob: float, neutral: float = 0.0, kind="phrase", source=0, tokens=2) -> Candidate:
    return Candidate(text, kind, (source,), tokens, logprob, neutral)


def test_likelihood_calibration_and_length():
    found = [candidate("often", -2, -1), candidate("seldom", -3, -6), candidate("a long one", -4, -4, tokens=8)]
    assert order("What?", found, PLAIN) == ["often", "seldom", "a long one"]
    assert order("What?", found, ChoosingWeights(1, 0, 0, 0, 0, 0, 0, 0)) == ["seldom", "a long one", "often"]
    assert order("What?", found, ChoosingWeights(0, 1, 0, 0, 0, 0, 0, 0)) == ["a long one", "often", "seldom"]


def test_an_echo_of_the_question_is_no_answer():
    found = [candidate("violin", -1), candidate("Lindau", -2)]
    assert order("Who repaired violins?", found, PLAIN)[0] == "violin"
    assert order("Who repaired violins?", found, ChoosingWeights(0, 0, 2, 0, 0, 0, 0, 0))[0] == "Lindau"
    assert order("A violin or a boat?", found, ChoosingWeights(0, 0, 2, 0, 0, 0, 0, 0))[0] == "violin"


def test_what_is_about_somebody_else_counts_less():
    found = [candidate("a boat", -1, source=1), candidate("violin", -2)]
    weights = ChoosingWeights(0, 0, 0, 5, 0, 0, 0, 0)
    assert order("What did Oskar do?", found, PLAIN)[0] == "a boat"
    assert order("What did Oskar do?", found, weights)[0] == "violin"
    assert order("What did Mira do?", found, weights)[0] == "a boat"
    assert order("What did they do?", found, weights)[0] == "a boat"


def test_entries_that_say_more_of_the_question_count_more():
    found = [candidate("boat", -1, source=1), candidate("Lindau", -2)]
    assert order("Where was the violin repaired?", found, ChoosingWeights(0, 0, 0, 0, 3, 0, 0, 0))[0] == "Lindau"


def test_the_day_it_was_said_gives_way_to_a_time_it_says():
    told, date = candidate("8 May 2024", -1, kind="told"), candidate("7 May 2024", -2, kind="date", source=1)
    weights = ChoosingWeights(0, 0, 0, 0, 0, 3, 0, 0)
    assert order("When?", [told, date], weights)[0] == "7 May 2024"
    assert judge(Asked("When?", ENTRIES), [told], weights)[0][1] == -1


def test_who_asks_for_a_name():
    found = [candidate("a boat", -1), candidate("Lindau", -2, kind="name")]
    weights = ChoosingWeights(0, 0, 0, 0, 0, 0, 3, 0)
    assert order("Who was it?", found, weights)[0] == "Lindau"
    assert order("What was it?", found, weights)[0] == "a boat"


def test_nothing_to_choose_from():
    assert judge(Asked("What?", ENTRIES), []) == []
