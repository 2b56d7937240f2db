"""Turns: what episodes are arranged from, entry by entry."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shared_core.entry import MemoryEntry
from shared_core.recall.lexical import asks
from shared_core.recall.ranking import Episodes


@dataclass(frozen=True, slots=True, eq=False)
class Turns:
    """Session, speaker and form of each entry. Immutable.

    Attributes:
        sessions: Number of each session, in the order of their first entries.
        speakers: Number of each speaker, likewise.
        session: Session of each entry, -1 outside any, shape (entries,).
        speaker: Speaker of each entry, -1 when unknown, shape (entries,).
        asks: Whether it ends in a question, shape (entries,).
    """

    sessions: dict[str, int]
    speakers: dict[str, int]
    session: NDArray[np.int64]
    speaker: NDArray[np.int64]
    asks: NDArray[np.bool_]

    @classmethod
    def empty(cls) -> Turns:
        """No entries."""
        none = np.zeros(0, dtype=np.int64)
        return cls({}, {}, none, none, np.zeros(0, dtype=np.bool_))

    def extend(self, entries: Iterable[MemoryEntry]) -> Turns:
        """With further entries at the end."""
        sessions, speakers = dict(self.sessions), dict(self.speakers)
        session: list[int] = []
        speaker: list[int] = []
        asked: list[bool] = []
        for entry in entries:
            session.append(-1 if entry.session is None else sessions.setdefault(entry.session, len(sessions)))
            speaker.append(speakers.setdefault(entry.speaker, len(speakers)) if entry.speaker else -1)
            asked.append(asks(entry.text))
        return Turns(
            sessions,
            speakers,
            np.concatenate([self.session, np.array(session, dtype=np.int64)]),
            np.concatenate([self.speaker, np.array(speaker, dtype=np.int64)]),
            np.concatenate([self.asks, np.array(asked, dtype=np.bool_)]),
        )

    def arrange(self) -> tuple[Episodes, Sequence[str]]:
        """Where the entries stand in their conversations, and the speakers in the numbering of that."""
        names = sorted(self.speakers)
        numbers = np.full(len(names) + 1, -1, dtype=np.int64)  # the last one is that of -1
        numbers[[self.speakers[name] for name in names]] = np.arange(len(names))
        order = np.arange(len(self.session))
        return Episodes.arrange(self.session, numbers[self.speaker], self.asks, order), names
