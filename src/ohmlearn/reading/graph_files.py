"""Edges from files of other graph programs: METIS, and GML and GraphML through networkx."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ohmlearn.errors import Setting
from ohmlearn.reading.array_reader import ROWS, ArrayColumns, cut
from ohmlearn.reading.byte_blocks import ByteSource, line_blocks
from ohmlearn.reading.column_choice import ColumnChoice, choose_columns
from ohmlearn.reading.source_errors import reading, refuse_source, shorten
from ohmlearn.reading.table_reader import RawBatch, Source


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
        columns = [[row[0] for row in rows], [row[1] for row in rows]]
        columns += [[row[2].get(name) for row in rows] for name in more]
        u, v, w, t = (*self.columns[:3], self.columns.t)
        weights = None
        if w is not None:
            with reading(self.name, "a graph with numbers as weights"):
                weights = np.array([1.0 if x is None else float(x) for x in columns[w]])
        times = None if t is None else np.array(columns[t])
        yield from cut(self, (columns[u], columns[v], weights, times), kind)

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
