"""Errors are one line on stderr and an exit code, and leave nothing behind."""

import io
import json
import subprocess
import sys

import pytest

from shared_core import errors
from shared_core.cli import main
from shared_core.cli.output import show_json

READING = {
    "recall": ["tea"],
    "ask": ["tea"],
    "explain": ["tea", "t:1"],
    "forget": ["--all"],
    "consolidate": [],
    "stats": [],
    "export": ["out.jsonl"],
}


def assert_error(result, code):
    assert (result.code, result.out) == (code, "")
    assert result.err.startswith("error: ")
    assert result.err.count("\n") == 1


@pytest.mark.parametrize("command", [*READING, "namespaces"])
def test_a_memory_that_is_not_there_is_an_error_and_stays_so(memory, scg, folder, command):
    result = scg(command, *READING.get(command, []), "--memory", "absent.db")
    assert_error(result, 2)
    assert "absent.db" in result.err
    assert list(folder.iterdir()) == []
    assert memory.calls == []


@pytest.mark.parametrize("command", READING)
def test_an_unknown_namespace_is_an_error_that_lists_the_known(memory, scg, stored, command):
    before = stored.read_bytes()
    result = scg(command, *READING[command], "--namespace", "ida")
    assert_error(result, 2)
    assert "has no namespace 'ida'; it has: 'default', 'ida' 'home'" in result.err
    assert memory.calls == []
    assert stored.read_bytes() == before


def test_a_file_that_is_no_memory_is_an_error_and_left_alone(memory, scg, folder):
    (folder / "notes.db").write_text("my notes")
    assert_error(scg("stats", "--memory", "notes.db"), 2)
    assert (folder / "notes.db").read_text() == "my notes"


def test_a_broken_file_is_named_and_no_memory_is_made(memory, scg, folder):
    (folder / "bad.jsonl").write_text('{"text": "Tea"}\n{"text": }\n')
    result = scg("remember", "bad.jsonl")
    assert_error(result, 2)
    assert "bad.jsonl, line 2" in result.err
    assert_error(scg("remember", "absent.jsonl"), 2)
    assert_error(scg("remember", "bad.jsonl", "--format", "xml"), 2)
    assert memory.calls == []
    assert [path.name for path in folder.iterdir()] == ["bad.jsonl"]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.InvalidInputError, 2),
        (errors.FormatError, 2),
        (errors.NotFoundError, 2),
        (errors.NotAMemoryError, 2),
        (errors.StoreError, 1),
        (errors.StoreVersionError, 1),
        (errors.StoreUnavailableError, 1),
        (errors.ModelError, 1),
        (errors.SCGError, 1),
        (OSError, 1),
    ],
)
def test_every_error_is_one_line_and_a_code(memory, scg, stored, error, code):
    memory.failure = error("the kettle\nis cold\x1b[2J")
    result = scg("recall", "tea")
    assert_error(result, code)
    assert result.err == "error: the kettle is cold\ufffd[2J\n"


def test_a_fault_of_the_program_keeps_its_traceback(memory, stored):
    memory.failure = ZeroDivisionError("a fault")
    with pytest.raises(ZeroDivisionError):
        main(["recall", "tea"])


@pytest.mark.parametrize(
    "arguments",
    [
        ["recall"],
        ["recall", "tea", "-k", "0"],
        ["recall", "tea", "--after", "last Saturday"],
        ["recall", "tea", "--meta", "kitchen"],
        ["recall", "tea", "--meta", "=kitchen"],
        ["recall", "tea", "--meta", "a=1", "--meta", "a=2"],
        ["recall", "tea", "--namespace", " "],
        ["recall", "tea", "--tea"],
        ["forget", "--older-than", "90", "--yes"],
        ["forget", "--older-than", "-3d", "--yes"],
        ["forget", "--older-than", "0d", "--yes"],
        ["forget", "--older-than", "9" * 30 + "w", "--yes"],
        ["forget", "--keep-newest", "0", "--yes"],
        ["forget", "--keep-newest", "many", "--yes"],
        ["remind"],
        ["--forget"],
    ],
)
def test_wrong_usage_is_one_line_and_code_2_and_opens_nothing(memory, scg, stored, arguments):
    assert_error(scg(*arguments), 2)
    assert memory.calls == []


def test_without_a_command_there_is_help(scg):
    result = scg()
    assert (result.code, result.err) == (0, "")
    assert "consolidate" in result.out


@pytest.mark.parametrize("command", ["recall", "consolidate"])
def test_an_interruption_is_one_line_and_code_130(memory, scg, stored, command):
    memory.failure = KeyboardInterrupt()
    result = scg(command, *READING[command])
    assert (result.code, result.out) == (130, "")
    assert result.err == "interrupted: what was stored by then stays\n"


def test_json_stays_json_where_the_terminal_knows_few_characters(monkeypatch):
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="cp1252"))
    show_json({"text": "小明"})
    sys.stdout.flush()
    assert json.loads(written.getvalue()) == {"text": "小明"}


def test_words_reach_a_terminal_that_knows_few_characters(memory, stored, monkeypatch):
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="cp1252"))
    with pytest.raises(SystemExit) as stopped:
        main(["recall", "tea"])
    sys.stdout.flush()
    assert stopped.value.code == 0
    assert b"The kettle\\ufffd[31m\\ufffd whistles" in written.getvalue()


def test_help_starts_without_the_heavy_parts(folder):
    script = (
        "import sys\nfrom shared_core.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit as stopped:\n    assert not stopped.code\n"
        "print(sorted({'torch', 'transformers', 'sqlalchemy', 'rich', 'numpy'} & set(sys.modules)))"
    )
    root = sys.modules["shared_core.errors"].__file__.rpartition("shared_core")[0]
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=True, timeout=100
    )
    assert "consolidate" in done.stdout
    assert done.stdout.endswith("\n[]\n")


_INTERRUPTED = """
import os, signal, sys

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it from the start

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
from shared_core.cli import main
main(sys.argv[2:])
"""


@pytest.mark.parametrize("module", ["shared_core.cli.app", "typer", "sqlalchemy", "numpy", "shared_core.memory"])
def test_an_interruption_while_the_command_starts_is_told_in_one_line(stored, module):
    """The parts of the program are loaded one after another, and each is where somebody may press Ctrl-C."""
    root = sys.modules["shared_core.errors"].__file__.rpartition("shared_core")[0]
    done = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED, module, "stats", "--memory", str(stored)],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted: what was stored by then stays\n")


def test_a_model_that_is_a_path_to_nothing_is_refused_before_anything_is_opened(memory, scg, stored):
    for path in ("/no/where", "./nowhere", "~/no/where", "missing.gguf"):
        result = scg("recall", "tea", "--model", path)
        assert result.code == 1
        assert "check the path" in result.err
    assert memory.calls == []


@pytest.mark.parametrize(("version", "expected"), [("1.2.3", "scg 1.2.3\n"), (None, "scg (not installed")])
def test_version(scg, monkeypatch, version, expected):
    import importlib.metadata

    def find(name):
        if version is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return version

    monkeypatch.setattr(importlib.metadata, "version", find)
    result = scg("--version")
    assert result.code == 0
    assert result.out.startswith(expected)
