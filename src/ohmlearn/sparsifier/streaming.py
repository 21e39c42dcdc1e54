"""A spectral sparsifier of a stream of edges, kept in one pass and bounded memory."""

import json
import math
import os
import sys
import time
from collections.abc import Iterable
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ohmlearn import _core
from ohmlearn._sharing import Shared, in_turn, refuse_cut_off
from ohmlearn._storage import read_arrays, write_arrays
from ohmlearn.graph import Graph
from ohmlearn.graph.batches import batches_of
from ohmlearn.sparsifier.paper import PaperSampler
from ohmlearn.sparsifier.state import PARAMETERS, read_parameters
from ohmlearn.validation.edges import (
    MAX_NODES,
    EdgeNames,
    check_n_nodes,
    check_node_ids,
    check_same_length,
    check_weights,
    raise_edge_fault,
    refuse_other_graph,
    split_batch,
)
from ohmlearn.validation.parameters import (
    check_count,
    check_fraction,
    check_memory,
    check_n_jobs,
    check_option,
    check_seed,
    naming_size,
)

__all__ = ["MAX_EDGES", "StreamingSparsifier", "sparsify"]

SCHEMES = ("resample", "online", "paper")
# beta = constant (ln n + offset) / epsilon^2: the matrix Chernoff bound at failure probability
# 0.01, for independent coins; and what measured epsilon asks for (docs/calibration.md).
CONSTANTS = {"theory": (3.0, math.log(2 / 0.01)), "practical": (1.2, 0.0)}
# Factor on the copies of the scheme "paper": as printed, and what measured epsilon asks for.
PAPER_CONSTANTS = {"theory": 1.0, "practical": 0.1}
# Bytes at the peak of a resample, per row of the target (2.5 times as many are held) and per node.
ROW_BYTES, NODE_BYTES = 160, 400
MAX_EDGES = 2**53  # as a budget: far more than fit, and counted exactly
NOTHING = np.empty(0, dtype=np.int32)
PIECE = 1 << 22  # edges between two looks at the keyboard


