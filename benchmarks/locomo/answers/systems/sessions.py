"""Pieces that several systems are made of: lines of turns, sessions, embeddings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from shared_core import MemoryEntry
from shared_core.recall import describe

Embed: TypeAlias = Callable[[Sequence[str]], NDArray[np.float32]]
"""Embeddings of texts, of length 1, shape (texts, size)."""


def line(turn: MemoryEntry) -> str:
    """A turn in one line: who said what, with its date."""
    return describe(turn, with_id=False)


def said(turn: MemoryEntry) -> str:
    """A turn in one line without its date, for prompts that name the date once."""
    return f"{turn.speaker}: {turn.content}" if turn.speaker else turn.content


def sessions(turns: Sequence[MemoryEntry]) -> list[list[MemoryEntry]]:
    """The turns session by session."""
    return [list(own) for _, own in groupby(turns, key=lambda turn: turn.session)]


def day_of(turn: MemoryEntry) -> int:
    """The day of a turn, as a number; 0 if it has no date."""
    return turn.occurred_at.toordinal() if turn.occurred_at else 0


def derived(name: str, text: str, like: MemoryEntry) -> MemoryEntry:
    """What a system wrote about turns, as an entry of the date of one of them."""
    return MemoryEntry(text or "-", name, session=like.session, occurred_at=like.occurred_at)


def nearest(vectors: NDArray[np.float32], wanted: NDArray[np.float32], k: int) -> list[int]:
    """Places of the vectors closest to one, by cosine, closest first; of equals the earlier."""
    return [int(place) for place in np.argsort(-(vectors @ wanted), kind="stable")[:k]]
