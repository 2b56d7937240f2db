"""The metrics against cases worked out by hand."""

import json
import math

import pytest

from benchmarks.locomo.answers.scores import (
    REFUSAL,
    Scores,
    bleu1,
    coverage,
    is_refusal,
    multiset_f1,
    score,
    set_f1,
    stems,
)
from benchmarks.locomo.dataset import Question, load


def asked(category: int, answer: str | None, adversarial: str | None = None) -> Question:
    return Question("c/0", "?", category, (), answer, adversarial)


def test_stems_without_case_punctuation_articles_and_and():
    assert stems("The dogs, and a Cat's running!") == ["dog", "cat", "run"]


@pytest.mark.parametrize(
    ("answer", "gold", "f1"),
    [
        ("two red, red roses", "red red red rose", 2 * (3 / 4) * (3 / 4) / (3 / 4 + 3 / 4)),  # 2 reds and the rose
        ("running", "the run", 1.0),
        ("7 May 2023", "8 May 2023", 2 / 3),
        ("", "rose", 0.0),
        ("the", "rose", 0.0),  # nothing is left of it
        ("1,000", "1000", 1.0),
    ],
)
def test_multisets_of_stems(answer: str, gold: str, f1: float):
    assert multiset_f1(answer, gold) == pytest.approx(f1)


@pytest.mark.parametrize(
    ("answer", "gold", "f1"),
    [
        ("red red rose", "Red roses", 2 * (1 / 2) * (1 / 2) / (1 / 2 + 1 / 2)),  # sets, no stems
        ("red, blue.", "blue red", 1.0),
        ('"red"', "red", 0.0),  # quotation marks stay
        ("the rose", "a rose", 0.5),  # articles stay
        ("", "rose", 0.0),
        ("rose", " ", 0.0),
    ],
)
def test_sets_of_words(answer: str, gold: str, f1: float):
    assert set_f1(answer, gold) == pytest.approx(f1)


@pytest.mark.parametrize(
    ("answer", "gold", "bleu"),
    [
        ("red rose", "red rose", 1.0),
        ("red red", "red rose", 1 / 2),  # an occurrence counts as often as the gold has it
        ("rose", "a red rose", math.exp(1 - 3 / 1)),  # shorter than the gold: the brevity penalty
        ("a red rose here", "rose", 1 / 4),
        ("blue", "rose", 0.0),  # where no single word matches, nltk smooths nothing
        ("", "rose", 0.0),
    ],
)
def test_bleu_of_single_words(answer: str, gold: str, bleu: float):
    assert bleu1(answer, gold) == pytest.approx(bleu)


def test_a_list_is_split_at_commas():
    # "clay pots": 2 common of 2 and 2; "a cup": nothing of "bowl".
    assert score("clay pots, bowls", asked(1, "pots of clay, a cup")).locomo_f1 == pytest.approx((4 / 5 + 0) / 2)
    assert score("clay pots, bowls", asked(4, "pots of clay, a cup")).locomo_f1 == pytest.approx(2 * 2 / (3 + 4))


def test_an_explanation_after_a_semicolon_counts_in_category_3_nowhere_else():
    assert score("likely no", asked(3, "Likely no; she paints")).locomo_f1 == 1.0
    assert score("likely no", asked(4, "Likely no; she paints")).locomo_f1 == pytest.approx(2 * 2 / (2 + 4))
    assert score("likely no", asked(3, "Likely no; she paints")).amem_f1 == pytest.approx(2 / 6)  # "no;" is a word


def test_category_5_both_ways():
    question = asked(5, None, "red roses")
    fooled, refused = score("Red roses", question), score(REFUSAL, question)
    assert (fooled.locomo_f1, fooled.amem_f1, fooled.amem_bleu1) == (0.0, 1.0, 1.0)
    assert (refused.locomo_f1, refused.amem_f1) == (1.0, 0.0)
    assert score("No information available.", question).locomo_f1 == 1.0
    assert score("", question).locomo_f1 == 0.0
    assert score("x", asked(5, None)) == Scores(0.0, None, None)
    assert not is_refusal("I do not know")


def test_no_gold_no_score():
    assert score("rose", asked(4, None)) == Scores(None, None, None)
    assert coverage("rose", asked(4, None)) is None
    assert coverage("rose", asked(5, None, "rose")) is None


def test_a_number_as_answer(tmp_path):
    file = tmp_path / "c.json"
    qa = [{"question": "How many?", "answer": 3, "evidence": ["D1:1"], "category": 4}]
    turns = [{"dia_id": "D1:1", "speaker": "Ines", "text": "I have 3 cats."}]
    file.write_text(json.dumps({"conversation": {"session_1": turns}, "qa": qa}), encoding="utf-8")
    [conversation] = load([file])
    assert score("3", conversation.questions[0]) == Scores(1.0, 1.0, 1.0)


def test_coverage_is_the_share_of_distinct_stems():
    assert coverage("She painted a rose.", asked(4, "paint the roses and roses red")) == pytest.approx(2 / 3)
    assert coverage("likely", asked(3, "Likely no; whatever")) == pytest.approx(1 / 2)
    assert coverage("", asked(4, "rose")) == 0.0
