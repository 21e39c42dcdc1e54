"""A spectral sparsifier of a stream of edges, made in one pass with bounded memory."""

import math
import os
import sys
import time
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ohmlearn import _core
from ohmlearn._sharing import Shared, in_turn, refuse_cut_off
from ohmlearn._storage import read_arrays, write_arrays
from ohmlearn.graph import Graph
from ohmlearn.graph.batches import batches_of
from ohmlearn.nodes import NodeTable
from ohmlearn.nodes.identity import join_tables, nodes_of
from ohmlearn.sparsifier.options import (
    CONSTANTS,
    MOST_NODES,
    PAPER_CONSTANTS,
    SparsifierOptions,
)
from ohmlearn.sparsifier.paper import PaperSampler
from ohmlearn.sparsifier.sample import LOOSE, Sample
from ohmlearn.validation.edges import EdgeNames, check_batch, raise_edge_fault
from ohmlearn.validation.parameters import check_seed, naming_size

__all__ = ["StreamingSparsifier"]

PIECE = 1 << 22  # edges between two chances to interrupt an update


class StreamingSparsifier(Shared):
    """Keeps a small graph H whose energy x'Lx is close to that of all edges seen, for every x.

    Edges come in batches of any size and are not stored. Memory depends on the number of nodes and
    on the target, not on the number of edges. The same seed gives the same H, bit for bit, however
    the stream is divided into batches and whatever the number of threads.

    Several threads may share a sparsifier; their calls run one after the other. The arrays of a
    call must not be changed by another thread before it returns. A forked child can use the
    sparsifier unless another thread was in `update` or `merge` at the time of the fork; then any
    use of it in the child raises RuntimeError.

    Parameters
    ----------
    n_nodes : int, optional
        Number of nodes. If it is not given, new nodes may appear at any time.
    epsilon : float
        Accuracy to aim at: (1 - epsilon) x'L_G x <= x'L_H x <= (1 + epsilon) x'L_G x for all x.
        Between 0 and 1; ignored if there is a budget. Not guaranteed. In our tests at least 95% of
        the runs met it in each family of graphs, for any contrast of weights and for orders of
        edges that do not depend on H (docs/calibration.md). `certify` measures it.
    max_edges : int, optional
        Budget: the number of edges to keep in H, at least two for each node.
    memory : int or str, optional
        Budget as peak memory of the sparsifier, in bytes or a string such as "500MB". Needs
        `n_nodes`.
    scheme : {"resample", "online", "paper"}
        "resample" thins out the kept edges whenever there are too many, "online" never drops an
        edge that was kept, and "paper" is the method of Kelner and Levin with copies of edges. The
        last needs `n_nodes` and takes no budget.
    constants : {"practical", "theory"}
        How many edges an `epsilon` needs. "practical" is calibrated by measurements; "theory" is
        the constant of the matrix Chernoff bound for independent sampling.
    random_state : int, Generator, RandomState or None
    n_jobs : int, optional
        Number of threads, as in scikit-learn.
    verbose : int
        If positive, print progress to stderr during long updates.

    Attributes
    ----------
    options : SparsifierOptions
        The parameters above.
    seed : int
        The seed in use: `random_state`, or drawn from it.
    nodes : NodeTable or None
        The ids of the nodes, if the edges came from a stream that has ids.

    Examples
    --------
    >>> import numpy as np
    >>> from ohmlearn import StreamingSparsifier
    >>> u, v = np.triu_indices(1000, 1)
    >>> sparsifier = StreamingSparsifier(n_nodes=1000, epsilon=0.8, random_state=0).update(u, v)
    >>> sparsifier.n_edges_seen_
    499500
    >>> sparsifier.snapshot().n_edges < 30_000
    True
    """

    def __init__(
        self,
        *,
        n_nodes: int | None = None,
        epsilon: float = 0.5,
        max_edges: int | None = None,
        memory: int | str | None = None,
        scheme: Literal["resample", "online", "paper"] = "resample",
        constants: Literal["practical", "theory"] = "practical",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        options = SparsifierOptions(
            n_nodes, epsilon, max_edges, memory, scheme, constants, n_jobs, verbose
        )
        self._start(options, check_seed(random_state))

    def _start(
        self, options: SparsifierOptions, seed: int, state: dict[str, Any] | None = None
    ) -> None:
        self.options = options
        self.seed = seed
        self.nodes: NodeTable | None = None
        self._core = self._make_sampler(state)
        self._is_cut_off = False
        self._snapshot: Sample | None = None
        self._share()

    def __repr__(self) -> str:
        return f"StreamingSparsifier({self.options.describe()})"

    def _cut_off(self) -> None:
        if self._core.changes_at_once:
            return
        _core.never_free(self._core)  # its destructor could fail
        self._is_cut_off = True

    def _sampler(self) -> Any:
        """Return the sampler, unless a fork has left it half-changed."""
        if self._is_cut_off:
            refuse_cut_off("sparsifier")
        return self._core

    def _make_sampler(self, state: dict[str, Any] | None) -> Any:
        """Return a sampler that continues from a state, or a new one."""
        options, n = self.options, self.options.n_nodes
        make: Any = PaperSampler if options.scheme == "paper" else _core.Sampler
        if options.scheme == "paper":
            copies = PAPER_CONSTANTS[options.constants]
            arguments: Any = (n, options.epsilon, self.seed, copies, options.threads)
        else:
            rates = (options.epsilon, *CONSTANTS[options.constants])
            retracts = options.scheme == "resample"
            how = (options.budget, retracts, options.threads, n is None)
            arguments = (n or 0, self.seed, *rates, *how)
        with naming_size(f"n_nodes = {n}"):
            return make(*arguments) if state is None else make.from_state(state, *arguments)

    def update(self, edges: Any, v: ArrayLike | None = None, w: ArrayLike | None = None) -> Self:
        """Take in edges.

        Parameters
        ----------
        edges : stream, Graph, tuple (u, v) or (u, v, w) of arrays, or array-like of int
            A stream is any iterable of such tuples, for example ``read_edges(...)`` or a list. An
            array holds one end of each edge; `v` then holds the other.
        v : array-like of int, optional
            The other ends.
        w : array-like of float, optional
            Weights, at most 1e27; all 1 by default. Self-loops and edges of weight zero (below
            1.2e-38) are dropped and counted.

        Returns
        -------
        self : StreamingSparsifier

        Raises
        ------
        ValueError
            Names the first edge that cannot be used. No edge of its batch has been taken in then.
            Also raised if the ids of a stream are numbered by another `NodeTable` than before.

        Examples
        --------
        >>> from ohmlearn import StreamingSparsifier
        >>> sparsifier = StreamingSparsifier(random_state=0).update([0, 1, 2], [1, 2, 2])
        >>> sparsifier = sparsifier.update([([2], [0], [0.5]), ([0], [3])])
        >>> sparsifier.n_edges_seen_, sparsifier.weight_seen_
        (4, 3.5)
        """
        if v is not None:
            self._add((edges, v, w), 0)
            return self
        self._adopt(nodes_of(edges))
        if hasattr(edges, "feed"):
            self._take(edges)
            return self
        for number, batch in enumerate(batches_of(edges)):
            self._add(batch, number)
        return self

    def _adopt(self, nodes: NodeTable | None) -> None:
        """Use the numbering of a stream, or refuse it if it is not the one used so far."""
        if nodes is None or nodes is self.nodes:
            return
        if self.nodes is not None and len(self.nodes) > 0:
            raise ValueError(
                "these edges number their nodes by another NodeTable than the edges before, so the "
                "same number would mean two nodes; read them with read_edges(..., "
                "nodes=first.nodes), where first is the stream that was read before"
            )
        self.nodes = nodes

    @in_turn
    def _take(self, points: Any) -> None:
        """Take in a stream of points, which computes its edges inside the sampler."""
        limit = self.options.n_nodes
        if limit is not None and points.n_nodes > limit:
            raise ValueError(
                f"the points have {points.n_nodes} nodes, but n_nodes = {limit}; raise n_nodes, or "
                f"leave it out"
            )
        self.options.check_room(points.n_nodes)
        sampler = self._sampler()
        with self._changing():
            self._snapshot = None
            points.feed(sampler)

    @in_turn
    def _add(self, batch: tuple[Any, ...], number: int) -> None:
        """Take in a batch, or nothing of it."""
        sampler, options = self._sampler(), self.options
        arrays = check_batch(batch, number)
        limit = MOST_NODES if options.n_nodes is None else options.n_nodes
        fault = _core.find_fault(limit, options.threads, *arrays)
        if fault is not None:
            raise_edge_fault(fault, limit, EdgeNames())
        n_edges = len(arrays[0])
        if options.n_nodes is None and n_edges > 0:
            options.check_room(int(max(arrays[0].max(), arrays[1].max())) + 1)
        start = printed = time.perf_counter()
        for first in range(0, n_edges, PIECE):
            with self._changing():
                self._snapshot = None
                sampler.update(*(array[first : first + PIECE] for array in arrays))
            now = time.perf_counter()
            if options.verbose and now - printed > 1.0:
                printed = now
                rate = (first + PIECE) / (now - start)
                print(
                    f"{sampler.position:,} edges seen, {rate / 1e6:.1f} M/s, "
                    f"{sampler.n_rows:,} rows, {sampler.n_resamples} resamples",
                    file=sys.stderr,
                )

    @in_turn
    def snapshot(self) -> Graph:
        """Return H as a graph, resampled to the target.

        The sparsifier itself does not change. The graph is kept until the next update, so that
        asking again costs nothing.

        Examples
        --------
        >>> from ohmlearn import StreamingSparsifier
        >>> StreamingSparsifier(random_state=0).update([0, 1], [1, 2]).snapshot().edges()
        (array([0, 1], dtype=int32), array([1, 2], dtype=int32), array([1., 1.]))
        """
        return self._sample().graph

    def _sample(self) -> Sample:
        sampler, options = self._sampler(), self.options
        if self._snapshot is None:
            *csr, chance = sampler.snapshot()
            graph = Graph._from_csr(*csr)
            graph.nodes = self.nodes
            loose = LOOSE[options.scheme]
            self._snapshot = Sample(graph, chance, loose, self.seed, options.threads)
        return self._snapshot

    @in_turn
    def replicate(self, number: int = 0, *, amplitude: float = 0.5) -> Graph:
        """Return the snapshot with an error added that another sample of edges could have made.

        No edge is read: the sparsifier knows with which probability it has kept each edge. Divide
        the difference of the answers on a replicate and on the snapshot by `amplitude`: so far
        the answer on the snapshot may be from that on all edges. The answers on two independent
        samples differ by the square root of two times that.

        Parameters
        ----------
        number : int
            Replicates with different numbers are independent of each other.
        amplitude : float
            At most 1. With 1, some weights become 0, so the replicate may be disconnected.

        Examples
        --------
        >>> from ohmlearn import StreamingSparsifier, gallery
        >>> graph = gallery.complete(300)
        >>> sparsifier = StreamingSparsifier(epsilon=0.9, random_state=0).update(graph)
        >>> sparsifier.replicate().n_edges == sparsifier.snapshot().n_edges
        True
        """
        return self._sample().replicate(number, amplitude)

    def merge(self, other: "StreamingSparsifier") -> Self:
        """Take in everything that another sparsifier has seen; `other` does not change.

        The two should have different seeds, because equal seeds toss the same coins.

        Parameters
        ----------
        other : StreamingSparsifier
            A sparsifier with the same scheme and the same numbering of nodes.

        Examples
        --------
        >>> from ohmlearn import StreamingSparsifier
        >>> monday = StreamingSparsifier(random_state=1).update([0], [1])
        >>> tuesday = StreamingSparsifier(random_state=2).update([1], [2])
        >>> monday.merge(tuesday).snapshot().n_edges
        2
        """
        if not isinstance(other, StreamingSparsifier):
            raise TypeError(
                f"merge needs a StreamingSparsifier, got {type(other).__name__}; use update for "
                f"edges"
            )
        if other is self:
            raise ValueError("a sparsifier cannot be merged with itself; make one for each stream")
        schemes = self.options.scheme, other.options.scheme
        if schemes[0] != schemes[1]:
            raise ValueError(
                f"only sparsifiers with the same scheme can be merged, got {schemes[0]!r} and "
                f"{schemes[1]!r}"
            )
        # Always locked in the same order, or two merges at once could wait for each other.
        low, high = (self, other) if id(self) < id(other) else (other, self)
        with low._lock, high._lock:
            mine, theirs = self._sampler(), other._sampler()
            self.nodes = join_tables(self.nodes, other.nodes)
            self.options.check_room(max(mine.n_nodes, theirs.n_nodes))
            with self._changing():
                self._snapshot = None
                mine.merge(theirs)
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the sparsifier to a file with a checksum, completely or not at all.

        Parameters
        ----------
        path : str or path
            Name of the file; an existing file is replaced.

        Examples
        --------
        >>> import tempfile
        >>> from ohmlearn import StreamingSparsifier
        >>> sparsifier = StreamingSparsifier(random_state=0).update([0, 1], [1, 2])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     sparsifier.save(f"{folder}/h.ohm")
        ...     StreamingSparsifier.load(f"{folder}/h.ohm").n_edges_seen_
        2
        """
        write_arrays(path, self.get_state())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a saved sparsifier, which continues bit for bit as if it had never stopped.

        Parameters
        ----------
        path : str or path
            A file written by `save`; see there for an example.

        Raises
        ------
        ValueError
            Names the file and what is wrong with it. It is safe to load any file.
        """
        arrays = read_arrays(path)
        try:
            return cls.from_state(arrays)
        except (ValueError, ArithmeticError, TypeError) as error:  # numbers may have any size
            raise ValueError(
                f"{path} holds no sparsifier that can continue: {error}; restore it from a copy, "
                f"or sparsify the edges again"
            ) from error

    @in_turn
    def get_state(self) -> dict[str, NDArray[Any]]:
        """Return everything that `from_state` needs, as arrays with names.

        Examples
        --------
        >>> from ohmlearn import StreamingSparsifier
        >>> state = StreamingSparsifier(random_state=0).update([0, 1], [1, 2]).get_state()
        >>> StreamingSparsifier.from_state(state).n_edges_seen_
        2
        """
        state = self._sampler().get_state()
        ids = {} if self.nodes is None else self.nodes.get_state()
        return {"parameters": np.array(self.options.to_json(self.seed)), **state, **ids}

    @classmethod
    def from_state(cls, state: dict[str, NDArray[Any]]) -> Self:
        """Return a sparsifier that continues from a state; other arrays are ignored.

        Raises
        ------
        ValueError
            Says what in the state no sparsifier can have.
        """
        options, seed = SparsifierOptions.from_json(state.get("parameters"))
        found = cls.__new__(cls)
        found._start(options, seed, state)
        options.check_room(found._core.n_nodes)
        if "node_ids" in state or "node_offsets" in state:
            found.nodes = NodeTable.from_state(state)
        return found

    def with_threads(self, n_jobs: int | None) -> Self:
        """Return a copy that uses another number of threads; its answers are the same."""
        options = replace(self.options, n_jobs=n_jobs)
        parameters = np.array(options.to_json(self.seed))
        return self.from_state(self.get_state() | {"parameters": parameters})

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_state, (self.get_state(),)

    @property
    def n_edges_seen_(self) -> int:
        """Number of edges taken in, without self-loops and edges of weight zero."""
        return int(self.stats_["n_edges_seen"])

    @property
    def weight_seen_(self) -> float:
        """Sum of the weights of these edges."""
        return self.stats_["weight_seen"]

    @property
    def n_rows_(self) -> int:
        """Number of weighted edges held at present."""
        return int(self.stats_["n_rows"])

    @property
    def n_resamples_(self) -> int:
        """Number of resamples so far, without those of snapshots."""
        return int(self.stats_["n_resamples"])

    @property
    def epsilon_nominal_(self) -> float:
        """The epsilon that corresponds to the present sampling rate; 0 if no edge was dropped.

        Without a budget it is the `epsilon` asked for. It is not a measurement: use `certify` for
        that.
        """
        return self.stats_["epsilon_nominal"]

    @property
    @in_turn
    def epsilon_estimate_(self) -> float:
        """Estimate of the true epsilon of `snapshot`, found without reading an edge again.

        It takes about as long as two resamples when it is first asked for. It is not a bound:
        `certify` gives one if the edges can be read again. 0 if no edge was dropped, and NaN if
        weights differ so much (by 1e30, say) that rounding prevents an estimate.

        Examples
        --------
        >>> from ohmlearn import StreamingSparsifier, certify, gallery
        >>> graph = gallery.complete(300)
        >>> sparsifier = StreamingSparsifier(epsilon=0.9, random_state=0).update(graph)
        >>> true = certify(graph, sparsifier, random_state=0).epsilon
        >>> 0.85 < sparsifier.epsilon_estimate_ / true < 1.15
        True
        """
        return self._sample().epsilon

    @property
    @in_turn
    def stats_(self) -> dict[str, float]:
        """All counters."""
        sampler, options = self._sampler(), self.options
        epsilon = options.epsilon
        if sampler.beta == math.inf and options.scheme != "paper":
            epsilon = 0.0
        elif options.budget:
            constant, offset = CONSTANTS[options.constants]
            logarithm = math.log(max(2, sampler.n_nodes)) + offset
            epsilon = math.sqrt(constant * logarithm / sampler.beta)
        return {
            "n_nodes": sampler.n_nodes,
            "n_edges_seen": sampler.position - sampler.n_self_loops - sampler.n_zero_weights,
            "weight_seen": sampler.weight_seen,
            "n_self_loops_dropped": sampler.n_self_loops,
            "n_zero_weights_dropped": sampler.n_zero_weights,
            "n_rows": sampler.n_rows,
            "row_capacity": sampler.capacity,
            "n_resamples": sampler.n_resamples,
            "epsilon_nominal": epsilon,
        }
