"""Which candidate is the answer: each weight does what it says."""

from __future__ import annotations

from dataclasses import replace

from shared_core import MemoryEntry
from shared_core.answering import Asked, Candidate, ChoosingWeights, choose, judge

PLAIN = ChoosingWeights(0, 0, 0, 0, 0, 0, 0, least=-1e9, several=0, most=1, rival=0)
ENTRIES = [MemoryEntry("I repaired the violin in Lindau", "1", "Oskar"), MemoryEntry("I sold a boat", "2", "Mira")]


def order(query: str, candidates: list[Candidate], weights: ChoosingWeights) -> list[str]:
    return [one.candidate.text for one in judge(Asked(query, ENTRIES), candidates, weights)]


def candidate(text: str, logprob: float, neutral: float = 0.0, kind="phrase", source=0, tokens=2) -> Candidate:
    return Candidate(text, kind, (source,), tokens, logprob, neutral)


def test_likelihood_calibration_and_length():
    found = [candidate("often", -2, -1), candidate("seldom", -3, -6), candidate("a long one", -4, -4, tokens=8)]
    assert order("What?", found, PLAIN) == ["often", "seldom", "a long one"]
    assert order("What?", found, replace(PLAIN, calibration=1)) == ["seldom", "a long one", "often"]
    assert order("What?", found, replace(PLAIN, length=1)) == ["a long one", "often", "seldom"]


def test_an_echo_of_the_question_is_no_answer():
    found = [candidate("violin", -1), candidate("Lindau", -2)]
    assert order("Who repaired violins?", found, PLAIN)[0] == "violin"
    assert order("Who repaired violins?", found, replace(PLAIN, echo=2))[0] == "Lindau"
    assert order("A violin or a boat?", found, replace(PLAIN, echo=2))[0] == "violin"


def test_what_is_said_of_somebody_else_is_no_answer():
    found = [candidate("a boat", -1, source=1), candidate("violin", -2)]

    def chosen(query: str, entries=ENTRIES, speakers=()) -> list[str]:
        asked = Asked(query, entries, speakers)
        return [one.candidate.text for one in choose(asked, judge(asked, found, PLAIN), PLAIN)]

    assert chosen("What did Oskar do?") == []
    assert (
        chosen("What did Mira do?")
        == chosen("What did they do?")
        == chosen("What did Oskar and Mira do?")
        == ["a boat"]
    )
    # Somebody who is known says nothing here; nobody knows of somebody else.
    assert chosen("What did Tobi do?", speakers=["Tobi"]) == []
    assert chosen("What did Tobi do?") == ["a boat"]
    # Mira speaks of Oskar, or calls him.
    assert chosen("What did Oskar do?", [ENTRIES[0], replace(ENTRIES[1], text="I met Oskar.")]) == ["a boat"]
    for calling in (
        "Thanks, Oskar! I sold a boat",
        "I sold a boat, Oskar.",
        "Oskar, I sold a boat",
        "Hey Oskar! Boats",
    ):
        assert chosen("What did Oskar do?", [ENTRIES[0], replace(ENTRIES[1], text=calling)]) == []


def test_what_fits_hardly_better_than_what_is_said_of_somebody_else_is_no_answer():
    found = [candidate("violin", -1), candidate("a boat", -1.5, source=1)]

    def chosen(query: str, rival: float) -> list[str]:
        weights = replace(PLAIN, rival=rival)
        asked = Asked(query, ENTRIES)
        return [one.candidate.text for one in choose(asked, judge(asked, found, weights), weights)]

    assert chosen("What did Oskar do?", 0.25) == ["violin"]
    assert chosen("What did Oskar do?", 0.75) == []
    assert chosen("What did they do?", 0.75) == ["violin"]  # nobody is somebody else


def test_a_verdict_is_that_of_the_entry_that_fits_best():
    found = [Candidate("Yes", "verdict", (), 1, -1.0, 0.0)]
    weights = replace(PLAIN, overlap=1)
    for query, answered in (("Did Oskar sell a boat?", False), ("Did Mira sell a boat?", True), ("Is it so?", True)):
        asked = Asked(query, ENTRIES)
        assert bool(choose(asked, judge(asked, found, weights), weights)) == answered, query
        [judged] = judge(asked, found, weights)
        assert judged.sources == ((1,) if "boat" in query else (0,))


def test_who_shares_a_name_with_whom_the_question_names_is_somebody_else():
    entries = [replace(one, speaker=name) for one, name in zip(ENTRIES, ("Ann Lee", "Ann Smith"), strict=True)]
    found = [candidate("a boat", -1, source=1), candidate("violin", -2)]
    for query, strange in (("Ann", False), ("Ann Lee", True), ("Ann Smith", False), ("Ann Lee or Ann Smith", False)):
        asked = Asked(f"What did {query} do?", entries, ("Ann",))
        assert judge(asked, found, PLAIN)[0].strange == strange, query


def test_what_is_recalled_earlier_counts_more():
    found = [candidate("a boat", -1, source=1), candidate("Lindau", -1.5)]
    assert order("What?", found, PLAIN)[0] == "a boat"
    assert order("What?", found, replace(PLAIN, rank=1))[0] == "Lindau"


def test_several_are_answered_where_several_are_asked_for():
    texts = [("red boats", -1.0), ("boats", -1.1), ("violins", -1.5), ("carrots", -1.6), ("goats", -4.0)]
    found = [candidate(text, logprob) for text, logprob in texts]

    def chosen(query: str, **changes: float) -> list[str]:
        weights = replace(PLAIN, **{"several": 1, "most": 9, **changes})
        asked = Asked(query, ENTRIES)
        return [one.candidate.text for one in choose(asked, judge(asked, found, weights), weights)]

    assert chosen("What things are there?") == ["red boats", "violins", "carrots"]
    assert chosen("What thing is there?") == ["red boats"]
    assert chosen("What things are there?", most=2) == ["red boats", "violins"]
    assert chosen("What things are there?", least=-1.5) == ["red boats", "violins"]
    assert chosen("What things are there?", least=0) == []


def test_entries_that_say_more_of_the_question_count_more():
    found = [candidate("boat", -1, source=1), candidate("Lindau", -2)]
    assert order("Where was the violin repaired?", found, replace(PLAIN, overlap=3))[0] == "Lindau"


def test_the_day_it_was_said_gives_way_to_a_time_it_says():
    told, date = candidate("8 May 2024", -1, kind="told"), candidate("7 May 2024", -2, kind="date", source=1)
    weights = replace(PLAIN, told=3)
    assert order("When?", [told, date], weights)[0] == "7 May 2024"
    assert judge(Asked("When?", ENTRIES), [told], weights)[0].score == -1


def test_who_asks_for_a_name():
    found = [candidate("a boat", -1), candidate("Lindau", -2, kind="name")]
    weights = replace(PLAIN, name=3)
    assert order("Who was it?", found, weights)[0] == "Lindau"
    assert order("What was it?", found, weights)[0] == "a boat"


def test_nothing_to_choose_from():
    assert judge(Asked("What?", ENTRIES), []) == []
