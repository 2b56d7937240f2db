"""Files of lines that survive being torn anywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.lines import append_line, read_lines, replace_lines

ROWS = [{"at": place, "name": "é" * place} for place in range(3)]


@pytest.mark.parametrize("lost", range(0, 60, 3))
def test_what_was_whole_is_read_and_a_torn_end_does_no_harm(tmp_path: Path, lost: int):
    path = tmp_path / "rows.jsonl"
    for row in ROWS:
        append_line(path, row)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) - lost])
    kept = list(read_lines(path))
    # A line that lacks nothing but its end counts.
    assert kept == ROWS[: len(kept)]
    assert len(kept) >= content[: len(content) - lost].count(b"\n")
    append_line(path, {"at": "end"})
    assert list(read_lines(path)) == [*kept, {"at": "end"}]


def test_replacing_leaves_nothing_beside(tmp_path: Path):
    path = tmp_path / "rows.jsonl"
    append_line(path, {"old": 1})
    replace_lines(path, ROWS)
    assert list(read_lines(path)) == ROWS
    assert [one.name for one in tmp_path.iterdir()] == ["rows.jsonl"]
    assert list(read_lines(tmp_path / "missing.jsonl")) == []
