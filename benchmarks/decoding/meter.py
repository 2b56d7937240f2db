"""What a call costs apart from time: forward passes, tokens forwarded, memory."""

from __future__ import annotations

import ctypes
import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import TypeVar

import psutil  # type: ignore[import-untyped]
import torch
from torch import nn

Result = TypeVar("Result")

# Seconds between two looks at the memory: a forward pass of one token takes many times longer.
_INTERVAL = 0.002


@dataclass
class Passes:
    """Forward passes so far.

    Attributes:
        count: Their number.
        tokens: Rows × columns of their inputs, summed.
    """

    count: int = 0
    tokens: int = 0


@contextmanager
def counted(*models: nn.Module) -> Iterator[Passes]:
    """Count the forward passes of models, whoever calls them and by which face: each looks its tokens up once."""
    passes = Passes()

    def count(_: nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
        passes.count += 1
        passes.tokens += inputs[0].numel()

    hooks = [model.get_input_embeddings().register_forward_pre_hook(count) for model in models]  # type: ignore[operator]
    try:
        yield passes
    finally:
        for hook in hooks:
            hook.remove()


class _Peak:
    """Watches the process's resident memory meanwhile."""

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.start = self.highest = 0

    def __enter__(self) -> _Peak:
        # What was freed goes back to the system first, or a call could grow into it unseen.
        gc.collect()
        _trim()
        self.start = self.highest = self._process.memory_info().rss
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(_INTERVAL):
            self.highest = max(self.highest, self._process.memory_info().rss)


def _trim() -> None:
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError):  # another C library keeps what it has
        return


def peak_memory(call: Callable[[], Result]) -> tuple[Result, float]:
    """A call's result, and by how many MiB (2**20 bytes) the process's resident memory grew meanwhile at most."""
    with _Peak() as peak:
        result = call()
        peak.highest = max(peak.highest, psutil.Process().memory_info().rss)
    return result, (peak.highest - peak.start) / 2**20
