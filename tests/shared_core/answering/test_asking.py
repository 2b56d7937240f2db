"""The kind of answer that a question asks for."""

import pytest

from shared_core.answering.asking import asks_for_several, options, wanted


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("When did Ylva patch the kayak?", "date"),
        ("In which month did it rain?", "date"),
        ("What year was the barn built?", "date"),
        ("How long ago was the feast?", "date"),
        ("How long has Bram baked?", "number"),
        ("How many goats are there?", "number"),
        ("Would Bram like soup?", "verdict"),
        ("Would Bram like soup, or not?", "verdict"),
        ("Does Ylva live by the lake or the sea?", "words"),
        ("What did Ylva do when the fog came?", "words"),
        ("Who leaked?", "words"),
        ("", "words"),
        ("鯨はいつ来たか", "words"),
    ],
)
def test_kinds(question: str, kind: str):
    assert wanted(question) == kind


@pytest.mark.parametrize(
    ("question", "offered"),
    [
        ("Is it by the lake or the sea?", ("the lake", "the sea")),
        ("Does Ylva like red, green, or blue?", ("red", "green", "blue")),
        ("Would Bram, if asked, prefer tea or coffee?", ("tea", "coffee")),
        ("What has Ylva bought or made for the boat?", ()),
        ("Does Ylva like red?", ()),
        ("Does Ylva like red or not?", ()),
        ("Is it by day or by night?", ("by day", "by night")),
        ("Is it or?", ()),
        ("", ()),
    ],
)
def test_what_a_question_offers(question: str, offered: tuple[str, ...]):
    assert options(question) == offered


@pytest.mark.parametrize(
    ("question", "several"),
    [
        ("What instruments does Mira play?", True),
        ("Which of the villages did Bram see?", True),
        ("What kinds of boats are there?", True),
        ("What are Mira's hobbies?", True),
        ("Which boats?", True),
        ("What does Mira play?", False),
        ("What makes Mira happy?", False),
        ("What did Mira's brothers do?", False),
        ("Who repairs?", False),
        ("What was Bram's boat?", False),
        ("What is this?", False),
        ("Where are the boats?", False),
        ("", False),
    ],
)
def test_whether_a_question_asks_for_several(question: str, several: bool):
    assert asks_for_several(question) == several
