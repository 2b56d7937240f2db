"""Reading conversations with their questions."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from benchmarks.locomo.dataset import Conversation, Question, drawn, load
from shared_core.errors import FormatError, NotFoundError
from tests.benchmarks.locomo.conftest import SAMPLES


def test_the_list_is_read_with_all_its_defects(conversations: list[Conversation]):
    first, second = conversations
    assert (first.name, second.name) == ("conv-1", "conv-2")
    assert [turn.id for turn in first.turns] == ["D1:1", "D1:2", "D1:3", "D1:4", "D2:1", "D2:2", "D2:3"]
    assert first.turns[2].caption == "a tube of yellow resin"
    assert [question.evidence for question in first.questions] == [
        ("D1:1",),
        ("D1:1", "D1:3"),
        ("D2:1",),
        ("D2:3",),
        (),
        ("D1:4",),
        ("D1:1",),
        (),
        ("D1:4", "D2:2"),
    ]
    assert {name: count for name, count in first.defects.items() if count} == {
        "dates_without_session": 1,
        "questions": 9,
        "questions_without_evidence": 2,
        "questions_repeated": 1,
        "answers_not_text": 2,
        "evidence_pieces": 11,
        "evidence_joined": 2,
        "evidence_respelled": 2,
        "evidence_repeated": 1,
        "evidence_unreadable": 1,
        "evidence_of_unknown_turns": 2,
    }
    assert len({question.id for question in first.questions}) == 9
    assert first.questions[2].answer == "2021"
    assert (first.questions[5].answer, first.questions[5].adversarial_answer) == (None, "rye")


@pytest.mark.parametrize("named", [True, False])
def test_a_file_of_one_conversation_with_its_sessions_at_top_level(tmp_path: Path, named: bool):
    sample = SAMPLES[1]
    whole: dict[str, Any] = {**sample["conversation"], "qa": sample["qa"], **({"sample_id": 12} if named else {})}
    path = tmp_path / "barn.json"
    path.write_text(json.dumps(whole), encoding="utf-8")
    (read,) = load([path])
    assert read.name == ("12" if named else "barn")
    assert len(read.turns) == 3
    assert read.questions[0].evidence == ("D1:1",)


def test_conversations_are_chosen_by_name(file: Path):
    assert [one.name for one in load([file], ["conv-2"])] == ["conv-2"]
    with pytest.raises(NotFoundError, match="conv-1, conv-2"):
        load([file], ["conv-3"])


def test_two_conversations_of_one_name_are_refused(file: Path):
    with pytest.raises(FormatError, match="conv-1"):
        load([file, file])


@pytest.mark.parametrize("text", ["", "[]", "3", "[3]", '[{"qa": []}]', "{"])
def test_what_is_no_conversation_is_refused(tmp_path: Path, text: str):
    path = tmp_path / "wrong.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FormatError, match=r"wrong\.json"):
        load([path])


@pytest.mark.parametrize(
    "change", [{"category": 6}, {"category": None}, {"category": [4]}, {"question": " "}, {"question": 3}]
)
def test_a_broken_question_is_refused(tmp_path: Path, change: dict[str, object]):
    sample = {**SAMPLES[1], "qa": [{**SAMPLES[1]["qa"][0], **change}]}
    path = tmp_path / "wrong.json"
    path.write_text(json.dumps([sample]), encoding="utf-8")
    with pytest.raises(FormatError, match="conv-2/0"):
        load([path])


@pytest.mark.parametrize("asked", [{"question": "What fell?"}, 3, "What fell?"])
def test_questions_that_are_no_list_are_refused(tmp_path: Path, asked: object):
    path = tmp_path / "wrong.json"
    path.write_text(json.dumps([{**SAMPLES[1], "qa": asked}]), encoding="utf-8")
    with pytest.raises(FormatError, match=r"conv-2.*'qa'"):
        load([path])


def questions(**sizes: int) -> list[Question]:
    return [
        Question(f"{name}{place}", "?", int(name[1:]), ("D1:1",), None, None)
        for name, size in sizes.items()
        for place in range(size)
    ]


def test_questions_are_drawn_evenly_over_the_categories():
    some = questions(c1=10, c2=2, c4=10)
    chosen = drawn(some, 9, seed=1)
    assert Counter(question.category for question in chosen) in ({1: 4, 2: 2, 4: 3}, {1: 3, 2: 2, 4: 4})
    assert chosen == [question for question in some if question in chosen]
    assert set(drawn(some, 5, seed=1)) < set(chosen)
    assert drawn(some, 9, seed=1) == chosen
    assert drawn(some, 9, seed=2) != chosen
    assert drawn(some, 99, seed=1) == some
