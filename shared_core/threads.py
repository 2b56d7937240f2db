"""The threads that the asynchronous calls of a memory run on."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor


class MemoryThreads:
    """Few threads, whatever the number of callers and namespaces: one for writes, one for store and ranking of recalls.

    The memories of one file share them, and the one that opened it ends them.
    """

    def __init__(self) -> None:
        self.writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="scg-write")
        self.reader = ThreadPoolExecutor(max_workers=1, thread_name_prefix="scg-read")

    def close(self) -> None:
        """Finish what runs, and end the threads."""
        self.writer.shutdown()
        self.reader.shutdown()
