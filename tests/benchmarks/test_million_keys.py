"""The program that times large memories runs, at a small size, and reports what it promises."""

import json

import numpy as np
import pytest

from benchmarks import synthetic
from benchmarks.million_keys import main
from benchmarks.synthetic import Size, make_writes


@pytest.fixture(autouse=True)
def few_words(monkeypatch):
    """As many words as a small memory needs."""
    monkeypatch.setattr(synthetic, "VOCABULARY", 2_000)


def test_it_reports_every_part(tmp_path):
    size = ["--keys", "300", "--entries", "25", "--runs", "1"]
    main(["--store", str(tmp_path / "small.db"), *size, "--out", str(tmp_path / "out")])
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert (summary["keys"], summary["entries"]) == (300, 25)
    parts = ["import", "load", "scores", "snapshot", "ready", "retrieval", "remember", "refresh"]
    parts += ["refresh_after_assimilation", "scores_refresh"]
    for part in parts:
        assert summary[f"{part}_seconds"] > 0
        assert summary[f"{part}_cpu"] >= 0
    assert summary["ready_seconds"] >= sum(summary[f"{part}_seconds"] for part in ("load", "scores", "snapshot"))


def test_the_same_seed_makes_the_same_memory():
    one, other = (list(make_writes(Size(30, 400))) for _ in range(2))
    assert one == other
    keys = {link.key for write in one for link in write.links}
    assert len(keys) == 400
    words = np.array([len(key.split()) for key in keys])
    assert (words.min(), words.max()) == (1, 4)
