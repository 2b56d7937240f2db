"""What requests and answers hold; the answers mirror the ``to_dict`` forms of the library."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from shared_core.entry import MemoryEntry
from shared_core.filters import Filter
from shared_core.interface import Unit


class _Asked(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Told(BaseModel):
    model_config = ConfigDict(extra="forbid")


Count = Annotated[int, Field(ge=1)]


class EntryBody(_Asked):
    """A memory entry; see :class:`shared_core.MemoryEntry`."""

    text: str = ""
    id: str | None = None
    speaker: str | None = None
    session: str | None = None
    occurred_at: str | None = Field(default=None, description="ISO 8601; a time without a zone is kept so")
    caption: str | None = None
    metadata: dict[str, JsonValue] = Field(default_factory=dict)

    def to_entry(self) -> MemoryEntry:
        """The entry.

        Raises:
            InvalidInputError: if it is none.
        """
        return MemoryEntry.from_dict(self.model_dump(exclude_unset=True))


class FilterBody(_Asked):
    """A condition on entries; see :class:`shared_core.Filter`."""

    session: str | list[str] | None = None
    speaker: str | list[str] | None = None
    after: str | None = Field(default=None, description="ISO 8601")
    before: str | None = Field(default=None, description="ISO 8601")
    metadata: dict[str, JsonValue] = Field(default_factory=dict)

    def to_filter(self) -> Filter:
        """The filter.

        Raises:
            InvalidInputError: if it is none.
        """
        return Filter.from_dict(self.model_dump(exclude_unset=True))


class RememberBody(_Asked):
    """Entries to store."""

    entries: list[EntryBody]
    use_model: bool = True
    dedupe: bool = False


class RecallBody(_Asked):
    """What to recall."""

    query: str
    k: Count | None = None
    unit: Unit = "entries"
    where: FilterBody | None = None
    as_text: bool = Field(default=False, description="Give the recalled entries as one text as well")


class AnswerBody(_Asked):
    """What to answer."""

    query: str
    k: Count | None = None
    where: FilterBody | None = None
    free: bool = False


class ExplainBody(_Asked):
    """Which entry's part in which recall to explain."""

    query: str
    entry_id: str
    where: FilterBody | None = None


class GetBody(_Asked):
    """Which entries to give."""

    ids: list[str]


class ForgetBody(_Asked):
    """What to erase; conditions together must all hold."""

    ids: list[str] | None = None
    session: str | list[str] | None = None
    speaker: str | list[str] | None = None
    where: FilterBody | None = None


class ClearBody(_Asked):
    """Nothing: a whole namespace goes. A body with conditions was meant for ``forget``."""


class RememberedBody(_Told):
    """What a write did."""

    added: int
    updated: int
    unchanged: int
    ids: list[str]
    wiped: bool
    expired: int = 0


class SeedBody(_Told):
    """A concept that the query activated."""

    key: str
    surface: str
    source: Literal["generated", "mentioned", "both"]
    activation: float
    logprob: float | None


class ContextBody(_Told):
    """A concept that was reached from a seed."""

    key: str
    surface: str
    seed: str
    path: list[str]
    probability: float
    activation: float


class ReasonBody(_Told):
    """A concept that brought an entry."""

    key: str
    surface: str
    source: Literal["generated", "mentioned", "both", "context"]
    seed: str | None
    origin: str
    contribution: float


class RecalledBody(EntryBody):
    """An entry that came back."""

    score: float
    relevance: float
    parts: dict[str, float]
    reasons: list[ReasonBody]


class RecallResult(_Told):
    """A recall; ``text`` only where it was asked for."""

    query: str
    entries: list[RecalledBody]
    seeds: list[SeedBody]
    context: list[ContextBody]
    text: str | None = None


class AnswerResult(_Told):
    """An answer, the ids of the entries that it rests on, and the recall."""

    answer: str
    sources: list[str]
    query: str
    entries: list[RecalledBody]
    seeds: list[SeedBody]
    context: list[ContextBody]


class ExplanationResult(_Told):
    """Why an entry comes back, or does not."""

    query: str
    entry: EntryBody
    rank: int | None
    reached: int
    score: float | None
    relevance: float | None
    parts: dict[str, float]
    reasons: list[ReasonBody]
    seeds: list[SeedBody]
    context: list[ContextBody]
    concepts: list[str]
    excluded: bool


class EntriesResult(_Told):
    """Entries."""

    entries: list[EntryBody]


class PageResult(_Told):
    """Entries in the order in which they were first stored, and where the next page begins; ``null`` at the end."""

    entries: list[EntryBody]
    next: int | None


class ErasedResult(_Told):
    """The receipt of an erasure."""

    entries: int
    concepts: int
    links: int
    wiped: bool
    ids: list[str]
    namespace: list[str]
    generation: int


class ConsolidatedResult(_Told):
    """How many entries had waited for the model."""

    waited: int


class StatsResult(_Told):
    """Figures of the namespace."""

    entries: int
    concepts: int
    links: int
    waiting: int
    sessions: int
    speakers: int


class ConfigResult(_Told):
    """The settings of the service's memories; see :class:`shared_core.SCGConfig`."""

    settings: dict[str, int | float | bool | str]


class StateResult(_Told):
    """That something holds."""

    status: Literal["ok"] = "ok"


class ErrorResult(_Told):
    """What went wrong: the kind of the error, what it says, and the ids of what was stored nevertheless, if any."""

    error: str
    message: str
    stored: list[str] = []
