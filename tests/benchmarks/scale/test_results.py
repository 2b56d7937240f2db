"""What is committed fits together: figures, tables, the projection, and what the docs say of it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from benchmarks.scale.projection import Assumptions, Costs, project
from benchmarks.scale.report import markdown

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "benchmarks" / "results" / "scale"
NONE_YET = "# Scale\n\nNot measured yet: `python -m benchmarks.scale --out benchmarks/results/scale` writes this page"


def test_the_committed_tables_and_projection_follow_from_what_was_measured():
    page = (RESULTS / "table.md").read_text(encoding="utf-8")
    if not (RESULTS / "summary.json").exists():
        assert page.startswith(NONE_YET)
        assert [path.name for path in RESULTS.iterdir()] == ["table.md"]
        return
    kept = json.loads((RESULTS / "summary.json").read_text(encoding="utf-8"))
    assert page == markdown(kept)
    assert set(kept["costs"]) == set(kept["projection"]) == {"sqlite", "postgresql"}
    assert kept["assumptions"] == json.loads(json.dumps(asdict(Assumptions())))
    for engine, costs in kept["costs"].items():
        assert asdict(project(Costs(**costs), Assumptions(**kept["assumptions"]))) == kept["projection"][engine]


def test_the_docs_say_what_is_assumed():
    page = (ROOT / "docs" / "deployment.md").read_text(encoding="utf-8")
    sizing = " ".join(page.partition("## Sizing")[2].split())
    assumed = Assumptions()
    assert f"{assumed.users:,} users with {assumed.entries:,} entries each" in sizing
    assert f"recall {assumed.recalls:g} times and add {assumed.writes:g} entries a day" in sizing
    assert (assumed.peak, "three times as much in the busiest hour" in sizing) == (3, True)
    assert "(../benchmarks/results/scale/table.md)" in sizing
