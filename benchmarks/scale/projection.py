"""What many users would need, reckoned from what single operations and entries were measured to cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_DAY = 86_400


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What is assumed, and was not measured.

    Attributes:
        users: Users, each with a namespace.
        entries: Entries of each.
        recalls: Recalls of each user a day.
        writes: Entries that each user adds a day, written one at a time with the model.
        peak: Calls in the busiest hour, as a multiple of the mean over the day.
        active: Shares of the users whose namespaces are held open in workers.
        speedup: How many times faster than one core of this machine an engine runs the model.
    """

    users: int = 1_000_000
    entries: int = 10_000
    recalls: float = 20.0
    writes: float = 10.0
    peak: float = 3.0
    active: Sequence[float] = (0.01, 0.05, 0.20)
    speedup: float = 50.0


@dataclass(frozen=True, slots=True)
class Costs:
    """What was measured, with one engine. Seconds are processor seconds, on one core.

    Attributes:
        entries: Entries of the largest namespace that was measured.
        disk_bytes: On the disk, for each of its entries.
        rows: Rows, for each of its entries.
        concepts: Concepts, for each of its entries.
        namespace_bytes: Of memory, while it is open.
        worker_bytes: Of memory, of a worker with the embedded model.
        recall_model: Seconds of the embedded model for a recall.
        recall_store: All other seconds of the worker for a recall in the largest namespace.
        recall_server: Seconds of the database server for a recall; ``None`` if not known.
        write_model: As for a recall, for an entry written by itself.
        write_store: As for a recall.
        write_server: As for a recall.
        open_store: Seconds of the worker to open the largest namespace.
        open_server: Seconds of the server for that; ``None`` if not known.
    """

    entries: int
    disk_bytes: float
    rows: float
    concepts: float
    namespace_bytes: float
    worker_bytes: float
    recall_model: float
    recall_store: float
    recall_server: float | None
    write_model: float
    write_store: float
    write_server: float | None
    open_store: float
    open_server: float | None


@dataclass(frozen=True, slots=True)
class Projection:
    """What the users would need.

    Attributes:
        entries: Entries of all.
        disk_bytes: On the disk.
        rows: Rows of all tables.
        concepts: Concepts of all.
        recalls_per_second: In the busiest hour.
        writes_per_second: In the busiest hour.
        held_bytes: Memory for open namespaces, by the share of users whose are held.
        model_cores: Cores that the model keeps busy.
        store_cores: Cores that the rest of the workers' work keeps busy, if every namespace is open already.
        server_cores: Cores that the database server keeps busy; ``None`` if not known.
        opening_cores: Cores, of workers and server, that are busy on top if no namespace is open when it is called.
        workers: Worker processes of one core each.
        worker_bytes: Their memory, without namespaces.
        engine_cores: Engines of the assumed speed that the model keeps busy instead: an extrapolation.
    """

    entries: int
    disk_bytes: float
    rows: float
    concepts: float
    recalls_per_second: float
    writes_per_second: float
    held_bytes: Mapping[str, float]
    model_cores: float
    store_cores: float
    server_cores: float | None
    opening_cores: float
    workers: int
    worker_bytes: float
    engine_cores: float


def project(costs: Costs, assumed: Assumptions) -> Projection:
    """Multiply what was measured: nothing gets dearer or cheaper with the number of users.

    Memory of a namespace, and the time to open it, grow with its entries; if these are more than were measured, in
    proportion.
    """
    entries = assumed.users * assumed.entries
    larger = assumed.entries / costs.entries
    recalls = assumed.users * assumed.recalls / _DAY * assumed.peak
    writes = assumed.users * assumed.writes / _DAY * assumed.peak
    model_cores = recalls * costs.recall_model + writes * costs.write_model
    store_cores = recalls * costs.recall_store + writes * costs.write_store
    server_cores = None
    if costs.recall_server is not None and costs.write_server is not None:
        server_cores = recalls * costs.recall_server + writes * costs.write_server
    workers = math.ceil(model_cores + store_cores)
    return Projection(
        entries=entries,
        disk_bytes=entries * costs.disk_bytes,
        rows=entries * costs.rows,
        concepts=entries * costs.concepts,
        recalls_per_second=recalls,
        writes_per_second=writes,
        held_bytes={f"{share:g}": assumed.users * share * costs.namespace_bytes * larger for share in assumed.active},
        model_cores=model_cores,
        store_cores=store_cores,
        server_cores=server_cores,
        opening_cores=(recalls + writes) * (costs.open_store + (costs.open_server or 0)) * larger,
        workers=workers,
        worker_bytes=workers * costs.worker_bytes,
        engine_cores=model_cores / assumed.speedup,
    )


def read_costs(operations: Mapping[str, Any], grown: Mapping[str, Any]) -> Costs:
    """Costs from what was measured.

    Args:
        operations: Single operations with the embedded model.
        grown: The largest namespace, with the tiny model.
    """
    entries = grown["entries"]
    recall_store = grown["recall_cpu_seconds"] - grown["recall_model_seconds"]
    return Costs(
        entries=entries,
        disk_bytes=grown["disk_bytes"] / entries,
        rows=sum(grown["rows"].values()) / entries,
        concepts=grown["concepts"] / entries,
        namespace_bytes=grown["resident_bytes"],
        worker_bytes=operations["resident_bytes"],
        recall_model=operations["recall_model_seconds"],
        recall_store=recall_store,
        recall_server=operations["recall_server_seconds"],
        write_model=operations["remember_model_seconds"],
        write_store=grown["remember_cpu_seconds"] - grown["remember_model_seconds"],
        write_server=operations["remember_server_seconds"],
        open_store=max(0.0, grown["cold_cpu_seconds"] - grown["cold_model_seconds"] - recall_store),
        open_server=grown["cold_server_seconds"],
    )
