"""A client of ``ohmlearn serve``, with the standard library alone."""

from __future__ import annotations

import http.client
import io
import json
import math
import random
import ssl
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

__all__ = ["Client", "ServerError"]

T = TypeVar("T")
Read = Callable[[http.client.HTTPResponse], T]
MAX_NODES = 10_000  # in one request
LONGEST_WAIT = 30.0  # seconds between two attempts
LONGEST_IDLE = 15.0  # seconds; the server closes connections that are idle for 30
BUSY = (429, 502, 503, 504, 507)
JSON = "application/json"
NDJSON = "application/x-ndjson"
ARROW = "application/vnd.apache.arrow.stream"


class ServerError(Exception):
    """An answer of the server that is an error.

    Attributes
    ----------
    status : int
        That of HTTP, such as 400 for a bad batch or 401 for a wrong token.
    message : str
        What the server says.
    row : int or None
        The first bad row of a batch, counted from 1.
    parameter, value : str or None
        The parameter of the request that is wrong, and its value.
    remedy : str or None
        What to do about it, if the server says that separately.
    retry_after : float
        Seconds after which the server would like to be asked again; 0 if it does not say.

    Examples
    --------
    >>> print(ServerError(400, "row 17: weight is -1", 17))
    400: row 17: weight is -1
    """

    def __init__(self, status: int, message: str, row: int | None = None) -> None:
        super().__init__(status, message, row)
        self.status, self.message, self.row = status, message, row
        self.parameter: str | None = None
        self.value: str | None = None
        self.remedy: str | None = None
        self.retry_after = 0.0

    def __str__(self) -> str:
        return f"{self.status}: {self.message}"


