"""What requests say, all of it checked: bodies within limits of size and time, ids, labels."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import zlib
from collections import Counter
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, NoReturn
from urllib.parse import unquote_to_bytes

from starlette.requests import Request

from ohmlearn.errors import Param, SourceError
from ohmlearn.reading.feature_table import find_node_column
from ohmlearn.reading.label_table import read_labels
from ohmlearn.serve.database import INT64, LABEL_WEIGHTS, LabelRow, Node, Values, convert_id
from ohmlearn.serve.http_limits import Limits
from ohmlearn.serve.serve_errors import Refused

CHUNK = 1 << 20  # bytes that are decompressed at once
PIECE = 16 << 10
MOST_MEMBERS = 10_000
LONGEST_BATCH_ID = 200
UTF8 = ("utf-8", "utf8", "us-ascii")
PREFIX = b"/v1/labels/"  # of paths with the id of a node


class BodyReader:
    """Reads bodies of one kind, each within some seconds from the head of its request on.

    `limit_of_all` is for the bytes of all bodies that are being read or used. Bodies are
    decompressed in threads of `pool`.
    """

    def __init__(
        self, limit: int, limit_of_all: int, limits: Limits, pool: ThreadPoolExecutor
    ) -> None:
        self._limit, self._limit_of_all, self._pool = limit, limit_of_all, pool
        self._seconds, self._stop_seconds = limits.body_seconds, limits.stop_seconds
        self._held = 0  # bytes
        self._timeouts: set[asyncio.Timeout] = set()
        self._stopping = False

    def stop(self) -> None:
        """Give bodies that are being read a short time; called on the event loop."""
        self._stopping = True
        end = asyncio.get_running_loop().time() + self._stop_seconds
        for timeout in self._timeouts:
            when = timeout.when()
            timeout.reschedule(end if when is None else min(end, when))

    @asynccontextmanager
    async def read(self, request: Request) -> AsyncIterator[bytes]:
        """Read a body, which counts against the limit of all until it is used."""
        is_packed = is_gzip(request)
        declared = request.headers.get("content-length", "")
        if declared.isdecimal() and int(declared) > self._limit:
            raise self._too_large()
        if self._stopping:
            raise _stopping()
        parts: list[bytes] = []
        n_bytes = 0
        try:
            async with self._in_time():
                async for part in request.stream():
                    n_bytes += len(part)
                    self._hold(len(part), n_bytes)
                    parts.append(part)
            body = parts[0] if len(parts) == 1 else b"".join(parts)
            del parts
            if is_packed:
                loop = asyncio.get_running_loop()
                body = await loop.run_in_executor(self._pool, gunzip, body, self._limit)
                n_more, n_bytes = len(body) - n_bytes, len(body)
                self._hold(n_more, n_bytes)
            yield body
        finally:
            self._held -= n_bytes

    @asynccontextmanager
    async def _in_time(self) -> AsyncIterator[None]:
        """Refuse a body that takes too long."""
        timeout = asyncio.timeout(self._seconds)
        try:
            async with timeout:
                self._timeouts.add(timeout)
                yield
        except TimeoutError:
            if self._stopping:
                raise _stopping() from None
            message = f"the body took more than {self._seconds:g} seconds; send smaller batches"
            raise Refused(408, message, headers={"Connection": "close"}) from None
        finally:
            self._timeouts.discard(timeout)

    def _hold(self, n_more: int, n_bytes: int) -> None:
        """Count more bytes of a body that has `n_bytes` now, or refuse it."""
        self._held += n_more
        if n_bytes > self._limit:
            raise self._too_large()
        if self._held > self._limit_of_all:
            raise Refused(429, "too many requests with large bodies", retry_after=1.0)

    def _too_large(self) -> Refused:
        return Refused(413, f"the body is larger than {self._limit:,} bytes; send it in parts")


def _stopping() -> Refused:
    headers = {"Connection": "close"}
    return Refused(503, "the server is stopping", retry_after=5.0, headers=headers)


def media_type(request: Request) -> str:
    """Return the type of a body, without parameters; only UTF-8 is accepted as charset."""
    kind, _, rest = request.headers.get("content-type", "").partition(";")
    for parameter in rest.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset" and value.strip().strip('"').lower() not in UTF8:
            raise Refused(415, f"charset {value.strip()!r} is not known; send UTF-8")
    return kind.strip().lower()


def is_gzip(request: Request) -> bool:
    """Whether a body is compressed; only gzip is accepted."""
    given = ",".join(request.headers.getlist("content-encoding")).strip().lower()
    if given in ("", "identity"):
        return False
    if given in ("gzip", "x-gzip"):
        return True
    message = f"Content-Encoding {given!r} is not known; send gzip or no compression"
    raise Refused(415, message, headers={"Accept-Encoding": "gzip"})


def gunzip(body: bytes, limit: int) -> bytes:
    """Decompress a body piece by piece, so that a small one cannot fill the memory."""
    parts: list[bytes] = []
    n_bytes, n_members = 0, 0
    member = None  # a file of gzip has one or more
    try:
        # In small pieces: zlib copies the rest of a piece at the end of each member.
        for start in range(0, len(body), PIECE):
            rest = body[start : start + PIECE]
            while rest or (member is not None and member.unconsumed_tail):
                if member is None:
                    member, n_members = zlib.decompressobj(16 + zlib.MAX_WBITS), n_members + 1
                part = member.decompress(rest, min(CHUNK, limit + 1))
                parts.append(part)
                n_bytes += len(part)
                rest = member.unconsumed_tail
                if member.eof:
                    rest, member = member.unused_data, None
                if n_bytes > limit or n_members > MOST_MEMBERS:
                    message = f"the body is larger than {limit:,} bytes when decompressed"
                    raise Refused(413, f"{message}; send it in parts")
    except zlib.error:
        raise Refused(400, "the body is not valid gzip data") from None
    if member is not None or not body:
        raise Refused(400, "the body ends before its gzip data does")
    return b"".join(parts)


def parse_json(body: bytes) -> Any:
    """Return what a body in JSON says; duplicate names and numbers such as NaN are refused."""
    try:
        return json.loads(
            body.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant
        )
    except UnicodeDecodeError as error:
        raise Refused(400, f"the body is not UTF-8: byte {error.start + 1} is wrong") from None
    except json.JSONDecodeError as error:
        why = f"{error.msg}, line {error.lineno}, column {error.colno}"
    except RecursionError:
        why = "it is nested too deeply"
    except _Invalid as error:
        why = str(error)
    except ValueError:  # an integer of thousands of digits
        why = "a number is too long"
    raise Refused(400, f"the body is not valid JSON: {why}")


class _Invalid(ValueError):
    """What Python would read, but JSON does not have."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise _Invalid(f"{short(twice)} is given twice in an object")
    return found


