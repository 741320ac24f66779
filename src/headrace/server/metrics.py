"""What Prometheus is told: the requests, and how far streams, queries and operators are."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from headrace.engine.shown.status import Status
from headrace.server.visible import kind_of


class Metrics:
    """The numbers of one server.

    Args:
        status: the status of the run, or None while there is none.
    """

    def __init__(self, status: Callable[[], Status | None]) -> None:
        self._registry = CollectorRegistry()
        self._status = status
        self._requests = Counter(
            "headrace_requests", "Requests that were answered.", ["method", "route", "status"],
            registry=self._registry,
        )  # fmt: skip
        self._seconds = Histogram(
            "headrace_request_seconds", "How long they took.", ["route"], registry=self._registry
        )
        self.subscribers = Gauge(
            "headrace_subscribers", "Clients that wait for changes.", registry=self._registry
        )
        self.busy = Gauge(
            "headrace_requests_at_work", "Requests that are being carried out.", registry=self._registry
        )

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self, texts: bool) -> bytes:
        """All numbers in Prometheus' text format.

        Args:
            texts: whether operators are shown with what is written in queries; else by their kind.
        """
        return generate_latest(_RunCollector(self._status, texts)) + generate_latest(self._registry)


class _RunCollector(Collector):
    """The numbers of the run, taken when they are asked for."""

    def __init__(self, status: Callable[[], Status | None], texts: bool) -> None:
        self._status = status
        self._texts = texts

    def describe(self) -> list[Metric]:
        """Nothing ahead: the numbers depend on what runs."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The numbers as of the last commit."""
        status = self._status()
        if status is None:
            return
        yield GaugeMetricFamily("headrace_running", "Whether a run is going on.", value=float(status.running))
        yield CounterMetricFamily("headrace_epochs", "Epochs that were committed.", value=status.epoch)
        yield from _streams(status)
        yield from _queries(status)
        yield from _operators(status, self._texts)


def _streams(status: Status) -> Iterator[Metric]:
    named = {
        "rows": "Rows that were taken.",
        "late": "Rows that came too late.",
        "rejected": "Rows that could not be read.",
        "dropped": "Pushed rows that were dropped, by OVERFLOW.",
    }
    for attribute, text in named.items():
        family = CounterMetricFamily(f"headrace_stream_{attribute}", text, labels=["stream"])
        for part in status.streams:
            family.add_metric([part.name], getattr(part, attribute))
        yield family


def _queries(status: Status) -> Iterator[Metric]:
    changes = CounterMetricFamily("headrace_query_changes", "Changes of the answer.", labels=["query"])
    failed = GaugeMetricFamily("headrace_query_failed", "Whether it has failed.", labels=["query"])
    for part in status.queries:
        changes.add_metric([part.name], part.changes)
        failed.add_metric([part.name], float(part.failed is not None))
    yield changes
    yield failed


def _operators(status: Status, texts: bool) -> Iterator[Metric]:
    labels = ["operator", "text"]
    rows = GaugeMetricFamily("headrace_operator_state_rows", "Rows that it keeps.", labels=labels)
    size = GaugeMetricFamily("headrace_operator_state_bytes", "Bytes that it keeps.", labels=labels)
    for part in status.operators:
        named = [str(part.number), part.text if texts else kind_of(part.text)]
        rows.add_metric(named, part.state_rows)
        size.add_metric(named, part.state_bytes)
    yield rows
    yield size
