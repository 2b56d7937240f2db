"""The commands with the memory behind them."""

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import threading
from copy import deepcopy
from pathlib import Path

import pytest

from shared_core import SchemaMemory
from shared_core.store import Store, export_namespace

ROOT = Path(__file__).parents[3]
LOCOMO = [
    {"sample_id": name, "conversation": {"session_1": [{"speaker": "Mira", "dia_id": "D1:1", "text": text}]}}
    for name, text in (("talk-1", "The bees swarmed"), ("talk-2", "The canoe floats"))
]


@pytest.fixture(autouse=True)
def model(monkeypatch, small_model):
    """Stands in for the embedded model; other models are looked for as usual."""
    from shared_core import models

    load = models.load_model
    monkeypatch.setattr(models, "load_model", lambda source: small_model if source is None else load(source))


@pytest.fixture
def conversation(folder, turns):
    path = folder / "conversation.jsonl"
    path.write_text("".join(json.dumps(turn.to_dict()) + "\n" for turn in turns))
    return path


@pytest.fixture(scope="module")
def made_once(tmp_path_factory, small_model, turns):
    path = tmp_path_factory.mktemp("made") / "memory.db"
    with SchemaMemory.open(path, model=small_model) as memory:
        memory.remember(turns)
    return path


@pytest.fixture
def remembered(made_once, conversation, folder):
    """The conversation in its file and in the default memory."""
    shutil.copy(made_once, folder / "scg-memory.db")


def assert_refused(result, *told):
    assert (result.code, result.out) != (0, "")
    assert result.code in (1, 2)
    assert result.err.startswith("error: ")
    assert result.err.count("\n") == 1
    for text in told:
        assert text in result.err


