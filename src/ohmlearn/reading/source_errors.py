"""The error of a source that cannot be read: it names the source and the row."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from ohmlearn.errors import OhmError, Place, Setting, SourceError, render, text_of

__all__ = ["SKIP", "BadRows", "SourceError", "reading", "refuse_source", "shorten", "show_name"]

SECRET = re.compile(r"(?<=://)[^/@]+:[^/@]*@|\?.*$")  # password or signature in an address

SKIP = f"correct it, or use {Setting('on_bad', 'skip')}"  # what to do about a bad row


class BadRows(NamedTuple):
    """Which rows of a batch are bad, and what is wrong with one of them."""

    mask: NDArray[np.bool_]
    why: Callable[[int], str]


def refuse_source(
    name: str, problem: str, row: int | str | None = None, remedy: str | None = None
) -> NoReturn:
    """Raise SourceError for a source; `row` is its number, or another part in words.

    Examples
    --------
    >>> refuse_source("edges.csv", "weight -1 is negative", 7)
    Traceback (most recent call last):
    ...
    ohmlearn.reading.SourceError: edges.csv, row 7: weight -1 is negative
    """
    at = (None, row) if isinstance(row, str) else (None if row is None else int(row),)
    place = Place(show_name(name), *at)
    raise SourceError(problem, remedy=remedy, place=place)


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
    except (OhmError, ImportError, FileNotFoundError, PermissionError):
        raise
    except Exception as error:
        said = render(text_of(error))[:300]
        # gzip, bz2 and xz raise EOFError; pyarrow, for zstd, has no type or code for it
        if isinstance(error, EOFError) or said.startswith("Truncated compressed stream"):
            said = "the compressed file is cut off; copy or download it again"
        place = Place(show_name(name))
        raise SourceError(f"cannot be read as {kind}: {said}", place=place) from error


def shorten(text: str, limit: int = 60) -> str:
    """Return text as it is quoted in a message."""
    return repr(text if len(text) <= limit else text[: limit - 3] + "...")
