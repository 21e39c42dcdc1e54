"""A spectral sparsifier of a stream of edges, made in one pass with bounded memory."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ohmlearn import _core
from ohmlearn._arrays_file import read_arrays, refuse_damaged, write_arrays
from ohmlearn._defaults import EPSILON
from ohmlearn._display import Shown, Tabular
from ohmlearn._sharing import Shared, in_turn, refuse_cut_off
from ohmlearn._warnings import warn
from ohmlearn.checks.edge_arrays import EdgeNames, raise_edge_fault
from ohmlearn.checks.parameters import check_seed, naming_size
from ohmlearn.edges import Batch, Edges
from ohmlearn.errors import InputError, Param
from ohmlearn.graph import Graph
from ohmlearn.graph.graph import adopt_csr
from ohmlearn.graph.time_view import TimeView
from ohmlearn.nodes import NodeTable
from ohmlearn.nodes.node_table import join_tables
from ohmlearn.reading.as_edges import as_edges
from ohmlearn.sparsifier.kelner_levin import KelnerLevin
from ohmlearn.sparsifier.sampling_error import LOOSE, Sample
from ohmlearn.sparsifier.sparsifier_options import (
    CONSTANTS,
    MOST_NODES,
    PAPER_CONSTANTS,
    Duration,
    SparsifierOptions,
)
from ohmlearn.sparsifier.sparsifier_times import check_arrivals, choose_view

PIECE = 1 << 22  # edges between two moments at which one can interrupt an update


class StreamingSparsifier(Shown, Tabular, Shared, Edges):
    """Keeps a small graph H whose energy x'Lx is close to that of all edges seen, for every x.

    Edges come in batches of any size and are not stored. Memory depends on the number of nodes and
    on the target, not on the number of edges. The same seed gives the same H, bit for bit, however
    the stream is divided into batches and whatever the number of threads.

    Threads may share a sparsifier; their calls run one after the other. In a forked child it raises
    RuntimeError if another thread was in `update` or `merge` at the time of the fork.

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
        Budget: about how many edges to keep in H (2% more by chance), at least two for each node.
    memory : int or str, optional
        Budget as peak memory of the sparsifier, in bytes or a string such as "500MB". Needs
        `n_nodes`.
    scheme : {"resample", "online", "paper"}
        "resample" thins out the kept edges whenever there are too many [1]_, "online" never drops
        an edge that was kept [2]_, and "paper" is Algorithm 2 of the Sparse-HFS paper [3]_, the
        method of Kelner and Levin with copies of edges; see `ohmlearn.paper.KelnerLevin`. The last
        needs `n_nodes` and takes no budget.
    constants : {"practical", "theory"}
        How many edges an `epsilon` needs. "practical" is calibrated by measurements; "theory" is
        the constant of the matrix Chernoff bound for independent sampling. With the scheme "paper",
        "theory" takes the N copies of each edge that the paper prints, and "practical", the
        default, a tenth of them.
    random_state : int, Generator, RandomState or None
    n_jobs : int, optional
        Number of threads, as in scikit-learn.
    verbose : int
        If positive, print progress to stderr during long updates.
    half_life : float, str or timedelta, optional
        Weights fade: at time T an edge of time t counts w 2^(-(T - t) / half_life), and nothing
        after 40 half-lives. A number in the unit of the times, or "7d", "12h", ... if times are
        dates or seconds. Edges then need times, in any order, and weights of at least 1.4e-20.
    horizon : float, str or timedelta, optional
        Old edges are forgotten: H answers for the edges since any time that is at most this far
        from the latest one; ``math.inf`` keeps all. Edges then need times, too.

    Attributes
    ----------
    options : SparsifierOptions
        The parameters above.
    seed : int
        The seed in use: `random_state`, or drawn from it.
    nodes : NodeTable or None
        The ids of the nodes, if the edges came from a stream that has ids.

    Notes
    -----
    An edge e of weight w between u and v has the leverage w R(u, v), where R is the effective
    resistance; the leverages of a connected graph sum to n - 1. Edges are kept with probability

        p = min(1, beta w R),    beta = c (ln n + d) / epsilon²,

    and then weigh w / p [4]_. c = 1.2 and d = 0 are "practical", c = 3 and d = ln 200 are the
    matrix Chernoff bound for a failure probability of 0.01. Resistances are estimated in H, and
    again at each resample.

    References
    ----------
    .. [1] R. Kyng, J. Pachocki, R. Peng and S. Sachdeva, "A framework for analyzing
       resparsification algorithms", 2016, arXiv:1611.06940.
    .. [2] M. B. Cohen, C. Musco and J. Pachocki, "Online row sampling", 2016, arXiv:1604.05448.
    .. [3] D. Calandriello, A. Lazaric and M. Valko, "Large-scale semi-supervised learning with
       online spectral graph sparsification", 2015.
    .. [4] D. A. Spielman and N. Srivastava, "Graph sparsification by effective resistances",
       SIAM Journal on Computing 40, 2011.

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

    Edges that fade:

    >>> fading = StreamingSparsifier(half_life=10, random_state=0)
    >>> fading.update([0, 1], [1, 2], t=[0.0, 20.0]).snapshot().edges()[2]
    array([0.25, 1.  ])
    """

    is_sample = True
    rereadable = False

    def __init__(
        self,
        *,
        n_nodes: int | None = None,
        epsilon: float = EPSILON,
        max_edges: int | None = None,
        memory: int | str | None = None,
        scheme: Literal["resample", "online", "paper"] = "resample",
        constants: Literal["practical", "theory"] = "practical",
        random_state: object = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        half_life: Duration | None = None,
        horizon: Duration | None = None,
    ) -> None:
        options = SparsifierOptions(
            n_nodes, epsilon, max_edges, memory, scheme, constants, n_jobs, verbose,
            half_life, horizon,
        )  # fmt: skip
        seed = check_seed(random_state)
        self._start(options, seed, _make_sampler(options, seed))

    def _start(self, options: SparsifierOptions, seed: int, sampler: Any) -> None:
        self.options, self.seed = options, seed
        self.nodes: NodeTable | None = None
        self._core = sampler
        self._is_cut_off = False
        self._snapshot: Sample | None = None
        self._make_lock()

    def _cut_off(self) -> None:
        if not self._core.changes_at_once:
            _core.never_free(self._core)  # its destructor could fail
            self._is_cut_off = True

    def _sampler(self) -> Any:
        """Return the sampler, unless a fork has left it half-changed."""
        if self._is_cut_off:
            refuse_cut_off("sparsifier")
        return self._core

    def __repr__(self) -> str:
        title, facts = self._known()
        return title if facts.get("edges seen") == 0 else super().__repr__()

    def _title(self) -> str:
        return f"StreamingSparsifier({self.options.describe()})"

    def _facts(self) -> dict[str, Any]:
        if not self._lock.acquire(blocking=False):  # another thread updates it
            return {"at work": True}
        try:
            seen, rows, nodes = (self.stats_[n] for n in ("n_edges_seen", "n_rows", "n_nodes"))
            return {"edges seen": seen, "rows": rows, "nodes": nodes}
        finally:
            self._lock.release()

    def update(
        self,
        edges: object,
        v: ArrayLike | None = None,
        w: ArrayLike | None = None,
        t: ArrayLike | None = None,
    ) -> Self:
        """Take in edges.

        Parameters
        ----------
        edges : stream, Graph, tuple (u, v), (u, v, w) or (u, v, w, t), or array-like of int
            A stream is any iterable of such tuples, for example ``read_edges(...)`` or a list. An
            array holds one end of each edge; `v` then holds the other.
        v : array-like of int, optional
            The other ends.
        w : array-like of float, optional
            Weights, 0 or from 1.2e-38 to 1e27; all 1 by default. Self-loops and edges of weight 0
            are dropped and counted.
        t : array-like of numbers or dates, optional
            Times, in any order; only a sparsifier with a half-life or a horizon uses them.

        Returns
        -------
        self : StreamingSparsifier

        Raises
        ------
        ValueError
            Names the first edge that cannot be used. No edge of its batch has been taken in then.
            Also raised if the ids of a stream are numbered by another `NodeTable` than before, and
            if a time is a million half-lives or horizons after all earlier ones.

        Examples
        --------
        >>> from ohmlearn import StreamingSparsifier
        >>> sparsifier = StreamingSparsifier(random_state=0).update([0, 1, 2], [1, 2, 2])
        >>> sparsifier = sparsifier.update([([2], [0], [0.5]), ([0], [3])])
        >>> sparsifier.n_edges_seen_, sparsifier.weight_seen_
        (4, 3.5)
        """
        given = edges if v is None else (edges, v, w, t)
        found = as_edges(given, self.nodes, is_first=self.n_edges_seen_ == 0)
        if found.is_sample or not found.is_local:
            how = "merge" if found.is_sample else "the method sparsify of the edges, and merge"
            raise TypeError(f"update takes edges, got a {type(edges).__name__}; use {how}")
        found.feed(self)
        return self

    def _columns(self) -> dict[str, Any]:
        return self.snapshot()._columns()

    def batches(self, n_jobs: int = 1) -> Iterator[Batch]:
        """Yield the edges of `snapshot`."""
        yield Batch(*self.snapshot().edges())

    def feed(self, sparsifier: StreamingSparsifier) -> StreamingSparsifier:
        """Return this sparsifier, merged into the other one if that has edges."""
        return self if sparsifier.n_edges_seen_ == 0 else sparsifier.merge(self)

    def adopt(self, nodes: NodeTable | None) -> None:
        """Use the numbering of a stream, or refuse it if it is not the one used so far."""
        if nodes is None or nodes is self.nodes:
            return
        if self.nodes is not None and self._sampler().position > 0:
            raise ValueError(
                "these edges number their nodes by another NodeTable than the edges before, so the "
                "same number would mean two nodes; read them with read_edges(..., "
                "nodes=first.nodes), where first is the stream that was read before"
            )
        self.nodes = nodes

    @in_turn
    def add_points(self, n_nodes: int, feed: Callable[[_core.Sampler], None]) -> bool:
        """Let a function compute edges between points inside of the sampler, if that is possible.

        Returns
        -------
        bool
            False if this sparsifier takes batches only: with times, and with the paper's scheme.
        """
        limit, sampler = self.options.n_nodes, self._sampler()
        if not isinstance(sampler, _core.Sampler) or self.options.has_times:
            return False
        if limit is not None and n_nodes > limit:
            raise InputError(
                f"the points have {n_nodes} nodes, but {Param('n_nodes', limit)}; raise "
                f"{Param('n_nodes')}, or leave it out"
            )
        self.options.check_room(n_nodes)
        with self._changing():
            self._snapshot = None
            feed(sampler)
        return True

    @in_turn
    def add(self, batch: Batch, number: int = 0, *, is_checked: bool = False) -> None:
        """Take in a batch.

        A batch with a fault changes nothing; after an interrupt or lack of memory the edges up to
        some point count.

        Parameters
        ----------
        batch : Batch
            Its arrays have types that the kernels take; ids, weights and times are checked here.
        number : int
            Its place in the stream, for messages.
        is_checked : bool
            Whether a log has checked its weights and times.
        """
        sampler, options = self._sampler(), self.options
        times = (batch.need_times(number),) if options.has_times else ()
        arrays = (batch.u, batch.v, batch.w, *times)
        limit = MOST_NODES if options.n_nodes is None else options.n_nodes
        smallest = 0.0 if is_checked else options.smallest_weight
        fault = _core.find_fault(limit, options.threads, batch.u, batch.v, batch.w, smallest)
        if fault is not None:
            raise_edge_fault(fault, limit, EdgeNames(), smallest)
        if times and not is_checked:
            check_arrivals(times[0], sampler.latest, options)
        n_edges = len(batch.u)
        if options.n_nodes is None and options.budget > 0 and n_edges > 0:
            options.check_room(int(max(batch.u.max(), batch.v.max())) + 1)
        start = printed = time.perf_counter()
        for first in range(0, n_edges, PIECE):
            with self._changing():
                self._snapshot = None
                part = slice(first, first + PIECE)
                sampler.update(*(None if array is None else array[part] for array in arrays))
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
    def snapshot(self, *, at: object = None, since: object = None) -> Graph:
        """Return H as a graph, resampled to the target. It has all edges if they are no more.

        The sparsifier itself does not change. The graph is kept until the next update, so that
        asking again costs nothing. Its attribute `view` says which edges count, and how much.

        Parameters
        ----------
        at : number or date, optional
            With a half-life: the time of the graph, not before the latest edge, which is the
            default. More than 35 half-lives after it, H has edges that are gone already.
        since : number or date, optional
            With a horizon: the time of the oldest edges that count, at most the horizon before the
            latest edge, which is the default.

        Examples
        --------
        >>> from ohmlearn import StreamingSparsifier
        >>> StreamingSparsifier(random_state=0).update([0, 1], [1, 2]).snapshot().edges()
        (array([0, 1], dtype=int32), array([1, 2], dtype=int32), array([1., 1.]))
        >>> fading = StreamingSparsifier(half_life=10, random_state=0).update([0], [1], t=[5])
        >>> fading.snapshot(at=25).edges()[2]
        array([0.25])
        """
        return self.sample(at=at, since=since).graph

    def view(self, *, at: object = None, since: object = None) -> TimeView | None:
        """Return which edges ``snapshot(at=at, since=since)`` counts, and how much; None: all."""
        return choose_view(self.options, self.latest_, at, since)

    @in_turn
    def sample(self, *, at: object = None, since: object = None) -> Sample:
        """Return the snapshot together with what is known of its error."""
        sampler, options = self._sampler(), self.options
        view = choose_view(options, self.latest_, at, since)
        if self._snapshot is None or self._snapshot.graph.view != view:
            if view is None:
                *csr, probability, is_whole = sampler.snapshot()
            else:
                moment = view.earliest if view.half_life is None else view.at
                *csr, probability, is_whole = sampler.snapshot(moment)
            graph = adopt_csr(*csr)
            graph.nodes, graph.view = self.nodes, view
            how = (LOOSE[options.scheme], self.seed, options.threads, is_whole)
            self._snapshot = Sample(graph, probability, *how)
        return self._snapshot

    @in_turn
    def replicate(
        self, number: int = 0, *, amplitude: float = 0.5, at: object = None, since: object = None
    ) -> Graph:
        """Return the snapshot with an error added that another sample of edges could have made.

        No edge is read: the sparsifier knows with which probability it has kept each edge. Let d be
        the difference between the answers on a replicate and on the snapshot. Then d / amplitude
        estimates the error of the answer on the snapshot. The answers on two independent samples
        differ by the square root of two times that.

        Parameters
        ----------
        number : int
            Replicates with different numbers are independent of each other.
        amplitude : float
            At most 1. With 1, some weights become 0, so the replicate may be disconnected.
        at, since : number or date, optional
            As for `snapshot`.

        Examples
        --------
        >>> from ohmlearn import StreamingSparsifier, gallery
        >>> graph = gallery.complete(300)
        >>> sparsifier = StreamingSparsifier(epsilon=0.9, random_state=0).update(graph)
        >>> sparsifier.replicate().n_edges == sparsifier.snapshot().n_edges
        True
        """
        return self.sample(at=at, since=since).replicate(number, amplitude)

    def merge(self, *others: StreamingSparsifier) -> Self:
        """Take in everything that other sparsifiers have seen; `others` do not change.

        All should have different seeds, because equal seeds toss the same coins. Several at once
        cost one resample.

        Parameters
        ----------
        *others : StreamingSparsifier
            Sparsifiers with the same scheme, half-life and horizon, and the same numbering of
            nodes.

        Examples
        --------
        >>> from ohmlearn import StreamingSparsifier
        >>> monday = StreamingSparsifier(random_state=1).update([0], [1])
        >>> tuesday = StreamingSparsifier(random_state=2).update([1], [2])
        >>> monday.merge(tuesday).snapshot().n_edges
        2
        """
        for other in others:
            self._check_other(other)
        with ExitStack() as locks:
            # Always locked in the same order, or two merges at once could wait for each other.
            every: set[StreamingSparsifier] = {self, *others}
            for one in sorted(every, key=id):
                locks.enter_context(one._lock)
            mine, theirs = self._sampler(), [other._sampler() for other in others]
            for other in others:
                self.nodes = join_tables(self.nodes, other.nodes)
            self.options.check_room(max(sampler.n_nodes for sampler in (mine, *theirs)))
            with self._changing():
                self._snapshot = None
                if theirs:
                    mine.merge(theirs)
        return self

    def _check_other(self, other: object) -> None:
        """Refuse a sparsifier that cannot be merged into this one."""
        if not isinstance(other, StreamingSparsifier):
            raise TypeError(
                f"merge needs a StreamingSparsifier, got {type(other).__name__}; use update for "
                f"edges"
            )
        if other is self:
            raise ValueError("a sparsifier cannot be merged with itself; make one for each stream")
        for name, number in (("scheme", "scheme"), ("half_life", "decay"), ("horizon", "reach")):
            if getattr(self.options, number) != getattr(other.options, number):
                values = [repr(getattr(one.options, name)) for one in (self, other)]
                raise InputError(
                    f"only sparsifiers with the same {Param(name)} can be merged, got "
                    f"{' and '.join(values)}"
                )

    @property
    def n_edges_seen_(self) -> int:
        """Number of edges taken in, without self-loops and edges of weight zero."""
        return int(self.stats_["n_edges_seen"])

    @property
    def weight_seen_(self) -> float:
        """Sum of the weights of these edges; with a half-life, as they are at `latest_`."""
        return self.stats_["weight_seen"]

    @property
    @in_turn
    def latest_(self) -> float | None:
        """The latest time seen, dates in seconds since 1970; None before it, or without times."""
        latest = self._sampler().latest if self.options.has_times else -math.inf
        return None if latest == -math.inf else float(latest)

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

        It takes about as long as two resamples when it is first asked for. It is not a bound,
        because it knows only the edges of H, and the probabilities with which they were kept:
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
        return self.sample().epsilon

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
            # kFraction in cpp/sampling/windows.cpp
            fraction = 1.0 if options.reach is None else 0.5
            epsilon = math.sqrt(fraction * constant * logarithm / sampler.beta)
        faded = {"n_faded_on_arrival": sampler.n_faded} if options.decay < math.inf else {}
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
            **faded,
        }

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
        with refuse_damaged(path, "sparsifier", "sparsify the edges again"):
            return cls.from_state(arrays)

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
        found._start(options, seed, _make_sampler(options, seed, state))
        options.check_room(found._core.n_nodes)
        if "node_ids" in state or "node_offsets" in state:
            found.nodes = NodeTable.from_state(state)
        return found

    @in_turn
    def copy(self, *, n_jobs: int | Literal["same"] | None = "same") -> Self:
        """Return an independent sparsifier with the same state.

        Both continue alike. They share the table of nodes, which only ever grows.

        Parameters
        ----------
        n_jobs : int, None or "same"
            Number of threads of the copy; the results do not depend on it.

        Examples
        --------
        >>> from ohmlearn import StreamingSparsifier
        >>> first = StreamingSparsifier(random_state=0).update([0, 1], [1, 2])
        >>> second = first.copy().update([2], [3])
        >>> first.n_edges_seen_, second.n_edges_seen_
        (2, 3)
        """
        options = self.options if n_jobs == "same" else replace(self.options, n_jobs=n_jobs)
        found = type(self).__new__(type(self))
        found._start(options, self.seed, self._sampler().copy(options.threads))
        found.nodes = self.nodes
        return found

    def __getstate__(self) -> dict[str, Any]:
        return self.get_state()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(self.from_state(state).__dict__)
        self._make_lock()


def _make_sampler(
    options: SparsifierOptions, seed: int, state: dict[str, Any] | None = None
) -> Any:
    """Return a sampler that continues from a state, or a new one."""
    n, threads = options.n_nodes, options.threads
    with naming_size(f"{n} nodes"):
        if options.scheme == "paper":
            assert n is not None
            sketch = KelnerLevin(
                n,
                options.epsilon,
                constant=PAPER_CONSTANTS[options.constants],
                random_state=seed,
                n_jobs=threads,
            )
            return sketch if state is None else sketch.set_state(state)
        constant, offset = CONSTANTS[options.constants]
        common: dict[str, Any] = {
            "n_nodes": n or 0,
            "seed": seed,
            "epsilon": options.epsilon,
            "constant": constant,
            "offset": offset,
            "max_rows": options.budget,
            "threads": threads,
            "grows": n is None,
            "state": state,
        }
        if options.reach is not None:
            return _core.WindowSampler(**common, horizon=options.reach)
        retracts = options.scheme == "resample"
        return _core.Sampler(**common, retracts=retracts, half_life=options.decay)


def sparsify(
    edges: object,
    *,
    epsilon: float = EPSILON,
    n_nodes: int | None = None,
    max_edges: int | None = None,
    memory: int | str | None = None,
    scheme: Literal["resample", "online", "paper"] = "resample",
    constants: Literal["practical", "theory"] = "practical",
    random_state: object = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    half_life: Duration | None = None,
    horizon: Duration | None = None,
    at: object = None,
    since: object = None,
) -> Graph:
    """Sparsify edges in one pass.

    Parameters
    ----------
    edges : stream, Graph, or tuple (u, v) or (u, v, w) of arrays
        As for `StreamingSparsifier.update`.
    epsilon, n_nodes, max_edges, memory, scheme, constants, random_state, n_jobs, verbose, \
