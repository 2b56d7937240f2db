"""What goes into the store and what comes out of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from shared_core.entry import MemoryEntry, check_text
from shared_core.errors import InvalidInputError

Origin: TypeAlias = Literal["said", "inferred", "generated"]

ORIGINS: Final[tuple[Origin, ...]] = ("said", "inferred", "generated")
"""Every origin; its position is its number in :attr:`.NamespaceState.link_origin` and on disk."""

SAID: Final[int] = ORIGINS.index("said")
INFERRED: Final[int] = ORIGINS.index("inferred")

MAX_WEIGHT: Final = float(np.finfo(np.float32).max)
"""The largest weight of a link."""

MAX_INFERRED_WEIGHT: Final = 1.0
"""The largest weight of a link of origin ``inferred``."""

MAX_PLACE: Final = 2**53
"""No counting of entries and concepts gets there, and a sum with it is still a number that SQLite holds."""


@dataclass(frozen=True, slots=True)
class ConceptLink:
    """That one entry is reached by one concept.

    Attributes:
        key: The concept's normalised key, unique within a namespace.
        surface: How this entry words it. Of an ``inferred`` link it is not kept: the entry has no wording
            of its own there, so the concept's surface stands for it.
        weight: Strength of the link, not negative; finite as a float32. Of an ``inferred`` link above 0, and 1 at most.
        origin: ``said``: literally in the entry's own words. ``generated``: novel, made by the model.
            ``inferred``: an existing concept the entry was assimilated into. Only the first two keep a
            concept alive.

    Raises:
        InvalidInputError: if a field cannot be stored.
    """

    key: str
    surface: str
    weight: float
    origin: Origin

    def __post_init__(self) -> None:
        check_text(self.key, "concept key")
        check_text(self.surface, "concept surface")
        if not self.key.strip() or not self.surface.strip():
            raise InvalidInputError("the concept key or its surface is empty")
        if self.origin not in ORIGINS:
            raise InvalidInputError(f"the origin must be one of {', '.join(ORIGINS)}, not {self.origin!r:.200}")
        if isinstance(self.weight, bool) or not isinstance(self.weight, float | int):
            raise InvalidInputError(f"the link weight must be a number, not {type(self.weight).__name__}")
        if not 0 <= self.weight <= MAX_WEIGHT:
            raise InvalidInputError("the link weight must be finite and not negative")
        if self.origin == "inferred" and not 0 < self.weight <= MAX_INFERRED_WEIGHT:
            raise InvalidInputError("the weight of an inferred link must be above 0, and 1 at most")

    @property
    def is_grounding(self) -> bool:
        """Whether the link keeps its concept alive."""
        return self.origin != "inferred"


@dataclass(frozen=True, slots=True)
class EntryWrite:
    """One entry to be stored, with its links.

    Attributes:
        entry: The entry; its id is set.
        links: Its concepts, each key once.
        assimilated: False while the entry still waits for assimilation.

    Raises:
        InvalidInputError: if the entry has no id, or two links have the same key.
    """

    entry: MemoryEntry
    links: tuple[ConceptLink, ...] = ()
    assimilated: bool = True

    def __post_init__(self) -> None:
        if self.entry.id is None:
            raise InvalidInputError("the entry has no id: give it one before it is stored")
        if len({link.key for link in self.links}) < len(self.links):
            raise InvalidInputError(f"the entry {self.entry.id!r:.200} links the same concept twice")

    @property
    def id(self) -> str:
        """The id of the entry."""
        assert self.entry.id is not None
        return self.entry.id


@dataclass(frozen=True, slots=True, eq=False)
class KeyScores:
    """How one language model reads one key.

    Attributes:
        token_ids: The key's tokens, int32, shape (n,).
        neutral: Log-probabilities (natural log) of the tokens and of the terminator under a neutral query,
            float32, shape (n + 1,); ``None`` while they are not computed.

    Raises:
        InvalidInputError: if the shapes do not fit together.
    """

    token_ids: npt.NDArray[np.int32]
    neutral: npt.NDArray[np.float32] | None = None

    def __post_init__(self) -> None:
        if self.token_ids.ndim != 1:
            raise InvalidInputError(f"token_ids must have one axis, not {self.token_ids.ndim}")
        if self.neutral is not None and self.neutral.shape != (len(self.token_ids) + 1,):
            raise InvalidInputError(
                f"{len(self.token_ids)} tokens need {len(self.token_ids) + 1} neutral log-probabilities, "
                f"not an array of shape {self.neutral.shape}"
            )


@dataclass(frozen=True, slots=True, eq=False)
class Anticipation:
    """What one language model expects a concept of a text to begin with: what the text is about, said or not.

    Attributes:
        tokens: The likeliest token ids, int32, shape (n,).
        logprobs: Their log-probabilities (natural log), float32, shape (n,).

    Raises:
        InvalidInputError: if the shapes do not fit together.
    """

    tokens: npt.NDArray[np.int32]
    logprobs: npt.NDArray[np.float32]

    def __post_init__(self) -> None:
        if self.tokens.ndim != 1 or self.logprobs.shape != self.tokens.shape:
            raise InvalidInputError(
                f"tokens and log-probabilities must have one axis and one length, "
                f"not shapes {self.tokens.shape} and {self.logprobs.shape}"
            )


@dataclass(frozen=True, slots=True, eq=False)
class Anticipated:
    """What one language model expects of some entries.

    Attributes:
        fingerprint: The model.
        by_id: By entry id.
    """

    fingerprint: str
    by_id: Mapping[str, Anticipation]

    def __post_init__(self) -> None:
        check_text(self.fingerprint, "fingerprint")


@dataclass(frozen=True, slots=True)
class WriteOutcome:
    """What a write did.

    Attributes:
        added: Entries that are new.
        updated: Entries whose content was replaced; they kept their place.
        unchanged: Entries that were there already, word for word; their links were left alone.
        ids: The ids written, in the order first given, each once.
        wiped: False if bytes of replaced or expired content may still lie in the file, see :class:`Erased`.
        expired: Entries that the memory's retention did not keep and that were erased after the write: earlier ones,
            or ones that were just added.
    """

    added: int
    updated: int
    unchanged: int
    ids: tuple[str, ...]
    wiped: bool = True
    expired: int = 0


@dataclass(frozen=True, slots=True)
class Erased:
    """The receipt of an erasure: what was removed, without a word of what it said.

    Attributes:
        entries: Entries removed.
        concepts: Concepts that died with them.
        links: Links removed, those of the dead concepts to other entries included.
        wiped: True when no byte of it is left in the file. False when other readers or the disk
            prevented that; the removal holds, and the next erasure or the next open finishes the wiping. Always
            False on a PostgreSQL server, whose files and log are its operator's.
        ids: The ids of the removed entries, in the order they were first stored.
        namespace: Where they were; empty if there was no such namespace.
        generation: The namespace's generation with the erasure (see :meth:`.Store.generation`), which says before and
            after which other changes it was; 0 if nothing was removed.
    """

    entries: int
    concepts: int
    links: int
    wiped: bool = True
    ids: tuple[str, ...] = ()
    namespace: tuple[str, ...] = ()
    generation: int = 0


@dataclass(frozen=True, slots=True)
class Known:
    """What is stored under an id: the entry's digest, and whether it was assimilated."""

    digest: str
    assimilated: bool


@dataclass(frozen=True, slots=True)
class HeldEntry:
    """An entry as the store holds it.

    Attributes:
        seq: Its place in the namespace's order.
        entry: The entry.
        touched: When it was last read, in seconds since 1970, if that was noted (see :meth:`.Store.touch`).
    """

    seq: int
    entry: MemoryEntry
    touched: float | None


@dataclass(frozen=True, slots=True)
class NamespaceInfo:
    """A namespace of the store and its size."""

    name: tuple[str, ...]
    entries: int
    concepts: int
