"""What each command asks of the memory, and what it prints."""

import json
from datetime import datetime

import pytest

from shared_core.entry import MemoryEntry
from shared_core.filters import Filter

TRANSCRIPT = "Ida: The kettle whistles\nBo: Let it\n"
EXPORT = '{"format": "scg-memory", "version": 1}\n'


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], {"use_model": True, "dedupe": False}),
        (["--no-model", "--dedupe", "--format", "text"], {"use_model": False, "dedupe": True}),
    ],
)
def test_remember_hands_over_what_the_file_says(memory, scg, folder, options, expected):
    (folder / "tea.txt").write_text(TRANSCRIPT)
    result = scg("remember", "tea.txt", *options)
    assert (result.code, result.out) == (0, "2 entries added, 0 updated, 0 unchanged.\n")
    [((entries,), kwargs)] = memory.named("remember")
    assert [(entry.speaker, entry.text) for entry in entries] == [
        ("Ida", "The kettle whistles"),
        ("Bo", "Let it"),
    ]
    assert kwargs == expected
    assert memory.calls[-1][0] == "close"


def test_remember_chooses_a_conversation(memory, scg, folder):
    turn = {"speaker": "Ida", "dia_id": "D1:1", "text": "Tea?"}
    talks = [{"sample_id": name, "conversation": {"session_1": [turn]}} for name in ("talk-1", "talk-2")]
    (folder / "talks.json").write_text(json.dumps(talks))
    refused = scg("remember", "talks.json")
    assert refused.code == 2
    assert "talk-1, talk-2" in refused.err
    assert memory.calls == []
    assert scg("remember", "talks.json", "--conversation", "talk-2").code == 0
    assert memory.named("remember")[0][0] == ([MemoryEntry("Tea?", id="D1:1", speaker="Ida", session="1")],)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], {"namespace": ("default",), "model": None}),
        (
            ["--namespace", "ida", "--namespace", "home", "--model", "m"],
            {"namespace": ("ida", "home"), "model": "m"},
        ),
    ],
)
def test_every_command_opens_the_memory_it_is_told_to(memory, scg, stored, folder, options, expected):
    (folder / "tea.txt").write_text(TRANSCRIPT)
    commands = {
        "remember": ["tea.txt"],
        "import": ["tea.jsonl"],
        "recall": ["tea"],
        "ask": ["tea"],
        "explain": ["tea", "t:1"],
        "forget": ["--id", "t:1", "--yes"],
        "consolidate": [],
        "stats": [],
        "export": ["out.jsonl"],
    }
    (folder / "tea.jsonl").write_text(EXPORT)
    for command, arguments in commands.items():
        memory.calls.clear()
        assert scg(command, *arguments, "--memory", stored, *options).code == 0, command
        [((path,), kwargs)] = memory.named("open")
        assert path == str(stored)
        creates = command in ("remember", "import")
        assert kwargs == (expected if creates else expected | {"create": False, "retention": None}), command


def test_the_environment_names_the_memory_and_an_option_overrules_it(memory, scg, stored, folder, monkeypatch):
    moved = stored.rename(folder / "other.db")
    assert scg("stats").code == 2
    monkeypatch.setenv("SCG_MEMORY", str(moved))
    assert scg("stats").code == 0
    assert scg("stats", "--memory", "absent.db").code == 2


def test_recall_without_options_asks_for_the_defaults(memory, scg, stored):
    assert scg("recall", "tea").code == 0
    assert memory.named("recall") == [(("tea",), {"k": None, "unit": "entries", "where": None})]


def test_recall_passes_every_filter_on(memory, scg, stored):
    options = ["-k", "3", "--concepts", "--session", "1", "--session", "2", "--speaker", "Ida"]
    options += ["--after", "2024-05-08", "--before", "2024-05-09T10:00"]
    options += ["--meta", "year=2024", "--meta", "room=kitchen", "--meta", 'code="7"', "--meta", "sum=1+1=2"]
    assert scg("recall", "tea", *options).code == 0
    where = Filter(
        session=("1", "2"),
        speaker=("Ida",),
        after=datetime(2024, 5, 8),
        before=datetime(2024, 5, 9, 10),
        metadata={"year": 2024, "room": "kitchen", "code": "7", "sum": "1+1=2"},
    )
    assert memory.named("recall") == [(("tea",), {"k": 3, "unit": "concepts", "where": where})]


