"""What requests ask for: their queries, ids of nodes, and given labels, all checked by hand."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qsl, unquote_to_bytes

from starlette.requests import Request

from ohmlearn.errors import Param, SourceError
from ohmlearn.reading.label_table import read_labels
from ohmlearn.serve.database import AS_INTEGER, LABEL_WEIGHTS
from ohmlearn.serve.http_bodies import short
from ohmlearn.serve.serve_errors import Refused

__all__ = [
    "Query",
    "batch_id_of",
    "read_label_csv",
    "read_label_rows",
    "read_nodes",
    "read_path_node",
]

INTEGER = re.compile(AS_INTEGER)
INT64 = range(-(1 << 63), 1 << 63)
LONGEST_BATCH_ID = 200
Node = int | str


class Query:
    """The query of a request. Names that the endpoint does not know are refused.

    A misspelt ``batch_id`` that is passed over would cost the protection against repeated batches.
    """

    def __init__(self, request: Request, *names: str) -> None:
        try:
            text = request.scope["query_string"].decode("ascii")
            pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=20)
        except ValueError:  # not UTF-8, or too many
            raise Refused(400, "the query of the address cannot be read") from None
        self._values: dict[str, str] = {}
        for name, value in pairs:
            if name not in names:
                known = f"knows {', '.join(names)}" if names else "takes none"
                raise Refused(400, f"query parameter {short(name)} is unknown; this {known}")
            if name in self._values:
                raise Refused(400, f"query parameter {Param(name)} is given twice")
            self._values[name] = value

    def text(self, name: str) -> str | None:
        """Return a value as it is."""
        return self._values.get(name)

    def choice(self, name: str, default: str, *others: str) -> str:
        """Return one of several words."""
        value = self._values.get(name, default)
        if value not in (default, *others):
            words = " or ".join((default, *others))
            must = f"must be {words}, got {short(value)}"
            raise Refused(400, f"{Param(name)} {must}", value=value)
        return value

    def integer(self, name: str, default: int, least: int, most: int) -> int:
        """Return an integer within limits."""
        value = self._values.get(name)
        if value is None:
            return default
        if not INTEGER.fullmatch(value) or not least <= int(value) <= most:
            must = f"must be an integer from {least} to {most}, got {short(value)}"
            raise Refused(400, f"{Param(name)} {must}", value=value)
        return int(value)


def batch_id_of(request: Request, query: Query) -> str | None:
    """Return the id of a batch from the header Idempotency-Key, or from the query."""
    given = query.text("batch_id")
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
        raise Refused(
            400,
            f"the id of a batch must have 1 to {LONGEST_BATCH_ID} printable characters, "
            f"got {short(given)}",
        )
    return given


def read_path_node(request: Request, prefix: bytes, id_kind: str | None, longest: int) -> Node:
    """Return the id of a node at the end of a path; it may contain escaped slashes."""
    path: bytes = request.scope["raw_path"]
    if not path.startswith(prefix):
        raise Refused(404, "there is nothing at this address")
    try:
        text = unquote_to_bytes(path[len(prefix) :]).decode("utf-8")
    except UnicodeDecodeError:
        raise Refused(400, "the id of the node is not UTF-8") from None
    return _as_node(text, id_kind, longest, None)


def read_nodes(body: Any, id_kind: str | None, most: int, longest: int) -> list[Node]:
    """Return the ids in ``{"nodes": [...]}``."""
    nodes = _read_list(body, "nodes", most)
    return [_as_node(node, id_kind, longest, row) for row, node in enumerate(nodes, 1)]


def read_label_rows(
    body: Any, id_kind: str | None, most: int, longest: int
) -> list[tuple[Node, str, float]]:
    """Return node, label and weight of each row in ``{"labels": [...]}``.

    Labels are texts from here on; an integer is the name of a class like any other.
    """
    found: dict[str, tuple[Node, str, float]] = {}
    for row, given in enumerate(_read_list(body, "labels", most), 1):
        if not isinstance(given, dict):
            raise _wrong(row, f"expected an object with node and label, got {short(given)}")
        for name in given:
            if name not in ("node", "label", "weight"):
                raise _wrong(row, f"{short(name)} is unknown; expected node, label and weight")
        for name in ("node", "label"):
            if name not in given:
                raise _wrong(row, f"there is no {name}")
        node = _as_node(given["node"], id_kind, longest, row)
        one = (node, _as_label(given["label"], longest, row), _as_weight(given, row))
        if str(node) in found:  # 5 and "5" are the same node
            raise _wrong(row, f"node {short(node)} is in an earlier row, too; give it once")
        found[str(node)] = one
    return list(found.values())


def read_label_csv(body: bytes) -> dict[str, Any]:
    """Return the labels of a table in CSV as a body in JSON has them.

    Examples
    --------
    >>> read_label_csv(b"node,label\\nann,spam\\nbob,-1\\n")
    {'labels': [{'node': 'ann', 'label': 'spam', 'weight': 1.0}]}
    """
    try:
        found = read_labels("the body", content=body)
    except SourceError as error:
        row = None if error.place is None else error.place.row
        message = error.render(with_place=False)
        raise Refused(400, message if row is None else f"row {row}: {message}", row=row) from None
    rows: list[dict[str, Any]] = []
    for node, given in found.items():
        labels = given if isinstance(given, list) else [given]
        weights = 1.0 if found.weights is None else found.weights[node]
        weights = weights if isinstance(weights, list) else [weights] * len(labels)
        every = zip(labels, weights, strict=True)
        rows += ({"node": node, "label": label, "weight": weight} for label, weight in every)
    return {"labels": rows}


def _read_list(body: Any, name: str, most: int) -> list[Any]:
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


def _as_node(value: Any, id_kind: str | None, longest: int, row: int | None) -> Node:
    """Return an id in the kind of the log's ids: integers in a log of texts are taken as text."""
    if isinstance(value, str):
        _check_text("the id of a node", value, longest, row)
        if id_kind == "int64" and INTEGER.fullmatch(value) and int(value) in INT64:
            return int(value)
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        if value not in INT64:
            raise _wrong(row, f"the id {short(value)} has more than 64 bits")
        return str(value) if id_kind == "string" else value
    raise _wrong(row, f"the id of a node must be an integer or a text, got {short(value)}")


def _as_label(value: Any, longest: int, row: int) -> str:
    if isinstance(value, str):
        _check_text("a label", value, longest, row)
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        if value not in INT64:
            raise _wrong(row, f"the label {short(value)} has more than 64 bits")
        return str(value)
    raise _wrong(row, f"a label must be a text or an integer, got {short(value)}")


def _as_weight(given: dict[str, Any], row: int) -> float:
    value = given.get("weight", 1.0)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    least, most = LABEL_WEIGHTS
    if not is_number or not least <= value <= most:
        must = f"a number between {least:g} and {most:g}"
        raise _wrong(row, f"the weight must be {must}, got {short(value)}")
    return float(value)


def _check_text(what: str, value: str, longest: int, row: int | None) -> None:
    if not value:
        raise _wrong(row, f"{what} is empty")
    try:
        size = len(value.encode("utf-8"))
    except UnicodeEncodeError:  # half of a pair of surrogates
        raise _wrong(row, f"{what} is not valid Unicode: {short(value)}") from None
    if size > longest:
        raise _wrong(row, f"{what} has {size:,} bytes, but at most {longest} are accepted")


def _wrong(row: int | None, message: str) -> Refused:
    return Refused(400, message, row=row)
