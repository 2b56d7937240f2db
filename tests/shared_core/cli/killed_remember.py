"""Run by test_end_to_end: ``scg remember`` in child processes that are killed with SIGKILL, then once to its end.

Prints one JSON line a memory: its file, and the line of progress after which each child was killed.
"""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import NoReturn

import torch

import shared_core.cli.app
import shared_core.memory  # noqa: F401 - here rather than in every child
from shared_core import models
from shared_core.cli import main


def scg(*arguments: str) -> NoReturn:
    """Run a command in a child process, which ends with it."""
    signal.alarm(60)
    code = 70
    try:
        main(arguments)
    except SystemExit as stopped:
        code = int(stopped.code or 0)
    finally:
        os._exit(code)


def killed(arguments: list[str], lines: int, delay: float) -> str:
    """Start a command, and kill it some seconds after so many lines of progress; returns the last of them."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(write_end, sys.stderr.fileno())
        os.dup2(write_end, sys.stdout.fileno())
        scg(*arguments)
    os.close(write_end)
    with os.fdopen(read_end) as progress:
        told = ["started", *(progress.readline().strip() for _ in range(lines))]
        time.sleep(delay)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return told[-1]


def completed(arguments: list[str]) -> None:
    pid = os.fork()
    if pid == 0:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        scg(*arguments)
    _, status = os.waitpid(pid, 0)
    assert status == 0, f"{arguments} failed"


if __name__ == "__main__":
    file, folder, model = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    torch.set_num_threads(1)
    loaded = models.load_model(model, threads=1)
    models.load_model = lambda source: loaded  # once for all children
    # The first memory is made without a kill, the others with two, each after so many lines of progress.
    for number, lines in enumerate([(), (0, 1), (2, 1), (4, 3)]):
        chance = random.Random(number)
        memory = folder / f"{number}.db"
        arguments = ["remember", file, "--memory", str(memory), "--model", model]
        told = [killed(arguments, count, chance.random() * 0.05) for count in lines]
        completed(arguments)
        sys.stdout.write(json.dumps({"memory": str(memory), "killed": told}) + "\n")
        sys.stdout.flush()
