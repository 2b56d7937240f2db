"""The throughput benchmark runs from end to end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import throughput
from shared_core.models import TransformersModel


def test_a_small_run_reports_every_figure(
    tmp_path: Path, embedded: TransformersModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(throughput, "load_model", lambda **_: embedded)  # loaded already
    throughput.main(
        ["--entries", "6", "--batch", "3", "--callers", "2", "--runs", "1", "--threads", "1", "--out", str(tmp_path)]
    )
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["entries"] == 6
    assert summary["entries_per_second"] > 0
    assert summary["at_once_share"] == summary["seconds_at_once"] / summary["seconds_in_a_row"]
