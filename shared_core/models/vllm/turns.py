"""Requests of two kinds that must not meet on the server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition


class Turns:
    """Lets calls of one kind run together, while those of another kind wait; neither waits for ever.

    Where vLLM runs without Triton, a request for the likeliest tokens is answered wrongly if one that names tokens is
    computed in the same step. A wrong answer is known by its form, but many of them would have to be asked again.
    """

    def __init__(self) -> None:
        self._changed = Condition()
        self._kind = ""
        self._running = 0
        self._waiting: Counter[str] = Counter()

    @contextmanager
    def of(self, kind: str) -> Iterator[None]:
        """The time of a call of some kind."""
        with self._changed:
            self._waiting[kind] += 1
            self._changed.wait_for(lambda: self._may_run(kind))
            self._waiting[kind] -= 1
            self._kind = kind
            self._running += 1
        try:
            yield
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def _may_run(self, kind: str) -> bool:
        others = self._waiting.total() > self._waiting[kind]
        if self._running:
            return kind == self._kind and not others
        return kind != self._kind or not others