class StreamingSparsifier(Shared):
    """Keeps a small graph H whose energy x'Lx is near that of all edges seen, for every x.

    Edges come in batches of any size and are forgotten; memory depends on the number of nodes and
    the target, not on the number of edges. The same seed gives the same H to the last bit, however
    the stream is cut into batches and whatever the number of threads.

    Threads may share a sparsifier and take turns. The arrays of a call must not be changed by
    another thread before it returns. A forked child can use the sparsifier, unless another thread
    was in `update` or `merge` at the fork: then each use of it in the child is a RuntimeError.

    Parameters
    ----------
    n_nodes : int, optional
        Number of nodes if it is known; else nodes may appear at any time.
    epsilon : float
        Aim at (1 - epsilon) x'L_G x <= x'L_H x <= (1 + epsilon) x'L_G x; between 0 and 1. Not used
        with a budget. It is met by at least 95 of 100 runs in all graphs that were tried, for any
        contrast of weights and any order of edges that does not depend on H (docs/calibration.md);
        `certify` measures it for the sparsifier at hand.
    max_edges : int, optional
        Budget: about so many edges in H, at least two for each node.
    memory : int or str, optional
        Budget as peak memory of the sparsifier, in bytes or like "500MB"; needs `n_nodes`.
    scheme : {"resample", "online", "paper"}
        "resample" thins out all rows now and then, "online" never drops a row once kept,
        "paper" is Kelner and Levin's with copies of edges; it needs `n_nodes` and takes no budget.
    constants : {"practical", "theory"}
        How many rows `epsilon` stands for: calibrated by measurement, or what a proof asks for
        that is about independent coins, tossed once.
    random_state : int, Generator, RandomState or None
    n_jobs : int, optional
        Threads, read as scikit-learn does.
    verbose : int
        1 prints progress to stderr during long updates.

    Examples
    --------
    >>> import numpy as np
    >>> from ohmlearn.sparsifier import StreamingSparsifier
    >>> u, v = np.triu_indices(1000, 1)
    >>> sparsifier = StreamingSparsifier(n_nodes=1000, epsilon=0.8, random_state=0).update(u, v)
    >>> sparsifier.n_edges_seen_
    499500
    >>> sparsifier.snapshot().n_edges < 30_000
    True
    """

    def __init__(
        self,
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
        self.n_nodes = n_nodes
        self.epsilon = epsilon
        self.max_edges = max_edges
        self.memory = memory
        self.scheme = scheme
        self.constants = constants
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self._is_cut_off = False
        self._share()

    def _cut_off(self) -> None:
        if self._core.changes_at_once:
            return
        _core.never_free(self._core)  # its destructor could fail
        self._is_cut_off = True

    def _sampler(self) -> _core.Sampler | PaperSampler:
        """Return the sampler; the first use checks the parameters and makes it."""
        if self._is_cut_off:
            refuse_cut_off("sparsifier")
        if not hasattr(self, "_core"):
            self._core = self._make()
        return self._core

    def _make(self, state: dict[str, Any] | None = None) -> _core.Sampler | PaperSampler:
        """Return a sampler that continues from `state`, or a new one."""
        n = None if self.n_nodes is None else check_n_nodes(self.n_nodes, NOTHING, NOTHING)
        epsilon = check_fraction("epsilon", self.epsilon)
        check_option("scheme", self.scheme, SCHEMES)
        constant, offset = CONSTANTS[check_option("constants", self.constants, CONSTANTS)]
        if self.max_edges is not None and self.memory is not None:
            raise ValueError("max_edges and memory are two ways to say the budget: give one")
        budget = 0
        if self.max_edges is not None:
            budget = check_count("max_edges", self.max_edges, MAX_EDGES)
        elif self.memory is not None:
            if n is None:
                raise ValueError("memory is shared between nodes and edges: give n_nodes, too")
            bytes_left = check_memory("memory", self.memory) - n * NODE_BYTES
            budget = bytes_left // ROW_BYTES
            if budget < 2 * n:
                raise ValueError(
                    f"memory={self.memory!r} leaves room for {max(budget, 0)} edges among {n} "
                    f"nodes, fewer than two a node; give at least "
                    f"{n * (NODE_BYTES + 2 * ROW_BYTES)} bytes"
                )
        if n is not None:
            self._check_room(budget, n)
        self._budget = budget
        if budget and self.scheme != "resample":
            raise ValueError(f'a budget needs scheme="resample", got scheme={self.scheme!r}')
        self._seed = check_seed(self.random_state)
        self._threads = check_n_jobs(self.n_jobs)
        self._scale = (constant, offset)
        if self.scheme == "paper":
            if n is None:
                raise ValueError('scheme="paper" must know the number of nodes: give n_nodes')
            copies = PAPER_CONSTANTS[self.constants]
            paper = (n, epsilon, self._seed, copies, self._threads)
            return PaperSampler(*paper) if state is None else PaperSampler.from_state(state, *paper)
        options = (
            n or 0,
            self._seed,
            epsilon,
            constant,
            offset,
            budget,
            self.scheme == "resample",
            self._threads,
            n is None,
        )
        with naming_size(f"n_nodes = {n}"):
            if state is None:
                return _core.Sampler(*options)
            return _core.Sampler.from_state(state, *options)

    def _check_room(self, budget: int, n_nodes: int) -> None:
        """Refuse a budget that no connected graph with some weight to choose fits in."""
        if 0 < budget < 2 * n_nodes:
            raise ValueError(
                f"max_edges = {budget} is fewer than two edges for each of {n_nodes} nodes; give "
                f"at least {2 * n_nodes}"
            )

    @in_turn
    def update(self, u: Any, v: ArrayLike | None = None, w: ArrayLike | None = None) -> Self:
        """Take in a batch of edges.

        Parameters
        ----------
        u, v : array-like of int
            End nodes. Or `u` alone: a Graph, or a batch, which is a tuple (u, v) or (u, v, w).
        w : array-like of float, optional
            Weights, at most 1e27; all 1 by default. Self-loops and weights that are zero, which
            all below 1e-38 count as, are dropped and counted.

        Raises
        ------
        ValueError
            Names the first edge that cannot be taken. Nothing of the batch has been taken then.

        Examples
        --------
        >>> from ohmlearn import StreamingSparsifier
        >>> sparsifier = StreamingSparsifier(random_state=0).update([0, 1, 2], [1, 2, 2])
        >>> sparsifier = sparsifier.update(([2], [0], [0.5]))
        >>> sparsifier.n_edges_seen_, sparsifier.weight_seen_
        (3, 2.5)
        """
        sampler: Any = self._sampler()
        if v is None and isinstance(u, Graph):
            u, v, w = u.edges()
        elif v is None:
            u, v, w = split_batch(refuse_other_graph(u), "the batch")
        a, b = check_node_ids(u, "u"), check_node_ids(v, "v")
        if a.dtype != b.dtype:
            a, b = a.astype(np.int64), b.astype(np.int64)
        weights = None if w is None else check_weights(w, "w")
        check_same_length(u=a, v=b, w=weights)
        limit = MAX_NODES if self.n_nodes is None else self.n_nodes
        arrays: tuple[Any, ...] = (a, b) if weights is None else (a, b, weights)
        fault = _core.find_fault(limit, self._threads, *arrays)
        if fault is not None:
            raise_edge_fault(fault, limit, EdgeNames())
        if self.max_edges is not None and self.n_nodes is None and len(a) > 0:
            self._check_room(self.max_edges, int(max(a.max(), b.max())) + 1)
        start = told = time.perf_counter()
        for first in range(0, len(a), PIECE):
            with self._changing():
                sampler.update(*(array[first : first + PIECE] for array in arrays))
            now = time.perf_counter()
            if self.verbose and now - told > 1.0:
                told = now
                rate = (first + PIECE) / (now - start)
                print(
                    f"{sampler.position:,} edges seen, {rate / 1e6:.1f} M/s, "
                    f"{sampler.n_rows:,} rows, {sampler.n_resamples} resamples",
                    file=sys.stderr,
                )
        return self

    @in_turn
    def snapshot(self) -> Graph:
        """Return H as a graph, resampled to the target; nothing changes for what follows.

        Examples
        --------
        >>> from ohmlearn.sparsifier import StreamingSparsifier
        >>> StreamingSparsifier(random_state=0).update([0, 1], [1, 2]).snapshot().edges()
        (array([0, 1], dtype=int32), array([1, 2], dtype=int32), array([1., 1.]))
        """
        return Graph._from_csr(*self._sampler().snapshot())

    def merge(self, other: "StreamingSparsifier") -> Self:
        """Take in all that another sparsifier has seen; `other` stays as it is.

        The two should have different seeds: equal ones toss the same coins.

        Parameters
        ----------
        other : StreamingSparsifier
            Of the same scheme; its nodes are numbered alike.

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
                f"merge needs a StreamingSparsifier, got {type(other).__name__}; edges are taken "
                f"in by update"
            )
        if other is self:
            raise ValueError("a sparsifier cannot be merged with itself; make one for each stream")
        if self.scheme != other.scheme:
            raise ValueError(
                f"only sparsifiers of one scheme can be merged, got {self.scheme!r} and "
                f"{other.scheme!r}; make both with the same"
            )
        # Both locked in one order, or two merges at once could wait for each other.
        low, high = (self, other) if id(self) < id(other) else (other, self)
        with low._lock, high._lock:
            mine: Any = self._sampler()
            theirs: Any = other._sampler()
            self._check_room(self._budget, max(mine.n_nodes, theirs.n_nodes))
            with self._changing():
                mine.merge(theirs)
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the sparsifier to a file: whole, with a checksum, or not at all.

        Parameters
        ----------
        path : str or path
            Any name; a file that is there is replaced.

        Examples
        --------
        >>> import tempfile
        >>> from ohmlearn.sparsifier import StreamingSparsifier
        >>> sparsifier = StreamingSparsifier(random_state=0).update([0, 1], [1, 2])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     sparsifier.save(f"{folder}/h.ohm")
        ...     StreamingSparsifier.load(f"{folder}/h.ohm").n_edges_seen_
        2
        """
        self._save(path)

    @in_turn
    def _save(self, path: str | os.PathLike[str], **more: NDArray[Any]) -> None:
        """Save, with arrays of somebody else's that `load` passes over."""
        state = self._get_arrays()
        parameters = {name: getattr(self, name) for name in PARAMETERS} | {"seed": self._seed}
        text = json.dumps(parameters, default=np.generic.item)  # some may be numbers of numpy
        write_arrays(path, {**state, "parameters": np.array(text), **more})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a saved sparsifier; it goes on as if it had never stopped, to the last bit.

        Parameters
        ----------
        path : str or path
            What `save` has written; see there for an example.

        Raises
        ------
        ValueError
            Names the file and what in it no sparsifier can have. It is safe to load any file.
        """
        arrays = read_arrays(path)
        try:
            parameters = read_parameters(arrays)
            seed = parameters.pop("seed")
            loaded = cls(**parameters, random_state=seed)
            loaded._set_arrays(arrays)
        except (ValueError, ArithmeticError, TypeError) as error:  # numbers may be of any size
            raise ValueError(
                f"{path} holds no sparsifier that can continue: {error}; restore it from a copy, "
                f"or sparsify the edges again"
            ) from error
        return loaded

    def _get_arrays(self) -> dict[str, Any]:
        """Return the state of the sampler by names."""
        return self._sampler().get_state()

    def _set_arrays(self, arrays: dict[str, Any]) -> None:
        """Continue from a state; ValueError says what no sampler with these parameters has."""
        sampler = self._make(arrays)
        self._check_room(self._budget, sampler.n_nodes)
        self._core = sampler

    @property
    @in_turn
    def n_edges_seen_(self) -> int:
        """Edges taken in, without self-loops and zero weights."""
        sampler = self._sampler()
        return sampler.position - sampler.n_self_loops - sampler.n_zero_weights

    @property
    @in_turn
    def weight_seen_(self) -> float:
        """Sum of their weights."""
        return self._sampler().weight_seen

    @property
    @in_turn
    def n_rows_(self) -> int:
        """Rows held at present."""
        return self._sampler().n_rows

    @property
    @in_turn
    def n_resamples_(self) -> int:
        """Resamples so far, snapshots not counted."""
        return self._sampler().n_resamples

    @property
    @in_turn
    def epsilon_nominal_(self) -> float:
        """The epsilon that asks for the present sampling rate; 0 while nothing was dropped.

        With a budget it is the `epsilon` that would have led to the same rate; otherwise it is the
        one asked for. Nothing is measured: `certify` does that.
        """
        sampler = self._sampler()
        if self.scheme != "paper" and sampler.beta == math.inf:
            return 0.0
        if self.max_edges is None and self.memory is None:
            return self.epsilon
        constant, offset = self._scale
        return math.sqrt(constant * (math.log(max(2, sampler.n_nodes)) + offset) / sampler.beta)

    @property
    @in_turn
    def stats_(self) -> dict[str, float]:
        """All counters."""
        sampler = self._sampler()
        return {
            "n_nodes": sampler.n_nodes,
            "n_edges_seen": self.n_edges_seen_,
            "weight_seen": self.weight_seen_,
            "n_self_loops_dropped": sampler.n_self_loops,
            "n_zero_weights_dropped": sampler.n_zero_weights,
            "n_rows": sampler.n_rows,
            "row_capacity": sampler.capacity,
            "n_resamples": sampler.n_resamples,
            "epsilon_nominal": self.epsilon_nominal_,
        }

    @in_turn
    def __getstate__(self) -> dict[str, Any]:
        state = self._state()
        if "_core" in state:
            state["_core"] = self._get_arrays()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        needed = (*PARAMETERS, "random_state", *(["_seed"] if "_core" in state else []))
        missing = [name for name in needed if name not in state]
        if missing or not isinstance(state.get("_core", {}), dict):
            raise ValueError(f"no pickle of a sparsifier: it has no {(*missing, 'arrays')[0]}")
        self.__dict__.update({name: value for name, value in state.items() if name != "_core"})
        self._is_cut_off = False
        self._share()
        if "_core" in state:
            self.random_state = state["_seed"]
            self._set_arrays(state["_core"])
            self.random_state = state["random_state"]


def sparsify(
    edges: Graph | tuple[Any, ...] | Iterable[tuple[Any, ...]],
    epsilon: float = 0.5,
    *,
    n_nodes: int | None = None,
    max_edges: int | None = None,
    memory: int | str | None = None,
    scheme: Literal["resample", "online", "paper"] = "resample",
    constants: Literal["practical", "theory"] = "practical",
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Graph:
    """Sparsify edges in one call and one reading.

    Parameters
    ----------
    edges : Graph, tuple (u, v) or (u, v, w) of arrays, or iterable of such tuples
    epsilon : float
        Accuracy to aim at, between 0 and 1.
    n_nodes, max_edges, memory, scheme, constants, random_state, n_jobs, verbose
        As for `StreamingSparsifier`.

    Returns
    -------
    Graph
        The sparsifier, as `StreamingSparsifier.snapshot` returns it.

    Examples
    --------
    >>> from ohmlearn import gallery
    >>> from ohmlearn.sparsifier import sparsify
    >>> sparsify(gallery.complete(500), epsilon=0.9, random_state=0).n_edges < 15_000
    True
    """
    if n_nodes is None and isinstance(edges, Graph):
        n_nodes = edges.n_nodes
    sparsifier = StreamingSparsifier(
        n_nodes, epsilon, max_edges, memory, scheme, constants, random_state, n_jobs, verbose
    )
    for batch in batches_of(edges):
        sparsifier.update(batch)
    return sparsifier.snapshot()
