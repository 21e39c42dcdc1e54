"""Figures for Prometheus: those of the service, and how many requests took how long."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from ohmlearn.serve.service import Service

__all__ = ["HttpMetrics"]

PREFIX = "ohmlearn_"
KIND = "text/plain; version=0.0.4; charset=utf-8"
METHODS = frozenset({"GET", "HEAD", "POST", "DELETE", "PUT", "PATCH", "OPTIONS"})
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)
HELP = {
    "edges_total": "Edges that have become durable.",
    "batches_total": "Batches that were acknowledged.",
    "repeated_batches_total": "Batches that had been taken before, and were not counted again.",
    "repeated_events_total": "Rows whose events had been counted before.",
    "bad_rows_total": "Rows that were skipped on request.",
    "refused_batches_total": "Batches that were refused, but not for bad rows.",
    "edges_ahead_total": "Edges whose time was ahead of the clock; they count as of their arrival.",
    "refused_ahead_total": "Edges that were refused, because they were too far ahead of the clock.",
    "removals_total": "Edges that were removed.",
    "labels": "Labels that are given.",
    "nodes": "Nodes that have an edge.",
    "rows": "Rows of the sparsifier.",
    "lag_edges": "Durable edges and removals of edges that the last answer does not reflect.",
    "unsampled_edges": "Durable edges and removals of edges that the sampler has not seen.",
    "queued_edges": "Edges that wait to be written.",
    "queued_bytes": "Bytes of batches that wait to be written.",
    "resamples_total": "How often the sampler has thinned out its rows.",
    "follow_seconds_total": "Time that the sampler spent on new edges.",
    "solve_seconds": "Time of the last answer.",
    "answer_age_seconds": "Age of the last answer.",
    "answers_total": "Answers that were computed.",
    "changes_total": "Labels that have changed.",
    "certificate_epsilon": "Error of the sparsifier according to the last certificate.",
    "staleness": "How far removals have taken the sparsifier from the edges.",
    "memory_bytes": "Memory of the process.",
    "kafka_messages_total": "Messages of Kafka that were taken.",
    "kafka_dead_letters_total": "Messages of Kafka that could not be read.",
    "flush_seconds_total": "Time that was spent on flushing files.",
    "flushes_total": "Flushes of files.",
    "disk_full": "1 if the last batch could not be stored, because the disk is full.",
    "kafka_lag": "Messages of Kafka that are not read yet.",
}


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
        for name, value in self._service.metrics().items():
            if value is None:
                continue
            text = HELP.get(name, name.replace("_", " "))
            if name.endswith("_total"):
                yield CounterMetricFamily(PREFIX + name, text, value=float(value))
            else:
                yield GaugeMetricFamily(PREFIX + name, text, value=float(value))

    def render(self) -> tuple[bytes, str]:
        """Return all figures in the text format of Prometheus, and its media type."""
        return generate_latest(self._registry), KIND
