"""A condition on entries that only the adapter can judge."""

from __future__ import annotations

from collections.abc import Callable

from shared_core import Filter, MemoryEntry


class Selection(Filter):
    """Entries that a function chooses, as a filter for recall.

    Args:
        chosen: Whether an entry may come back.
    """

    __slots__ = ("_chosen",)
    _chosen: Callable[[MemoryEntry], bool]

    def __init__(self, chosen: Callable[[MemoryEntry], bool]) -> None:
        super().__init__()
        object.__setattr__(self, "_chosen", chosen)  # a filter is frozen

    @property
    def is_empty(self) -> bool:
        """False: the function is asked about every entry."""
        return False

    def matches(self, entry: MemoryEntry) -> bool:
        """Whether the function chooses the entry."""
        return self._chosen(entry)
