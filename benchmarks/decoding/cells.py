"""What is measured, and where it is kept: one cell for each number of keys, length of prompt and width."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.lines import append_line, read_lines


@dataclass(frozen=True)
class Row:
    """One system in one cell.

    Attributes:
        system: Its name.
        reason: Why it was not run; ``None`` where it was.
        setup: Seconds that its structure over the keys took to make.
        cold: Seconds of each decode, the prompt read inside, by run and query.
        warm: Seconds of each decode without reading the prompt; empty where a system cannot tell them apart.
        passes: Forward passes of one cold decode, median of the queries.
        tokens: Tokens forwarded in these (rows × columns), median of the queries.
        memory: MiB by which resident memory grew at most during one cold decode, largest of the queries.
        found: Distinct keys returned, mean of the queries.
        recall: Share of the true best keys, mean of the queries; ``None`` where the truth is not known.
        gap: See ``truth.score_gap``, mean of the queries.
    """

    system: str
    reason: str | None = None
    setup: float | None = None
    cold: list[float] = field(default_factory=list)
    warm: list[float] = field(default_factory=list)
    passes: float | None = None
    tokens: float | None = None
    memory: float | None = None
    found: float | None = None
    recall: float | None = None
    gap: float | None = None


@dataclass(frozen=True)
class Cell:
    """All systems for one number of keys, length of prompt and width, timed in turns.

    Attributes:
        settings: What else the figures depend on.
        keys: Number of keys.
        real: How many of them come from the conversations.
        known: Share of keys whose neutral log-probabilities are computed.
        prompt: Tokens of each prompt.
        width: Keys wanted.
        rows: The systems.
        anchor_keys: Number of keys of the smallest set.
        anchor: Seconds of each cold decode of ``ours-beam`` over that set, in the same turns.
        floor_prompt: Seconds of the floor's pass over the prompt, in the same turns.
        floor_rounds: Seconds of the floor's other passes.
        rounds: Number of these, mean of the queries.
    """

    settings: str
    keys: int
    real: int
    known: float
    prompt: int
    width: int
    rows: list[Row]
    anchor_keys: int
    anchor: list[float]
    floor_prompt: list[float]
    floor_rounds: list[float]
    rounds: float

    @property
    def place(self) -> tuple[int, int, int]:
        """Keys, prompt and width."""
        return self.keys, self.prompt, self.width

    @property
    def floor(self) -> list[float]:
        """Seconds of the whole floor."""
        return [sum(pair) for pair in zip(self.floor_prompt, self.floor_rounds, strict=True)]

    def row(self, system: str) -> Row | None:
        """A system's row, if it was run."""
        return next((row for row in self.rows if row.system == system and row.reason is None), None)


def median_ratio(above: Sequence[float], below: Sequence[float]) -> float:
    """Median of the ratios within each turn, so that a change of the machine's speed falls out."""
    return statistics.median(one / other for one, other in zip(above, below, strict=True))


class CellFile:
    """Cells that are finished, one a line.

    Args:
        path: The file; it may not be there yet.
        settings: Cells of other settings are left alone, and not given back.
    """

    def __init__(self, path: Path, settings: str) -> None:
        self._path = path
        self.cells: dict[tuple[int, int, int], Cell] = {}
        for fields in read_lines(path):
            if fields["settings"] == settings:
                cell = Cell(**fields | {"rows": [Row(**row) for row in fields["rows"]]})
                self.cells[cell.place] = cell

    def append(self, cell: Cell) -> None:
        """Keep a finished cell."""
        self.cells[cell.place] = cell
        append_line(self._path, asdict(cell))
