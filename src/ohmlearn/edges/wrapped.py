"""Edges that pass on those of another source: watched, weighed by time, counted, checked."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ohmlearn import _core
from ohmlearn.checks.edge_arrays import MAX_NODES, EdgeNames, check_batch, raise_edge_fault
from ohmlearn.checks.times import show_time
from ohmlearn.edges.protocol import Batch, Edges, one_pass
from ohmlearn.graph.time_view import TimeView

if TYPE_CHECKING:
    from ohmlearn.edge_log.log_sparsifier import KeptSparsifier

PASSED_ON = (
    "sources", "rereadable", "nodes", "nodes_are_final", "n_nodes", "n_edges", "has_times",
    "knows_unit", "time_unit", "id_type", "kinds", "is_log", "loses_weights", "n_read",
    "fraction", "n_bad", "n_repeated", "first_bad", "columns", "first_ids", "prepare",
    "kept_sparsifier",
)  # fmt: skip


class WrappedEdges(Edges):
    """Passes everything on but the batches.

    Work runs on its own batches, so that a wrapper sees each of them: `feed`, `open_passes` and
    `to_graph` are those of `Edges`.
    """

    def __init__(self, inner: Edges) -> None:
        self.inner = inner


for _name in PASSED_ON:
    setattr(WrappedEdges, _name, property(attrgetter(f"inner.{_name}")))


class TimeFiltered(WrappedEdges):
    """The edges of a `TimeView`, without their times.

    The end of a pass in which no edge counts is an error if `needs_edges`, so that nothing is
    computed then. `latest` is the latest time of all edges read so far, whether they count or not.
    """

    has_times = False

    def __init__(self, inner: Edges, view: TimeView, *, needs_edges: bool = False) -> None:
        super().__init__(inner)
        self.view, self.latest, self._needs_edges = view, -math.inf, needs_edges

    def batches(self, n_jobs: int = 1) -> Iterator[Batch]:
        """Yield the edges that count, with the weights that they have in the view."""
        n_edges = 0
        with one_pass(self.inner, n_jobs) as batches:
            for number, batch in enumerate(batches):
                t = batch.need_times(number)
                if len(t) > 0:
                    self.latest = max(self.latest, float(t.max()))
                weighed = Batch(*self.view.weigh(batch.u, batch.v, batch.w, t))
                n_edges += len(weighed.u)
                yield weighed
        if n_edges == 0 and self._needs_edges:
            since, latest = (
                show_time(x, self.time_unit) for x in (self.view.earliest, self.latest)
            )
            raise ValueError(f"no edge counts since {since}; the latest is of {latest}")

    def kept_sparsifier(self, n_jobs: int | None = None) -> KeptSparsifier | None:
        """Return None: a log has a sparsifier of all edges only."""
        return None


class Watched(WrappedEdges):
    """Edges that somebody watches: `read` gets the batches of each pass, and yields them.

    It is called with the batches and the number of the pass, from 1 on.
    """

    def __init__(
        self, inner: Edges, read: Callable[[Iterator[Batch], int], Iterator[Batch]]
    ) -> None:
        super().__init__(inner)
        self._read, self._n_passes = read, 0

    def batches(self, n_jobs: int = 1) -> Iterator[Batch]:
        """Yield the batches."""
        self._n_passes += 1
        with one_pass(self.inner, n_jobs) as batches:
            yield from self._read(batches, self._n_passes)


class CheckedEdges(WrappedEdges):
    """Edges of a class outside of ohmlearn, whose batches are checked."""

    def batches(self, n_jobs: int = 1) -> Iterator[Batch]:
        """Yield the batches after a check of their form."""
        with one_pass(self.inner, n_jobs) as batches:
            for number, batch in enumerate(batches):
                yield Batch(*check_batch(batch, number))


class DegreeCounting(WrappedEdges):
    """Adds up the degrees of the nodes while something else reads the edges.

    A sparsifier keeps some edges and changes their weights, so its degrees are only close to those
    of the stream. The exact ones take 8 bytes per node and no further pass. Self-loops do not
    count, and parallel edges add up, as in `Graph.degrees`. A batch is counted when the next one is
    asked for: one that the reader refuses is not. To the last bit, degrees do not depend on how
    edges are divided into batches. Every pass starts to count from zero.
    """

    def __init__(self, inner: Edges) -> None:
        super().__init__(inner)
        self._sums = np.zeros(0)

    def degrees_of(self, n_nodes: int) -> NDArray[np.float64]:
        """Return the degrees of the nodes 0, ..., n_nodes - 1; 0 for those without edges."""
        degrees = self._sums.copy()
        degrees.resize(n_nodes, refcheck=False)  # adds zeros
        return degrees

    def batches(self, n_jobs: int = 1) -> Iterator[Batch]:
        """Yield the batches, and count each when the next one is asked for."""
        self._sums = np.zeros(0)
        with one_pass(self.inner, n_jobs) as batches:
            for batch in batches:
                yield batch
                self._count(batch.u, batch.v, batch.w)

    def _count(self, u: NDArray[Any], v: NDArray[Any], w: NDArray[Any] | None) -> None:
        fault = _core.find_fault(MAX_NODES, 1, u, v, w)
        if fault is not None:
            raise_edge_fault(fault, MAX_NODES, EdgeNames())
        if len(u) == 0:
            return
        n_nodes = int(max(u.max(), v.max())) + 1
        if n_nodes > len(self._sums):  # adds zeros
            self._sums.resize(max(n_nodes, len(self._sums) * 3 // 2), refcheck=False)
        # In the order of the stream, so that batches do not change a bit.
        _core.add_degrees(self._sums, u, v, w)
