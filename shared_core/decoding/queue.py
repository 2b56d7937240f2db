"""One model, many callers: decodes that are asked for at the same time run together."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from time import sleep
from typing import TypeAlias

from shared_core.decoding.decoder import ConceptDecoder, Constraint, Reading

# Texts decoded together at most. Beyond this a pass is bound by arithmetic, and more would only wait longer.
_TOGETHER = 8
# Callers that start at the same time arrive a little apart: a batch starts when none has come for so many seconds.
_LULL = 0.002

_Waiting: TypeAlias = tuple[str, Sequence[Constraint], Future[Reading]]


class DecodeQueue:
    """Runs decodes on one thread, as many waiting ones together as there are.

    Args:
        decoder: The decoder.
    """

    def __init__(self, decoder: ConceptDecoder) -> None:
        self._decoder = decoder
        self._lock = Lock()
        self._waiting: deque[_Waiting] = deque()
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="scg-decode")

    def submit(self, text: str, constraints: Sequence[Constraint]) -> Future[Reading]:
        """Ask for a decode; the future gives what ``ConceptDecoder.decode`` does for one text."""
        future: Future[Reading] = Future()
        with self._lock:
            self._waiting.append((text, constraints, future))
        self._worker.submit(self._run)
        return future

    def __len__(self) -> int:
        """How many were asked for and have not begun."""
        return len(self._waiting)

    def close(self) -> None:
        """Finish what waits and stop the thread."""
        self._worker.shutdown()

    def _run(self) -> None:
        self._await_lull()
        with self._lock:
            batch = [self._waiting.popleft() for _ in range(min(_TOGETHER, len(self._waiting)))]
        batch = [one for one in batch if one[2].set_running_or_notify_cancel()]
        if batch:
            self._decode(batch)

    def _await_lull(self) -> None:
        waiting = 0
        while waiting < min(_TOGETHER, len(self._waiting)):
            waiting = len(self._waiting)
            sleep(_LULL)

    def _decode(self, batch: list[_Waiting]) -> None:
        try:
            readings = self._decoder.decode([text for text, _, _ in batch], [several for _, several, _ in batch])
        except BaseException as error:  # whatever happened belongs to who waits for it
            if len(batch) == 1:
                batch[0][2].set_exception(error)
                return
            for one in batch:  # and not to those who happened to wait beside
                self._decode([one])
            return
        for (_, _, future), reading in zip(batch, readings, strict=True):
            future.set_result(reading)
