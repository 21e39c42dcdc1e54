"""Bodies of requests and messages become batches of edges: NDJSON, CSV, or an Arrow IPC stream.

Bodies come from strangers. Any bytes give either a batch or `BadBody`, and the memory that a body
takes is bounded by its size and by `max_rows`.

NDJSON and CSV are first read by fast code, which accepts a body without a bad row or says only
that there is one. Then each row is read in Python (`decode_rows.py`), which names what is wrong.
"""

from __future__ import annotations

from typing import Literal

from ohmlearn.checks.times import tomorrow
from ohmlearn.reading.table_reader import RawBatch
from ohmlearn.serve.decode_arrow import decode_arrow
from ohmlearn.serve.decode_csv import decode_csv
from ohmlearn.serve.decode_json import decode_json
from ohmlearn.serve.decode_rows import BadBody, Rules

__all__ = ["FORMS", "BadBody", "Form", "decode_edges"]

Form = Literal["ndjson", "csv", "arrow"]
FORMS = {"ndjson": decode_json, "csv": decode_csv, "arrow": decode_arrow}


def decode_edges(
    body: bytes | memoryview,
    form: Form,
    *,
    id_kind: str | None = None,
    skip_bad: bool = False,
    max_rows: int = 1_000_000,
    max_id_bytes: int = 256,
    one: str = "an edge",
) -> RawBatch:
    """Return the edges in a body.

    Parameters
    ----------
    body : bytes or memoryview
        Rows with two ends, and optionally a weight and a time. Columns have one of the usual names
        of `read_edges`, such as u and v, or source and target; weight; time. Other columns are
        ignored. The first line of CSV has the names.
    form : {"ndjson", "csv", "arrow"}
        Arrow is an IPC stream or file.
    id_kind : {"int64", "string"}, optional
        Kind of the ids in the log so far. With "string", integers are taken as text. With None, the
        ids of the body decide; those of CSV are integers if all of them look like integers.
    skip_bad : bool
        Whether bad rows are counted and left out. Otherwise the first one is an error.
    max_rows : int
        A body with more rows is refused.
    max_id_bytes : int
        A row with a longer id, in UTF-8, is bad.
    one : str
        What error messages call a row. Rows of "a pair" name edges that are to be removed; their
        weights and times, if there are any, say which of parallel edges are meant.

    Returns
    -------
    RawBatch
        Ids are an int64 array or `Strings`, weights and times float64. Times are Unix seconds.
        A body without rows gives a batch without edges.

    Raises
    ------
    BadBody
        For any body that cannot be used.

    Examples
    --------
    >>> decode_edges(b'{"u": 1, "v": 2, "weight": 0.5}', "ndjson").w
    array([0.5])
    >>> decode_edges(b"source,target,weight\\n1,2,-1\\n", "csv")
    Traceback (most recent call last):
    ...
    ohmlearn.serve.decode_edges.BadBody: row 1: weight is -1, but weights must be ...
    """
    rules = Rules(id_kind, skip_bad, max_rows, max_id_bytes, one, latest=tomorrow())
    if form not in FORMS:
        raise BadBody(f"the form is {form!r}, but must be one of {', '.join(FORMS)}")
    try:
        # Arrays may be views of the body, so it must not change.
        return FORMS[form](body if isinstance(body, bytes) else bytes(body), rules)
    except BadBody:
        raise
    except Exception as error:
        # What a library says about damaged bytes that passed the checks before it.
        said = " ".join(str(error).split())[:200] or type(error).__name__
        raise BadBody(f"the body cannot be read as {form}: {said}") from error
