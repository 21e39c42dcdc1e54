"""The error of a source that cannot be read: it names the source and the row."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

__all__ = [
    "SourceError",
    "reading",
    "refuse_source",
    "shorten",
    "show_name",
]

SECRET = re.compile(r"(?<=://)[^/@]+:[^/@]*@|\?.*$")  # password or signature in an address

CUT_OFF = re.compile("Compressed file ended before|Truncated compressed stream")  # gzip, zstd, ...


class SourceError(ValueError):
    """A source of edges cannot be read; the message names the source and the row.

    Examples
    --------
    >>> import numpy as np
    >>> from ohmlearn import read_edges
    >>> from ohmlearn.reading import SourceError
    >>> try:
    ...     for batch in read_edges((np.array([0]), np.array([1]), np.array([-2.0]))):
    ...         pass
    ... except SourceError as error:
    ...     print(error)
    the arrays, row 0: weights must not be negative nor above 1e+27, nor below 1.2e-38 unless 0, got
    -2.0; ...
    """

    __module__ = "ohmlearn.reading"  # where users import it from; tracebacks show it


def refuse_source(name: str, problem: str, row: str | None = None) -> NoReturn:
    """Raise SourceError for a source.

    Examples
    --------
    >>> refuse_source("edges.csv", "weight -1 is negative", "row 7")
    Traceback (most recent call last):
    ...
    ohmlearn.reading.SourceError: edges.csv, row 7: weight -1 is negative
    """
    name = show_name(name)
    raise SourceError(f"{name}, {row}: {problem}" if row else f"{name}: {problem}")


def show_name(name: str) -> str:
    """Return the name of a source for messages: an address without its secrets.

    Examples
    --------
    >>> show_name("s3://key:secret@bucket/e.csv"), show_name("https://a.org/e.csv?token=1")
    ('s3://bucket/e.csv', 'https://a.org/e.csv')
    >>> show_name("what?.csv")
    'what?.csv'
    """
    return SECRET.sub("", name) if "://" in name else name


@contextmanager
def reading(name: str, kind: str) -> Iterator[None]:
    """Turn any error that a library raises for a damaged file into a SourceError."""
    try:
        yield
    except (SourceError, ImportError, FileNotFoundError, PermissionError):
        raise
    except Exception as error:
        said = " ".join(str(error).split())[:300] or type(error).__name__
        if CUT_OFF.match(said):
            said = "the compressed file is cut off; copy or download it again"
        raise SourceError(f"{show_name(name)}: cannot be read as {kind}: {said}") from error


def shorten(text: str, limit: int = 60) -> str:
    """Return text as it is quoted in a message."""
    return repr(text if len(text) <= limit else text[: limit - 3] + "...")