half_life, horizon
        As for `StreamingSparsifier`.
    at, since : number or date, optional
        As for `StreamingSparsifier.snapshot`.

    Returns
    -------
    Graph
        The sparsifier. Its attribute `nodes` holds the ids, if `edges` has ids.

    Examples
    --------
    >>> from ohmlearn import gallery, sparsify
    >>> sparsify(gallery.complete(500), epsilon=0.9, random_state=0).n_edges < 15_000
    True
    """
    edges = as_edges(edges)
    if n_nodes is None and edges.nodes_are_final:
        n_nodes = edges.n_nodes
    sparsifier = StreamingSparsifier(
        n_nodes=n_nodes,
        epsilon=epsilon,
        max_edges=max_edges,
        memory=memory,
        scheme=scheme,
        constants=constants,
        random_state=random_state,
        n_jobs=n_jobs,
        verbose=verbose,
        half_life=half_life,
        horizon=horizon,
    )
    h = sparsifier.update(edges).snapshot(at=at, since=since)
    if edges.loses_weights and (n_parts := h.components()[0]) > 1:
        warn(
            f"H has {n_parts} components: weights between them are below "
            f"{_core.SMALLEST_WEIGHT:.2g}, which count as 0; give a smaller gamma of the kernel"
        )
    return h
