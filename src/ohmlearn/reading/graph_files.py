"""Edges from files of other programs: MatrixMarket, METIS, and GML and GraphML by networkx."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from ohmlearn import _core
from ohmlearn.errors import Setting
from ohmlearn.reading.array_reader import ROWS, TWO_KINDS, ArrayColumns, cut, kinds_of_sides
from ohmlearn.reading.byte_blocks import ByteSource, line_blocks
from ohmlearn.reading.column_choice import ColumnChoice, choose_columns
from ohmlearn.reading.csv_reader import parse_blocks, skip_comments
from ohmlearn.reading.source_errors import reading, refuse_source, shorten
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
            for batch in parse_blocks(self, columns, layout, header.line, text):
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
        if symmetry == "symmetric" and kinds_of_sides(self.options, "row", "column") is not None:
            why = "rows and columns of a symmetric matrix are the same nodes, not two kinds"
            refuse_source(self.name, f"{why}; use {Setting('bipartite', False)}")
        # The banner starts with %, so it is skipped as a comment.
        block, number = skip_comments(self.name, chain([block], blocks), _make_layout())
        if not block:
            refuse_source(self.name, "ends before the line with the size of the matrix")
        size, _, text = block.partition(b"\n")
        words = size.split()
        if len(words) != 3 or not all(word.lstrip(b"-").isdigit() for word in words):
            refuse_source(self.name, "rows, columns and entries are needed here", number)
        rows, cols, n_entries = (int(word) for word in words)
        kinds = kinds_of_sides(self.options, "row", "column")
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


class MetisSource(Source):
    """A file of METIS: after a header, line i lists the neighbours of node i, from 1 on.

    The header has the numbers of nodes and edges, and three digits that say whether a line starts
    with a size and with weights of the node, and whether a weight follows each neighbour. Each edge
    is in the lines of both of its ends; it is read from that of the smaller one.
    """

    reads_files = True

    def inspect(self) -> None:
        """Read the header."""
        with self.open() as source:
            next(self._rows(source))

    def batches(self, kind: str | None) -> Iterator[RawBatch]:
        """Read the lists of neighbours."""
        with self.open() as source:
            rows = self._rows(source)
            (n_nodes, n_edges, n_skipped, step), _ = next(rows)
            u: list[int] = []
            v: list[float] = []
            w: list[float] = []
            n_up = n_down = node = 0
            for node, (values, line) in enumerate(rows, 1):
                ends, weights = values[n_skipped::step], values[n_skipped + 1 :: step]
                if node > n_nodes and values:
                    refuse_source(self.name, f"the header says {n_nodes} nodes", line)
                if step == 2 and len(ends) != len(weights):
                    refuse_source(self.name, "the last neighbour has no weight", line)
                if not all(1 <= end <= n_nodes and end == int(end) for end in ends):
                    refuse_source(self.name, f"neighbours must be nodes 1, ..., {n_nodes}", line)
                larger = [at for at, end in enumerate(ends) if end > node]
                u += [node] * len(larger)
                v += [ends[at] for at in larger]
                w += [weights[at] for at in larger] if step == 2 else []
                n_up, n_down = n_up + len(larger), n_down + sum(end < node for end in ends)
                if len(u) >= ROWS:
                    yield from cut(self, self._arrays(u, v, w, step), kind)
                    u, v, w = [], [], []
            if node < n_nodes or n_up != n_edges or n_down != n_edges:
                found = f"{node} nodes, {n_up} edges and {n_down} edges in the other direction"
                remedy = f"if it is a list of edges, use {Setting('format', 'text')}"
                said = f"the header says {n_nodes} nodes and {n_edges} edges, but there are"
                refuse_source(self.name, f"{said} {found}; correct it; {remedy}")
            yield from cut(self, self._arrays(u, v, w, step), kind)

    def _arrays(self, u: list[int], v: list[float], w: list[float], step: int) -> ArrayColumns:
        weights = np.array(w) if step == 2 and self.options.weight_col is not False else None
        return np.array(u, np.int64), np.array(v, np.int64), weights, None

    def _rows(self, source: ByteSource) -> Iterator[tuple[Any, int]]:
        """Yield the numbers of the header, then those of each line, with the number of the line."""
        header = None
        number = 0
        for block in line_blocks(source):
            for line in block.split(b"\n")[:-1]:
                number += 1
                if line.startswith(b"%") or (header is None and not line.strip()):
                    continue
                try:
                    values = [float(word) for word in line.split()]
                except ValueError:
                    text = shorten(line.decode(errors="replace"))
                    refuse_source(self.name, f"METIS has numbers only, got {text}", number)
                if header is None:
                    header = self._read_header(line.split(), number)
                    yield header, number
                else:
                    yield values, number
        if header is None:
            refuse_source(self.name, "is empty: there is no header of METIS")

    def _read_header(self, words: list[bytes], line: int) -> tuple[int, int, int, int]:
        """Return the numbers of nodes, edges, fields before neighbours, fields per neighbour."""
        if not 2 <= len(words) <= 4 or not all(word.isdigit() for word in words):
            text = shorten(b" ".join(words).decode(errors="replace"))
            remedy = f"if it is a list of edges, use {Setting('format', 'text')}"
            why = f"METIS starts with the numbers of nodes and edges, got {text}; {remedy}"
            refuse_source(self.name, why, line)
        if self.options.time is not None:
            refuse_source(self.name, "METIS has no times; write the edges to CSV to have them")
        n_nodes, n_edges = int(words[0]), int(words[1])
        digits = (words[2] if len(words) > 2 else b"").rjust(3, b"0")[-3:]
        n_weights = int(words[3]) if len(words) > 3 else 1
        n_skipped = int(digits[:1] == b"1") + (n_weights if digits[1:2] == b"1" else 0)
        self.n_edges = n_edges
        step = 2 if digits[2:] == b"1" else 1
        names = ["node", "neighbour", "weight"][: 1 + step]
        weight = 2 if step == 2 and self.options.weight_col is not False else None
        self.columns = ColumnChoice(0, 1, weight, names, "", scale=self.options.weight)
        return n_nodes, n_edges, n_skipped, step


class GraphFile(Source):
    """A file of GML or GraphML, which networkx reads; attributes of edges are columns."""

    reads_files = True

    def batches(self, kind: str | None) -> Iterator[RawBatch]:
        """Read the graph, and cut its edges into batches."""
        with self.open() as source:
            rows = self._load(source)
        more = sorted({name for _, _, data in rows for name in data})
        names = ["source", "target", *map(str, more)]
        self.columns = choose_columns(self.name, self.options, names, len(names))
        self.n_edges = len(rows)
        every = [(u, v, *(data.get(name) for name in more)) for u, v, data in rows]
        u, v, w, t = (
            None if at is None else [row[at] for row in every]
            for at in (*self.columns[:3], self.columns.t)
        )
        with reading(self.name, "a graph with numbers as weights"):
            weights = w and np.array([1.0 if x is None else float(x) for x in w])
        yield from cut(self, (u, v, weights, t and np.array(t)), kind)

    def _load(self, source: ByteSource) -> list[Any]:
        try:
            import networkx
        except ImportError:
            refuse_source(
                self.name,
                "GML and GraphML are read with networkx, which is not installed; install it with "
                "pip install networkx, or write the edges to CSV",
            )
        with reading(self.name, "GML or GraphML"):
            text = source.file.read().decode()
            if text.lstrip("\ufeff \r\n\t").startswith("<"):
                return list(networkx.parse_graphml(text).edges(data=True))
            try:
                graph = networkx.parse_gml(text)
            except networkx.NetworkXError:  # nodes without labels
                graph = networkx.parse_gml(text, label="id")
            return list(graph.edges(data=True))
