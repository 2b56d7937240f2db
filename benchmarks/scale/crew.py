"""Workers, each a process of its own, that are told the same at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

ROOT = Path(__file__).parents[2]


class Crew:
    """Some workers with one model, from now until the end of the block.

    Args:
        count: How many.
        model: A folder, or ``embedded``.
        words: The file of words of content.
    """

    def __init__(self, count: int, model: str, words: Path) -> None:
        command = [sys.executable, "-m", "benchmarks.scale.worker", model, str(words)]
        # One thread each: the workers share the processors, and threads that wait for each other would cost most.
        environment = os.environ | {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
        self._workers = [
            subprocess.Popen(
                command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
            )
            for _ in range(count)
        ]
        self.resident_bytes = [one["resident_bytes"] for one in self.ask([{"do": "begin"}] * count)]

    def __enter__(self) -> Crew:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self._workers:
            if kind is not None:
                worker.kill()
            worker.communicate()

    def ask(self, commands: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Tell the first so many workers, each its own, at once; what they answer."""
        told = self._workers[: len(commands)]
        for worker, command in zip(told, commands, strict=True):
            assert worker.stdin is not None
            worker.stdin.write(json.dumps(command) + "\n")
            worker.stdin.flush()
        answers = []
        for worker in told:
            assert worker.stdout is not None
            line = worker.stdout.readline()
            if not line:
                raise RuntimeError("a worker of the benchmark has ended: what it said is above")
            answers.append(json.loads(line))
        return answers
