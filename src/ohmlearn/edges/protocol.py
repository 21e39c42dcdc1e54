"""What every source of edges offers: the class `Edges` and its batches.

These hold for all sources; tests/contract/test_edges_protocol.py checks them on each.

1. Numbers. `u` and `v` of a batch are node numbers. With `nodes`, number i is the i-th id of that
   table; a pass only adds to the table, which is the same object in every pass. Without `nodes`,
   numbers are the ids.
2. Valid. Arrays are one-dimensional, contiguous and equally long; `u` and `v` are int32 or int64,
   both alike, and not negative; `w` is float32 or float64 in [0, 1e27], or None, which means that
   all are 1; `t` is float64 and finite. A source of foreign arrays checks their types and shapes.
   The caller of a kernel checks ids and weights (`_core.find_fault`), because kernels trust them.
3. Times. Every batch has `t`, or none has; `has_times` says which, at the latest when the first
   batch has been read.
4. Order. The edges of a pass, in order, do not depend on `n_jobs`; only the ends of batches may.
5. Again. If `rereadable`, every call of `batches` starts at the first edge and gives the same
   edges. If not, `again` raises a ValueError, and so does a second pass over an iterator or pipe.
6. Failure. A batch is yielded completely or not at all; errors name the source and the place.
7. End. Threads and files of a pass end with its iterator, also if it is closed early.
8. Known before. `n_nodes` is None or the number of nodes: all numbers in batches are below it.
   `nodes_are_final`: no id will be added to `nodes`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ohmlearn.errors import InputError, Setting
from ohmlearn.graph import Graph
from ohmlearn.nodes import NodeTable

if TYPE_CHECKING:
    from ohmlearn.edge_log.log_sparsifier import KeptSparsifier
    from ohmlearn.edges.passes import Passes
    from ohmlearn.edges.strongest_pairs import PairSearch, PairsFound
    from ohmlearn.graph.time_view import TimeView
    from ohmlearn.sparsifier import StreamingSparsifier


class Batch(NamedTuple):
    """A part of a stream of edges: arrays of equal length.

    Examples
    --------
    >>> import numpy as np
    >>> u, v, w, t = Batch(np.array([0, 1]), np.array([1, 2]))
    >>> w is None, t is None
    (True, True)
    """

    u: NDArray[np.int32] | NDArray[np.int64]
    v: NDArray[np.int32] | NDArray[np.int64]
    w: NDArray[np.float32] | NDArray[np.float64] | None = None  # None means that all are 1
    t: NDArray[np.float64] | None = None  # dates are seconds since 1970

    def need_times(self, number: int = 0) -> NDArray[np.float64]:
        """Return the times; refuse a batch, of which `number` is the place, that has none."""
        if self.t is None:
            raise InputError(
                f"batch {number}: these edges have no times; give batches (u, v, w, t), where w "
                f"may be None, or {Setting('time', ...)} of read_edges with the column of times"
            )
        return self.t


class Edges(ABC):
    """A source of edges, which is read in passes, batch by batch.

    To write a source of your own, derive from this class and define `batches`; set `rereadable` to
    False if it can be read only once. All functions that take edges then accept it. Arrays of a
    source outside of ohmlearn are checked.

    Attributes
    ----------
    sources : sequence of str
        Names for messages.
    rereadable : bool
        Whether there can be more than one pass.
    nodes : NodeTable or None
        The ids of the nodes; None if numbers are the ids.
    n_nodes, n_edges : int or None
        Known before the first pass, else None.
    has_times : bool
        Whether batches have times.

    Examples
    --------
    >>> import numpy as np
    >>> from ohmlearn import HFSClassifier
    >>> from ohmlearn.edges import Batch, Edges
    >>> class Ring(Edges):
    ...     def __init__(self, n_nodes):
    ...         self.n_nodes = n_nodes
    ...     def batches(self, n_jobs=1):
    ...         for first in range(0, self.n_nodes, 1000):
    ...             u = np.arange(first, min(first + 1000, self.n_nodes))
    ...             yield Batch(u, (u + 1) % self.n_nodes)
    >>> HFSClassifier().fit_edges(Ring(6), {0: "a", 3: "b"}).transduction_[[1, 4]].tolist()
    ['a', 'b']
    """

    sources: Sequence[str] = ()
    rereadable: bool = True
    nodes: NodeTable | None = None
    nodes_are_final: bool = False
    n_nodes: int | None = None
    n_edges: int | None = None
    has_times: bool = False
    knows_unit: bool = False  # whether a `time_unit` of None means numbers, not "unknown"
    is_sample: ClassVar[bool] = False  # a sparsifier already, so that there is nothing to refine on
    is_local: ClassVar[bool] = True  # whether `batches` can be read in this process
    loses_weights: bool = False  # whether some weights are so small that they count as 0
    is_log: bool = False  # keeps a sparsifier of its own, and edges may have been removed
    # How far the present pass is, and what it has left out.
    n_read: int = 0
    fraction: float | None = None
    n_bad: int = 0
    n_repeated: int = 0  # events that were read before
    first_bad: str | None = None
    columns: str | None = None  # which columns are used, for people

    @abstractmethod
    def batches(self, n_jobs: int = 1) -> Iterator[Batch]:
        """Read all edges; up to `n_jobs` threads may read ahead."""

    def __iter__(self) -> Iterator[Batch]:
        return self.batches()

    # What may be known before reading.

    @property
    def time_unit(self) -> str | None:
        """The unit: "date", "s", "ms", "us" or "ns"; None for other numbers, or if not known."""
        return None

    @property
    def id_type(self) -> str | None:
        """What the ids are, "int64" or "string"; None for numbers, or if it is not known yet."""
        return None if self.nodes is None else self.nodes.kind

    @property
    def kinds(self) -> tuple[str, ...]:
        """The node types, such as user and item, if there are two."""
        return () if self.nodes is None else self.nodes.kinds

    def first_ids(self) -> list[Any]:
        """Return the ids of some nodes, if they can be known before the first pass."""
        return []

    @property
    def name(self) -> str:
        """The sources in one phrase, for messages."""
        first, *others = self.sources or (f"the {type(self).__name__}",)
        return f"{first} and {len(others)} more" if others else first

    # Where work runs.

    def prepare(self, verbose: int = 0) -> None:  # noqa: B027 (most sources have nothing to do)
        """Do work that belongs to a phase of its own, before the first pass."""

    def feed(self, sparsifier: StreamingSparsifier) -> StreamingSparsifier:
        """Give all edges to a sparsifier; return the one that has them.

        It is another one if the edges are sparsified elsewhere.
        """
        sparsifier.adopt(self.nodes)
        with one_pass(self, sparsifier.options.threads) as batches:
            for number, batch in enumerate(batches):
                if number == 0 and self.knows_unit:  # a pipe knows the unit of its times only now
                    sparsifier.options.check_unit(self.time_unit)
                sparsifier.add(batch, number)
        return sparsifier

    def open_passes(
        self,
        component: NDArray[np.int32],
        reader: str,
        n_jobs: int | None = None,
        view: TimeView | None = None,
    ) -> Passes:
        """Return passes that multiply by the Laplacian; `view` says which edges count."""
        from ohmlearn.edges.passes import BatchPasses

        return BatchPasses(self.again(reader), component, reader, n_jobs, view)

    def find_pairs(self, search: PairSearch) -> PairsFound:
        """Return which pairs of nodes are the strongest, for reasons."""
        return search.read(self)

    def to_graph(self, n_nodes: int | None = None) -> Graph:
        """Return all edges as a graph in memory."""
        return Graph.from_batches(self, n_nodes=n_nodes)

    def kept_sparsifier(self, n_jobs: int | None = None) -> KeptSparsifier | None:
        """Return the sparsifier that a log keeps of these edges."""
        return None

    def again(self, reader: str) -> Self:
        """Return the edges, or refuse those that can be read only once."""
        if not self.rereadable:
            raise InputError(
                f"{reader} reads the edges several times, but {self.name} can be read only once; "
                f"write the edges to a file first, or give a Graph, arrays (u, v, w), or a list of "
                f"batches"
            )
        return self

    def since(self, time: float) -> Edges:
        """Return the edges since a time."""
        from ohmlearn.edges.wrapped import TimeFiltered
        from ohmlearn.graph.time_view import TimeView

        return TimeFiltered(self, TimeView(since=time))


@contextmanager
def one_pass(edges: Edges, n_jobs: int = 1) -> Iterator[Iterator[Batch]]:
    """Give the batches of a pass; what it has opened is closed at the end, also by an error."""
    batches = edges.batches(n_jobs)
    try:
        yield batches
    finally:
        if isinstance(batches, Generator):  # other iterators have nothing to close
            batches.close()
