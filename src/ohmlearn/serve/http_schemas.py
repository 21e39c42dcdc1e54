"""What answers look like, as JSON Schema: the parts of which the description of OpenAPI is made."""

from __future__ import annotations

from typing import Any

__all__ = [
    "FLAG", "INTEGER", "LABEL", "NODE", "NUMBER", "SCHEMAS", "TEXT", "Json", "list_of", "object_of",
    "or_null", "ref",
]  # fmt: skip

Json = dict[str, Any]


def object_of(required: str, **properties: Json) -> Json:
    """Return the schema of an object; `required` has the names of entries, with blanks between."""
    return {"type": "object", "required": required.split(), "properties": properties}


def list_of(items: Json, **more: Any) -> Json:
    """Return the schema of a list."""
    return {"type": "array", "items": items, **more}


def ref(name: str) -> Json:
    """Return a reference to one of SCHEMAS."""
    return {"$ref": f"#/components/schemas/{name}"}


def or_null(kind: str) -> Json:
    """Return the schema of a value that may be null."""
    return {"type": [kind, "null"]}


INTEGER: Json = {"type": "integer"}
NUMBER: Json = {"type": "number"}
TEXT: Json = {"type": "string"}
FLAG: Json = {"type": "boolean"}
NODE: Json = {"type": ["integer", "string"], "description": "The id of a node."}
LABEL: Json = {"type": ["string", "integer"]}

SCHEMAS: Json = {
    "Error": object_of(
        "error",
        error=object_of(
            "status message",
            status=INTEGER,
            message={"type": "string", "description": "What is wrong, and what to do about it."},
            parameter={"type": "string", "description": "The parameter that is wrong."},
            value={"type": "string", "description": "Its value."},
            row={"type": "integer", "description": "The row of the body, counted from 1."},
            remedy={"type": "string", "description": "What to do, if it is known separately."},
            retry_after={"type": "number", "description": "Seconds after which to try again."},
        ),
    ),
    "Certificate": object_of(
        "at epsilon bound confidence",
        at=NUMBER,
        epsilon=NUMBER,
        bound=NUMBER,
        confidence=NUMBER,
        edges=INTEGER,
    ),
    "Envelope": object_of(
        "version watermark",
        version={"type": "integer", "description": "Grows with each answer."},
        watermark={
            **object_of(
                "edges operation labels_version",
                edges=INTEGER,
                operation=INTEGER,
                labels_version=INTEGER,
                time=or_null("number"),
            ),
            "description": "Which edges and labels are reflected, and the time of the latest edge.",
        },
        computed_at=or_null("number"),
        age_seconds=or_null("number"),
        lag_edges={"type": "integer", "description": "Edges stored or removed since."},
        staleness={
            "type": "number",
            "description": "How far removals have outdated the sparsifier.",
        },
        changes_next={"type": "integer", "description": "For since of /v1/changes."},
        certificate={"oneOf": [ref("Certificate"), {"type": "null"}]},
    ),
    "Result": object_of(
        "node known label probability reached given",
        node=NODE,
        known={"type": "boolean", "description": "Whether an edge has the node."},
        label={"type": ["string", "integer", "null"]},
        probability=or_null("number"),
        reached={"type": "boolean", "description": "Whether any label reaches the node."},
        given={"type": "boolean", "description": "Whether the label was given."},
        probabilities={"type": ["object", "null"], "additionalProperties": NUMBER},
    ),
    "Change": object_of(
        "version node before after",
        version=INTEGER,
        node=NODE,
        before=or_null("string"),
        after=or_null("string"),
        probability=or_null("number"),
    ),
    "Status": {"type": "object", "description": "Figures about the service."},
    "Map": object_of(
        "version nodes links", version=INTEGER, nodes=list_of({"type": "object"}), links=list_of({})
    ),
}
