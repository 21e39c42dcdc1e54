"""The description of all endpoints in OpenAPI 3.1, served at ``/v1/openapi.json``."""

from __future__ import annotations

from ohmlearn import __version__
from ohmlearn.serve.http_page import PAGE
from ohmlearn.serve.http_schemas import (
    FLAG,
    INTEGER,
    LABEL,
    NODE,
    NUMBER,
    SCHEMAS,
    TEXT,
    Json,
    list_of,
    object_of,
    or_null,
    ref,
)

__all__ = ["describe"]

EDGES = (
    "application/x-ndjson",
    "application/json",
    "text/csv",
    "application/vnd.apache.arrow.stream",
)
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


def _all(*parts: Json) -> Json:
    return {"allOf": list(parts)}


def _query(name: str, schema: Json, about: str) -> Json:
    return {"name": name, "in": "query", "schema": schema, "description": about}


def _json(schema: Json) -> Json:
    return {"application/json": {"schema": schema}}


def _body(content: Json) -> Json:
    return {"required": True, "content": content}


def _operation(
    name: str,
    about: str,
    content: Json,
    errors: str = "",
    parameters: tuple[Json, ...] = (),
    body: Json | None = None,
    is_public: bool = False,
) -> Json:
    """Return the description of one endpoint; `errors` are statuses besides those of all."""
    statuses = [int(status) for status in errors.split()] + ([] if is_public else [401, 403])
    found: Json = {
        "operationId": name,
        "summary": about,
        "responses": {
            "200": {"description": "Done.", "content": content},
            **{
                str(status): {"description": ERRORS[status], "content": _json(ref("Error"))}
                for status in sorted({400, *statuses})
            },
        },
    }
    if parameters:
        found["parameters"] = list(parameters)
    if body is not None:
        found["requestBody"] = body
    if is_public:
        found["security"] = []
    return found


BATCH = (
    _query(
        "batch_id", {"type": "string", "maxLength": 200}, "A batch with a known id counts once."
    ),
    _query("on_bad", {"enum": ["refuse", "skip"]}, "Whether a bad row refuses the whole batch."),
    {
        "name": "Idempotency-Key",
        "in": "header",
        "schema": {"type": "string", "maxLength": 200},
        "description": "The id of the batch, in place of batch_id.",
    },
)
BATCH_ERRORS = "408 409 413 415 429 503 507"
EDGES_BODY = _body({kind: {"schema": {"type": "string"}} for kind in EDGES})
NODES_BODY = _body(_json(object_of("nodes", nodes=list_of(NODE, maxItems=10_000))))
LABEL_ROW = object_of(
    "node label", node=NODE, label=LABEL, weight={"type": "number", "default": 1.0}
)
GIVEN_ROW = object_of("node label", node=NODE, label=LABEL, weight=NUMBER, at=NUMBER)
RECEIPT = object_of(
    "n_edges n_bad repeated operation",
    n_edges=INTEGER,
    n_bad=INTEGER,
    first_bad=or_null("string"),
    repeated={"type": "boolean", "description": "Whether the batch had been counted before."},
    operation=INTEGER,
)
REMOVED = object_of(
    "n_removed n_missing repeated operation",
    n_removed=INTEGER,
    n_missing={"type": "integer", "description": "Pairs that match no edge."},
    n_bad=INTEGER,
    first_bad=or_null("string"),
    repeated=FLAG,
    operation=INTEGER,
)
SUGGESTION = object_of("node reason kind", node=NODE, reason=TEXT, kind=TEXT)
PAGE_FILES = {path.removeprefix("/page/"): file for path, file in PAGE.items() if path != "/"}
PAGE_NAME = {
    "name": "name",
    "in": "path",
    "required": True,
    "schema": {"enum": list(PAGE_FILES)},
}
PAGE_TYPES = sorted({file.media_type.partition(";")[0] for file in PAGE_FILES.values()})
LIMIT = _query("limit", INTEGER, "At most so many.")
ENVELOPE = ref("Envelope")


