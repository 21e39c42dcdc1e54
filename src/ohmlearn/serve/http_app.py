"""The application: routes, and what is checked and added around all of them."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ohmlearn.serve.http_auth import Access, Tokens
from ohmlearn.serve.http_endpoints import Answer, Endpoints
from ohmlearn.serve.http_limits import SECURITY_HEADERS, Limits
from ohmlearn.serve.http_replies import HttpMetrics, error_reply
from ohmlearn.serve.serve_errors import Refused

if TYPE_CHECKING:
    from ohmlearn.serve.service import Service

ROUTE = "ohmlearn.route"  # where the scope of a request has the path of its route
GONE_AWAY = 499  # counted for clients that do not wait for their answer
logger = logging.getLogger(__name__)


def make_app(
    service: Service,
    *,
    tokens: Tokens | None = None,
    hosts: Collection[str] = (),
    limits: Limits | None = None,
) -> Starlette:
    """Return the application of a service, which is started and stopped by the caller.

    `tokens` say who may read and write; without, every client on this machine may. `hosts` are
    names by which a server without tokens may be called, besides localhost. Before the server
    stops, ``app.state.endpoints.stop()`` ends what would last for ever.
    """
    limits = limits or Limits()
    metrics = HttpMetrics(service)
    endpoints = Endpoints(service, limits, metrics)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        endpoints.close()

    app = Starlette(
        routes=[_make_route(path, by_method) for path, by_method in endpoints.routes().items()],
        middleware=[
            Middleware(Guard, access=Access(tokens, hosts), limits=limits, metrics=metrics)
        ],
        exception_handlers={HTTPException: _answer_router},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    app.state.endpoints = endpoints
    return app


def _make_route(path: str, by_method: dict[str, Answer]) -> Route:
    async def answer(request: Request) -> Response:
        if "{" not in path and request.scope["path"] != path:
            raise HTTPException(404)  # a pattern of Starlette passes over a newline at the end
        request.scope[ROUTE] = path
        method = "GET" if request.method == "HEAD" else request.method
        return await by_method[method](request)

    # The id of a node may have slashes.
    return Route(path.replace("{id}", "{id:path}"), answer, methods=list(by_method))


async def _answer_router(request: Request, error: Exception) -> Response:
    """Answer a request for which there is no endpoint."""
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    if error.status_code == 405:
        allowed = ", ".join(sorted(headers.get("Allow", "").split(", ")))
        message = f"this address accepts {allowed} only"
        return error_reply(Refused(405, message, headers={"Allow": allowed}))
    message = "there is nothing at this address; /v1/openapi.json lists what there is"
    return error_reply(Refused(error.status_code, message, headers=headers))


class Guard:
    """Checks each request before its endpoint sees it, and every answer leaves through here.

    Every error becomes JSON. One that nobody foresaw is logged under a number, and the client is
    given that number only.
    """

    def __init__(self, app: ASGIApp, access: Access, limits: Limits, metrics: HttpMetrics) -> None:
        self._app, self._access, self._limits, self._metrics = app, access, limits, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status, body_was_read = time.perf_counter(), 0, False

        async def receive_counted() -> Message:
            nonlocal body_was_read
            body_was_read = True
            return await receive()

        async def send_guarded(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
                # The client may or may not send its body now, so what follows has no meaning.
                if not body_was_read and Headers(scope=scope).get("expect") is not None:
                    headers["Connection"] = "close"
            await send(message)

        try:
            self._check(scope)
            await self._app(scope, receive_counted, send_guarded)
        except Refused as error:
            if status == 0:
                await error_reply(error)(scope, receive, send_guarded)
        except ClientDisconnect:
            status = GONE_AWAY
        except Exception:
            number = secrets.token_hex(6)
            logger.exception(
                "a request failed", extra={"number": number, "method": scope["method"]}
            )
            if status != 0:
                raise  # the connection is closed in the middle of the answer
            message = f"something went wrong; the log of the server has the reason, number {number}"
            await error_reply(Refused(500, message))(scope, receive, send_guarded)
        finally:
            seconds = time.perf_counter() - started
            route = scope.get(ROUTE, "other")
            self._metrics.observe(route, scope["method"], status or GONE_AWAY, seconds)

    def _check(self, scope: Scope) -> None:
        headers = scope["headers"]
        size = len(scope["raw_path"]) + len(scope["query_string"])
        size += sum(len(name) + len(value) + 4 for name, value in headers)
        if size > self._limits.head or len(headers) > self._limits.headers:
            raise Refused(431, "the head of the request is too large")
        if sum(name == b"host" for name, _ in headers) > 1:
            raise Refused(400, "there are two headers Host")
        self._access.check(scope["method"], scope["path"], Headers(scope=scope))
