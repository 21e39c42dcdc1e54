"""Where bad sources of edges are refused: points, ids, files. Goes on with ``_validation``."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

__all__ = [
    "SourceError",
    "check_source_options",
    "reading",
    "refuse_source",
]


class SourceError(ValueError):
    """A file or another source of edges that cannot be read, with its name and row.

    Examples
    --------
    >>> import numpy as np
    >>> from ohmlearn import read_edges
    >>> from ohmlearn.streams import SourceError
    >>> try:
    ...     for batch in read_edges((np.array([0]), np.array([1]), np.array([-2.0]))):
    ...         pass
    ... except SourceError as error:
    ...     print(error)
    the arrays, row 0: weights must not be negative nor above 1e+27, got -2.0; ...
    """

    __module__ = "ohmlearn.streams"  # where users import it from, and what tracebacks show


def refuse_source(name: str, problem: str, row: str | None = None) -> NoReturn:
    """Raise SourceError for a source.

    Examples
    --------
    >>> refuse_source("edges.csv", "weight -1 is negative", "row 7")
    Traceback (most recent call last):
    ...
    ohmlearn.streams.SourceError: edges.csv, row 7: weight -1 is negative
    """
    raise SourceError(f"{name}, {row}: {problem}" if row else f"{name}: {problem}")


@contextmanager
def reading(name: str, kind: str) -> Iterator[None]:
    """Turn whatever a library raises over a corrupt file into a SourceError that names the file."""
    try:
        yield
    except (SourceError, ImportError, FileNotFoundError, PermissionError):
        raise
    except Exception as error:
        said = " ".join(str(error).split())[:300] or type(error).__name__
        raise SourceError(f"{name}: cannot be read as {kind}: {said}") from error


def check_source_options(
    source_col: Any, target_col: Any, weight_col: Any, delimiter: Any, comment: Any
) -> None:
    """Refuse options of ``read_edges`` that nothing can be read with."""
    columns = {"source_col": source_col, "target_col": target_col, "weight_col": weight_col}
    for name, column in columns.items():
        if isinstance(column, bool) or not isinstance(column, str | int | None):
            raise TypeError(f"{name} must be a name or a position of a column, got {column!r}")
    if delimiter is not None and not (
        isinstance(delimiter, str)
        and len(delimiter) == 1
        and delimiter.isascii()
        and delimiter not in '"\r\n'
        and not delimiter.isalnum()
    ):
        raise ValueError(f"delimiter must be one ASCII character, such as ',', got {delimiter!r}")
    if comment is not None and not (
        isinstance(comment, str)
        and comment.isascii()
        and not any(mark.isalnum() or mark in '"-\r\n' for mark in comment)
    ):
        raise ValueError(f"comment must be ASCII marks, such as '#', got {comment!r}")
