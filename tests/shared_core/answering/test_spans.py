"""What an entry can give as an answer."""

from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from shared_core.answering.spans import LONGEST, spans


def texts(text: str, kind: str, said: date | None = None) -> set[str]:
    return {one.text for one in spans(text, said) if one.kind == kind}


def test_kinds():
    text = "Yesterday I bought three goats in Bad Ischl, for the farm. Anna knows since 2016."
    said = date(2023, 5, 8)
    assert texts(text, "date", said) == {"7 May 2023", "2016"}
    assert texts(text, "told", said) == {"8 May 2023"}
    assert {"Bad Ischl", "Anna", "Yesterday"} <= texts(text, "name", said)
    assert "three goats" in texts(text, "number", said)
    assert "for the farm" in texts(text, "phrase", said)


def test_a_date_may_stand_on_two_lines():
    assert texts("We met last\n week, on 3\nMay", "date", date(2023, 5, 8)) == {"the week before 8 May 2023", "3 May"}


def test_a_span_stays_within_a_sentence_and_ends_in_a_word_that_says_something():
    found = texts("We went to the lake. It was cold and", "phrase")
    assert "went to the lake" in found
    assert not found & {"lake It", "went to the", "cold and", "and", "was cold", "It"}


@given(st.text(max_size=200))
def test_spans_are_words_of_the_text_in_order(text: str):
    for one in spans(text, None):
        if one.kind != "date":
            assert one.text in " ".join(text.split())
            assert 0 < len(one.text.split()) <= LONGEST


def test_scripts_without_spaces_give_runs_of_characters():
    assert {"ルビを飼う", "ルビ"} <= texts("犬のルビを飼う。楽しい", "phrase")
    assert not any("。" in one for one in texts("犬のルビを飼う。楽しい", "phrase"))


def test_nothing_to_say():
    assert spans("", None) == []
    assert spans("… !", None) == []