def test_recall_prints_entries_with_their_source_and_reasons(memory, scg, stored):
    result = scg("recall", "tea")
    assert result.out.splitlines() == [
        "1. t:1  2024-05-08 13:56  Ida  (session 1)  [0.500]",
        "   The kettle\ufffd[31m\ufffd whistles",
        "   by: kettle, whistle",
    ]
    with_concepts = scg("recall", "tea", "--concepts").out
    assert "  kettle  (both, log-probability -1.50)\n  pot  (mentioned)\n" in with_concepts
    assert "  whistle  (from kettle, probability 0.25)\n" in with_concepts


def test_nothing_recalled_is_said_on_stderr(memory, scg, stored):
    memory.recalled = []
    for command in ("recall", "ask"):
        result = scg(command, "tea")
        assert (result.code, result.err) == (0, "Nothing relevant is remembered.\n")


def test_ask_prints_the_answer_and_its_sources_apart(memory, scg, stored):
    result = scg("ask", "tea")
    assert (result.out, result.err) == ("It whistles\n", "From: t:1\n")
    assert scg("ask", "tea", "--verbose").err == "From: t:1\nRecalled for it: t:1\n"


def test_the_other_results_in_words(memory, scg, stored):
    assert scg("explain", "tea", "t:1").out == "an explanation\n"
    assert scg("stats").out == "entries             1\nconcepts in schema  2\n"
    assert scg("consolidate").out == "3 entries assimilated.\n"
    assert scg("export", "out.jsonl").out == "1 entries written to out.jsonl.\n"
    assert scg("namespaces").out == "'default'  1 entries, 0 concepts\n'ida' 'home'  1 entries, 0 concepts\n"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["remember", "tea.txt"], {"added": 2, "updated": 0, "unchanged": 0}),
        (["import", "tea.jsonl"], {"ids": ["t:1"], "added": 1, "updated": 0, "unchanged": 0}),
        (["recall", "tea"], {"body": "recall of tea"}),
        (["ask", "tea"], {"body": "an answer"}),
        (["explain", "tea", "t:1"], {"body": "an explanation"}),
        (["forget", "--id", "t:1", "--yes"], {"entries": 2, "concepts": 1, "links": 1, "wiped": True}),
        (["consolidate"], {"assimilated": 3}),
        (["stats"], {"entries": 1, "concepts_in_schema": 2}),
        (["export", "out.jsonl"], {"exported": 1}),
        (
            ["namespaces"],
            [
                {"namespace": ["default"], "entries": 1, "concepts": 0},
                {"namespace": ["ida", "home"], "entries": 1, "concepts": 0},
            ],
        ),
    ],
)
def test_json_is_all_there_is_on_stdout(memory, scg, stored, folder, arguments, expected):
    (folder / "tea.txt").write_text(TRANSCRIPT)
    (folder / "tea.jsonl").write_text(EXPORT)
    result = scg(*arguments, "--json")
    assert result.code == 0
    printed = json.loads(result.out)
    if isinstance(expected, dict):
        printed = {name: printed[name] for name in expected}
    assert printed == expected


@pytest.mark.parametrize(
    ("named", "options", "expected"),
    [
        (["ida", "home"], [], ("ida", "home")),
        (["ida", "home"], ["--namespace", "copy"], ("copy",)),
        (None, [], ("default",)),
    ],
)
def test_an_import_goes_where_it_was_exported_from_unless_told(memory, scg, folder, named, options, expected):
    header = {"format": "scg-memory", "version": 1} | ({"namespace": named} if named else {})
    (folder / "tea.jsonl").write_text(json.dumps(header))
    assert scg("import", "tea.jsonl", *options).code == 0
    [(_, kwargs)] = memory.named("open")
    assert kwargs["namespace"] == expected
