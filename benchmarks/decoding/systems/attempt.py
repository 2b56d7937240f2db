"""Whether a grammar engine can compile a key set at all: tried in a process of its own, within bounds."""

from __future__ import annotations

import multiprocessing
import resource
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from benchmarks.decoding.systems.engines import ENGINES

# Address space of the attempt: an engine that wants more would take the whole machine down with it.
_MEMORY = 12 * 2**30


@dataclass(frozen=True)
class Attempt:
    """How a compilation went.

    Attributes:
        seconds: What it took, or how long it was tried.
        failure: Why it failed; ``None`` where it did not.
    """

    seconds: float
    failure: str | None


def attempt_compilation(
    engine: str, folder: Path, vocabulary: int, texts: Sequence[str], *, threads: int, limit: float
) -> Attempt:
    """Compile a key set in another process, which is stopped after ``limit`` seconds of compiling.

    Args:
        engine: Name in :data:`ENGINES`.
        folder: Where the tokenizer lies.
        vocabulary: Width of the model's logits.
        texts: The keys.
        threads: Threads that it may use.
        limit: Seconds.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_compile, args=(sender, engine, folder, vocabulary, list(texts), threads))
    process.start()
    sender.close()
    start = time.perf_counter()
    try:
        receiver.recv()  # Python and the packages are loaded; from here on it compiles
        start = time.perf_counter()
        if not receiver.poll(limit):
            return Attempt(time.perf_counter() - start, f"did not compile within {limit:g} s")
        attempt: Attempt = receiver.recv()
        return attempt
    except EOFError:
        seconds = time.perf_counter() - start
        return Attempt(seconds, f"the compilation died (at most {_MEMORY // 2**30} GiB were allowed)")
    finally:
        process.kill()
        process.join()
        receiver.close()


def _compile(sender: Connection, engine: str, folder: Path, vocabulary: int, texts: list[str], threads: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    sender.send("ready")
    start = time.perf_counter()
    try:
        ENGINES[engine](folder, vocabulary, texts, threads)
        failure = None
    except ImportError:
        failure = "not installed"
    except Exception as error:  # each engine has errors of its own
        failure = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    sender.send(Attempt(time.perf_counter() - start, failure))
