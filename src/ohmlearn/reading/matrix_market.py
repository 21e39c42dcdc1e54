"""Edges from MatrixMarket files: the entries of a square coordinate matrix."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from ohmlearn import _core
from ohmlearn.errors import Setting
from ohmlearn.reading.array_reader import TWO_KINDS, matrix_kinds
from ohmlearn.reading.byte_blocks import line_blocks
from ohmlearn.reading.column_choice import ColumnChoice
from ohmlearn.reading.csv_reader import parse_blocks, skip_comments
from ohmlearn.reading.source_errors import refuse_source
from ohmlearn.reading.table_reader import RawBatch, Source

BANNER = b"%%matrixmarket"
Integers = NDArray[np.int64]


class Header(NamedTuple):
    """The lines before the entries."""

    shape: tuple[int, int]
    n_entries: int
    has_values: bool
    text: bytes  # the first block, from the first entry on
    line: int  # number of its first line


class MatrixMarketSource(Source):
    """A coordinate matrix, real, integer or pattern, symmetric or general.

    Ids are the row and column numbers in the file, which start at 1. In a general matrix every
    entry is an edge, so that (i, j) and (j, i) are two parallel edges. If rows and columns are two
    kinds of nodes, the matrix need not be square.
    """

    reads_files = True

    def inspect(self) -> None:
        """Read the header."""
        with self.open() as source:
            self._header(line_blocks(source))

    def batches(self, kind: str | None) -> Iterator[RawBatch]:
        """Read the entries."""
        with self.open() as source:
            blocks = line_blocks(source)
            header = self._header(blocks)
            layout = _make_layout()
            layout.w = 2 if header.has_values else -1
            layout.skips_faults = self.options.skip_bad
            layout.strings = (self.options.id_type or kind) == "string"
            columns = self.columns or ColumnChoice(0, 1, None, None, "")
            if columns.kinds is not None:
                layout.strings = False  # the range is checked; kinds come in front later
            seen = 0
            text = chain([header.text], blocks)
            for batch in parse_blocks(self.name, columns, layout, header.line, text):
                if not layout.strings:
                    self._check_range(batch, header, seen)
                seen += batch.u.size + batch.n_bad
                yield batch._replace(fraction=source.fraction())
            if seen != header.n_entries:
                refuse_source(
                    self.name, f"the header says {header.n_entries} entries, but there are {seen}"
                )

    def _check_range(self, batch: RawBatch, header: Header, seen: int) -> None:
        u, v = cast(Integers, batch.u), cast(Integers, batch.v)
        rows, columns = header.shape
        outside = (u < 1) | (u > rows) | (v < 1) | (v > columns)
        if outside.any():
            at = int(np.argmax(outside))
            refuse_source(
                self.name,
                f"({u[at]}, {v[at]}) is outside the matrix, whose rows are 1, ..., {rows} and "
                f"whose columns are 1, ..., {columns}",
                f"entry {seen + at + 1}",
            )

    def _header(self, blocks: Iterator[bytes]) -> Header:
        if self.options.time is not None:
            refuse_source(
                self.name, "a matrix has no times; write the edges to CSV or Parquet to have them"
            )
        block = next(blocks, b"")
        banner = block.partition(b"\n")[0].lower().split()
        if len(banner) != 5 or banner[0] != BANNER:
            refuse_source(self.name, "does not begin with a %%MatrixMarket line")
        _, thing, layout, field, symmetry = (word.decode(errors="replace") for word in banner)
        if thing != "matrix" or layout != "coordinate":
            refuse_source(self.name, f'only "matrix coordinate" has edges, got "{thing} {layout}"')
        if field not in ("real", "double", "integer", "pattern"):
            refuse_source(self.name, f"values must be real, integer or pattern, got {field!r}")
        if symmetry not in ("general", "symmetric"):
            refuse_source(self.name, f"must be general or symmetric, got {symmetry!r}")
        if symmetry == "symmetric" and matrix_kinds(self.options) is not None:
            why = "rows and columns of a symmetric matrix are the same nodes, not two kinds"
            refuse_source(self.name, f"{why}; use {Setting('bipartite', False)}")
        # The banner starts with %, so it is skipped as a comment.
        block, number = skip_comments(self.name, chain([block], blocks), _make_layout())
        if not block:
            refuse_source(self.name, "ends before the line with the size of the matrix")
        size, _, text = block.partition(b"\n")
        words = size.split()
        if len(words) != 3 or not all(_core.is_integer(word) for word in words):
            refuse_source(self.name, "rows, columns and entries are needed here", number)
        rows, cols, n_entries = (int(word) for word in words)
        kinds = matrix_kinds(self.options)
        if (rows != cols and kinds is None) or min(rows, cols, n_entries) < 0:
            why = f"must be a square matrix, got {rows} x {cols}"
            refuse_source(self.name, f"{why}; if these are two kinds of nodes, {TWO_KINDS}")
        has_values = field != "pattern"
        names = ["row", "column", "value"][: 3 if has_values else 2]
        weights = 2 if has_values else None
        self.columns = ColumnChoice(0, 1, weights, names, "", kinds=kinds)
        self.n_edges = n_entries
        return Header((rows, cols), n_entries, has_values, text, number + 1)


def _make_layout() -> _core.TextLayout:
    layout = _core.TextLayout()
    layout.delimiter, layout.quotes, layout.comments = "", False, "%"
    return layout
