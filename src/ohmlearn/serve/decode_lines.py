"""Lines of bodies of text."""

from __future__ import annotations

import io
from collections.abc import Iterator

import numpy as np

__all__ = [
    "BLANKS",
    "BYTE_ORDER_MARK",
    "LONGEST_LINE",
    "count_lines",
    "describe_long",
    "line_blocks",
    "lines_of",
]

BLANKS = b" \t\r\n"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
LONGEST_LINE = 1 << 20  # as objects of Python, its values may take fifty times as much
BLOCK = 1 << 17  # bytes that are read row by row if one row is bad


def describe_long(line: bytes) -> str:
    """Say that a line is too long."""
    return f"the line has {len(line):,} bytes, but a row may have at most {LONGEST_LINE:,}"


def lines_of(text: bytes) -> Iterator[bytes]:
    """Yield the lines that are not blank, without a list of all lines."""
    return (line for line in io.BytesIO(text) if line.strip(BLANKS))


def line_blocks(text: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Yield blocks of whole lines, how many are not blank, and the number of the first."""
    start, row = 0, 1
    while start < len(text):
        stop = text.find(b"\n", start + BLOCK) + 1 or len(text)
        block = text[start:stop]
        if n_rows := count_lines(block):
            yield block, n_rows, row
        start, row = stop, row + n_rows


def count_lines(text: bytes) -> int:
    """Return the number of lines that are not blank, without a list of them."""
    ends = np.frombuffer(text.translate(None, b" \t\r"), np.uint8) == ord("\n")
    if ends.size == 0:
        return 0
    # A line that is not blank has one last letter: what follows it is a line break, or nothing.
    return int(np.count_nonzero(ends[1:] & ~ends[:-1])) + int(not ends[-1])
