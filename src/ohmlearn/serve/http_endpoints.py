"""The endpoints: each reads a request, asks the service, and answers in JSON.

Figures that are there are answered on the event loop. Everything that may take or wait longer, such
as decoding a body or storing labels, is done in threads. Look-ups of a few nodes have their own
threads, so that they do not wait for other requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from ohmlearn.serve.database import LabelRow
from ohmlearn.serve.decode_edges import Form, decode_edges
from ohmlearn.serve.http_bodies import BodyReader, gunzip, is_gzip, media_type, parse_json
from ohmlearn.serve.http_events import EventStream, ExportStream
from ohmlearn.serve.http_limits import Limits
from ohmlearn.serve.http_metrics import HttpMetrics
from ohmlearn.serve.http_openapi import describe
from ohmlearn.serve.http_page import PAGE
from ohmlearn.serve.http_questions import (
    Query,
    batch_id_of,
    read_label_csv,
    read_label_rows,
    read_nodes,
    read_path_node,
)
from ohmlearn.serve.http_replies import JsonReply, to_json
from ohmlearn.serve.serve_errors import Refused, refusals

if TYPE_CHECKING:
    from ohmlearn.serve.service import Service

__all__ = ["Endpoints"]

T = TypeVar("T")
Endpoint = Callable[[Request], Awaitable[Response]]

FORMS: dict[str, Form] = {
    "application/x-ndjson": "ndjson",
    "application/ndjson": "ndjson",
    "application/jsonl": "ndjson",
    "application/json": "ndjson",
    "text/csv": "csv",
    "application/vnd.apache.arrow.stream": "arrow",
    "application/vnd.apache.arrow.file": "arrow",
}
FEW_BYTES = 4 << 10  # of a body with nodes; those of larger ones are looked up with other work
SMALL_BODY = 64 << 10  # bytes that are parsed on the event loop
LABELS_PREFIX = b"/v1/labels/"
MOST_LABELS = 100_000  # in one request


class Endpoints:
    """All endpoints of a service.

    Parameters
    ----------
    service : Service
    limits : Limits
    metrics : HttpMetrics
    """

    def __init__(self, service: Service, limits: Limits, metrics: HttpMetrics) -> None:
        self._service, self._limits, self._metrics = service, limits, metrics
        self._decoders = ThreadPoolExecutor(2, "ohmlearn-decode")
        self._workers = ThreadPoolExecutor(4, "ohmlearn-http")
        self._lookups = ThreadPoolExecutor(2, "ohmlearn-lookup")
        times = (limits.body_seconds, limits.stop_seconds)
        self._edge_bodies = BodyReader(limits.body, limits.all_bodies, *times)
        self._json_bodies = BodyReader(limits.json_body, limits.all_json_bodies, *times)
        self._stopping = asyncio.Event()
        self._exports: set[object] = set()
        self._event_clients: set[object] = set()
        self._openapi = to_json(describe())

    def routes(self) -> dict[str, dict[str, Endpoint]]:
        """Return the endpoint of each path and method."""
        return {
            **{path: {"GET": self.page} for path in PAGE},
            "/healthz": {"GET": self.healthz},
            "/readyz": {"GET": self.readyz},
            "/metrics": {"GET": self.metrics},
            "/v1/openapi.json": {"GET": self.openapi},
            "/v1/edges": {"POST": self.post_edges},
            "/v1/removals": {"POST": self.post_removals},
            "/v1/labels": {
                "GET": self.get_labels,
                "POST": self.post_labels,
                "DELETE": self.delete_labels,
            },
            "/v1/labels:lookup": {"POST": self.lookup},
            "/v1/labels/{id:path}": {"GET": self.get_label, "DELETE": self.delete_label},
            "/v1/changes": {"GET": self.changes},
            "/v1/export": {"GET": self.export},
            "/v1/suggest": {"GET": self.suggest},
            "/v1/certificates": {"GET": self.certificates},
            "/v1/status": {"GET": self.status},
            "/v1/map": {"GET": self.map},
            "/v1/events": {"GET": self.events},
        }

    def stop(self) -> None:
        """End streams of events, and hurry bodies that are being read; on the event loop."""
        self._stopping.set()
        self._edge_bodies.stop()
        self._json_bodies.stop()

    def close(self) -> None:
        """End the threads, when there are no requests any more."""
        self._decoders.shutdown()
        self._workers.shutdown()
        self._lookups.shutdown()

    # Edges.

    async def post_edges(self, request: Request) -> Response:
        """Take a batch of edges; answer when it is durable."""
        receipt = await self._take(request, "an edge")
        names = ("n_edges", "n_bad", "first_bad", "repeated", "operation")
        return JsonReply({name: getattr(receipt, name) for name in names})

    async def post_removals(self, request: Request) -> Response:
        """Remove the edges between pairs of nodes; answer when that is durable."""
        receipt = await self._take(request, "a pair")
        names = ("n_removed", "n_missing", "n_bad", "first_bad", "repeated", "operation")
        return JsonReply({name: getattr(receipt, name) for name in names})

    async def _take(self, request: Request, one: str) -> Any:
        query = Query(request, "batch_id", "on_bad")
        batch_id = batch_id_of(request, query)
        skip_bad = query.choice("on_bad", "refuse", "skip") == "skip"
        form = FORMS.get(media_type(request))
        if form is None:
            raise Refused(
                415,
                "edges are accepted as application/x-ndjson, application/json, text/csv or "
                "application/vnd.apache.arrow.stream; set the header Content-Type to one of these",
            )
        is_packed = is_gzip(request)

        def read(body: bytes) -> Any:
            if is_packed:
                body = gunzip(body, self._limits.body)
            return decode_edges(
                body,
                form,
                id_kind=self._service.id_kind,
                skip_bad=skip_bad,
                max_rows=self._limits.rows,
                max_id_bytes=self._limits.id_bytes,
                one=one,
            )

        with self._edge_bodies.counted() as counted:
            body = await self._edge_bodies.read(request, counted)
            with refusals():
                batch = await self._in_thread(self._decoders, read, body)
            del body
        with refusals():
            if one == "a pair":
                future = self._service.submit_removal(batch, batch_id=batch_id)
            else:
                future = self._service.submit(batch, batch_id=batch_id, skip_bad=skip_bad)
            # Shielded: whatever becomes of this request, the batch has been accepted.
            return await asyncio.shield(asyncio.wrap_future(future))

    # Labels.

    async def post_labels(self, request: Request) -> Response:
        """Store labels."""
        Query(request)
        longest = self._limits.id_bytes

        def store(body: Any) -> int:
            found = read_label_rows(body, self._service.id_kind, MOST_LABELS, longest)
            return self._service.put_labels([LabelRow(*row) for row in found])

        async with self._json_body(request, read_label_csv) as (body, _):
            with refusals():
                n_labels = await self._in_thread(self._workers, store, body)
        version = self._service.labels_version
        return JsonReply({"n_labels": n_labels, "labels_version": version})

    async def delete_labels(self, request: Request) -> Response:
        """Delete the labels of some nodes."""
        Query(request)
        longest = self._limits.id_bytes

        def delete(body: Any) -> int:
            nodes = read_nodes(body, self._service.id_kind, MOST_LABELS, longest)
            return self._service.delete_labels(nodes)

        async with self._json_body(request) as (body, _):
            with refusals():
                n_deleted = await self._in_thread(self._workers, delete, body)
        return self._tell_deleted(n_deleted)

    async def delete_label(self, request: Request) -> Response:
        """Delete the label of one node."""
        Query(request)
        nodes = [self._node_of(request)]
        with refusals():
            n_deleted = await self._in_thread(self._workers, self._service.delete_labels, nodes)
        return self._tell_deleted(n_deleted)

    def _tell_deleted(self, n_deleted: int) -> Response:
        version = self._service.labels_version
        return JsonReply({"n_deleted": n_deleted, "labels_version": version})

    async def get_labels(self, request: Request) -> Response:
        """Return the labels that were given."""
        query = Query(request, "limit", "after")
        limit, after = query.integer("limit", 1000, 1, 10_000), query.text("after")
        with refusals():
            return JsonReply(
                await self._in_thread(self._workers, self._service.given_labels, limit, after)
            )

    async def get_label(self, request: Request) -> Response:
        """Return the label of one node."""
        Query(request)
        node = self._node_of(request)
        answer = await self._in_thread(self._lookups, self._service.lookup, [node])
        (result,) = answer.pop("results")
        if not result["known"]:
            raise Refused(404, f"node {node!r} is not known; no edge has it")
        return JsonReply(answer | result)

    async def lookup(self, request: Request) -> Response:
        """Return the labels of many nodes."""
        Query(request)
        limits = self._limits

        def answer(body: Any) -> bytes:
            nodes = read_nodes(body, self._service.id_kind, limits.lookup_nodes, limits.id_bytes)
            return to_json(self._service.lookup(nodes))

        async with self._json_body(request) as (body, n_bytes):
            pool = self._lookups if n_bytes <= FEW_BYTES else self._workers
            return JsonReply(await self._in_thread(pool, answer, body))

    def _node_of(self, request: Request) -> int | str:
        return read_path_node(request, LABELS_PREFIX, self._service.id_kind, self._limits.id_bytes)

    # What there is to know.

    async def changes(self, request: Request) -> Response:
        """Return whose labels have changed."""
        query = Query(request, "since", "limit")
        since = query.integer("since", 0, 0, (1 << 63) - 1)
        limit = query.integer("limit", 10_000, 1, 100_000)

        def answer() -> bytes:
            return to_json(self._service.changes(since, limit))

        with refusals():
            return JsonReply(await self._in_thread(self._workers, answer))

    async def export(self, request: Request) -> Response:
        """Return the labels of all nodes as a Parquet file."""
        Query(request)
        most = self._limits.exports
        return ExportStream(self._service.export, self._workers, self._exports, most)

    async def suggest(self, request: Request) -> Response:
        """Return which nodes to label next."""
        return JsonReply(self._service.suggestions(Query(request, "k").integer("k", 10, 1, 1000)))

    async def certificates(self, request: Request) -> Response:
        """Return the last certificates."""
        limit = Query(request, "limit").integer("limit", 200, 1, 10_000)
        found = await self._in_thread(self._workers, self._service.certificates, limit)
        return JsonReply({"certificates": found})

    async def status(self, request: Request) -> Response:
        """Return all figures."""
        Query(request)
        return JsonReply(self._service.status())

    async def map(self, request: Request) -> Response:
        """Return a picture of the communities."""
        Query(request)
        return JsonReply(self._service.map())

    async def events(self, request: Request) -> Response:
        """Send figures and the map when they change."""
        Query(request)
        return EventStream(
            self._service, self._stopping, self._event_clients, self._limits.event_clients
        )

    # The page and operations.

    async def page(self, request: Request) -> Response:
        """Return a file of the page."""
        file = PAGE[request.scope["path"]]
        headers = {"Cache-Control": "no-cache", "Content-Type": file.media_type}
        return Response(file.content, headers=headers)

    async def openapi(self, request: Request) -> Response:
        """Return the description of all endpoints."""
        return JsonReply(self._openapi)

    async def healthz(self, request: Request) -> Response:
        """Answer as long as the process is alive."""
        return JsonReply({"ok": True})

    async def readyz(self, request: Request) -> Response:
        """Say whether edges are accepted and answers are computed."""
        if self._stopping.is_set() or not self._service.ready:
            raise Refused(503, "the service is not ready to take edges", retry_after=1.0)
        if self._service.answers_fail:
            message = "edges are taken, but new answers fail; /v1/status says why"
            raise Refused(503, message, retry_after=10.0)
        return JsonReply({"ready": True})

    async def metrics(self, request: Request) -> Response:
        """Return figures for Prometheus."""
        content, kind = await self._in_thread(self._workers, self._metrics.render)
        return Response(content, headers={"Content-Type": kind})

    # Shared.

    @asynccontextmanager
    async def _json_body(
        self, request: Request, parse_csv: Callable[[bytes], Any] | None = None
    ) -> AsyncIterator[tuple[Any, int]]:
        """Read a body in JSON and its size; it counts against the limit of all until it is used.

        `parse_csv` returns the same of a body in CSV, if that is accepted.
        """
        kind = media_type(request)
        parse: Callable[[bytes], Any] = parse_json
        if kind == "text/csv" and parse_csv is not None:
            parse = parse_csv
        elif kind != "application/json":
            also = "" if parse_csv is None else " or CSV"
            types = "application/json" if parse_csv is None else "application/json or text/csv"
            raise Refused(415, f"the body must be JSON{also}; set Content-Type: {types}")
        is_packed, reader = is_gzip(request), self._json_bodies
        with reader.counted() as counted:
            text = await reader.read(request, counted)
            if is_packed:
                n_packed = len(text)
                text = await self._in_thread(self._decoders, gunzip, text, self._limits.json_body)
                reader.count(counted, len(text) - n_packed)
            n_bytes = len(text)
            if n_bytes <= SMALL_BODY:
                body = parse(text)
            else:
                body = await self._in_thread(self._decoders, parse, text)
            del text
            yield body, n_bytes

    async def _in_thread(
        self, pool: ThreadPoolExecutor, work: Callable[..., T], *arguments: Any
    ) -> T:
        return await asyncio.get_running_loop().run_in_executor(pool, work, *arguments)
