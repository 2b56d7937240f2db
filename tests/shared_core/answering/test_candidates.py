"""Candidates are spans of the entries, with the log-probabilities that plain forward passes give."""

from __future__ import annotations

import random
from datetime import datetime

import numpy as np
import pytest

from shared_core import MemoryEntry
from shared_core.answering import AnswerPrompt, Asked, find_candidates, read
from shared_core.answering.spans import spans
from shared_core.decoding import score_trie
from tests.conftest import plain

PROMPT = AnswerPrompt("Answer from the notes.\n\n")
SAID = datetime(2024, 5, 8, 9)
SHORT = [MemoryEntry("the cake by the shed", "1", "Mira", None, SAID), MemoryEntry("the shed", "2", "Tobi", None, SAID)]


@pytest.mark.parametrize("kind", ["llama", "mamba"])
def test_log_probabilities_equal_plain_forward_passes(tiny, kind):
    model = tiny(kind)
    [found] = find_candidates(read(model, PROMPT, [Asked("Where is it?", SHORT)]))
    assert {one.text for one in found} == {one.text for entry in SHORT for one in spans(entry.text, None)}
    shed = next(one for one in found if one.text == "the shed")
    assert (shed.sources, shed.kind) == ((0, 1), "phrase")
    lines = ["8 May 2024, Mira: the cake by the shed\n", "8 May 2024, Tobi: the shed\n"]
    for query, given in (("Where is it?", "logprob"), ("?", "neutral")):
        pieces = [PROMPT.examples, "Notes:\n", *lines, "\nQuestion: ", query, "\nAnswer:"]
        path = [*model.start, *(token for piece in pieces for token in model.encode(piece))]
        for one in found[:4]:
            tokens = [*model.encode(f" {one.text}"), model.encode("a\n")[-1]]
            assert one.tokens == len(tokens)
            scores = [plain(model, path + tokens[:at], [token])[0] for at, token in enumerate(tokens)]
            assert getattr(one, given) == pytest.approx(np.sum(scores), abs=5e-3)


def test_the_question_decides_the_kind(tiny):
    model = tiny("llama")
    entry = MemoryEntry("Mira met two goats yesterday", "1", "Tobi", None, SAID)
    asked = [Asked(query, [entry]) for query in ("When was it?", "How many goats?", "Did she?")]
    dates, numbers, verdicts = find_candidates(read(model, PROMPT, asked))
    assert {(one.text, one.kind) for one in dates} == {("7 May 2024", "date"), ("8 May 2024", "told")}
    assert all("two" in one.text for one in numbers)
    assert {one.text for one in verdicts} == {"Yes", "No", "Likely yes", "Likely no"}
    assert find_candidates(read(model, PROMPT, [Asked("Did she?", []), Asked("Who?", [])])) == [[], []]


def test_what_the_question_offers_is_chosen_among(tiny):
    reading = read(
        tiny("llama"), PROMPT, [Asked("Was it the cake or the moon?", SHORT), Asked("A cake or a moon?", [])]
    )
    found, none = find_candidates(reading)
    assert {one.text: one.sources for one in found} == {"the cake": (0,), "the moon": ()}
    assert none == []


def test_of_many_spans_those_are_scored_that_begin_likely(tiny):
    model = tiny("llama")
    entry = MemoryEntry(" ".join(f"word{number} a{number * 37}" for number in range(60)), "1")
    reading = read(model, PROMPT, [Asked("Who?", [entry])])
    [found] = find_candidates(reading)
    every = {one.text for one in spans(entry.text, None)}
    texts = {one.text for one in found}
    assert 0 < len(texts) < len(every)
    assert texts <= every


def test_no_candidate_is_of_what_was_not_read(tiny):
    model = tiny("llama")
    entries = [MemoryEntry("by the shed " * 900 + "and the quince", "1"), MemoryEntry("the zucchini", "2")]
    [found] = find_candidates(read(model, PROMPT, [Asked("Where?", entries)]))
    assert found
    assert not [one for one in found if "quince" in one.text or "zucchini" in one.text]
    assert {place for one in found for place in one.sources} == {0}


def test_of_very_many_spans_with_one_beginning_no_more_are_scored(tiny, monkeypatch):
    model = tiny("llama")
    chance = random.Random(0)
    text = " ".join(f"q{chance.choice('bcd')}q{chance.choice('fgh')}" for _ in range(40))
    assert len({model.encode(f" {one.text}")[0] for one in spans(text, None)}) == 1
    asked = [Asked(query, [MemoryEntry(text, "1")]) for query in ("Who?", "What is it?")]
    scored = []
    monkeypatch.setattr(
        "shared_core.answering.candidates.score_trie",
        lambda tree, node, trie, end: scored.append(trie.node_count) or score_trie(tree, node, trie, end),
    )
    for found in find_candidates(read(model, PROMPT, asked)):
        assert {one.text for one in found} <= {one.text for one in spans(text, None)}
    assert len(scored) == 4
    assert min(scored) > 20
    assert max(scored) <= 161  # the root counted
