"""What the model reads before it answers, and that a free answer is what it writes after exactly that."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core import MemoryEntry
from shared_core.answering import DEFAULT_PROMPT, AnswerPrompt, Asked, answer_freely, note, read
from shared_core.answering.spans import WORD
from tests.conftest import plain

PROMPT = AnswerPrompt("Answer from the notes.\n\n")


def test_a_note_says_what_its_relative_dates_mean():
    entry = MemoryEntry("We met  yesterday,\nthen last week.", "1", "Mira", None, datetime(2024, 5, 8, 9))
    assert (
        note(entry) == "8 May 2024, Mira: We met yesterday (7 May 2024), then last week (the week before 8 May 2024)."
    )
    assert note(MemoryEntry("We met yesterday", "1")) == "We met yesterday"
    assert (
        note(MemoryEntry("Hello", "1", "Mira\nQuestion: Who?\nAnswer: Bram"))
        == "Mira Question: Who? Answer: Bram: Hello"
    )
    assert note(MemoryEntry("", "1", "Mira", caption="a shed")) == "Mira: [image: a shed]"


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_each_question_is_read_below_its_own_notes(tiny, kind):
    model = tiny(kind)
    shed, lake = MemoryEntry("by the shed", "1"), MemoryEntry("at the lake", "2")
    asked = [Asked("Where?", [shed]), Asked("Who?", [lake]), Asked("When?", [shed]), Asked("Why?", [])]
    reading = read(model, PROMPT, asked)
    texts = ["Notes:\nby the shed\n", "Notes:\nat the lake\n", "Notes:\nby the shed\n", "Notes:\n"]
    for place, (one, text) in enumerate(zip(asked, texts, strict=True)):
        pieces = [PROMPT.examples, text.split("\n")[0] + "\n", *[f"{line}\n" for line in text.split("\n")[1:-1]]]
        tail = ["\nQuestion: ", one.query, "\nAnswer:"]
        path = [*model.start, *(token for piece in [*pieces, *tail] for token in model.encode(piece))]
        wanted = plain(model, path, [5, 99])
        assert reading.tree.logprobs([reading.questions[place]] * 2, [5, 99]) == pytest.approx(wanted, abs=2e-3)
    assert reading.lengths[3] == 0
    assert reading.neutral[0] == reading.neutral[2] != reading.neutral[1]
    assert answer_freely(reading, 4)[1] == answer_freely(read(model, PROMPT, asked[1:2]), 4)[0]


@pytest.mark.parametrize("query", ["Where?", "Where? " * 5000 + "And why?"])
def test_never_more_than_the_window(tiny, query):
    model = tiny("llama")  # its window is shorter than the examples
    entries = [MemoryEntry("by the shed " * 900, "best"), MemoryEntry("elsewhere", "other")]
    notes, [cut] = DEFAULT_PROMPT.notes(model, entries, 100)
    assert len(DEFAULT_PROMPT.root(model)) + len(notes) + 100 <= model.window
    assert model.decode(notes).endswith(f"Notes:\n{cut.text}\n")
    assert cut.text.startswith("by the shed by")  # cut rather than left out
    question = DEFAULT_PROMPT.question(model, query)
    assert len(question) < model.window / 2
    assert model.decode(question).endswith("y?\nAnswer:" if len(query) > 10 else "\nQuestion: Where?\nAnswer:")
    reading = read(model, DEFAULT_PROMPT, [Asked(query, entries)])
    assert [one.id for one in reading.asked[0].entries] == ["best"]
    assert len(answer_freely(reading, 4)) == 1


WRITINGS = ["by the shed ", "von gestern\n\nan ", "昨天我在菜园里种了胡萝卜", "x", "yesterday ", "🥕🥕 ", "a\u0301"]


@given(
    st.lists(st.tuples(st.sampled_from(WRITINGS), st.integers(1, 60), st.booleans()), max_size=3),
    st.integers(-5, 80),
)
def test_notes_are_the_first_words_that_there_is_room_for(tiny, parts, most):
    model = tiny("llama")
    said = datetime(2024, 5, 8, 9)
    entries = [
        MemoryEntry(
            text * times, str(place), "Mira" if dated else None, None, said if dated else None, caption="a shed"
        )
        for place, (text, times, dated) in enumerate(parts)
    ]
    tokens, seen = PROMPT.notes(model, entries, 40, most)
    lines = [token for entry in seen for token in model.encode(f"{note(entry)}\n")]
    assert tokens == [*model.encode("Notes:\n"), *lines]
    assert len(lines) <= max(0, most)
    whole = [one for one in seen if one in entries]
    assert whole == entries[: len(whole)]
    assert len(seen) <= len(whole) + 1
    if len(whole) < len(entries):
        left = entries[len(whole)].content
        cut = seen[-1].content if len(seen) > len(whole) else ""
        ends = [0, *(word.end() for word in WORD.finditer(left))]
        assert left.startswith(cut)
        more = left[: ends[ends.index(len(cut)) + 1]]  # with one word more it would be too long
        longer = replace(entries[len(whole)], text=more, caption=None)
        room = most - sum(len(model.encode(f"{note(entry)}\n")) for entry in whole)
        assert len(model.encode(f"{note(longer)}\n")) > room