def content(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_from_remembering_to_forgetting(scg, conversation, folder, turns):
    remembered = json.loads(scg("remember", conversation, "--json").out)
    assert (remembered["added"], remembered["ids"]) == (len(turns), [turn.id for turn in turns])
    stats = json.loads(scg("stats", "--json").out)
    assert (stats["entries"], stats["waiting"], stats["sessions"], stats["speakers"]) == (24, 0, 3, 2)
    recall = json.loads(scg("recall", "Who is allergic to walnuts?", "-k", "3", "--json").out)
    assert recall["entries"][0]["id"] == "t19"
    assert len(recall["entries"]) == 3
    assert scg("recall", "walnuts", "--session", "kitchen", "--speaker", "Tobi").out.startswith("1. t18 ")
    seeds = scg("recall", "a beehive", "-k", "60", "--concepts").out.partition("\nSeeds\n")[2]
    assert len(re.findall(r"  .+  \(generated, log-probability -\d+\.\d\d\)\n", seeds)) == 20
    assert "Context concepts" not in seeds
    asked = scg("ask", "Who has a beehive?", "--verbose")
    assert asked.code == 0
    assert "t02" in asked.err
    explained = scg("explain", "Who has a beehive?", "t02").out
    assert "Rank 1 of 24" in explained
    assert json.loads(scg("explain", "Who has a beehive?", "t02", "--json").out)["rank"] == 1
    assert scg("export", "out.jsonl").code == 0
    assert json.loads(scg("import", "out.jsonl", "--namespace", "copy", "--json").out)["added"] == 24
    assert json.loads(scg("namespaces", "--json").out)[1]["namespace"] == ["copy"]
    assert scg("forget", "--session", "allotment", "--yes").out.startswith("Forgot 8 entries")
    assert "t02" not in [one["id"] for one in json.loads(scg("recall", "beehive", "-k", "50", "--json").out)["entries"]]
    assert scg("forget", "--all", "--yes", "--namespace", "copy").code == 0
    assert b"swarmed" not in (folder / "scg-memory.db").read_bytes()


def test_remembering_again_changes_nothing_and_an_edited_line_is_an_update(scg, remembered, conversation, folder):
    before = scg("export", "before.jsonl").code, (folder / "before.jsonl").read_text()
    assert scg("remember", conversation).out == "0 entries added, 0 updated, 24 unchanged.\n"
    assert (scg("export", "after.jsonl").code, (folder / "after.jsonl").read_text()) == before
    conversation.write_text(conversation.read_text().replace("a cake of them", "soup of them"))
    assert scg("remember", conversation).out == "0 entries added, 1 updated, 23 unchanged.\n"


def test_storing_without_the_model_is_completed_by_consolidate(scg, remembered, conversation):
    assert scg("remember", conversation, "--no-model", "--memory", "later.db").code == 0
    assert json.loads(scg("stats", "--json", "--memory", "later.db").out)["waiting"] == 24
    assert scg("consolidate", "--memory", "later.db").out == "24 entries assimilated.\n"
    for memory in ("later.db", "scg-memory.db"):
        assert scg("export", f"{memory}.jsonl", "--memory", memory).code == 0
    assert Path("later.db.jsonl").read_text() == Path("scg-memory.db.jsonl").read_text()


@pytest.mark.parametrize(
    "options",
    [
        ["--id", "t02", "--id", "t99"],
        ["--session", "kitchen"],
        ["--speaker", "Mira"],
        ["--all"],
        ["--older-than", "1d", "--keep-newest", "30"],
        ["--keep-newest", "7"],
        ["--older-than", "99999d"],
    ],
)
def test_a_dry_run_lists_what_then_is_forgotten(scg, remembered, folder, options):
    before = content(folder)
    listed = scg("forget", *options, "--dry-run")
    told = json.loads(scg("forget", *options, "--dry-run", "--json").out)
    assert {name: content(folder)[name] for name in before} == before
    assert [line.split()[0] for line in listed.out.splitlines()] == told["ids"]
    assert listed.err == f"{len(told['ids'])} entries would be forgotten; without --dry-run they are.\n"
    receipt = json.loads(scg("forget", *options, "--yes", "--json").out)
    assert (receipt["ids"], receipt["entries"]) == (told["ids"], told["would_forget"])
    assert bool(receipt["ids"]) == ("99999d" not in options)


@pytest.mark.parametrize(
    ("name", "lines", "options", "told"),
    [
        ("absent.jsonl", None, [], ["absent.jsonl: there is no such file"]),
        ("empty.jsonl", "\n", [], ["the file is empty"]),
        ("bad.jsonl", '{"text": "Tea"}\n{"text": "Cake"}\nnot JSON\n', [], ["bad.jsonl, line 3", "nothing was read"]),
        ("text.jsonl", '{"text": "Tea"}\n{"text": ""}\n', [], ["line 2", "text is empty", "nothing was read"]),
        ("nul.jsonl", '{"text": "a\\u0000b"}\n', [], ["line 1", "NUL"]),
        ("odd.jsonl", '{"text": "Tea", "colour": "red"}\n', [], ["line 1", "'colour'", "metadata"]),
        ("tea.jsonl", '{"text": "Tea"}\n', ["--format", "xml"], ["xml", "jsonl", "chat", "locomo"]),
        ("tea.jsonl", '{"text": "Tea"}\n', ["--conversation", "talk-1"], ["LoCoMo"]),
        ("talks.json", json.dumps(LOCOMO), [], ["talk-1, talk-2"]),
        ("talks.json", json.dumps(LOCOMO), ["--conversation", "talk-9"], ["talk-9", "talk-1"]),
        ("tea.jsonl", '{"text": "Tea"}\n', ["--namespace", ""], ["namespace"]),
        ("tea.jsonl", '{"text": "Tea"}\n', ["--model", "absent.gguf"], ["absent.gguf", "check the path"]),
        ("tea.jsonl", '{"text": "Tea"}\n', ["--model", "."], ["holds no model"]),
    ],
)  # fmt: skip
def test_a_file_or_an_option_that_is_wrong_leaves_the_memory_as_it_was(
    scg, remembered, folder, name, lines, options, told
):
    if lines is not None:
        (folder / name).write_text(lines)
    before = content(folder)
    assert_refused(scg("remember", name, *options), *told)
    assert content(folder) == before


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["recall", " "], ["the query is empty"]),
        (["recall", "tea", "--namespace", "nobody"], ["nobody", "'default'"]),
        (["recall", "tea", "--after", "2024-06-01", "--before", "2024-05-01"], ["swap"]),
        (["recall", "tea", "--model", "absent.gguf"], ["absent.gguf"]),
        (["explain", "tea", "t99"], ["t99"]),
        (["forget", "--id", "t99", "--yes"], ["nothing was forgotten"]),
        (["import", "conversation.jsonl"], ["conversation.jsonl, line 1", "not an export"]),
        (["export", "scg-memory.db"], ["is the memory itself"]),
        (["export", "absent/out.jsonl"], ["absent"]),
    ],
)
def test_what_cannot_be_done_is_told_and_leaves_the_memory_as_it_was(scg, remembered, folder, arguments, told):
    before = content(folder)
    assert_refused(scg(*arguments), *told)
    assert content(folder) == before


