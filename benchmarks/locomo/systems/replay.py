"""Memories and readings that are kept: variations that differ later on take them up where they part."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import psutil  # type: ignore[import-untyped]

from benchmarks.lines import append_line, read_lines
from benchmarks.locomo.systems.system import Cost
from shared_core.decoding import DecodedKey, Reading
from shared_core.store import Anticipation


def digest(*parts: object) -> str:
    """A name for what depends on some JSON values (20 hex digits)."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:20]


class WrittenMemory:
    """The file of a memory that is written whole, with what the writing took.

    A memory that was half written when its process died is written anew: what the first half took went with it.

    Args:
        folder: Where it is kept; made if need be.
        name: Which one.
    """

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{name}.db"
        self._cost = folder / f"{name}.json"

    def write(self, write: Callable[[Path], Cost]) -> Cost:
        """Have it written to a path, unless it is there; returns what that takes, or took."""
        if self.path.is_file() and self._cost.is_file():
            return Cost(**json.loads(self._cost.read_text(encoding="utf-8")))
        self._sweep()
        partial = self.path.with_suffix(f".{os.getpid()}.partial")
        cost = write(partial)
        # The memory comes last: with it in place everything is.
        unfinished = partial.with_name(partial.name + ".json")
        unfinished.write_text(json.dumps(asdict(cost)), encoding="utf-8")
        unfinished.replace(self._cost)
        partial.replace(self.path)
        return cost

    def _sweep(self) -> None:
        """Remove what a process left that is no more, or an earlier attempt of this one."""
        for left in self.path.parent.glob(f"{self.path.stem}.*.partial*"):
            writer = int(left.name.split(".")[1])
            if writer == os.getpid() or not psutil.pid_exists(writer):
                left.unlink()


class ReadingFile:
    """The readings of one memory's queries under one way to decode, one a line, each with what it took.

    Args:
        path: The file; it may not be there yet.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._kept: dict[str, tuple[Reading, Cost]] = {}
        for fields in read_lines(path):
            self._kept[fields["query"]] = _reading(fields["keys"], fields["anticipation"]), Cost(**fields["cost"])

    def get(self, query: str) -> tuple[Reading, Cost] | None:
        """What was read for a query."""
        return self._kept.get(digest(query))

    def keep(self, query: str, reading: Reading, cost: Cost) -> Reading:
        """Keep the reading of a query under one constraint; returns it as a replay will give it."""
        (decoded,) = reading.keys
        keys = [(int(one.key), float(one.logprob), float(one.score)) for one in decoded]
        expected = reading.anticipation
        anticipation = (expected.tokens.tolist(), expected.logprobs.tolist())
        self._kept[digest(query)] = _reading(keys, anticipation), cost
        fields: Mapping[str, object] = {
            "query": digest(query),
            "cost": asdict(cost),
            "keys": keys,
            "anticipation": anticipation,
        }
        self._path.parent.mkdir(parents=True, exist_ok=True)
        append_line(self._path, fields)
        return self._kept[digest(query)][0]


def _reading(keys: Sequence[tuple[int, float, float]], anticipation: tuple[Sequence[int], Sequence[float]]) -> Reading:
    tokens, logprobs = anticipation
    return Reading(
        [[DecodedKey(*one) for one in keys]],
        Anticipation(np.array(tokens, dtype=np.int32), np.array(logprobs, dtype=np.float32)),
    )
