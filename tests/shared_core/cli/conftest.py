"""A memory that says what it is told to: the commands are tested here, not the memory behind them."""

import io
import sys
from dataclasses import dataclass
from datetime import datetime
from types import ModuleType, SimpleNamespace

import pytest

from shared_core.cli import main
from shared_core.entry import MemoryEntry
from shared_core.store import EntryWrite, Store

ENTRY = MemoryEntry(
    "The kettle\x1b[31m\x9b whistles",
    id="t:1",
    speaker="Ida",
    session="1",
    occurred_at=datetime(2024, 5, 8, 13, 56),
)


@dataclass(frozen=True)
class Remembered:
    ids: tuple[str, ...]
    added: int
    updated: int = 0
    unchanged: int = 0


@dataclass(frozen=True)
class Erased:
    entries: int
    concepts: int = 1
    links: int = 1
    wiped: bool = True


class Result(SimpleNamespace):
    def to_dict(self):
        return {"body": self.body}

    def as_text(self):
        return self.body


class ScriptedMemory:
    """Records every call; ``failure`` is raised by the next one, ``recalled`` is what a recall gives."""

    def __init__(self):
        self.calls = []
        self.failure = None
        self.recalled = [ENTRY]
        self.erased = Erased(2)

    def _called(self, name, *args, **kwargs):
        self.calls.append((name, args, kwargs))
        if self.failure is not None:
            raise self.failure

    def open(self, path, **kwargs):
        self._called("open", path, **kwargs)
        return self

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.calls.append(("close", (), {}))

    def remember(self, entries, *, progress, **kwargs):
        self._called("remember", entries, **kwargs)
        for done in range(len(entries) + 1):
            progress(SimpleNamespace(stage="Assimilating", done=done, total=len(entries)))
        return Remembered(tuple(entry.id for entry in entries), len(entries))

    def import_file(self, path, *, progress):
        self._called("import_file", path)
        return Remembered(("t:1",), 1)

    def consolidate(self, *, progress):
        self._called("consolidate")
        return 3

    def recall(self, query, **kwargs):
        self._called("recall", query, **kwargs)
        reasons = (SimpleNamespace(key="kettle"), SimpleNamespace(key="whistle"))
        return Result(
            body=f"recall of {query}",
            query=query,
            entries=[SimpleNamespace(entry=entry, score=0.5, reasons=reasons) for entry in self.recalled],
            seeds=[
                SimpleNamespace(key="kettle", logprob=-1.5, activation=0.6, source="both"),
                SimpleNamespace(key="pot", logprob=None, activation=0.3, source="mentioned"),
            ],
            context=[SimpleNamespace(key="whistle", seed="kettle", probability=0.25)],
        )

    def answer(self, query):
        self._called("answer", query)
        return Result(body="an answer", text="It whistles", recall=self.recall(query), sources=self.recalled)

    def explain(self, query, entry_id):
        self._called("explain", query, entry_id)
        return Result(body="an explanation")

    def forget(self, **kwargs):
        self._called("forget", **kwargs)
        return self.erased

    def clear(self):
        self._called("clear")
        return self.erased

    def expire(self):
        self._called("expire")
        return self.erased

    @property
    def entries(self):
        return self.recalled

    def stats(self):
        self._called("stats")
        return SimpleNamespace(to_dict=lambda: {"entries": 1, "concepts_in_schema": 2})

    def export(self, path):
        self._called("export", path)
        return 1

    def named(self, name):
        """Arguments of every call of that name."""
        return [(args, kwargs) for called, args, kwargs in self.calls if called == name]


@pytest.fixture
def memory(monkeypatch):
    scripted = ScriptedMemory()
    module = ModuleType("shared_core.memory")
    module.SchemaMemory = scripted
    monkeypatch.setitem(sys.modules, "shared_core.memory", module)
    return scripted


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty folder to work in, and no setting from outside."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SCG_MEMORY", raising=False)
    return tmp_path


@pytest.fixture
def stored(folder):
    """A memory file with the namespaces ("default",) and ("ida", "home")."""
    path = folder / "scg-memory.db"
    with Store.open(path) as store:
        for namespace in (("default",), ("ida", "home")):
            store.write(namespace, [EntryWrite(ENTRY.with_id("t:1"))])
    return path


@pytest.fixture
def scg(capsys, monkeypatch):
    """Run a command line; gives the exit code, stdout and stderr."""

    def run(*arguments, answer=""):
        monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
        with pytest.raises(SystemExit) as stopped:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return SimpleNamespace(code=stopped.value.code or 0, out=out, err=err)

    return run