def test_counts_below_one_are_refused(scg, remembered):
    for count in ("0", "-3", "two"):
        result = scg("recall", "tea", "-k", count)
        assert (result.code, result.out) == (2, "")
        assert "-k" in result.err


def test_other_files_and_newer_memories_are_left_alone(scg, remembered, conversation, folder):
    (folder / "notes.db").write_text("Dear diary")
    with sqlite3.connect(folder / "scg-memory.db") as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = content(folder)
    for memory, told in (("notes.db", "not a memory"), ("scg-memory.db", "upgrade"), (".", "not a file")):
        for command in (["remember", conversation], ["recall", "tea"], ["stats"], ["forget", "--all", "--yes"]):
            assert_refused(scg(*command, "--memory", memory), told)
    assert content(folder) == before


def test_a_conversation_of_several_is_remembered(scg, folder):
    (folder / "talks.json").write_text(json.dumps(LOCOMO))
    assert scg("remember", "talks.json", "--conversation", "talk-2", "--no-model").code == 0
    assert "The canoe floats" in scg("recall", "canoe").out


def test_killed_at_any_moment_and_run_again_it_ends_as_if_never_killed(folder, turns, small_model):
    few = folder / "few.jsonl"
    few.write_text("".join(json.dumps(turn.to_dict()) + "\n" for turn in turns[:9]))
    deepcopy(small_model._model).save_pretrained(folder / "model")  # saving changes a model's settings
    small_model._tokenizer.save_pretrained(folder / "model")
    run = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("killed_remember.py")), few, folder, folder / "model"],
        env=os.environ | {"PYTHONPATH": str(ROOT), "TOKENIZERS_PARALLELISM": "false"},
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    trials = [json.loads(line) for line in run.stdout.splitlines()]
    told = [line.partition(":")[0] for trial in trials for line in trial["killed"]]
    assert told[:5] == ["started", "storing", "weighing new concepts", "storing", "assimilating"]
    exports = []
    for trial in trials:
        with Store.open(trial["memory"], create=False) as store:
            assert export_namespace(store, ("default",), folder / "out.jsonl") == 9
        exports.append((folder / "out.jsonl").read_text())
    assert exports == [exports[0]] * 4
    assert '"inferred"' in exports[0]
    assert '"assimilated": false' not in exports[0]


def test_an_export_comes_through_a_pipe(scg, remembered, folder):
    assert scg("export", "exported.jsonl").code == 0
    exported = (folder / "exported.jsonl").read_bytes()
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    for content in (exported, exported + b"no line"):
        writer = threading.Thread(target=pipe.write_bytes, args=[content])
        writer.start()
        result = scg("import", "pipe", "--memory", "new.db", "--json")
        writer.join()
        if content == exported:
            assert json.loads(result.out)["added"] == 24
        else:
            assert result.code == 2
            assert "error: pipe, line 26: the line is not JSON" in result.err


def test_the_command_is_also_a_module(folder):
    done = subprocess.run(
        [sys.executable, "-m", "shared_core.cli", "--version"],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    assert done.stdout.startswith("scg ")
