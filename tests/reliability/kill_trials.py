"""Kill a process that uses a memory, at any moment, and see what is left: ``python -m tests.reliability.kill_trials``.

In each trial a child does one kind of work on a memory and acknowledges every call that returned, on a pipe. It is
killed with SIGKILL at a random moment. Then the memory has to open, hold everything that was acknowledged and nothing
by half, pass the check, and go on working. Of what was forgotten no byte may be left in any file.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from shared_core import MemoryEntry, SCGConfig, SchemaMemory
from shared_core.evolution import said_concepts
from shared_core.store import Anticipated, Anticipation, ConceptLink, Store, sqlite
from shared_core.upkeep import check_memory, check_store

QUICK = SCGConfig(assimilate=0)  # no model: what is stored and when is the same with one
NAME = ("users", "anna")
OLD = Path(__file__).parents[1] / "shared_core" / "store" / "version_1.sql"
MANY = 60
"""Entries of the files that are imported, and of the memories that are migrated."""

Tell = Callable[[str], None]


def text_of(id: str) -> str:
    """Words that no other entry says, so that their bytes can be searched for; long enough for several pages a call."""
    chance = random.Random(id)
    words = ["".join(chance.choices("bcdfghklmnprstvz", k=9)) for _ in range(12)]
    return f"mark{id}end {' '.join(words)}"


def entries(ids: list[str]) -> list[MemoryEntry]:
    return [MemoryEntry(text_of(id), id, "Anna", session=f"s{id}") for id in ids]


def expectation(id: str) -> Anticipation:
    """What a model might expect of an entry."""
    tokens = np.random.default_rng(int(id)).integers(0, 50_000, 40, dtype=np.int32)
    return Anticipation(tokens, np.zeros(len(tokens), dtype=np.float32))


def open_memory(path: Path) -> SchemaMemory:
    return SchemaMemory.open(path, namespace=NAME, config=QUICK)


@dataclass
class Trial:
    """What one child did, as far as it told."""

    path: Path
    kind: str
    said: list[str] = field(default_factory=list)

    @property
    def cut(self) -> bool:
        """Whether it was killed within a call."""
        return self.said[-1:] == ["?"]

    @property
    def remembered(self) -> list[str]:
        return [id for line in self.said if line[0] == "+" for id in line[1:].split()]

    @property
    def assimilated(self) -> list[str]:
        return [id for line in self.said if line[0] == "*" for id in line[1:].split()]

    @property
    def forgotten(self) -> list[str]:
        return [id for line in self.said if line[0] == "-" for id in line[1:].split()]


# The work. Ids are "0", "1", … in the order they are stored. A line "?" says that a call begins, any other that it
# has returned.


def remember(path: Path, tell: Tell) -> None:
    tell("?")
    with open_memory(path) as memory:
        tell("opened")
        for start in range(0, 100_000, 3):
            ids = [str(start + n) for n in range(3)]
            tell("?")
            memory.remember(entries(ids), use_model=False)
            tell(f"+{' '.join(ids)}")


def assimilate(path: Path, tell: Tell) -> None:
    """Store what a model makes of entries, the way it is stored when they are assimilated."""
    with open_memory(path) as memory:
        for start in range(0, 100_000, 3):
            ids = [str(start + n) for n in range(3)]
            tell("?")
            memory.remember(entries(ids), use_model=False)
            tell(f"+{' '.join(ids)}")
            said = [said_concepts(entry)[0].key for entry in entries(ids)]
            inferred = {
                id: [ConceptLink(key, key, 0.5, "inferred")]
                for id, key in zip(ids, [*said[1:], said[0]], strict=True)  # another's: its own it says already
            }
            tell("?")
            memory.store.assimilate(NAME, inferred, Anticipated("tiny", {id: expectation(id) for id in ids}))
            tell(f"*{' '.join(ids)}")


def forget(path: Path, tell: Tell) -> None:
    with open_memory(path) as memory:
        for start in range(0, 100_000, MANY):
            ids = [str(start + n) for n in range(MANY)]
            tell("?")
            memory.remember(entries(ids), use_model=False)
            tell(f"+{' '.join(ids)}")
            for number, id in enumerate(ids[::2]):
                tell("?")
                memory.forget(**({"ids": [id]} if number % 2 else {"session": f"s{id}"}))
                tell(f"-{id}")


def clear(path: Path, tell: Tell) -> None:
    with open_memory(path) as memory:
        for start in range(0, 100_000, 5):
            ids = [str(start + n) for n in range(5)]
            tell("?")
            memory.remember(entries(ids), use_model=False)
            tell(f"+{' '.join(ids)}")
            tell("?")
            memory.clear()
            tell(f"-{' '.join(ids)}")


def move(path: Path, tell: Tell) -> None:
    """Import, export and back up."""
    with open_memory(path) as memory:
        tell("?")
        memory.import_file(path.with_suffix(".jsonl"))
        tell(f"+{' '.join(str(n) for n in range(MANY))}")
        while True:
            tell("?")
            memory.export(path.with_suffix(".out.jsonl"))
            tell("exported")
            tell("?")
            memory.store.back_up(path.with_suffix(".copy.db"))
            tell("copied")


def migrate(path: Path, tell: Tell) -> None:
    tell("?")
    with Store.open(path):
        tell("opened")
        while True:
            pass


WORK = {
    "remember": remember,
    "assimilate": assimilate,
    "forget": forget,
    "clear": clear,
    "import": move,
    "migrate": migrate,
}
CALLS = {"remember": 8, "assimilate": 8, "forget": 12, "clear": 8, "import": 4, "migrate": 1}
"""A child is killed within the first so many calls."""
SECONDS = {"remember": 0.012, "assimilate": 0.012, "forget": 0.05, "clear": 0.05, "import": 0.06, "migrate": 0.06}
"""How long after its call has begun a child is killed at the latest: a little more than a call takes."""


def prepare(path: Path, kind: str) -> None:
    """What is there before the work begins."""
    if kind == "import":
        lines = [{"format": "scg-memory", "version": 1, "namespace": NAME, "entries": MANY}]
        lines += [entry.to_dict() for entry in entries([str(n) for n in range(MANY)])]
        path.with_suffix(".jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    if kind == "migrate":
        make_old(path)


def make_old(path: Path) -> None:
    """A memory of version 1, with more entries than the dump has, so that its migration takes a moment."""
    connection = sqlite3.connect(path)
    connection.executescript(OLD.read_text())
    number = connection.execute("SELECT number FROM namespaces ORDER BY number LIMIT 1").fetchone()[0]
    with connection:
        # Two of the dump's links are worded as none that an entry's words give, which a check would find.
        for table in ("concepts", "links"):
            for given, worded in (("a puppy", "puppy"), ("adopted", "adopt")):
                connection.execute(f"UPDATE {table} SET surface = ? WHERE surface = ?", (worded, given))
        for seq, entry in enumerate(entries([f"m{n}" for n in range(MANY)]), start=100):
            row = (number, seq, entry.id, entry.digest, 0, entry.text, entry.speaker, entry.session)
            connection.execute(
                "INSERT INTO entries (namespace, seq, id, digest, assimilated, text, speaker, session) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                row,
            )
            said = said_concepts(entry)[0]
            connection.execute("INSERT INTO concepts VALUES (?, ?, ?, ?)", (number, seq, said.key, said.surface))
            link = (number, seq, seq, 1.0, 0, said.surface)
            connection.execute("INSERT INTO links VALUES (?, ?, ?, ?, ?, ?)", link)
        name = json.dumps(NAME, separators=(",", ":"))
        connection.execute(
            "UPDATE namespaces SET next_seq = 200, next_concept = 200, name = ? WHERE number = ?", (name, number)
        )
    connection.execute(f"PRAGMA application_id = {sqlite.APPLICATION_ID}")
    connection.execute("PRAGMA user_version = 1")
    connection.close()


def run(path: Path, kind: str, chance: random.Random) -> Trial:
    """One trial: the work in a child, and its end, which it cannot see coming."""
    prepare(path, kind)
    call, moment, by_processor = chance.randrange(CALLS[kind]), chance.random() * SECONDS[kind], chance.random() < 0.5
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.alarm(1000)
        begun = 0

        def tell(line: str) -> None:
            nonlocal begun
            os.write(write_end, f"{line}\n".encode())
            begun += line == "?"
            if by_processor and line == "?" and begun == call + 1:
                # SIGPROF ends a process like SIGKILL; its clock stands still while a busy machine does other things.
                signal.setitimer(signal.ITIMER_PROF, moment)

        try:
            os.close(read_end)
            WORK[kind](path, tell)
        except BaseException as error:
            os.write(write_end, f"!{type(error).__name__}: {error}\n".encode())
        finally:
            os._exit(1)
    os.close(write_end)
    with os.fdopen(read_end) as lines:
        told: list[str] = []
        while not by_processor and told.count("?\n") <= call and (line := lines.readline()):
            told.append(line)
        if not by_processor:
            time.sleep(moment)
            os.kill(pid, signal.SIGKILL)
        told += [line for line in lines if line.endswith("\n")]
    _, status = os.waitpid(pid, 0)
    failed = [line for line in told if line.startswith("!")]
    assert not failed, failed
    assert os.WTERMSIG(status) in (signal.SIGKILL, signal.SIGPROF), "the child ended by itself"
    return Trial(path, kind, [line.strip() for line in told])


def verify(trial: Trial) -> None:
    """Everything that has to hold after a kill.

    Raises:
        AssertionError: if something does not.
    """
    remembered, forgotten = trial.remembered, trial.forgotten
    with open_memory(trial.path) as memory:  # a memory, an empty file, or nothing yet: all of them open
        held = [entry.id or "" for entry in memory.entries]
        unread = bytes_of(trial.path)  # while it is open: closing would tidy up
        if trial.kind == "migrate":
            remembered = [id for id in held if id.startswith("m")]
            assert len(remembered) == MANY, f"lost by a migration: {MANY - len(remembered)} entries"
            held = remembered
        missing = set(remembered) - set(held) - set(forgotten)
        doubled = [id for id, count in Counter(held).items() if count > 1]
        assert not doubled, f"stored twice: {doubled}"
        assert not set(held) & set(forgotten), "forgotten, and there again"
        in_flight = set(held) - set(remembered)
        sizes = {"remember": 3, "assimilate": 3, "clear": 5, "import": MANY, "forget": MANY, "migrate": 0}
        assert len(in_flight) in (0, sizes[trial.kind]), f"stored by half: {sorted(in_flight)}"
        # What was being forgotten when the child was killed is gone or there, and whole either way.
        assert len(missing) in {"forget": (0, 1), "clear": (0, 5)}.get(trial.kind, (0,)), f"lost: {sorted(missing)}"
        for entry in memory.entries:
            assert entry.id not in held or entry.text == text_of(entry.id), f"not what was stored: {entry.id}"
        for id in [*forgotten, *missing]:
            for word in text_of(id).split():
                assert word.encode() not in unread, f"bytes of {id}, which was forgotten, are left"
        if trial.kind == "assimilate":
            verify_assimilated(memory, set(trial.assimilated))
        checked = check_store(memory.store)
        assert not checked.faults, checked.faults
        memory.remember("The kettle whistles", id="after", use_model=False)
        assert memory.forget(ids=["after"]).wiped
    for copy in (trial.path.with_suffix(".copy.db"), trial.path.with_suffix(".out.jsonl")):
        verify_copy(copy)


def verify_assimilated(memory: SchemaMemory, acknowledged: set[str]) -> None:
    """What a model inferred of an entry and what it expects of it are stored together, as they were told to be."""
    state = memory.store.load(NAME)
    found = memory.store.load_anticipations(NAME, "tiny", state)
    read = [state.entries[place].entry.id or "" for place in found.entry.tolist()]
    with memory.store.scan(NAME) as (_, writes):
        inferred = {write.id for write in writes if any(link.origin == "inferred" for link in write.links)}
    assert set(read) == inferred, "assimilated by half"
    assert acknowledged <= inferred, f"no longer assimilated: {sorted(acknowledged - inferred)}"
    for row, id in enumerate(read):
        tokens = found.tokens[found.starts[row] : found.starts[row + 1]]
        assert tokens.tolist() == expectation(id).tokens.tolist(), f"not what the model expects of {id}"


def verify_copy(copy: Path) -> None:
    """A backup or an export is whole, or not there."""
    if not copy.exists():
        return
    if copy.suffix == ".db":
        checked = check_memory(copy)
        assert (checked.entries, checked.faults) == (MANY, ()), checked
        return
    with open_memory(Path(f"{copy}.db")) as memory:
        assert memory.import_file(copy).added == MANY


def bytes_of(path: Path) -> bytes:
    """All that the files of a memory hold."""
    files = [Path(f"{path}{suffix}") for suffix in ("", "-wal", "-shm", "-journal")]
    return b"".join(file.read_bytes() for file in files if file.exists())


def run_trials(folder: Path, count: int, seed: int = 0, kinds: tuple[str, ...] = tuple(WORK)) -> Counter[str]:
    """Run and verify trials of all kinds in turn.

    Returns:
        Figures: trials, acknowledged entries and forgettings, and how many children were killed within a call.
    """
    figures: Counter[str] = Counter()
    for number in range(count):
        kind = kinds[number % len(kinds)]
        with tempfile.TemporaryDirectory(dir=folder) as place:
            trial = run(Path(place) / "memory.db", kind, random.Random(f"{seed} {number}"))
            try:
                verify(trial)
            except AssertionError as error:
                raise AssertionError(f"trial {number} of seed {seed} ({kind}): {error}") from error
        figures[f"{kind} trials"] += 1
        figures["remembered"] += len(trial.remembered)
        figures["assimilated"] += len(trial.assimilated)
        figures["forgotten"] += len(trial.forgotten)
        figures["killed within a call"] += trial.cut
    return figures


def main() -> None:
    """Run trials from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trials", type=int, nargs="?", default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=sorted(WORK), action="append")
    options = parser.parse_args()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        kinds = tuple(options.kind) if options.kind else tuple(WORK)
        figures = run_trials(Path(folder), options.trials, options.seed, kinds)
    sys.stdout.write(json.dumps({**figures, "seconds": round(time.monotonic() - begun)}) + "\n")


if __name__ == "__main__":
    main()
