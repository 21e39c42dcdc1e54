"""The endpoints: each reads a request, asks the service, and answers in JSON.

Figures that are there are answered on the event loop. Everything that may take or wait longer, such
as decoding a body or storing labels, is done in threads. Look-ups of a few nodes have their own
threads, so that they do not wait for other requests; so have reasons, which take solves.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from ohmlearn.reading.table_reader import RawBatch
from ohmlearn.serve.decode_edges import decode_edges
from ohmlearn.serve.http_limits import Limits
from ohmlearn.serve.http_replies import (
    HttpMetrics,
    JsonReply,
    LimitedStream,
    StreamLimit,
    in_threads,
    to_json,
    watch,
)
from ohmlearn.serve.http_requests import (
    BodyReader,
    batch_id_of,
    media_type,
    parse_json,
    read_feature_csv,
    read_feature_rows,
    read_label_csv,
    read_label_rows,
    read_nodes,
    read_path_node,
)
from ohmlearn.serve.http_table import ENDPOINTS, FORMS, PAGE, describe, parse_query
from ohmlearn.serve.serve_errors import Refused, refusals

if TYPE_CHECKING:
    from ohmlearn.serve.service import Service

T = TypeVar("T")
Answer = Callable[[Request], Awaitable[Response]]

FEW_BYTES = 4 << 10  # of a body with nodes; those of larger ones are looked up with other work
SMALL_BODY = 64 << 10  # bytes that are parsed on the event loop
WHY = b"/why"
MOST_LABELS = 100_000  # in one request


class Endpoints:
    """All endpoints of a service: a method for each name in `http_table.ENDPOINTS`.

    A method is called with the request and the parameters of its query.
    """

    def __init__(self, service: Service, limits: Limits, metrics: HttpMetrics) -> None:
        self._service, self._limits, self._metrics = service, limits, metrics
        self._decoders = ThreadPoolExecutor(2, "ohmlearn-decode")
        self._workers = ThreadPoolExecutor(4, "ohmlearn-http")
        self._lookups = ThreadPoolExecutor(2, "ohmlearn-lookup")
        self._reasoners = ThreadPoolExecutor(2, "ohmlearn-reasons")
        self._n_reasons = 0  # requests that wait for them
        how = limits, self._decoders
        self._edge_bodies = BodyReader(limits.body, limits.all_bodies, *how)
        self._json_bodies = BodyReader(limits.json_body, limits.all_json_bodies, *how)
        self._stopping = asyncio.Event()
        most, n_clients = limits.exports, limits.event_clients
        self._exports = StreamLimit(most, 429, f"{most} exports are running already", 5.0)
        full = f"there are {n_clients} clients for events already"
        self._event_clients = StreamLimit(n_clients, 503, full, 10.0)
        self._openapi = to_json(describe())

    def routes(self) -> dict[str, dict[str, Answer]]:
        """Return what answers each path and method."""
        found: dict[str, dict[str, Answer]] = {}
        for one in ENDPOINTS:
            method = getattr(self, one.name)

            async def answer(request: Request, method: Any = method, one: Any = one) -> Response:
                # Probes and files of the page may have any query, for instance to pass by a cache.
                query = parse_query(request, one.query) if one.path.startswith("/v1/") else {}
                takes_values = one.method != "GET" or one.query
                with refusals() if takes_values else nullcontext():
                    reply = await method(request, **query)
                return reply if isinstance(reply, Response) else JsonReply(reply)

            found.setdefault(one.path, {})[one.method] = answer
        return found

    def stop(self) -> None:
        """End streams of events, and hurry bodies that are being read; on the event loop."""
        self._stopping.set()
        self._edge_bodies.stop()
        self._json_bodies.stop()

    def close(self) -> None:
        """End the threads, when there are no requests any more."""
        for pool in (self._decoders, self._workers, self._lookups, self._reasoners):
            pool.shutdown()

    # Edges.

    async def add_edges(self, request: Request, batch_id: str | None, on_bad: str) -> Any:
        return await self._take(request, batch_id, on_bad, "n_edges", "n_repeated")

    async def remove_edges(self, request: Request, batch_id: str | None, on_bad: str) -> Any:
        shown = "n_removed", "n_missing"
        return await self._take(request, batch_id, on_bad, *shown, is_removal=True)

    async def _take(
        self,
        request: Request,
        batch_id: str | None,
        on_bad: str,
        *shown: str,
        is_removal: bool = False,
    ) -> dict[str, Any]:
        """Let the service add or remove the edges in a body; return parts of the receipt."""
        batch_id, form = batch_id_of(request, batch_id), FORMS.get(media_type(request))
        if form is None:
            raise Refused(
                415,
                "edges are accepted as application/x-ndjson, application/json, text/csv or "
                "application/vnd.apache.arrow.stream; set the header Content-Type to one of these",
            )
        skip_bad = on_bad == "skip"

        def decode(body: bytes) -> RawBatch:
            return decode_edges(
                body,
                form,
                id_kind=self._service.id_kind,
                skip_bad=skip_bad,
                max_rows=self._limits.rows,
                max_id_bytes=self._limits.id_bytes,
                one="a pair" if is_removal else "an edge",
                event_id=None if is_removal else self._service.event_id,
                weight=self._service.weight,
            )

        async with self._edge_bodies.read(request) as body:
            batch = await self._in_thread(self._decoders, decode, body)
        future = self._service.submit(
            batch, is_removal=is_removal, batch_id=batch_id, skip_bad=skip_bad
        )
        # Shielded: whatever becomes of this request, the batch has been accepted.
        receipt = await asyncio.shield(asyncio.wrap_future(future))
        shown += ("n_bad", "first_bad", "repeated", "operation")
        return {name: getattr(receipt, name) for name in shown}

    # Labels.

    async def give_labels(self, request: Request) -> Any:
        how = read_label_csv, read_label_rows, self._service.put_labels
        return await self._change(request, "n_labels", *how)

    async def give_features(self, request: Request) -> Any:
        how = read_feature_csv, read_feature_rows, self._service.put_features
        return await self._change(request, "n_nodes", *how)

    async def delete_labels(self, request: Request) -> Any:
        how = None, read_nodes, self._service.delete_labels
        return await self._change(request, "n_deleted", *how)

    async def _change(
        self,
        request: Request,
        name: str,
        parse_csv: Callable[[bytes], Any] | None,
        read: Callable[[Any, str | None, int, int], T],
        change: Callable[[T], int],
    ) -> dict[str, int]:
        """Store or delete what a body says of nodes; return of how many, by name."""

        def store(body: object) -> int:
            return change(read(body, self._service.id_kind, MOST_LABELS, self._limits.id_bytes))

        async with self._json_body(request, parse_csv) as (body, _):
            count = await self._in_thread(self._workers, store, body)
        return {name: count, "labels_version": self._service.labels_version}

    async def delete_label(self, request: Request) -> Any:
        nodes = [self._node_of(request)]
        n_deleted = await self._in_thread(self._workers, self._service.delete_labels, nodes)
        return {"n_deleted": n_deleted, "labels_version": self._service.labels_version}

    async def given_labels(self, request: Request, limit: int, after: str | None) -> Any:
        return await self._in_thread(self._workers, self._service.given_labels, limit, after)

    async def label(self, request: Request) -> Any:
        node = self._node_of(request)
        answer = await self._in_thread(self._lookups, self._service.lookup, [node])
        (result,) = answer.pop("results")
        if not result["known"]:
            raise Refused(404, f"node {node!r} is not known; no edge has it")
        return answer | result

    async def why(self, request: Request, changes: str, all_edges: str, **how: Any) -> Any:
        if not request.scope["raw_path"].endswith(WHY):  # the id of a node may end with it, escaped
            return await self.label(request)
        node = self._node_of(request, WHY)
        how |= {"changes": changes == "true", "all_edges": all_edges == "true"}
        return await self._find_reasons(lambda: self._service.why(node, **how))

    async def _find_reasons(self, find: Callable[[], dict[str, Any]]) -> bytes:
        """Do work that takes solves, if not too much of it is waiting already."""
        if self._n_reasons >= self._limits.reasons:
            raise Refused(429, f"{self._n_reasons} requests wait for reasons already")
        self._n_reasons += 1
        try:
            return await self._in_thread(self._reasoners, lambda: to_json(find()))
        finally:
            self._n_reasons -= 1

    async def look_up(self, request: Request) -> Any:
        limits = self._limits

        def answer(body: Any) -> bytes:
            nodes = read_nodes(body, self._service.id_kind, limits.lookup_nodes, limits.id_bytes)
            return to_json(self._service.lookup(nodes))

        async with self._json_body(request) as (body, n_bytes):
            pool = self._lookups if n_bytes <= FEW_BYTES else self._workers
            return await self._in_thread(pool, answer, body)

    def _node_of(self, request: Request, suffix: bytes = b"") -> int | str:
        return read_path_node(request, suffix, self._service.id_kind, self._limits.id_bytes)

    # What there is to know.

    async def changes(self, request: Request, since: int, limit: int, reasons: str) -> Any:
        find = self._service.changes
        if reasons == "true":
            return await self._find_reasons(lambda: find(since, limit, reasons=True))
        return await self._in_thread(self._workers, lambda: to_json(find(since, limit)))

    async def review(self, request: Request, limit: int) -> Any:
        return await self._find_reasons(lambda: self._service.review(limit))

    async def export(self, request: Request) -> Any:
        parts = in_threads(self._service.export, self._workers)
        return LimitedStream(self._exports, "application/vnd.apache.parquet", parts)

    async def suggest(self, request: Request, k: int) -> Any:
        return self._service.suggestions(k)

    async def certificates(self, request: Request, limit: int) -> Any:
        found = await self._in_thread(self._workers, self._service.certificates, limit)
        return {"certificates": found}

    async def status(self, request: Request) -> Any:
        return self._service.status()

    async def map(self, request: Request) -> Any:
        return self._service.map()

    async def events(self, request: Request) -> Any:
        parts = watch(self._service, self._stopping)
        return LimitedStream(self._event_clients, "text/event-stream", parts)

    # The page and operations.

    async def page(self, request: Request) -> Any:
        if request.scope["path"] not in PAGE:
            raise HTTPException(404)
        content, kind = PAGE[request.scope["path"]]
        return Response(content, headers={"Cache-Control": "no-cache", "Content-Type": kind})

    page_file = page

    async def openapi(self, request: Request) -> Any:
        return self._openapi

    async def healthz(self, request: Request) -> Any:
        return {"ok": True}

    async def readyz(self, request: Request) -> Any:
        if self._stopping.is_set() or not self._service.ready:
            raise Refused(503, "the service is not ready to take edges", retry_after=1.0)
        if self._service.answers_fail:
            message = "edges are taken, but new answers fail; /v1/status says why"
            raise Refused(503, message, retry_after=10.0)
        return {"ready": True}

    async def metrics(self, request: Request) -> Any:
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
        kinds: dict[str, Callable[[bytes], Any]] = {"application/json": parse_json}
        if parse_csv is not None:
            kinds["text/csv"] = parse_csv
        parse = kinds.get(media_type(request))
        if parse is None:
            also, types = "" if parse_csv is None else " or CSV", " or ".join(kinds)
            raise Refused(415, f"the body must be JSON{also}; set Content-Type: {types}")
        async with self._json_bodies.read(request) as text:
            if len(text) <= SMALL_BODY:
                body = parse(text)
            else:
                body = await self._in_thread(self._decoders, parse, text)
            yield body, len(text)

    async def _in_thread(
        self, pool: ThreadPoolExecutor, work: Callable[..., T], *arguments: Any
    ) -> T:
        return await asyncio.get_running_loop().run_in_executor(pool, work, *arguments)