def _no_constant(name: str) -> Any:
    raise _Invalid(f"{name} is not a number of JSON")


def short(value: Any) -> str:
    """Return a value in the form of Python, but not a long one, for a message."""
    text = repr(value[:60]) if isinstance(value, str) else repr(value)[:80]
    return f"{text}..." if isinstance(value, str) and len(value) > 60 else text


def batch_id_of(request: Request, given: str | None) -> str | None:
    """Return the id of a batch from the header Idempotency-Key, or the one given in the query."""
    headers = [value for name, value in request.scope["headers"] if name == b"idempotency-key"]
    if len(headers) > 1:
        raise Refused(400, "there are two headers Idempotency-Key; send one")
    if headers:
        try:
            header = headers[0].decode("utf-8")
        except UnicodeDecodeError:
            raise Refused(400, "the header Idempotency-Key is not UTF-8") from None
        if given not in (None, header):
            raise Refused(
                400, f"{Param('batch_id')} and the header Idempotency-Key differ; send one of them"
            )
        given = header
    if given is None:
        return None
    if not 0 < len(given) <= LONGEST_BATCH_ID or not given.isprintable():
        must = f"must have 1 to {LONGEST_BATCH_ID} printable characters"
        raise Refused(400, f"the id of a batch {must}, got {short(given)}")
    return given


def read_path_node(request: Request, suffix: bytes, id_kind: str | None, longest: int) -> Node:
    """Return the id of a node before the end of a path; it may contain escaped slashes."""
    path: bytes = request.scope["raw_path"]
    if not (path.startswith(PREFIX) and path.endswith(suffix)):
        raise Refused(404, "there is nothing at this address")
    try:
        text = unquote_to_bytes(path[len(PREFIX) : len(path) - len(suffix)]).decode("utf-8")
    except UnicodeDecodeError:
        raise Refused(400, "the id of the node is not UTF-8") from None
    return _as_node(text, id_kind, longest, None)


def read_nodes(body: Any, id_kind: str | None, most: int, longest: int) -> list[Node]:
    """Return the ids in ``{"nodes": [...]}``."""
    nodes = _read_list(body, "nodes", most)
    return [_as_node(node, id_kind, longest, row) for row, node in enumerate(nodes, 1)]


def read_label_rows(body: object, id_kind: str | None, most: int, longest: int) -> list[LabelRow]:
    """Return node, label and weight of each row in ``{"labels": [...]}``.

    Labels are texts from here on; an integer is the name of a class like any other.
    """
    found: dict[str, LabelRow] = {}
    for row, given in enumerate(_read_list(body, "labels", most), 1):
        if not isinstance(given, dict):
            _refuse(row, f"expected an object with node and label, got {short(given)}")
        for name in given:
            if name not in ("node", "label", "weight"):
                _refuse(row, f"{short(name)} is unknown; expected node, label and weight")
        for name in ("node", "label"):
            if name not in given:
                _refuse(row, f"there is no {name}")
        node = _as_node(given["node"], id_kind, longest, row)
        label = _as_name(given["label"], "a label", "a text or an integer", longest, row)
        one = LabelRow(node, str(label), _as_weight(given, row))
        if str(node) in found:  # 5 and "5" are the same node
            _refuse(row, f"node {short(node)} is in an earlier row, too; give it once")
        found[str(node)] = one
    return list(found.values())


