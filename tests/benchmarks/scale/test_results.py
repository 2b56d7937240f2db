"""What is committed fits together: figures, tables, the projection, and what the docs say of it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from benchmarks.scale.projection import Assumptions, Costs, project
from benchmarks.scale.report import markdown

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "benchmarks" / "results" / "scale"


@pytest.fixture(scope="module")
def kept():
    return json.loads((RESULTS / "summary.json").read_text(encoding="utf-8"))


def test_the_tables_are_made_of_the_summary(kept):
    assert (RESULTS / "table.md").read_text(encoding="utf-8") == markdown(kept)


def test_the_projection_follows_from_the_costs(kept):
    assumed = Assumptions(**kept["assumptions"])
    assert set(kept["costs"]) == set(kept["projection"]) == {"sqlite", "postgresql"}
    for engine, costs in kept["costs"].items():
        assert asdict(project(Costs(**costs), assumed)) == kept["projection"][engine]


def test_the_docs_say_what_is_assumed(kept):
    page = (ROOT / "docs" / "deployment.md").read_text(encoding="utf-8")
    sizing = " ".join(page.partition("## Sizing")[2].split())
    assumed = kept["assumptions"]
    assert f"{assumed['users']:,} users with {assumed['entries']:,} entries each" in sizing
    assert f"recall {assumed['recalls']:g} times and add {assumed['writes']:g} entries a day" in sizing
    assert (assumed["peak"], "three times as much in the busiest hour" in sizing) == (3, True)
    assert "(../benchmarks/results/scale/table.md)" in sizing
