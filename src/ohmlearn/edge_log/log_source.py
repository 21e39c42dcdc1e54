"""The folder of a log as a source of edges for `read_edges` and the command line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ohmlearn.checks.parameters import require_extra
from ohmlearn.edge_log.edge_log import EdgeLog
from ohmlearn.edge_log.live_edges import LiveEdges
from ohmlearn.nodes import NodeTable
from ohmlearn.nodes.node_ids import Ids, ids_from_arrow
from ohmlearn.reading.column_choice import Columns
from ohmlearn.reading.read_options import ReadOptions
from ohmlearn.reading.source_errors import refuse_source
from ohmlearn.reading.table_reader import RawBatch, Source

__all__ = ["LogSource", "open_log"]


def open_log(folder: str | os.PathLike[str]) -> LiveEdges:
    """Return the live edges of a log, numbered by its own table."""
    return EdgeLog(folder).live_edges()


class LogSource(Source):
    """The live edges of a log, or of some of its records, with the ids of the user.

    It is used where the edges of a log are read together with others, or in partitions.
    """

    def __init__(self, name: str, options: ReadOptions, records: range | None = None) -> None:
        super().__init__(name, options)
        self._records = records
        self._live: LiveEdges | None = None

    def inspect(self) -> None:
        """Open the log; from now on, operations on it do not change these edges."""
        self._live = live = EdgeLog(self.name).live_edges()
        t = 3 if live.has_times and self.times is not None else None
        self.columns = Columns(0, 1, 2, ["u", "v", "w", "t"], "", t)
        self.node_kinds = live.nodes.kinds
        if self._records is None:
            self.n_edges = live.n_edges

    def batches(self, kind: str | None) -> Iterator[RawBatch]:
        """Yield the live edges of each record."""
        if self._live is None:
            self.inspect()
        live = self._live
        assert live is not None
        records = range(live.n_records) if self._records is None else self._records
        ids, n_read = _AllIds(live.nodes), 0
        for part in live.parts(records.start, records.stop):
            u, v, w, t = part.columns
            if self.times is None:
                t = None
            elif t is None:
                refuse_source(self.name, "the edges of this log have no times")
            else:
                self.times.take(self.name, t)  # notes their unit; they were checked when appended
            yield RawBatch(ids.take(u), ids.take(v), w, t=t)
            n_read += len(u)
            self.fraction = n_read / max(1, live.n_edges)


class _AllIds:
    """The ids of a table, for choosing many of them quickly."""

    def __init__(self, nodes: NodeTable) -> None:
        self._ids: Any = nodes.ids() if nodes.kind != "string" else nodes.to_arrow()

    def take(self, numbers: NDArray[np.int32]) -> Ids:
        """Return the ids of some nodes."""
        if isinstance(self._ids, np.ndarray):
            chosen: NDArray[Any] = self._ids[numbers]
            return chosen
        pa = require_extra("pyarrow", "files")
        return ids_from_arrow(self._ids.take(pa.array(numbers))).ids