def _paths() -> dict[str, dict[str, Json]]:
    page: Json = {"text/html": {"schema": TEXT}}
    plain: Json = {"text/plain": {"schema": TEXT}}
    parquet: Json = {"application/vnd.apache.parquet": {"schema": {"type": "string"}}}
    deleted = _json(object_of("n_deleted", n_deleted=INTEGER, labels_version=INTEGER))
    return {
        "/": {"get": _operation("page", "The page to watch.", page, is_public=True)},
        "/page/{name}": {
            "get": _operation(
                "pageFile",
                "A file of the page.",
                {kind: {"schema": TEXT} for kind in PAGE_TYPES},
                parameters=(PAGE_NAME,),
                is_public=True,
            )
        },
        "/healthz": {
            "get": _operation(
                "healthz",
                "Whether the process is alive.",
                _json(object_of("ok", ok=FLAG)),
                is_public=True,
            )
        },
        "/readyz": {
            "get": _operation(
                "readyz",
                "Whether edges are accepted and answers are computed.",
                _json(object_of("ready", ready=FLAG)),
                "503",
                is_public=True,
            )
        },
        "/metrics": {"get": _operation("metrics", "Figures for Prometheus.", plain)},
        "/v1/openapi.json": {
            "get": _operation("openapi", "This description.", _json({"type": "object"}))
        },
        "/v1/edges": {
            "post": _operation(
                "addEdges",
                "Add a batch of edges; the answer comes when it is durable.",
                _json(RECEIPT),
                BATCH_ERRORS,
                BATCH,
                EDGES_BODY,
            )
        },
        "/v1/removals": {
            "post": _operation(
                "removeEdges",
                "Remove the edges between pairs of nodes.",
                _json(REMOVED),
                BATCH_ERRORS,
                BATCH,
                EDGES_BODY,
            )
        },
        "/v1/labels": {
            "get": _operation(
                "givenLabels",
                "The labels that were given.",
                _json(object_of("labels", labels=list_of(GIVEN_ROW), next=or_null("string"))),
                parameters=(LIMIT, _query("after", TEXT, "The next of an earlier answer.")),
            ),
            "post": _operation(
                "giveLabels",
                "Give labels to nodes.",
                _json(object_of("n_labels", n_labels=INTEGER, labels_version=INTEGER)),
                "408 409 413 415 429 503 507",
                body=_body(
                    _json(object_of("labels", labels=list_of(LABEL_ROW)))
                    | {"text/csv": {"schema": TEXT}}
                ),
            ),
            "delete": _operation(
                "deleteLabels",
                "Delete given labels.",
                deleted,
                "408 413 415 429 503 507",
                body=NODES_BODY,
            ),
        },
        "/v1/labels:lookup": {
            "post": _operation(
                "lookUp",
                "The labels of many nodes.",
                _json(_all(ENVELOPE, object_of("results", results=list_of(ref("Result"))))),
                "408 413 415 429 503",
                body=NODES_BODY,
            )
        },
        "/v1/labels/{id}": {
            "get": _operation(
                "label", "The label of one node.", _json(_all(ENVELOPE, ref("Result"))), "404"
            ),
            "delete": _operation("deleteLabel", "Delete a given label.", deleted, "503 507"),
            "parameters": [  # type: ignore[dict-item]
                {"name": "id", "in": "path", "required": True, "schema": TEXT}
            ],
        },
        "/v1/changes": {
            "get": _operation(
                "changes",
                "Whose labels have changed.",
                _json(
                    _all(
                        ENVELOPE,
                        object_of(
                            "changes next complete",
                            changes=list_of(ref("Change")),
                            next=INTEGER,
                            complete=FLAG,
                        ),
                    )
                ),
                "410",
                (_query("since", INTEGER, "The next of an earlier answer, or 0."), LIMIT),
            )
        },
        "/v1/export": {
            "get": _operation("export", "The labels of all nodes as Parquet.", parquet, "429 503")
        },
        "/v1/suggest": {
            "get": _operation(
                "suggest",
                "Which nodes to label next.",
                _json(
                    _all(
                        ENVELOPE,
                        object_of(
                            "suggestions of_version",
                            suggestions=list_of(SUGGESTION),
                            of_version={**INTEGER, "description": "The answer that they are of."},
                        ),
                    )
                ),
                parameters=(_query("k", INTEGER, "How many."),),
            )
        },
        "/v1/certificates": {
            "get": _operation(
                "certificates",
                "How far the sparsifier was from the edges, over time.",
                _json(object_of("certificates", certificates=list_of(ref("Certificate")))),
                parameters=(LIMIT,),
            )
        },
        "/v1/status": {"get": _operation("status", "All figures.", _json(ref("Status")))},
        "/v1/map": {"get": _operation("map", "A picture of the communities.", _json(ref("Map")))},
        "/v1/events": {
            "get": _operation(
                "events",
                "Server-sent events: status and map, when they change.",
                {"text/event-stream": {"schema": TEXT}},
                "503",
            )
        },
    }


def describe() -> Json:
    """Return the description of all endpoints.

    Examples
    --------
    >>> describe()["paths"]["/v1/labels/{id}"]["get"]["summary"]
    'The label of one node.'
    """
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "ohmlearn serve",
            "version": __version__,
            "description": "Live labels for a stream of events. Every error has the form of Error.",
        },
        "paths": _paths(),
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }
