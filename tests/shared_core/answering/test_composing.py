"""Answers of a recall: what they say, and what they rest on."""

from __future__ import annotations

import json
from datetime import datetime

import pytest

from shared_core import MemoryEntry
from shared_core.answering import ChoosingWeights, answer_grounded, compose_answer, read
from shared_core.answering.prompt import DEFAULT_PROMPT, Asked
from shared_core.recall import Recall, RecalledEntry

SAID = datetime(2024, 5, 8, 9)
ENTRIES = [
    MemoryEntry("I planted purple carrots by the shed yesterday.", "a", "Mira", None, SAID),
    MemoryEntry("Ask Oskar, he repairs instruments in Lindau.", "b", "Tobi", None, SAID),
]


def recall_of(query: str) -> Recall:
    return Recall(query, tuple(RecalledEntry(entry, 1.0, (), {}, 1.0) for entry in ENTRIES))


@pytest.mark.parametrize(
    ("query", "text", "source"),
    [
        ("When did Mira plant carrots?", "7 May 2024", "a"),
        ("Where does Oskar repair instruments?", "Lindau", "b"),
    ],
)
def test_an_answer_names_the_entry_it_rests_on(sensible_model, query, text, source):
    answer = compose_answer(recall_of(query), sensible_model)
    assert text in answer.text
    assert [entry.id for entry in answer.sources] == [source]
    assert json.loads(json.dumps(answer.to_dict()))["sources"] == [source]


def test_a_grounded_answer_says_only_what_its_source_says(small_model):
    # A model of random weights: what holds for it holds for any.
    for query in ("What did Mira plant?", "Who repairs?", "How many?", "When was it?"):
        answer = compose_answer(recall_of(query), small_model)
        for entry in answer.sources:
            assert answer.text in f"{entry.text} 7 May 2024 8 May 2024"
        assert bool(answer.text) == bool(answer.sources)


def test_what_nothing_supports_is_refused(small_model):
    reading = read(small_model, DEFAULT_PROMPT, [Asked("What?", ENTRIES), Asked("What?", [])])
    assert answer_grounded(reading, ChoosingWeights(least=1e9)) == [None, None]
    assert answer_grounded(reading, ChoosingWeights(least=-1e9))[1] is None
    assert answer_grounded(reading, ChoosingWeights(least=-1e9))[0] is not None


def test_a_free_answer_is_what_the_model_writes(small_model):
    answer = compose_answer(recall_of("What?"), small_model, free_tokens=3)
    assert len(small_model.encode(answer.text)) <= 3
    assert bool(answer.text) == bool(answer.sources)


@pytest.mark.parametrize("free_tokens", [None, 3])
def test_what_there_is_no_room_to_read_answers_nothing(small_model, free_tokens):
    entry = MemoryEntry("We met.", "a", "Mira " * small_model.window)
    recall = Recall("Who?", (RecalledEntry(entry, 1.0, (), {}, 1.0),))
    answer = compose_answer(recall, small_model, free_tokens=free_tokens)
    assert (answer.text, answer.sources) == ("", ())


def test_a_free_answer_rests_on_the_entries_that_say_its_words(sensible_model):
    answer = compose_answer(recall_of("Where does Oskar repair instruments?"), sensible_model, free_tokens=8)
    assert "Lindau" in answer.text
    assert [entry.id for entry in answer.sources] == ["b"]
