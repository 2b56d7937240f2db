"""The one thread on which models run, whoever calls them.

OpenMP keeps a pool of threads for each thread that computes. Once two pools together have more threads than there are
processors, GNU's puts its threads to sleep between any two operations instead of letting them spin, and a forward
pass of a small model takes half as long again. So all models of a process compute on one thread.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_T = TypeVar("_T")


class _ModelThread:
    """Runs calls one after the other; started by the first of them."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._ident: int | None = None

    def run(self, call: Callable[[], _T]) -> _T:
        if threading.get_ident() == self._ident:
            return call()
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="scg-model")
                self._ident = self._pool.submit(threading.get_ident).result()
        return self._pool.submit(call).result()


_thread = _ModelThread()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_thread.restart)  # a forked process has no other threads than its own


def on_model_thread(call: Callable[[], _T]) -> _T:
    """What a call returns or raises, run on the thread of the models; calls take turns.

    Code that computes with torch itself beside a memory does well to run here too.
    """
    return _thread.run(call)