def read_label_csv(body: bytes) -> dict[str, Any]:
    """Return the labels of a table in CSV as a body in JSON has them."""
    try:
        found = read_labels("the body", content=body)
    except SourceError as error:
        row = None if error.place is None else error.place.row
        raise Refused(400, error.render(with_place=False), row=row) from None
    rows: list[dict[str, Any]] = []
    for node, given in found.items():
        labels = given if isinstance(given, list) else [given]
        weights = 1.0 if found.weights is None else found.weights[node]
        weights = weights if isinstance(weights, list) else [weights] * len(labels)
        every = zip(labels, weights, strict=True)
        rows += ({"node": node, "label": label, "weight": weight} for label, weight in every)
    return {"labels": rows}


def read_feature_rows(
    body: object, id_kind: str | None, most: int, longest: int
) -> dict[Node, Values]:
    """Return the values of each node in ``{"features": [{"node": ..., ...}, ...]}``, by column."""
    found: dict[Node, Values] = {}
    for row, given in enumerate(_read_list(body, "features", most), 1):
        if not isinstance(given, dict) or "node" not in given:
            _refuse(row, f"expected an object with node and values, got {short(given)}")
        values = dict(given)
        node = _as_node(values.pop("node"), id_kind, longest, row)
        if id_kind is not None and convert_id(node, id_kind) is None:
            raise Refused(409, f"{short(node)} is not an integer, as the ids of nodes are", row=row)
        for name, value in values.items():
            if value is not None and not isinstance(value, str | int | float):
                _refuse(row, f"{short(name)} must be a number or a text, got {short(value)}")
            if not 0 < len(name) <= longest or len(str(value)) > longest:
                _refuse(row, f"{short(name)} is empty, or longer than {longest}, or its value is")
        if found.setdefault(node, values) is not values:
            _refuse(row, f"node {short(node)} is in an earlier row, too; give it once")
    return found


def read_feature_csv(body: bytes) -> dict[str, Any]:
    """Return the features of a table in CSV as a body in JSON has them."""
    try:
        table = list(csv.reader(io.StringIO(body.decode("utf-8-sig"), ""), strict=True))
        names, *rows = table or [[]]
        names[names.index(find_node_column(names, "the body", None, None, None))] = "node"
        pairs = [_unique(list(zip(names, row, strict=False))) for row in rows]
    except (csv.Error, ValueError) as error:
        said = error.message if isinstance(error, SourceError) else error
        raise Refused(400, f"the body is not CSV with a header: {said}") from None
    for at, row in enumerate(rows, 1):
        if len(row) != len(names):
            _refuse(at, f"there are {len(row)} fields, but the header has {len(names)}")
    return {"features": pairs}


def _read_list(body: object, name: str, most: int) -> list[Any]:
    """Return the list that is the only entry of an object."""
    if not isinstance(body, dict) or not isinstance(body.get(name), list):
        raise Refused(400, f'the body must be an object {{"{name}": [...]}}')
    for other in body:
        if other != name:
            raise Refused(400, f"{short(other)} is unknown; the body has {name} only")
    items: list[Any] = body[name]
    if len(items) > most:
        raise Refused(413, f"there are {len(items):,} {name}, but at most {most:,} are accepted")
    return items


def _as_node(value: object, id_kind: str | None, longest: int, row: int | None) -> Node:
    """Return an id in the kind of the log's ids: integers in a log of texts are taken as text."""
    found = _as_name(value, "the id of a node", "an integer or a text", longest, row)
    converted = None if id_kind is None else convert_id(found, id_kind)
    return found if converted is None else converted


def _as_name(value: object, what: str, must: str, longest: int, row: int | None) -> Node:
    """Return a text or an integer; refuse anything else."""
    if isinstance(value, int) and not isinstance(value, bool):
        if value not in INT64:
            _refuse(row, f"{what} {short(value)} has more than 64 bits")
        return value
    if not isinstance(value, str):
        _refuse(row, f"{what} must be {must}, got {short(value)}")
    if not value:
        _refuse(row, f"{what} is empty")
    try:
        size = len(value.encode("utf-8"))
    except UnicodeEncodeError:  # half of a pair of surrogates
        _refuse(row, f"{what} is not valid Unicode: {short(value)}")
    if size > longest:
        _refuse(row, f"{what} has {size:,} bytes, but at most {longest} are accepted")
    return value


def _as_weight(given: dict[str, Any], row: int) -> float:
    value = given.get("weight", 1.0)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    least, most = LABEL_WEIGHTS
    if not is_number or not least <= value <= most:
        must = f"a number between {least:g} and {most:g}"
        _refuse(row, f"the weight must be {must}, got {short(value)}")
    return float(value)


def _refuse(row: int | None, message: str) -> NoReturn:
    raise Refused(400, message, row=row)