class Client:
    """Sends edges and labels to ``ohmlearn serve``, and asks for labels.

    A request is repeated after lost connections and while the server is busy. Batches of edges have
    ids, so that a batch that is sent twice counts once. Threads may share a client; their requests
    take turns.

    Parameters
    ----------
    url : str
        Address of the server, such as "http://127.0.0.1:8377".
    token : str, optional
        For servers with ``--token-file``.
    timeout : float
        Seconds to wait for an answer.
    retries : int
        How often a request is repeated. The pauses grow up to 30 seconds.
    batch_edges : int
        `send` splits edges into batches of this size.
    context : ssl.SSLContext, optional
        For https, if the server has a certificate of its own.

    Examples
    --------
    >>> with Client("http://127.0.0.1:8377") as client:  # doctest: +SKIP
    ...     receipt = client.send(["ann", "bob"], ["bob", "cy"], [1.0, 0.5])
    ...     client.put_labels({"ann": "good", "cy": "bad"})
    ...     client.wait_until(receipt["operation"])
    ...     client.label("bob")["label"]
    'good'
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        timeout: float = 30.0,
        retries: int = 8,
        batch_edges: int = 100_000,
        context: ssl.SSLContext | None = None,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"url = {url!r} must be http://HOST:PORT or https://HOST:PORT")
        if batch_edges < 1:
            raise ValueError(f"batch_edges = {batch_edges} must be at least 1")
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._retries, self._batch_edges = retries, batch_edges
        self._path, place = parts.path.rstrip("/"), (parts.hostname, parts.port)
        # It connects again after it was closed.
        self._connection = http.client.HTTPConnection(*place, timeout=timeout)
        if parts.scheme == "https":
            self._connection = http.client.HTTPSConnection(*place, timeout=timeout, context=context)
        self._used = 0.0  # when the connection was used last
        self._turn = threading.Lock()

    def __repr__(self) -> str:
        return f"<Client of {self._connection.host}:{self._connection.port}>"

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; the next request opens a new one."""
        with self._turn:
            self._connection.close()

    # Edges.

    def send(
        self,
        u: Iterable[Any],
        v: Iterable[Any],
        w: Iterable[float] | None = None,
        t: Iterable[Any] | None = None,
        *,
        event_id: Iterable[Any] | None = None,
        batch_id: str | None = None,
    ) -> dict[str, Any]:
        """Send edges, and return when they are durable.

        Parameters
        ----------
        u, v : array-like of int or str
            Ids of the ends.
        w : array-like of float, optional
            Weights; 1 by default.
        t : array-like, optional
            Unix seconds or dates; the present by default.
        event_id : array-like of int or str, optional
            Ids of the events, for a server with ``--event-id``. An event that the server knows is
            not counted again, in whatever batch it comes.
        batch_id : str, optional
            Edges that are sent again with the same id, in the same batches, count once. By default
            the id is random, which protects repetitions within this call.

        Returns
        -------
        dict
            Numbers of edges, of rows whose events had been counted, and of bad rows; whether all
            batches had been counted before; and the last operation, for `wait_until`.
        """
        columns = {"u": u, "v": v, "weight": w, "time": t}
        if event_id is not None:
            column = self.status().get("event_id")
            if column is None:
                raise ValueError("event_id was given, but the server has no --event-id")
            columns[column] = event_id
        answers = list(self._send("/v1/edges", columns, batch_id))
        return {
            **_add(answers, "n_edges", "n_repeated", "n_bad"),
            "repeated": bool(answers) and all(answer["repeated"] for answer in answers),
        }

    def remove(
        self, u: Iterable[Any], v: Iterable[Any], *, batch_id: str | None = None
    ) -> dict[str, Any]:
        """Remove the edges between pairs of nodes, and return when that is durable.

        Returns
        -------
        dict
            Numbers of edges removed and of pairs without an edge, and the last operation.
        """
        answers = list(self._send("/v1/removals", {"u": u, "v": v}, batch_id))
        return _add(answers, "n_removed", "n_missing")

    def _send(
        self, path: str, given: dict[str, Iterable[Any] | None], batch_id: str | None
    ) -> Iterator[dict[str, Any]]:
        """Send columns in batches, each with its own id."""
        columns = {name: _as_sequence(name, x) for name, x in given.items() if x is not None}
        lengths = {name: len(column) for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"columns must have the same length, got {lengths}")
        n_edges, size = lengths["u"], self._batch_edges
        batch_id = uuid.uuid4().hex if batch_id is None else batch_id
        for start in range(0, n_edges, size):
            part = {name: column[start : start + size] for name, column in columns.items()}
            name = batch_id if n_edges <= size else f"{batch_id}:{start // size}"
            kind, body = _encode(part)
            yield self._ask("POST", path, body, {"Content-Type": kind, "Idempotency-Key": name})

    # Labels.

    def put_labels(
        self, labels: Mapping[Any, Any], weights: Mapping[Any, float] | None = None
    ) -> int:
        """Give labels to nodes, instead of those they have; return how many.

        Parameters
        ----------
        labels : dict
            The label of each node.
        weights : dict, optional
            How much the labels count, for some of the nodes; 1 by default.
        """
        weights = weights or {}
        rows = [
            {"node": node, "label": label, "weight": weights.get(node, 1.0)}
            for node, label in labels.items()
        ]
        parts = _split(rows)
        return sum(self._ask("POST", "/v1/labels", {"labels": x})["n_labels"] for x in parts)

    def delete_labels(self, nodes: Iterable[Any]) -> int:
        """Delete the labels of nodes; return how many had one."""
        parts = _split(_as_sequence("nodes", nodes))
        return sum(self._ask("DELETE", "/v1/labels", {"nodes": x})["n_deleted"] for x in parts)

    def put_features(self, rows: Mapping[Any, Mapping[str, Any]]) -> int:
        """Give nodes features, instead of those that were sent before; return of how many nodes.

        Each node has a dict of numbers and texts by column, where None means missing. An empty one
        deletes the features of the node.
        """
        parts = _split([{**values, "node": node} for node, values in rows.items()])
        return sum(self._ask("POST", "/v1/features", {"features": x})["n_nodes"] for x in parts)

    def label(self, node: Any) -> dict[str, Any]:
        """Return the label of a node, its probability, and which edges the answer reflects."""
        return self._get(f"/v1/labels/{quote(str(node), safe='')}")

    def labels(self, nodes: Iterable[Any]) -> list[dict[str, Any]]:
        """Return the labels of nodes and their probabilities, in the order of the nodes."""
        found: list[dict[str, Any]] = []
        for part in _split(_as_sequence("nodes", nodes)):
            found += self._ask("POST", "/v1/labels:lookup", {"nodes": part})["results"]
        return found

    def why(
        self,
        node: Any,
        *,
        against: Any = None,
        n_labels: int = 5,
        n_edges: int = 20,
        changes: bool = False,
        all_edges: bool = False,
    ) -> dict[str, Any]:
        """Return the reasons for the label of a node: "text" has them in a sentence.

        Parameters
        ----------
        node : int or str
            The node to explain.
        against : str, optional
            Explain why it is not of this class; by default, of the second most likely one.
        n_labels, n_edges : int
            How many labels and edges to return, the largest contributions first.
        changes : bool
            Whether to find which labels would have to go, or be wrong, for another label.
        all_edges : bool
            Whether the server may read all edges. This is needed if "note" says that those kept are
            too few; it takes seconds, and the server does it for one request at a time.
        """
        query = {"n_labels": n_labels, "n_edges": n_edges, "against": against}
        query |= {"changes": changes, "all_edges": all_edges}
        return self._get(f"/v1/labels/{quote(str(node), safe='')}/why", **query)

    def review(self, *, limit: int = 20) -> dict[str, Any]:
        """Return what to look at, as `HFSClassifier.review`: "classes" has an entry for each class.

        Each has "thresholds", with the number of nodes that are at least so probable, estimates of
        "precision" and "recall", and a "text"; and the "surest" and the "borderline" nodes, of each
        at most `limit`.
        """
        return self._get("/v1/review", limit=limit)

    def changes(
        self, since: int = 0, *, limit: int = 10_000, reasons: bool = False
    ) -> dict[str, Any]:
        """Return whose label changed; the answer's "next" is the `since` of the next call.

        A `ServerError` with status 410 means that the server does not know what has changed since
        then, for example because it was restored from a backup. Then start over: take
        "changes_next" of the answers in `status`, and `export` all labels.

        With `reasons`, the first 20 changes have a "reason": what counted differently in the last
        answer than in the one before. It is known for changes of the last answer.
        """
        return self._get("/v1/changes", since=since, limit=limit, reasons=reasons)

    def suggest(self, k: int = 10) -> list[dict[str, Any]]:
        """Return nodes to label next.

        They are found after each answer, which takes a while: "of_version" of each says of which
        answer it is. If the version of the answers in `status` is later, labels that were given
        meanwhile are not reflected yet.
        """
        answer = self._get("/v1/suggest", k=k)
        return [{**one, "of_version": answer["of_version"]} for one in answer["suggestions"]]

    # The server.

    def status(self) -> dict[str, Any]:
        """Return figures about the server."""
        return self._get("/v1/status")

    def export(self, path: str | Path) -> None:
        """Write the labels of all nodes to a Parquet file."""
        unfinished = Path(f"{path}.part")

        def save(response: http.client.HTTPResponse) -> None:
            with unfinished.open("wb") as file:
                while block := response.read(1 << 20):
                    file.write(block)
                if response.length:  # bytes that are missing, if their number was announced
                    raise http.client.IncompleteRead(b"", response.length)

        try:
            self._repeat("GET", "/v1/export", None, {}, save)
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)

    def wait_until(
        self, operation: int | None = None, *, timeout: float = math.inf
    ) -> dict[str, Any]:
        """Wait until the answers reflect an operation, which `send` and `remove` return.

        Without an operation, wait until they reflect all edges and labels that the server has now.

        Returns
        -------
        dict
            Which edges the answers reflect now.

        Raises
        ------
        TimeoutError
            If they do not after so many seconds.
        """
        end, pause, labels = time.monotonic() + timeout, 0.05, 0
        if operation is None:
            now = self.status()
            operation, labels = int(now["operation"]), int(now["labels_version"])
        while True:
            answers: dict[str, Any] = self.status()["answers"]
            mark = answers["watermark"]
            if mark["operation"] >= operation and mark["labels_version"] >= labels:
                return answers
            if time.monotonic() + pause > end:
                raise TimeoutError(
                    f"the answers reflect operation {mark['operation']}, not yet {operation}, "
                    f"after {timeout} seconds"
                )
            time.sleep(pause)
            pause = min(2 * pause, 1.0)

    # Requests.

    def _get(self, path: str, **query: Any) -> dict[str, Any]:
        """Return what there is at an address; parameters that are None or False are left out."""
        given = {name: x for name, x in query.items() if x is not None and x is not False}
        given |= {name: "true" for name, x in given.items() if x is True}
        return self._ask("GET", f"{path}?{urlencode(given)}" if given else path)

    def _ask(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Return the answer to a request, in JSON."""
        if body is not None and headers is None:
            body, headers = json.dumps(body, default=_plain).encode(), {"Content-Type": JSON}
        return self._repeat(method, path, body, headers or {}, json.load)

    def _repeat(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], read: Read[T]
    ) -> T:
        """Send a request until it is answered; `read` reads the answer."""
        pause = 0.1
        for attempt in range(self._retries + 1):
            wait = pause
            try:
                with self._turn:
                    return self._request(method, path, body, headers, read)
            except ServerError as error:
                if error.status not in BUSY or attempt == self._retries:
                    raise
                wait = max(pause, error.retry_after)
            except (OSError, http.client.HTTPException) as error:
                if isinstance(error, ssl.SSLCertVerificationError) or attempt == self._retries:
                    raise
            # Jitter: clients that were refused together must not come again together.
            time.sleep(min(wait, LONGEST_WAIT) * random.uniform(1.0, 1.5))
            pause = min(2 * pause, LONGEST_WAIT)
        raise AssertionError("the last attempt returns or raises")

    def _request(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], read: Read[T]
    ) -> T:
        connection = self._connection
        if time.monotonic() - self._used > LONGEST_IDLE:
            connection.close()
        if connection.sock is None:
            connection.connect()
        is_sent = is_clean = False
        try:
            # A server that refuses a body may answer before it has read all of it.
            with suppress(BrokenPipeError, ConnectionResetError):
                connection.request(method, self._path + path, body, {**self._headers, **headers})
                is_sent = True
            with connection.getresponse() as response:
                result = read(response) if response.status == 200 else _error(response)
                # What is left of an answer must not be taken for the next one.
                is_clean = is_sent and response.isclosed()
        finally:
            self._used = time.monotonic()
            if not is_clean:
                connection.close()
        if isinstance(result, ServerError):
            raise result
        return result


def _error(response: http.client.HTTPResponse) -> ServerError:
    """Return the error that an answer describes."""
    content = response.read(1 << 16)
    try:
        found = json.loads(content)["error"]
        error = ServerError(response.status, str(found["message"]), found.get("row"))
        error.parameter, error.value = found.get("parameter"), found.get("value")
        error.remedy = found.get("remedy")
    except (ValueError, KeyError, TypeError, AttributeError):  # from a proxy
        error = ServerError(response.status, response.reason or "no reason was given")
    with suppress(ValueError):  # a date, from a proxy
        error.retry_after = float(response.headers.get("Retry-After", 0.0))
    return error


def _add(answers: list[dict[str, Any]], *names: str) -> dict[str, Any]:
    """Return sums over batches, and the last operation."""
    sums = {name: sum(answer.get(name, 0) for answer in answers) for name in names}
    return {**sums, "operation": max((answer["operation"] for answer in answers), default=0)}


def _split(values: Sequence[Any]) -> Iterator[list[Any]]:
    for start in range(0, len(values), MAX_NODES):
        yield _as_list(values[start : start + MAX_NODES])


def _as_sequence(name: str, values: Iterable[Any]) -> Sequence[Any]:
    """Return values that have a length and parts."""
    if isinstance(values, (str, bytes, Mapping)):
        raise TypeError(f"{name} must be a list or an array, got {type(values).__name__}")
    if hasattr(values, "to_numpy"):  # a column of pandas or polars
        values = values.to_numpy()
    is_sequence = hasattr(values, "__len__") and hasattr(values, "__getitem__")
    return values if is_sequence else list(values)  # type: ignore[return-value]


def _as_list(values: Any) -> list[Any]:
    """Return values of Python; dates in numpy may be finer than those of Python."""
    if getattr(getattr(values, "dtype", None), "kind", "") == "M":
        values = values.astype("datetime64[us]")
    return list(values.tolist() if hasattr(values, "tolist") else values)


def _encode(columns: dict[str, Sequence[Any]]) -> tuple[str, bytes]:
    """Return columns in Arrow if there is pyarrow, otherwise in JSON lines; and which of them."""
    if find_spec("pyarrow") is None:
        lists = [_as_list(column) for column in columns.values()]
        rows = (dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True))
        return NDJSON, "\n".join(json.dumps(row, default=_plain) for row in rows).encode()
    import pyarrow as pa

    table = pa.table({name: pa.array(column) for name, column in columns.items()})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return ARROW, sink.getvalue()


def _plain(value: Any) -> Any:
    """Return what JSON knows instead of numbers of numpy and dates."""
    if hasattr(value, "item"):
        return value.item()
    if hasattr(value, "isoformat"):
        return value.isoformat()
    raise TypeError(f"{value!r} cannot be sent; use integers, floats, strings or dates")
