"""The trie benchmark runs to its end at a small size, and its figures are what they are named."""

from __future__ import annotations

import importlib.util
import itertools
import json
import sys

import numpy as np
import pytest

from benchmarks import trie
from benchmarks.trie_contenders import CONTENDERS
from benchmarks.trie_keys import phrase_keys


@pytest.mark.parametrize("count", [1, 200, 3_000])
def test_keys_are_distinct_phrases_from_a_seed(count):
    flat, starts = phrase_keys(count)
    keys = [tuple(flat[low:high].tolist()) for low, high in itertools.pairwise(starts)]
    assert len(keys) == len(set(keys)) == count
    assert {len(key) for key in keys} <= set(range(2, 7))
    np.testing.assert_array_equal(flat, phrase_keys(count)[0])
    assert not np.array_equal(flat, phrase_keys(count, seed=1)[0])
    if count == 3_000:
        assert len({key[0] for key in keys}) < count / 2  # they share prefixes


def test_it_measures_every_contender(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["trie", "--keys", "200", "--out", str(tmp_path / "results")])
    trie.main()
    summary = json.loads((tmp_path / "results" / "summary.json").read_text())
    contenders = [one for one in CONTENDERS if one != "marisa" or importlib.util.find_spec("marisa_trie")]
    expected = {
        "ours": set(trie.FIGURES),
        "dicts": set(trie.FIGURES)
        - {
            "bytes_per_key_grown",
            "rss_bytes_per_key",
            "build_from_arrays_seconds",
            "insert_median_ms",
            "insert_longest_ms",
        },
        "marisa": {"bytes_per_key", "build_seconds", "lookup_us", "save_seconds", "reload_seconds"},
    }
    names = {f"{one}_{figure}_200" for one in contenders for figure in expected[one]}
    assert set(summary) == {"tokens_per_key_200", *names}
    assert 2 <= summary["tokens_per_key_200"] <= 6
    assert all(value >= 0 for value in summary.values())
    assert 10 < summary["ours_bytes_per_key_200"] < summary["ours_bytes_per_key_grown_200"]
    assert summary["ours_insert_median_ms_200"] <= summary["ours_insert_longest_ms_200"]
    table = (tmp_path / "results" / "table.md").read_text()
    assert f"| memory, bytes a key | {summary['ours_bytes_per_key_200']:.3g} |" in table
    assert "marisa" not in contenders or "cannot" in table
    assert "200 keys" in capsys.readouterr().out
    plots = {file.stem for file in (tmp_path / "results").glob("*.png")}
    assert plots == (set(trie.PLOTS) if importlib.util.find_spec("matplotlib") else set())
