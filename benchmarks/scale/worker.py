"""One worker of the benchmark, a process that does what it is told: ``python -m benchmarks.scale.worker MODEL WORDS``.

Reads one JSON object a line and answers with one. ``do`` names the command; see the methods of :class:`Worker`.
"""

from __future__ import annotations

import ctypes
import gc
import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import psutil  # type: ignore[import-untyped]
import torch

from benchmarks.scale.content import Sentences, name_of
from shared_core import SchemaMemory
from shared_core.adapting import memory_in
from shared_core.evolution import said_concepts
from shared_core.models import load_model, on_model_thread
from shared_core.store import EntryWrite, Store

TOGETHER = {"remember": 1, "remember_8": 8, "store_100": 100}
"""Entries of one call, by what is called; the last is without the model."""


_WARMING = 5


class Worker:
    """Keeps one memory open, with one model.

    Args:
        model: A folder, or ``embedded``.
        words: Words of content.
    """

    def __init__(self, model: str, words: Sequence[str]) -> None:
        torch.set_num_threads(1)
        self._model = load_model(None if model == "embedded" else model, threads=1)
        self._words = words
        self._memory: SchemaMemory | None = None
        self._place = ""
        self._namespaces = 1
        self._held: list[SchemaMemory] = []

    def begin(self) -> dict[str, float]:
        """The first command: the model is loaded."""
        return {"resident_bytes": resident()}

    def open(self, place: str, namespaces: int) -> dict[str, float]:
        """Open a memory, and recall once, so that what is made once is made."""
        self.close()
        self._place, self._namespaces = place, namespaces
        self._memory = SchemaMemory.open(place, model=self._model, namespace=name_of(0), create=False)
        self._memory.recall("What is there to begin with?")
        return {"resident_bytes": resident()}

    def close(self) -> dict[str, float]:
        """Close the memory."""
        self._held = []
        if self._memory is not None:
            self._memory.close()
        self._memory = None
        return {}

    def load(
        self, what: str, mark: str, seed: int, seconds: float | None = None, times: int | None = None
    ) -> dict[str, float]:
        """Recall or remember, in one namespace after another, drawn at random: for some time, or so many times.

        The namespaces that were used last are kept open, as a service does.
        """
        assert self._memory is not None
        chance = np.random.default_rng(seed)
        sentences = Sentences(self._words, mark, seed)
        watch = Watch()
        begun = time.perf_counter()
        walls: list[float] = []
        entries = empty = 0
        while len(walls) < times if times is not None else time.perf_counter() - begun < (seconds or 0):
            number = int(chance.integers(self._namespaces))
            entries_said, question = list(islice(sentences, TOGETHER.get(what, 0))), sentences.question()
            start = time.perf_counter()
            memory = memory_in(self._memory, name_of(number))
            if what == "recall":
                empty += not memory.recall(question).entries
            else:
                entries += memory.remember(entries_said, use_model=what != "store_100").added
            walls.append(time.perf_counter() - start)
        return {
            "operations": len(walls),
            "entries": entries,
            "empty": empty,
            "seconds": time.perf_counter() - begun,
            "median_seconds": statistics.median(walls),
            **watch.read(),
        }

    def idle(self, counts: Sequence[int]) -> dict[str, list[int]]:
        """Resident bytes with so many namespaces open, each recalled from once."""
        assert self._memory is not None
        for _ in range(_WARMING):
            self._memory.recall("What is there to begin with?")
        found = []
        for count in counts:
            while len(self._held) < count:
                memory = self._memory.in_namespace(name_of(len(self._held)))
                memory.recall("What is there to begin with?")
                self._held.append(memory)
            found.append(resident())
        return {"resident_bytes": found}

    def grown(self, number: int, repeats: int) -> dict[str, float]:
        """What a namespace takes in memory, and what single calls on it take once it is open.

        ``recall``; ``remember``: an entry; ``follow``: taking up an entry that another process has stored, without the
        model; ``followed``: a recall after that.
        """
        assert self._memory is not None
        name = name_of(number)
        sentences = Sentences(self._words, f"grown {number}", seed=number)
        for _ in range(_WARMING):
            self._memory.recall(sentences.question())
        before = resident()
        memory = self._memory.in_namespace(name)
        memory.recall(sentences.question())
        figures: dict[str, float] = {"resident_bytes": resident() - before}
        self._held.append(memory)

        def change() -> None:
            with Store.open(self._place, create=False) as other:
                entry = sentences.entry()
                other.write(name, [EntryWrite(entry, tuple(said_concepts(entry)), assimilated=False)])

        figures |= timed("recall", lambda: memory.recall(sentences.question()), repeats)
        figures |= timed("remember", lambda: memory.remember(sentences.entry()), repeats)
        figures |= timed("follow", memory.stats, repeats, before=change)
        figures |= timed("followed", lambda: memory.recall(sentences.question()), repeats, before=change)
        return figures

    def opened(self, number: int, repeats: int) -> dict[str, float]:
        """What the first recall in a namespace takes, which reads all of it."""
        memory = self._memory
        assert memory is not None
        sentences = Sentences(self._words, "", seed=number)
        return timed("cold", lambda: memory.in_namespace(name_of(number)).recall(sentences.question()), repeats)

    def answer(self, command: Mapping[str, Any]) -> object:
        """Do one command."""
        call: Callable[..., object] = getattr(self, command["do"])
        return call(**{key: value for key, value in command.items() if key != "do"})


class Watch:
    """Processor seconds from now on: of the whole process, and of the thread that all its models run on."""

    def __init__(self) -> None:
        self._all, self._model = time.process_time(), on_model_thread(time.thread_time)

    def read(self) -> dict[str, float]:
        """What was used."""
        return {
            "cpu_seconds": time.process_time() - self._all,
            "model_seconds": on_model_thread(time.thread_time) - self._model,
        }


def timed(
    name: str, call: Callable[[], object], repeats: int, before: Callable[[], None] = lambda: None
) -> dict[str, float]:
    """Medians of a call: seconds, processor seconds, and those of the model's thread."""
    rows = []
    for _ in range(repeats):
        before()
        watch, start = Watch(), time.perf_counter()
        call()
        rows.append({"seconds": time.perf_counter() - start, **watch.read()})
    return {f"{name}_{figure}": statistics.median(row[figure] for row in rows) for figure in rows[0]}


def resident() -> int:
    """Resident bytes of this process, once what was freed is given back."""
    gc.collect()
    with suppress(OSError, AttributeError):  # another C library keeps what it has
        ctypes.CDLL(None).malloc_trim(0)
    return int(psutil.Process().memory_info().rss)


def main(model: str, words: Path) -> None:
    worker = Worker(model, json.loads(words.read_text(encoding="utf-8")))
    for line in sys.stdin:
        sys.stdout.write(json.dumps(worker.answer(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
