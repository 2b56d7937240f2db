"""Plain transcripts."""

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core.errors import FormatError
from shared_core.formats import read_entries


def read(directory, text, name="tea.txt"):
    path = directory / name
    path.write_text(text, encoding="utf-8")
    return read_entries(path, "text")


def test_turns_continue_over_lines_and_end_at_blank_ones(tmp_path):
    entries = read(
        tmp_path,
        "Ida: I moved the kettle.\nIt is on the shelf.\n\nAnd the cups too.\nBo Lind: Fine.\n\n\n",
    )
    assert [(entry.speaker, entry.text) for entry in entries] == [
        ("Ida", "I moved the kettle.\nIt is on the shelf."),
        ("Ida", "And the cups too."),
        ("Bo Lind", "Fine."),
    ]
    assert {(entry.session, entry.occurred_at) for entry in entries} == {("tea", None)}


def test_prose_is_read_by_paragraphs(tmp_path):
    entries = read(tmp_path, "The shed is old.\nIt leaks.\n\nWe will mend it at 10:30 in spring.\n")
    assert [(entry.speaker, entry.text) for entry in entries] == [
        (None, "The shed is old.\nIt leaks."),
        (None, "We will mend it at 10:30 in spring."),
    ]


@pytest.mark.parametrize(
    ("header", "session", "time"),
    [
        ("# Session 2", "2", None),
        ("### session 2 (2024-05-08 13:56)", "2", datetime(2024, 5, 8, 13, 56)),
        ("## Lunch, 2024-05-08 ##", "Lunch", datetime(2024, 5, 8)),
        ("# Sessions in the shed", "Sessions in the shed", None),
        ("# Session 2024-05-08", "2024-05-08", datetime(2024, 5, 8)),
        ("# 2024-05-08T13:56:10", "2024-05-08T13:56:10", datetime(2024, 5, 8, 13, 56, 10)),
        ("[2024-05-08]", "2024-05-08", datetime(2024, 5, 8)),
        ("2024-05-08 13:56", "2024-05-08 13:56", datetime(2024, 5, 8, 13, 56)),
    ],
)
def test_headers_begin_sessions(tmp_path, header, session, time):
    before, after = read(tmp_path, f"Ida: Before\n{header}\nIda: After\n")
    assert (before.session, before.text, before.occurred_at) == ("tea", "Before", None)
    assert (after.session, after.text, after.occurred_at) == (session, "After", time)


def test_a_turn_may_have_a_time_of_its_own(tmp_path):
    first, second = read(tmp_path, "# 2024-05-08\n[2024-05-08 09:15] Ida: Tea?\nBo: Yes\n")
    assert first.occurred_at == datetime(2024, 5, 8, 9, 15)
    assert (second.speaker, second.occurred_at) == ("Bo", datetime(2024, 5, 8))


@pytest.mark.parametrize("name", ["Ida", "user", "Bo Lind", "Dr. O’Neil-Ek", "Vera van der Meer", "小明", "Żaneta"])
def test_names(tmp_path, name):
    assert [(e.speaker, e.text) for e in read(tmp_path, f"{name}: tea: black\n")] == [(name, "tea: black")]


def test_full_width_colon_needs_no_space(tmp_path):
    assert [(e.speaker, e.text) for e in read(tmp_path, "小明\uff1a你好\n")] == [("小明", "你好")]


@pytest.mark.parametrize(
    "line",
    [
        "http://example.org: dead",
        "10:30 Ida: hi",
        "then she said: no",
        "  Note: mind",
        "#tag Ida",
        ": x",
        "a:b",
    ],
)
def test_what_is_no_name_continues_the_turn(tmp_path, line):
    (entry,) = read(tmp_path, f"Ida: Look\n{line}\n")
    assert entry.text == f"Look\n{line.strip()}"


def test_a_date_that_does_not_exist_is_named_with_its_line(tmp_path):
    for line in ("# Lunch 2024-02-30", "2024-02-30", "[2024-02-30] Ida: hi"):
        with pytest.raises(FormatError, match=r"tea\.txt, line 2: the date '2024-02-30' does not exist"):
            read(tmp_path, f"Ida: Hello\n{line}\n")


def test_text_that_cannot_be_stored_is_named_with_the_line_its_turn_begins_on(tmp_path):
    for line, number in (("Ida: a\x00", 2), ("# Tea\n\na\x00", 4), ("\n\nmore\na\x00", 4)):
        with pytest.raises(FormatError, match=rf"line {number}: the text holds a NUL"):
            read(tmp_path, f"Ida: Hello\n{line}\n")


def test_a_long_line_is_text_whatever_it_looks_like(tmp_path):
    (entry,) = read(tmp_path, "# " + "#" * 100_000 + " x" + "\n")
    assert entry.text.endswith(" x")


def test_headers_and_bare_names_alone_hold_nothing(tmp_path):
    with pytest.raises(FormatError, match="holds nothing to remember"):
        read(tmp_path, "# Session 1\nIda:\n\nBo:\n")


line = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=20)


@given(st.lists(line | st.sampled_from(["", "Ida: tea", "# Session 4", "Bo:"]), max_size=12))
def test_every_word_that_is_no_header_or_name_is_kept(tmp_path_factory, lines):
    text = "Ida: start\n" + "\n".join(lines)
    entries = read(tmp_path_factory.mktemp("text"), text)
    said = " ".join(entry.text for entry in entries).split()
    words = iter(text.split())
    assert all(word in words for word in said)  # in order, nothing invented
    plain = [line for line in lines if "#" not in line and ":" not in line and "\uff1a" not in line]
    assert all(word in said for line in plain for word in line.split())
