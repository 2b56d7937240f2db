"""Forgetting asks first, and never guesses what is meant."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from shared_core.retention import Retention


@pytest.mark.parametrize(
    ("options", "call", "arguments"),
    [
        (["--id", "a", "--id", "b"], "forget", {"ids": ["a", "b"], "session": None, "speaker": None}),
        (["--session", "1"], "forget", {"ids": None, "session": "1", "speaker": None}),
        (["--speaker", "Ida"], "forget", {"ids": None, "session": None, "speaker": "Ida"}),
        (["--all"], "clear", {}),
    ],
)
def test_one_selector_is_passed_on_after_a_yes(memory, scg, stored, options, call, arguments):
    for consent, answer in (["--yes"], ""), ([], "y\n"):
        memory.calls.clear()
        result = scg("forget", *options, *consent, answer=answer)
        assert (result.code, result.out) == (0, "Forgot 2 entries and 1 concepts.\n")
        assert memory.named(call) == [((), arguments)]


@pytest.mark.parametrize(("answer", "code"), [("n\n", 1), ("\n", 1), ("", 2)])
def test_without_a_yes_the_memory_is_not_even_opened(memory, scg, stored, answer, code):
    result = scg("forget", "--all", answer=answer)
    assert (result.code, result.out) == (code, "")
    assert "othing was forgotten" in result.err
    assert memory.calls == []


@pytest.mark.parametrize(
    "options",
    [[], ["--yes"], ["--id", "a", "--all"], ["--session", "1", "--speaker", "Ida"], ["--all", "--older-than", "1d"]],
)
def test_no_selector_or_two_are_refused(memory, scg, stored, options):
    result = scg("forget", *options, answer="y\n")
    assert result.code == 2
    assert result.err.startswith("error: say what to forget by exactly one of")
    assert memory.calls == []


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        (["--older-than", "90d"], Retention(timedelta(days=90))),
        (["--older-than", "36h", "--keep-newest", "5"], Retention(timedelta(hours=36), 5)),
        (["--older-than", "8w"], Retention(timedelta(weeks=8))),
        (["--keep-newest", "5"], Retention(None, 5)),
    ],
)
def test_a_retention_is_passed_on_after_a_yes(memory, scg, stored, options, kept):
    assert scg("forget", *options, answer="n\n").code == 1
    assert memory.calls == []
    result = scg("forget", *options, answer="y\n")
    assert (result.code, result.out) == (0, "Forgot 2 entries and 1 concepts.\n")
    [(_, kwargs)] = memory.named("open")
    assert kwargs["retention"] == kept
    assert memory.named("expire") == [((), {})]
    memory.erased = replace(memory.erased, entries=0)
    assert scg("forget", *options, "--yes").code == 0  # nothing is too old today


def test_what_is_not_there_is_an_error(memory, scg, stored):
    memory.erased = replace(memory.erased, entries=0)
    result = scg("forget", "--session", "9", "--yes")
    assert (result.code, result.out) == (2, "")
    assert result.err == "error: there is no such entry: nothing was forgotten (every entry of session '9')\n"
    assert scg("forget", "--all", "--yes").code == 0  # an empty namespace may be cleared


def test_bytes_left_behind_are_told(memory, scg, stored):
    memory.erased = replace(memory.erased, wiped=False)
    result = scg("forget", "--all", "--yes", "--json")
    assert json.loads(result.out)["wiped"] is False
    assert "may stay in the file" in result.err


@pytest.mark.parametrize(("option", "value"), [("--older-than", "0d"), ("--keep-newest", "0"), ("--keep-newest", "-1")])
def test_a_bound_that_would_keep_nothing_is_refused_in_the_words_of_the_command(memory, scg, stored, option, value):
    result = scg("forget", f"{option}={value}", "--yes")
    assert result.code == 2
    assert option in result.err
    assert "max_" not in result.err
    assert "timedelta" not in result.err
    assert memory.calls == []
