"""What is finished: one line for each question and system, one for each memory that was written. No text."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, Self, TypeVar

from benchmarks.lines import append_line, read_lines, replace_lines
from benchmarks.locomo.systems import Cost, UnavailableError

Key = tuple[str, str]


def open_folder(folder: Path) -> None:
    """Make a folder if it is not there, and see that it takes files, before anything is measured for it.

    Raises:
        UnavailableError: if it does not.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UnavailableError(f"{folder}: nothing can be written there ({error.strerror}); name another") from None


@dataclass(frozen=True, slots=True)
class Outcome:
    """One question to one system.

    Attributes:
        system: The system's name.
        question: The question's id.
        category: Its category.
        ranks: The rank, from 1, of each gold turn; ``None`` where it did not come back.
        returned: Ids of the turns that came back, best first.
        cost: What the reading took.
        fingerprint: Of all that the outcome depends on.
    """

    system: str
    question: str
    category: int
    ranks: Mapping[str, int | None]
    returned: Sequence[str]
    cost: Cost
    fingerprint: str

    @property
    def key(self) -> Key:
        return self.system, self.question

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        return cls(**{**fields, "cost": Cost(**fields["cost"])})


@dataclass(frozen=True, slots=True)
class Writing:
    """One conversation written by one system.

    Attributes:
        system: The system's name.
        conversation: The conversation's name.
        entries: Its turns.
        cost: What writing all of them took.
        fingerprint: Of all that it depends on.
    """

    system: str
    conversation: str
    entries: int
    cost: Cost
    fingerprint: str

    @property
    def key(self) -> Key:
        return self.system, self.conversation

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        return cls(**{**fields, "cost": Cost(**fields["cost"])})


class _Row(Protocol):
    @property
    def key(self) -> Key: ...

    @property
    def fingerprint(self) -> str: ...

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self: ...


RowT = TypeVar("RowT", bound=_Row)


class Journal(Generic[RowT]):
    """Rows in a file, of each key the last that was written.

    Args:
        path: The file; it may not be there yet.
        kind: What a row is.
    """

    def __init__(self, path: Path, kind: type[RowT]) -> None:
        self._path = path
        self._kind = kind
        self._rows = self._read()

    def get(self, key: Key, fingerprint: str) -> RowT | None:
        """The row of a key, if it is one of this fingerprint."""
        row = self._rows.get(key)
        return row if row is not None and row.fingerprint == fingerprint else None

    def append(self, row: RowT) -> None:
        """Keep a row from now on."""
        self._rows[row.key] = row
        append_line(self._path, asdict(row))  # type: ignore[call-overload]

    def settle(self, rows: Sequence[RowT]) -> None:
        """Write the file anew: these rows in this order, then those of other keys, such as another run's systems.

        The file is read again for those: another run may have added to it meanwhile.
        """
        first = {row.key: row for row in rows}
        others = {key: row for key, row in self._read().items() if key not in first}
        self._rows = first | others
        replace_lines(self._path, (asdict(row) for row in self._rows.values()))  # type: ignore[call-overload]

    def _read(self) -> dict[Key, RowT]:
        rows: dict[Key, RowT] = {}
        for fields in read_lines(self._path):
            try:
                row = self._kind.from_dict(fields)
            except (KeyError, TypeError):  # of another version of this program
                continue
            rows[row.key] = row
        return rows
