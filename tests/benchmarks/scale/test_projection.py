"""The projection's arithmetic, against numbers reckoned by hand."""

from __future__ import annotations

import pytest

from benchmarks.scale.projection import Assumptions, Costs, project, read_costs

COSTS = Costs(
    entries=1_000,
    disk_bytes=2_000,
    rows=30,
    concepts=4,
    namespace_bytes=5e6,
    worker_bytes=6e8,
    recall_model=0.6,
    recall_store=0.02,
    recall_server=0.001,
    write_model=0.5,
    write_store=0.1,
    write_server=0.004,
    open_store=0.3,
    open_server=0.1,
)
ASSUMED = Assumptions(users=86_400, entries=2_000, recalls=10, writes=5, peak=2, active=(0.01, 0.5), speedup=20)


def test_what_many_users_need_is_what_one_needs_times_their_number():
    # 86,400 users who recall ten times a day make ten recalls a second on average, and twenty in the busiest hour.
    found = project(COSTS, ASSUMED)
    assert (found.recalls_per_second, found.writes_per_second) == (20, 10)
    assert found.entries == 172_800_000
    assert found.disk_bytes == 172_800_000 * 2_000 == 345_600_000_000
    assert (found.rows, found.concepts) == (5_184_000_000, 691_200_000)
    # 864 and 43,200 namespaces of twice the measured size, 10 MB each.
    assert found.held_bytes == pytest.approx({"0.01": 8.64e9, "0.5": 4.32e11})
    assert found.model_cores == pytest.approx(20 * 0.6 + 10 * 0.5)  # 17
    assert found.store_cores == pytest.approx(0.4 + 1.0)
    assert found.server_cores == pytest.approx(0.02 + 0.04)
    # Thirty calls a second, each of which opens a namespace of twice the measured size: 0.8 s.
    assert found.opening_cores == pytest.approx(24)
    assert (found.workers, found.worker_bytes) == (19, 19 * 6e8)  # 18.4 cores
    assert found.engine_cores == pytest.approx(17 / 20)


def test_what_a_server_takes_may_not_be_known():
    unknown = Costs(**{name: getattr(COSTS, name) for name in COSTS.__slots__} | {"write_server": None})
    assert project(unknown, ASSUMED).server_cores is None
    assert project(unknown, ASSUMED).model_cores == project(COSTS, ASSUMED).model_cores


def test_costs_are_read_from_the_model_that_serves_and_from_the_largest_namespace():
    operations = {
        "resident_bytes": 6e8,
        "recall_model_seconds": 0.6,
        "recall_server_seconds": 0.001,
        "remember_model_seconds": 0.5,
        "remember_server_seconds": 0.004,
    }
    grown = {
        "entries": 1_000,
        "concepts": 4_000,
        "rows": {"entries": 1_000, "links": 29_000},
        "disk_bytes": 2_000_000,
        "resident_bytes": 5e6,
        "recall_cpu_seconds": 0.025,
        "recall_model_seconds": 0.005,
        "remember_cpu_seconds": 0.11,
        "remember_model_seconds": 0.01,
        "cold_cpu_seconds": 0.325,
        "cold_model_seconds": 0.005,
        "cold_server_seconds": 0.1,
    }
    found = read_costs(operations, grown)
    for name in COSTS.__slots__:
        assert getattr(found, name) == pytest.approx(getattr(COSTS, name)), name
