"""All endpoints in one table: their paths, queries, bodies and answers.

Routes (http_app.py), the parsing of queries, and the description in OpenAPI 3.1, which is served at
``/v1/openapi.json``, are made from it. The name of an endpoint is that of the method of
`http_endpoints.Endpoints` which answers.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl

from starlette.requests import Request

from ohmlearn import __version__
from ohmlearn.errors import Param
from ohmlearn.serve.database import AS_INTEGER
from ohmlearn.serve.decode_edges import Form
from ohmlearn.serve.http_requests import short
from ohmlearn.serve.serve_errors import Refused

Json = dict[str, object]

# The files of the page. Addresses are looked up in this table and never become paths of files, so
# that no address leads out of the folder.
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
PAGE = {
    "/" if file.name == "index.html" else f"/page/{file.name}": (
        file.read_bytes(),
        TYPES[file.suffix],
    )
    for file in sorted((Path(__file__).parent / "page").iterdir())
    if file.suffix in TYPES and not file.name.startswith(".")  # left by an editor
}

# What the bodies of edges may be, and how they are decoded.
FORMS: dict[str, Form] = {
    "application/x-ndjson": "ndjson",
    "application/ndjson": "ndjson",
    "application/jsonl": "ndjson",
    "application/json": "ndjson",
    "text/csv": "csv",
    "application/vnd.apache.arrow.stream": "arrow",
    "application/vnd.apache.arrow.file": "arrow",
}
# What each status means; every error has the same form.
ERRORS = {
    400: "The request is not right; the message says why, and row which row of the body.",
    401: "A token is needed, or the one that was sent is not known.",
    403: "The token allows reading only, or the request comes from a foreign page.",
    404: "The node is not known.",
    408: "The body took too long.",
    409: "The ids are of another kind than those so far.",
    410: "They are not known here; take changes_next of /v1/status, read the export, go on there.",
    413: "The body is too large, or has too many rows.",
    415: "The type or the compression of the body is not known.",
    429: "There is too much to do; try again after the seconds of Retry-After.",
    503: "The service is not ready, or is stopping; try again later.",
    507: "The disk is full; nothing was stored.",
}


# Parts of schemas.


def _object(required: str, **properties: Json) -> Json:
    """Return the schema of an object; `required` has the names of entries, with blanks between."""
    return {"type": "object", "required": required.split(), "properties": properties}


def _list(items: Json, **more: object) -> Json:
    return {"type": "array", "items": items, **more}


def _ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def _json(schema: Json) -> Json:
    return {"application/json": {"schema": schema}}


def _content(required: str, **properties: Json) -> Json:
    """Return the content of a body or an answer that is an object; see `_object`."""
    return _json(_object(required, **properties))


def _answers(**properties: Json) -> Json:
    """Return the content of an answer that says which edges it reflects."""
    return _json({"allOf": [_ref("Envelope"), _object(" ".join(properties), **properties)]})


def _about(schema: Json, description: str) -> Json:
    return {**schema, "description": description}


INTEGER: Json = {"type": "integer"}
NUMBER: Json = {"type": "number"}
TEXT: Json = {"type": "string"}
FLAG: Json = {"type": "boolean"}
TEXT_OR_NULL: Json = {"type": ["string", "null"]}
NUMBER_OR_NULL: Json = {"type": ["number", "null"]}
NODE = _about({"type": ["integer", "string"]}, "The id of a node.")
LABEL: Json = {"type": ["string", "integer"]}
SCHEMAS: Json = {
    "Error": _object(
        "error",
        error=_object(
            "status message", status=INTEGER,
            message=_about(TEXT, "What is wrong, and what to do about it."),
            parameter=_about(TEXT, "The parameter that is wrong."),
            value=_about(TEXT, "Its value."),
            row=_about(INTEGER, "The row of the body, counted from 1."),
            remedy=_about(TEXT, "What to do, if it is known separately."),
            retry_after=_about(NUMBER, "Seconds after which to try again."),
        ),
    ),
    "Certificate": _object(
        "at epsilon bound confidence",
        at=NUMBER, epsilon=NUMBER, bound=NUMBER, confidence=NUMBER, edges=INTEGER,
    ),
    "Envelope": _object(
        "version watermark",
        version=_about(INTEGER, "Grows with each answer."),
        watermark=_about(
            _object(
                "edges operation labels_version", edges=INTEGER, operation=INTEGER,
                labels_version=INTEGER, time=NUMBER_OR_NULL,
            ),
            "Which edges and labels are reflected, and the time of the latest edge.",
        ),
        computed_at=NUMBER_OR_NULL, age_seconds=NUMBER_OR_NULL,
        lag_edges=_about(INTEGER, "Edges stored or removed since."),
        staleness=_about(NUMBER, "How far removals have outdated the sparsifier."),
        changes_next=_about(INTEGER, "For since of /v1/changes."),
        certificate={"oneOf": [_ref("Certificate"), {"type": "null"}]},
    ),
    "Result": _object(
        "node known label probability reached given", node=NODE,
        known=_about(FLAG, "Whether an edge has the node, or the answer comes from features."),
        label={"type": ["string", "integer", "null"]}, probability=NUMBER_OR_NULL,
        reached=_about(FLAG, "Whether any label reaches the node, or features answer."),
        given=_about(FLAG, "Whether the label was given."),
        abstained=_about(FLAG, "Whether the label is left out: it is not probable enough."),
        probabilities={"type": ["object", "null"], "additionalProperties": NUMBER},
    ),
    "Change": _object(
        "version node before after",
        version=INTEGER, node=NODE, before=TEXT_OR_NULL, after=TEXT_OR_NULL,
        probability=NUMBER_OR_NULL,
        reason=_about({"type": ["object", "null"]}, "Why, as text and labels, if asked for."),
    ),
    "Reasons": _object(
        "node label against margin labels text note",
        node=NODE, label=TEXT_OR_NULL, against=TEXT_OR_NULL, probability=NUMBER_OR_NULL,
        margin=_about(NUMBER_OR_NULL, "How far the label is before the other class."),
        labels=_list(_object(
            "node label contribution fraction", node=NODE, label=TEXT,
            contribution=_about(NUMBER, "In the unit of the margin."), fraction=NUMBER_OR_NULL,
            if_removed=_about(NUMBER_OR_NULL, "The margin without this label."),
            distance={"type": ["integer", "null"]},
        )),
        offsets={"type": "object", "additionalProperties": NUMBER},
        rest=_about(NUMBER, "Contributions of all other labels."),
        neighbors={"type": ["array", "null"]}, edges={"type": ["array", "null"]},
        paths=_list(_object("nodes fraction", nodes=_list(NODE), fraction=NUMBER)),
        basis=_about(TEXT, "Which edges this is computed from."),
        note=_about(TEXT, "What else is to be said, for example why there are no reasons."),
        text=_about(TEXT, "The reasons in a sentence."),
        changes_if=_list({"type": "object"}),
    ),
    "Review": _object(
        "label surest borderline thresholds",
        label=LABEL,
        surest=_list(_object("node probability against", node=NODE, probability=NUMBER)),
        borderline=_list(_object("node probability against", node=NODE, probability=NUMBER)),
        thresholds=_list(_object("threshold n_nodes precision recall text", n_nodes=INTEGER)),
    ),
    "Status": {"type": "object", "description": "Figures about the service."},
    "Map": _object(
        "version nodes links", version=INTEGER, nodes=_list({"type": "object"}), links=_list({})
    ),
}  # fmt: skip


# Queries.


class QueryParameter(NamedTuple):
    """A parameter of a query: an integer if it has limits, a word if it has choices, or a text."""

    name: str
    about: str
    default: int | str | None = None
    limits: tuple[int, int] | None = None
    choices: tuple[str, ...] = ()

    def read(self, value: str) -> int | str:
        """Return the value that was given; refuse others than those that are allowed."""
        least, most = self.limits or (0, 0)
        if self.choices and value not in self.choices:
            must = " or ".join(self.choices)
        elif self.limits and not (re.fullmatch(AS_INTEGER, value) and least <= int(value) <= most):
            must = f"an integer from {least} to {most}"
        else:
            return int(value) if self.limits else value
        message = f"{Param(self.name)} must be {must}, got {short(value)}"
        raise Refused(400, message, value=value)

    def describe(self) -> Json:
        """Return the parameter as OpenAPI has it."""
        schema: Json = dict(TEXT)
        if self.choices:
            schema = {"enum": list(self.choices)}
        elif self.limits is not None:
            schema = {**INTEGER, "minimum": self.limits[0], "maximum": self.limits[1]}
        if self.default is not None:
            schema["default"] = self.default
        return {"name": self.name, "in": "query", "schema": schema, "description": self.about}


def parse_query(request: Request, known: tuple[QueryParameter, ...]) -> dict[str, int | str | None]:
    """Return the parameters of a request by name. Names that are not known are refused.

    A misspelt ``batch_id`` that is passed over would cost the protection against repeated batches.
    """
    try:
        text = request.scope["query_string"].decode("ascii")
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=20)
    except ValueError:  # not UTF-8, or too many
        raise Refused(400, "the query of the address cannot be read") from None
    by_name = {parameter.name: parameter for parameter in known}
    given: dict[str, int | str] = {}
    for name, value in pairs:
        if name not in by_name:
            knows = f"knows {', '.join(by_name)}" if known else "takes none"
            raise Refused(400, f"query parameter {short(name)} is unknown; this {knows}")
        if name in given:
            raise Refused(400, f"query parameter {Param(name)} is given twice")
        given[name] = value
    return {
        name: parameter.read(str(given[name])) if name in given else parameter.default
        for name, parameter in by_name.items()
    }


# The table.


class Endpoint(NamedTuple):
    """One method of one path; `errors` are statuses besides those of all endpoints."""

    method: str
    path: str
    name: str
    about: str
    reply: Json  # the content of an answer 200
    query: tuple[QueryParameter, ...] = ()
    body: Json | None = None
    errors: str = ""
    is_public: bool = False

    def describe(self) -> Json:
        """Return the endpoint as OpenAPI has it."""
        statuses = [int(status) for status in self.errors.split()]
        statuses += [] if self.is_public else [401, 403]
        found: Json = {
            "operationId": re.sub("_(.)", lambda found: found[1].upper(), self.name),
            "summary": self.about,
            "responses": {
                "200": {"description": "Done.", "content": self.reply},
                **{
                    str(status): {"description": ERRORS[status], "content": _json(_ref("Error"))}
                    for status in sorted({400, *statuses})
                },
            },
        }
        parameters = [PATH_PARAMETERS[x] for x in re.findall(r"\{(\w+)\}", self.path)]
        parameters += [one.describe() for one in self.query]
        if self.query is BATCH:
            parameters.append(KEY)
        if parameters:
            found["parameters"] = parameters
        if self.body is not None:
            found["requestBody"] = {"required": True, "content": self.body}
        if self.is_public:
            found["security"] = []
        return found


def _rows(name: str, required: str, **columns: Json) -> Json:
    """Return the content of a body with a row for each node, in JSON or CSV."""
    rows = _list(_object(required, node=NODE, **columns))
    return {**_content(name, **{name: rows}), "text/csv": {"schema": TEXT}}


def _limit(default: int, most: int) -> QueryParameter:
    return QueryParameter("limit", "At most so many.", default, (1, most))


def _flag(name: str, about: str) -> QueryParameter:
    return QueryParameter(name, about, "false", choices=("false", "true"))


PAGE_FILES = {path.removeprefix("/page/"): file for path, file in PAGE.items() if path != "/"}
PAGE_TYPES = sorted({kind.partition(";")[0] for _, kind in PAGE_FILES.values()})
PATH_PARAMETERS: dict[str, Json] = {
    "name": {"name": "name", "in": "path", "required": True, "schema": {"enum": list(PAGE_FILES)}},
    "id": {"name": "id", "in": "path", "required": True, "schema": TEXT},
}
BATCH = (
    QueryParameter("batch_id", "A batch with a known id counts once; 1 to 200 characters."),
    QueryParameter(
        "on_bad",
        "Whether a bad row refuses the whole batch; refuse is an older word for raise.",
        "raise",
        choices=("raise", "skip", "refuse"),
    ),
)
KEY: Json = {
    "name": "Idempotency-Key", "in": "header", "schema": {"type": "string", "maxLength": 200},
    "description": "The id of the batch, in place of batch_id.",
}  # fmt: skip
BATCH_ERRORS = "408 409 413 415 429 503 507"
EDGES: Json = {kind: {"schema": TEXT} for kind in FORMS}
NODES = _content("nodes", nodes=_list(NODE, maxItems=10_000))
LABELS = _rows("labels", "node label", label=LABEL, weight={**NUMBER, "default": 1.0})
GIVEN = _object("node label", node=NODE, label=LABEL, weight=NUMBER, at=NUMBER)
BATCH_FACTS = {
    "n_bad": INTEGER, "first_bad": TEXT_OR_NULL, "operation": INTEGER,
    "repeated": _about(FLAG, "Whether the batch had been counted before."),
}  # fmt: skip
DELETED = _content("n_deleted", n_deleted=INTEGER, labels_version=INTEGER)

ENDPOINTS = (
    Endpoint("GET", "/", "page", "The page to watch.",
        {"text/html": {"schema": TEXT}}, is_public=True),
    Endpoint("GET", "/page/{name}", "page_file", "A file of the page.",
        {kind: {"schema": TEXT} for kind in PAGE_TYPES}, is_public=True),
    Endpoint("GET", "/healthz", "healthz", "Whether the process is alive.",
        _content("ok", ok=FLAG), is_public=True),
    Endpoint("GET", "/readyz", "readyz", "Whether edges are accepted and answers are computed.",
        _content("ready", ready=FLAG), errors="503", is_public=True),
    Endpoint("GET", "/metrics", "metrics", "Figures for Prometheus.",
        {"text/plain": {"schema": TEXT}}),
    Endpoint("GET", "/v1/openapi.json", "openapi", "This description.", _json({"type": "object"})),
    Endpoint("POST", "/v1/edges", "add_edges",
        "Add a batch of edges; the answer comes when it is durable.",
        _content(
            "n_edges n_bad repeated operation", n_edges=INTEGER, **BATCH_FACTS,
            n_repeated=_about(INTEGER, "Rows whose events had been counted before."),
        ),
        query=BATCH, body=EDGES, errors=BATCH_ERRORS),
    Endpoint("POST", "/v1/removals", "remove_edges", "Remove the edges between pairs of nodes.",
        _content(
            "n_removed n_missing repeated operation", n_removed=INTEGER, **BATCH_FACTS,
            n_missing=_about(INTEGER, "Pairs that match no edge."),
        ),
        query=BATCH, body=EDGES, errors=BATCH_ERRORS),
    Endpoint("GET", "/v1/labels", "given_labels", "The labels that were given.",
        _content("labels", labels=_list(GIVEN), next=TEXT_OR_NULL),
        query=(_limit(1000, 10_000), QueryParameter("after", "The next of an earlier answer."))),
    Endpoint("POST", "/v1/labels", "give_labels", "Give labels to nodes.",
        _content("n_labels", n_labels=INTEGER, labels_version=INTEGER),
        body=LABELS, errors=BATCH_ERRORS),
    Endpoint("DELETE", "/v1/labels", "delete_labels", "Delete given labels.",
        DELETED, body=NODES, errors="408 413 415 429 503 507"),
    Endpoint("POST", "/v1/features", "give_features",
        "Give nodes features, values by column, instead of earlier ones; without values, delete.",
        _content("n_nodes", n_nodes=INTEGER, labels_version=INTEGER),
        body=_rows("features", "node"), errors=BATCH_ERRORS),
    Endpoint("POST", "/v1/labels:lookup", "look_up", "The labels of many nodes.",
        _answers(results=_list(_ref("Result"))),
        body=NODES, errors="408 413 415 429 503"),
    Endpoint("GET", "/v1/labels/{id}/why", "why", "Why a node has its label.",
        _json({"allOf": [_ref("Envelope"), _ref("Reasons")]}),
        query=(
            QueryParameter("against", "Another class; by default the second most likely one."),
            QueryParameter("n_labels", "How many labels.", 5, (1, 1000)),
            QueryParameter("n_edges", "How many edges.", 20, (0, 500)),
            _flag("changes", "Whether to find what would change the label; takes six refits."),
            _flag("all_edges", "Whether to read all edges, if not all are kept; takes passes."),
        ),
        errors="404 429 503"),
    Endpoint("GET", "/v1/labels/{id}", "label", "The label of one node.",
        _json({"allOf": [_ref("Envelope"), _ref("Result")]}), errors="404"),
    Endpoint("DELETE", "/v1/labels/{id}", "delete_label", "Delete a given label.",
        DELETED, errors="503 507"),
    Endpoint("GET", "/v1/changes", "changes", "Whose labels have changed.",
        _answers(changes=_list(_ref("Change")), next=INTEGER, complete=FLAG),
        query=(
            QueryParameter("since", "The next of an earlier answer, or 0.", 0, (0, 2**63 - 1)),
            _limit(10_000, 100_000),
            _flag("reasons", "Whether to say why, for 20 changes of the last answer at most."),
        ),
        errors="410 429"),
    Endpoint("GET", "/v1/review", "review", "What to look at: estimates for each class, and nodes.",
        _answers(classes=_list(_ref("Review"))), query=(_limit(20, 1000),), errors="429 503"),
    Endpoint("GET", "/v1/export", "export", "The labels of all nodes as Parquet.",
        {"application/vnd.apache.parquet": {"schema": TEXT}}, errors="429 503"),
    Endpoint("GET", "/v1/suggest", "suggest", "Which nodes to label next.",
        _answers(
            suggestions=_list(_object("node reason kind", node=NODE, reason=TEXT, kind=TEXT)),
            of_version=_about(INTEGER, "The answer that they are of."),
        ),
        query=(QueryParameter("k", "How many.", 10, (1, 1000)),)),
    Endpoint("GET", "/v1/certificates", "certificates",
        "How far the sparsifier was from the edges, over time.",
        _content("certificates", certificates=_list(_ref("Certificate"))),
        query=(_limit(200, 10_000),)),
    Endpoint("GET", "/v1/status", "status", "All figures.", _json(_ref("Status"))),
    Endpoint("GET", "/v1/map", "map", "A picture of the communities.", _json(_ref("Map"))),
    Endpoint("GET", "/v1/events", "events", "Server-sent events: status and map, when they change.",
        {"text/event-stream": {"schema": TEXT}}, errors="503"),
)  # fmt: skip


def describe() -> Json:
    """Return the description of all endpoints."""
    paths: dict[str, dict[str, Json]] = {}
    for one in ENDPOINTS:
        paths.setdefault(one.path, {})[one.method.lower()] = one.describe()
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "ohmlearn serve",
            "version": __version__,
            "description": "Live labels for a stream of events. Every error has the form of Error.",
        },
        "paths": paths,
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }
