"""What a memory shows of itself: its figures and its schema, as of one moment."""

from __future__ import annotations

from dataclasses import dataclass

from shared_core.recall.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Stats:
    """Figures of one namespace.

    Attributes:
        entries: Entries stored.
        concepts: Concepts in the schema.
        links: Links between entries and concepts.
        waiting: Entries that wait for assimilation, see :meth:`SchemaMemory.consolidate`.
        sessions: Sessions.
        speakers: Speakers.
    """

    entries: int
    concepts: int
    links: int
    waiting: int
    sessions: int
    speakers: int

    @classmethod
    def of(cls, snapshot: Snapshot) -> Stats:
        """Count what a snapshot holds."""
        entries = [one.entry for one in snapshot.entries]
        return cls(
            entries=len(entries),
            concepts=len(snapshot.keys),
            links=len(snapshot.origin),
            waiting=sum(not one.assimilated for one in snapshot.entries),
            sessions=len({entry.session for entry in entries} - {None}),
            speakers=len(snapshot.speakers),
        )

    def to_dict(self) -> dict[str, int]:
        """A JSON object."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class SchemaView:
    """The schema as it was when asked for, read-only.

    Attributes:
        keys: The concepts' keys, in the order they joined.
        surfaces: Their display forms.
    """

    keys: tuple[str, ...]
    surfaces: tuple[str, ...]

    @classmethod
    def of(cls, snapshot: Snapshot) -> SchemaView:
        """The schema of a snapshot."""
        return cls(tuple(snapshot.keys), tuple(snapshot.surfaces))

    def __len__(self) -> int:
        return len(self.keys)

    def __contains__(self, key: object) -> bool:
        return key in self.keys
