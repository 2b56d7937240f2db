"""The threads that use the memories of one file: those that asynchronous calls run on, and those that store."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from shared_core.errors import StoreError


class MemoryThreads:
    """Few threads, whatever the number of callers and namespaces.

    One is for writes, one for store and ranking of recalls, and one for what waits for the model beside these.

    The memories of one file share them, and the one that opened it ends them.
    """

    def __init__(self) -> None:
        self.writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="scg-write")
        self.reader = ThreadPoolExecutor(max_workers=1, thread_name_prefix="scg-read")
        self.asker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="scg-ask")
        self._storing: set[int] = set()

    @contextmanager
    def storing(self) -> Iterator[None]:
        """For as long as a call stores something on this thread.

        Raises:
            StoreError: if one does already.
        """
        self.refuse_nested()
        self._storing.add(threading.get_ident())
        try:
            yield
        finally:
            self._storing.discard(threading.get_ident())

    def refuse_nested(self) -> None:
        """Refuse a call that is made from within another one that stores, such as from its progress callback.

        Raises:
            StoreError: if it is; it would wait for itself, and with it every other writer.
        """
        if threading.get_ident() in self._storing:
            raise StoreError(
                "this call was made from within another one that stores something, such as from its progress callback, "
                "and would wait for itself: nothing of it was stored; make it when the other one has returned (the "
                "callback may read)"
            )

    def close(self) -> None:
        """Finish what runs, and end the threads.

        Raises:
            StoreError: if a call asks for it that would be waited for.
        """
        self.refuse_nested()
        self.writer.shutdown()
        self.reader.shutdown()
        self.asker.shutdown()
