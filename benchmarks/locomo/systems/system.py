"""What a memory must do to take part: take the turns of one conversation, and rank them for a question."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from shared_core import MemoryEntry


class UnavailableError(Exception):
    """A system cannot be run here; the message says what it lacks."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a call took.

    Attributes:
        seconds: Time.
        passes: Forward passes of a model.
        tokens: Tokens forwarded in them.
    """

    seconds: float
    passes: int = 0
    tokens: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.seconds + other.seconds, self.passes + other.passes, self.tokens + other.tokens)


@dataclass(frozen=True, slots=True)
class Ranked:
    """What came back for a question.

    Attributes:
        ids: Ids of turns, best first.
        cost: What it took.
    """

    ids: list[str]
    cost: Cost


Report = Callable[[int], None]
"""Told how many turns are written by now."""


class System(Protocol):
    """A memory of one conversation."""

    def write(self, turns: Sequence[MemoryEntry], report: Report) -> Cost:
        """Take all turns; called once, before anything is read. The cost is that of the writing, whenever it was."""
        ...

    def read(self, query: str, k: int) -> Ranked:
        """The best turns for a question, at most ``k``."""
        ...

    def close(self) -> None:
        """Let go of what it holds."""
        ...
