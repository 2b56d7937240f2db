"""What the packages may not do, whoever writes them: run what they read, or put values into statements."""

import ast
import random
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from shared_core.errors import FormatError, SCGError
from shared_core.models import load_model
from shared_core.schema import build_trie
from shared_core.store import Store, import_namespace

ROOT = Path(__file__).parents[2]
FILES = sorted(
    file for package in ("shared_core", "scg_langchain", "scg_llamaindex") for file in (ROOT / package).rglob("*.py")
)
RUNS_WHAT_IT_READS = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve", "jsonpickle", "yaml"}
STATEMENT = re.compile(r"\b(SELECT|INSERT|UPDATE|DELETE|DROP|ATTACH)\b")
# Names of columns and indexes, written in the same file; and names that a database has, quoted as such.
CONSTANTS = {
    "columns",
    "', '.join(_COLUMNS)",
    "table.name",
    "column",
    "place",
    "index",
    "sorting",
    "quoted(name)",
    "quoted(str(index.name))",
}


@cache
def parsed() -> list[tuple[Path, ast.AST]]:
    return [
        (file.relative_to(ROOT), node)
        for file in FILES
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
    ]


def nodes(kind: type) -> Iterator[tuple[Path, ast.AST]]:
    return ((file, node) for file, node in parsed() if isinstance(node, kind))


def called(node: ast.Call) -> str:
    return ast.unparse(node.func)


def test_nothing_reads_a_pickle():
    imported = {
        (str(file), name.partition(".")[0])
        for file, node in nodes((ast.Import, ast.ImportFrom))
        for name in ([alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""])
    }
    assert not [(file, name) for file, name in imported if name in RUNS_WHAT_IT_READS]
    calls = {(str(file), called(node)) for file, node in nodes(ast.Call)}
    running = {"eval", "exec", "__import__", "torch.load", "os.system", "os.popen", "compile"}
    assert not [(file, name) for file, name in calls if name in running or name.startswith("subprocess.")]
    allowing = [str(file) for file, node in nodes(ast.keyword) if node.arg == "allow_pickle"]
    assert not allowing


def test_no_code_of_a_model_is_trusted():
    trusted = [(str(file), ast.unparse(node)) for file, node in nodes(ast.keyword) if node.arg == "trust_remote_code"]
    assert {text for _, text in trusted} == {"trust_remote_code=False"}
    loading = [ast.unparse(node) for _, node in nodes(ast.Call) if called(node).endswith(".from_pretrained")]
    assert loading
    assert all("trust_remote_code=False" in call for call in loading)


def test_weights_in_a_pickle_are_refused_and_run_nothing(tmp_path):
    """A folder that holds a model as others may send it: its weights are a program."""
    import torch

    class Harm:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "harmed",))

    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_layer": 1}')
    torch.save({"harm": Harm()}, folder / "pytorch_model.bin")
    with pytest.raises(SCGError):
        load_model(str(folder))
    assert not (tmp_path / "harmed").exists()


def test_statements_are_made_of_constants_and_values_are_passed_beside_them():
    made = [
        (str(file), ast.unparse(part.value))
        for file, node in nodes(ast.JoinedStr)
        if STATEMENT.search("".join(str(part.value) for part in node.values if isinstance(part, ast.Constant)))
        if file.parts[:2] == ("shared_core", "store")
        for part in node.values
        if isinstance(part, ast.FormattedValue)
    ]
    assert [(file, value) for file, value in made if value not in CONSTANTS] == []
    joined = [
        (str(file), ast.unparse(node))
        for file, node in nodes(ast.Call)
        if called(node).rpartition(".")[2] in ("execute", "executescript", "exec_driver_sql", "text")
        and node.args
        and isinstance(node.args[0], ast.BinOp)
    ]
    assert joined == []


@pytest.mark.parametrize(
    "line",
    [
        '{"id": "1", "text": "' + "x" * 68_000_000 + '"}',
        '{"id": "1", "text": "a", "metadata": ' + '{"a":' * 5000 + "1" + "}" * 5000 + "}",
        "[" * 1_000_000,
        '{"id": "1", "text": "a", "metadata": {"n": ' + "9" * 10_000 + "}}",
    ],
    ids=["size", "depth", "brackets", "digits"],
)
def test_an_import_is_bounded_in_size_and_depth(tmp_path, line):
    path = tmp_path / "import.jsonl"
    path.write_text('{"format": "scg-memory", "version": 1, "namespace": ["a"]}\n' + line + "\n")
    with Store.open(":memory:") as store:
        with pytest.raises(FormatError, match="line 2"):
            import_namespace(store, ("a",), path)
        assert store.namespaces() == []


def test_a_trie_of_many_keys_takes_few_bytes():
    """Not hours or gigabytes: a node a token at most, and no Python object for any of them."""
    chance = random.Random(0)
    keys = {tuple(chance.choices(range(4000), k=chance.randint(1, 5))) for _ in range(30_000)}
    trie = build_trie(sorted(keys))
    assert trie.key_count == len(keys)
    assert trie.nbytes < 60 * len(keys)
