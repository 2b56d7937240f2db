"""The demonstration."""

import json
from pathlib import Path

import pytest

from shared_core.formats import read_entries
from shared_core.samples import DEMO_QUESTIONS, sample_path


@pytest.fixture
def opened(memory):
    """The paths that are opened; every recall gives the first question's first expected turn."""
    expected = DEMO_QUESTIONS[0][1][0]
    memory.recalled = [entry for entry in read_entries(sample_path()) if entry.id in (expected, "s1:02")]
    return lambda: [args[0] for args, _ in memory.named("open")]


def test_it_remembers_the_sample_in_a_memory_that_is_gone_afterwards(memory, opened, scg, monkeypatch):
    monkeypatch.setenv("SCG_MEMORY", "mine.db")
    assert scg("demo").code == 0
    [path] = opened()
    assert Path(path).name != "mine.db"
    assert not Path(path).parent.exists()
    assert memory.named("open")[0][1]["namespace"] == ("demo",)
    assert memory.named("remember")[0][0] == (read_entries(sample_path()),)
    asked = [args[0] for args, _ in memory.named("recall")]
    assert asked == [question for question, _ in DEMO_QUESTIONS]


def test_it_uses_the_memory_it_is_given(memory, opened, scg, folder):
    assert scg("demo", "--memory", "kept.db", "--namespace", "trial").code == 0
    assert opened() == ["kept.db"]
    assert memory.named("open")[0][1]["namespace"] == ("trial",)


def test_the_tables_show_turns_concepts_and_whether_the_expected_is_there(opened, scg, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    out = scg("demo").out
    first, *others = DEMO_QUESTIONS
    assert first[0] in out
    assert "kettle, whistle" in out
    [hit] = [line for line in out.splitlines() if "│ ✓ │" in line]
    assert first[1][0] in hit
    assert f"expected turn; 1 of {len(first[1])} recalled" in out
    total = sum(len(expected) for _, expected in DEMO_QUESTIONS)
    assert out.endswith(f"1 of the {total} expected turns are among the first 5 recalled.\n")
    assert f"expected turn; 0 of {len(others[0][1])} recalled" in out


def test_it_prints_json(opened, scg):
    results = json.loads(scg("demo", "--json").out)
    assert [result["expected"] for result in results] == [list(ids) for _, ids in DEMO_QUESTIONS]
    assert results[0]["found"] == [DEMO_QUESTIONS[0][1][0]]
    assert results[1]["found"] == []
    assert results[0]["recall"] == {"body": f"recall of {DEMO_QUESTIONS[0][0]}"}
