"""Runs the server until a signal ends it: listens, starts the service, stops both in order."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Any

import uvicorn

from ohmlearn.errors import InputError, Param
from ohmlearn.serve.http_app import make_app
from ohmlearn.serve.http_auth import Tokens, check_listening
from ohmlearn.serve.http_limits import Limits, make_protocol, raise_file_limit

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from ohmlearn.serve.service import Service

BACKLOG = 1024  # connections that wait to be accepted
POLL_SECONDS = 0.05
GRACE_SECONDS = 30  # for requests that were accepted
logger = logging.getLogger(__name__)


class Server(uvicorn.Server):
    """A server that ends streams before it waits for requests, and leaves signals to `run`."""

    def __init__(self, config: uvicorn.Config, app: Starlette, limits: Limits) -> None:
        super().__init__(config)
        self._app, self._limits = app, limits

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen; unlike in uvicorn, the handshake of TLS has no more time than a head."""
        await self.lifespan.startup()
        config, loop = self.config, asyncio.get_running_loop()

        how = {"server_state": self.server_state, "app_state": self.lifespan.state, "_loop": loop}
        protocol: Any = config.http_protocol_class
        make_connection = partial(protocol, config=config, **how)
        self.servers = [
            await loop.create_server(
                make_connection,
                sock=one,
                ssl=config.ssl,
                backlog=config.backlog,
                ssl_handshake_timeout=self._limits.head_seconds if config.ssl else None,
            )
            for one in sockets or ()
        ]
        self.started = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, finish what was accepted."""
        self._app.state.endpoints.stop()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do nothing: uvicorn would raise the signal again when all is done."""
        yield


def make_server(
    service: Service,
    *,
    tokens: Tokens | None = None,
    hosts: Collection[str] = (),
    limits: Limits | None = None,
    ssl_certfile: str | None = None,
    ssl_keyfile: str | None = None,
) -> Server:
    """Return a server for a service; ``server.run(sockets=[...])`` runs it."""
    limits = limits or Limits()
    limits = replace(limits, max_connections=raise_file_limit(limits.max_connections))
    app = make_app(service, tokens=tokens, hosts=hosts, limits=limits)
    config = uvicorn.Config(
        app, http=make_protocol(limits), ws="none", lifespan="on", backlog=BACKLOG,
        log_config=None, access_log=False, proxy_headers=False, server_header=False,
        timeout_keep_alive=limits.keep_alive_seconds, timeout_graceful_shutdown=GRACE_SECONDS,
        ssl_certfile=ssl_certfile, ssl_keyfile=ssl_keyfile,
    )  # fmt: skip
    try:
        config.load()
    except OSError as error:  # that of ssl is one
        raise InputError(
            f"{Param('ssl_certfile', ssl_certfile)} and its key cannot be used: "
            f"{error.strerror or error}"
        ) from None
    return Server(config, app, limits)


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; port 0 means any free one."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except socket.gaierror:
        why = "is not a name or address of this machine"
        raise InputError(f"{Param('host', host)} {why}") from None
    family, *_, address = found[0]
    both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
    try:
        listener = socket.create_server(
            address, family=family, backlog=BACKLOG, dualstack_ipv6=both
        )
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise InputError(
            f"cannot listen on {Param('host', host)}, {Param('port', port)}: {reason}; give "
            f"another port"
        ) from None
    listener.setblocking(False)
    return listener


def run(
    service: Service,
    *,
    host: str = "127.0.0.1",
    port: int = 8377,
    tokens: Tokens | None = None,
    hosts: Collection[str] = (),
    when_started: Callable[[], Callable[[], None]] | None = None,
    announce: Callable[[str], None] = print,
    **rest: Any,
) -> None:
    """Start a service, serve it until SIGTERM or SIGINT, and stop it.

    1. Listen, and answer at once: ``/readyz`` says when edges are accepted.
    2. Start the service, which may have much to read again after a crash.
    3. At the first signal: stop listening, finish what was accepted, save, return.
       A second one ends the process at once; edges that were acknowledged are safe.

    `when_started` is called in a thread when the service has started, and returns a function that
    is called before the service stops. `announce` is called with "Listening on ..." when the
    service is ready. The rest is for `make_server`.
    """
    check_listening(host, tokens)
    server = make_server(service, tokens=tokens, hosts=[*hosts, host], **rest)
    listener = listen(host, port)
    port = listener.getsockname()[1]
    scheme = "http" if server.config.ssl is None else "https"
    address = f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}/"
    others = contextlib.ExitStack()  # ends what `when_started` has started
    began = time.monotonic()

    def start() -> None:
        """Start the service, while the server answers already."""
        try:
            service.start()
            if when_started is not None:
                others.callback(when_started())
            while not server.started and not server.should_exit:
                time.sleep(POLL_SECONDS)
            if not server.should_exit:
                logger.info("ready", extra={"seconds": round(time.monotonic() - began, 3)})
                announce(f"Listening on {address}")
        except BaseException:
            server.should_exit = True
            raise

    logger.info("listening", extra={"address": address, "name_of_service": service.name})
    with _signals_stop(server), ThreadPoolExecutor(1, "ohmlearn-start") as pool:
        started = pool.submit(start)
        try:
            server.run(sockets=[listener])
        finally:
            server.should_exit = True  # also if the server has failed; the start waits for it
            listener.close()
            logger.info("stopping")
            wait([started])
            others.close()
            service.stop()
            logger.info("stopped", extra={"seconds": round(time.monotonic() - began, 1)})
    started.result()  # raises what the start has raised


@contextlib.contextmanager
def _signals_stop(server: Server) -> Iterator[None]:
    """Let the first signal stop the server, and a second one end the process."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received = []

    def stop(number: int, _frame: FrameType | None) -> None:
        received.append(number)
        if len(received) > 1:
            os._exit(128 + number)
        server.should_exit = True

    before: dict[int, Any] = {n: signal.signal(n, stop) for n in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
