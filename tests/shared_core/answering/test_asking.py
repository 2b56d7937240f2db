"""The kind of answer that a question asks for."""

import pytest

from shared_core.answering.asking import wanted


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
        ("Does Ylva live by the lake or the sea?", "words"),
        ("What did Ylva do when the fog came?", "words"),
        ("Who leaked?", "words"),
        ("", "words"),
        ("鯨はいつ来たか", "words"),
    ],
)
def test_kinds(question: str, kind: str):
    assert wanted(question) == kind
