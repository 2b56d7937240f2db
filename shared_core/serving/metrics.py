"""Figures for Prometheus. No label holds a namespace, an id or a text."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from shared_core.store import Erased, WriteOutcome

# Seconds: a recall takes tenths with a small model, a write that the model reads several.
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


class Metrics:
    """The figures of one service.

    Args:
        queued: How many recalls wait for the model.
    """

    def __init__(self, queued: Callable[[], int]) -> None:
        registry = CollectorRegistry()
        self._registry = registry
        self._requests = Counter(
            "scg_requests", "Requests, by route and status.", ["method", "route", "status"], registry=registry
        )
        self._seconds = Histogram(
            "scg_request_seconds", "Time to answer.", ["route"], buckets=_BUCKETS, registry=registry
        )
        self._running = Gauge("scg_requests_running", "Requests being answered.", ["route"], registry=registry)
        self._entries = Counter("scg_entries", "Entries, by what became of them.", ["change"], registry=registry)
        self._recalls = Counter("scg_recalls", "Recalls, those of answers included.", registry=registry)
        waiting = Gauge("scg_recalls_waiting", "Recalls that wait for the model.", registry=registry)
        waiting.set_function(queued)

    def begun(self, route: str) -> None:
        """A request is being answered."""
        self._running.labels(route).inc()

    def ended(self, method: str, route: str, status: int, seconds: float) -> None:
        """A request was answered."""
        self._running.labels(route).dec()
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def remembered(self, outcome: WriteOutcome) -> None:
        """Entries were written."""
        self._entries.labels("added").inc(outcome.added)
        self._entries.labels("updated").inc(outcome.updated)
        self._entries.labels("erased").inc(outcome.expired)

    def erased(self, receipt: Erased) -> None:
        """Entries were erased."""
        self._entries.labels("erased").inc(receipt.entries)

    def recalled(self) -> None:
        """A recall was made."""
        self._recalls.inc()

    def as_text(self) -> bytes:
        """All figures, in Prometheus' text format."""
        return generate_latest(self._registry)
