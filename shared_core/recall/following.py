"""The snapshot of now, followed through the changes of this and of other processes."""

from __future__ import annotations

import threading

from shared_core.recall.snapshot import Snapshot
from shared_core.store import Store, collector_paused


class FollowedSnapshot:
    """The snapshot of one namespace, kept up to date at a cost in proportion to what changed. Safe for threads.

    Args:
        store: The store.
        namespace: Which memory of it.
    """

    def __init__(self, store: Store, namespace: tuple[str, ...]) -> None:
        self._store = store
        self._namespace = namespace
        self._lock = threading.Lock()
        self._snapshot: Snapshot | None = None

    def current(self) -> Snapshot:
        """The snapshot of now. What was erased, by whatever process, is in no part of it."""
        with self._lock:
            known = self._snapshot
            if known is not None and known.generation == self._store.generation(self._namespace):
                return known
            change = None if known is None else self._store.changes(self._namespace, known.state)
            if known is not None and change is not None:
                self._snapshot = known.after(change)
                return self._snapshot
            # The old one goes first: it holds what was erased, and memory for two is not needed.
            self._snapshot = known = None
            with collector_paused():
                self._snapshot = Snapshot.build(self._store.load(self._namespace))
            return self._snapshot

    def drop(self) -> None:
        """Let nothing of what was erased live on in this process."""
        with self._lock:
            self._snapshot = None
