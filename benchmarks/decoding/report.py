"""What the cells say: flat figures, a table to read, and one for the console."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from rich.table import Table

from benchmarks.decoding.cells import Cell, Row, median_ratio
from benchmarks.decoding.measurement import BASE

_COLUMNS = (
    *("system", "cold s", "warm s", "× ours", "passes", "tokens", "MiB"),
    *("found", "recall", "gap", "set-up s"),
)


def figures(cells: Sequence[Cell]) -> dict[str, str | float]:
    """Every figure under a plain name.

    Names end in ``…_keys_width_…_prompt_…``; ``speedup_over_X`` is X's time as a multiple of that of ``ours-beam``,
    ``recall_speedup_over_X`` of that of ``ours-recall``, and ``floor_multiple`` that of ``ours-beam`` as a multiple of
    the floor, each the median over the turns.
    """
    flat: dict[str, str | float] = {}
    for cell in cells:
        place = f"{cell.keys}_keys_width_{cell.width}_prompt_{cell.prompt}"
        flat[f"real_share_{cell.keys}_keys"] = cell.real / cell.keys
        flat[f"prior_known_share_{cell.keys}_keys"] = cell.known
        base = cell.row(BASE)
        if base is None:
            continue
        flat[f"floor_seconds_{place}"] = statistics.median(cell.floor)
        flat[f"floor_seconds_warm_{place}"] = statistics.median(cell.floor_rounds)
        flat[f"floor_rounds_{place}"] = cell.rounds
        flat[f"floor_multiple_{place}"] = median_ratio(base.cold, cell.floor)
        flat[f"floor_multiple_warm_{place}"] = median_ratio(base.warm, cell.floor_rounds)
        if cell.keys != cell.anchor_keys:
            slowdown = median_ratio(base.cold, cell.anchor)
            flat[f"slowdown_{cell.anchor_keys}_to_{place}"] = slowdown
        for row in cell.rows:
            flat |= _row_figures(cell, row, base, place)
            recall = cell.row("ours-recall")
            if recall is not None and row.reason is None and not row.system.startswith("ours-"):
                ratio = median_ratio(row.cold, recall.cold)
                flat[f"recall_speedup_over_{row.system.replace('-', '_')}_{place}"] = ratio
    return flat


def _row_figures(cell: Cell, row: Row, base: Row, place: str) -> dict[str, str | float]:
    name = row.system.replace("-", "_")
    if row.reason is not None:
        return {f"not_run_{name}_{cell.keys}_keys": row.reason}
    given: dict[str, float | None] = {
        f"setup_seconds_{name}_{cell.keys}_keys": row.setup,
        f"seconds_{name}_{place}": statistics.median(row.cold),
        f"seconds_warm_{name}_{place}": statistics.median(row.warm) if row.warm else None,
        f"passes_{name}_{place}": row.passes,
        f"tokens_{name}_{place}": row.tokens,
        f"memory_mib_{name}_{place}": row.memory,
        f"keys_found_{name}_{place}": row.found,
        f"recall_at_{cell.width}_{name}_{place}": row.recall,
        f"score_gap_{name}_{place}": row.gap,
    }
    if row.system != BASE:
        given[f"speedup_over_{name}_{place}"] = median_ratio(row.cold, base.cold)
        given[f"speedup_warm_over_{name}_{place}"] = median_ratio(row.warm, base.warm) if row.warm else None
    return {figure: value for figure, value in given.items() if value is not None}


def _lines(cell: Cell) -> list[list[str]]:
    base = cell.row(BASE)
    cold, warm = statistics.median(cell.floor), statistics.median(cell.floor_rounds)
    times = _ratio(cell.floor, base)
    lines = [["floor", _number(cold), _number(warm), times, _number(cell.rounds + 1), *[""] * 6]]
    for row in cell.rows:
        if row.reason is not None:
            lines.append([row.system, row.reason, *[""] * 9])
            continue
        values = (row.passes, row.tokens, row.memory, row.found, row.recall, row.gap, row.setup)
        lines.append(
            [
                row.system,
                _number(statistics.median(row.cold)),
                _number(statistics.median(row.warm) if row.warm else None),
                _ratio(row.cold, base),
                *map(_number, values),
            ]
        )
    return lines


def _ratio(times: Sequence[float], base: Row | None) -> str:
    return "" if base is None else f"{median_ratio(times, base.cold):.2f}"


def _number(value: float | None) -> str:
    if value is None:
        return ""
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 0.1 else f"{value:.3f}"


def _title(cell: Cell) -> str:
    return f"{cell.keys:,} keys, prompt of {cell.prompt} tokens, width {cell.width}"


def markdown(cells: Sequence[Cell], prior: float | None) -> str:
    """Tables of every cell, and what a key's neutral log-probabilities cost (milliseconds)."""
    parts = [] if prior is None else [f"Neutral log-probabilities took {prior:.1f} ms a key, once and apart.\n"]
    for cell in cells:
        rows = [list(_COLUMNS), ["---"] * len(_COLUMNS), *_lines(cell)]
        notes = f"{cell.real:,} keys from conversations; neutral log-probabilities of {cell.known:.0%} computed."
        table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
        parts.append(f"## {_title(cell)}\n\n{notes}\n\n{table}\n")
    return "\n".join(parts)


def tables(cells: Sequence[Cell]) -> list[Table]:
    """Tables of every cell for the console."""
    made = []
    for cell in cells:
        missing = [f"{row.system}: {row.reason}" for row in cell.rows if row.reason is not None]
        # Without frames the columns fit into 80 characters.
        table = Table(
            box=None,
            padding=(0, 1, 0, 0),
            title=_title(cell),
            caption="\n".join(missing) or None,
            caption_justify="left",
        )
        for at, column in enumerate(_COLUMNS):
            table.add_column(column, justify="right" if at else "left", no_wrap=True)
        for line in _lines(cell):
            if line[0] not in {row.system for row in cell.rows if row.reason is not None}:
                table.add_row(*line)
        made.append(table)
    return made
