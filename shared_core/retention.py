"""How long and how much a memory keeps: a policy, and off unless one is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from shared_core.entry import MemoryEntry
from shared_core.errors import InvalidInputError
from shared_core.filters import instant


@dataclass(frozen=True, slots=True)
class Retention:
    """What a namespace keeps; the rest is erased as :meth:`SchemaMemory.forget` erases it.

    Attributes:
        max_age: Entries that were said longer ago go. What counts is ``occurred_at``, a naive time as UTC, against the
            machine's clock; an entry without a time does not age.
        max_entries: Of more entries than that, the ones stored first go.

    Raises:
        InvalidInputError: if a bound is not positive, or none is given.
    """

    max_age: timedelta | None = None
    max_entries: int | None = None

    def __post_init__(self) -> None:
        if self.max_age is None and self.max_entries is None:
            raise InvalidInputError("the retention bounds nothing: give max_age or max_entries, or no retention")
        _check_age(self.max_age)
        _check_number(self.max_entries)

    def expired(self, entries: Sequence[MemoryEntry], now: datetime | None = None) -> list[str]:
        """The ids of the entries that go.

        Args:
            entries: All entries of a namespace, in the order they were stored.
            now: The present; ``None`` for the machine's clock.
        """
        moment = datetime.now(UTC) if now is None else instant(now)
        kept = [entry for entry in entries if not self._is_old(entry, moment)]
        if self.max_entries is not None:
            kept = kept[-self.max_entries :]
        staying = {entry.id for entry in kept}
        return [entry.id for entry in entries if entry.id is not None and entry.id not in staying]

    def _is_old(self, entry: MemoryEntry, now: datetime) -> bool:
        if self.max_age is None or entry.occurred_at is None:
            return False
        return now - instant(entry.occurred_at) > self.max_age


def _check_age(age: object) -> None:
    if age is not None and not (isinstance(age, timedelta) and age > timedelta(0)):
        raise InvalidInputError("max_age must be a timedelta above zero: timedelta(days=90)")


def _check_number(count: object) -> None:
    if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 1):
        raise InvalidInputError(f"max_entries must be a whole number of at least 1, not {count!r:.200}")
