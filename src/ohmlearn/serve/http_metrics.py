"""Figures for Prometheus: those of the service, and how many requests took how long."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from ohmlearn.serve.service import Service

PREFIX = "ohmlearn_"
KIND = "text/plain; version=0.0.4; charset=utf-8"
METHODS = frozenset({"GET", "HEAD", "POST", "DELETE", "PUT", "PATCH", "OPTIONS"})
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)


class HttpMetrics(Collector):
    """Counts requests, and collects the figures of a service when they are asked for."""

    def __init__(self, service: Service) -> None:
        self._service = service
        # A registry of its own: two services in one process must not mix.
        self._registry = CollectorRegistry(auto_describe=False)
        self._requests = Counter(
            PREFIX + "http_requests",
            "Requests that were answered.",
            ["route", "method", "status"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            PREFIX + "http_request_seconds",
            "Time from the head of a request to the end of its answer.",
            ["route", "method"],
            buckets=SECONDS,
            registry=self._registry,
        )
        self._registry.register(self)

    def observe(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request. There are few routes and methods: clients cannot make up new ones."""
        method = method if method in METHODS else "other"
        self._requests.labels(route, method, str(status)).inc()
        if route != "/v1/events":  # these last for as long as the client likes
            self._seconds.labels(route, method).observe(seconds)

    def collect(self) -> Iterator[Metric]:
        """Yield the figures of the service."""
        for name, (value, text) in self._service.metrics().items():
            kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
            yield kind(PREFIX + name, text, value=float(value))

    def render(self) -> tuple[bytes, str]:
        """Return all figures in the text format of Prometheus, and its media type."""
        return generate_latest(self._registry), KIND
