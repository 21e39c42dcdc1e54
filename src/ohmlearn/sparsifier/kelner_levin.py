"""Kelner and Levin's sparsification of a stream, which keeps copies of edges: the scheme "paper".

This is Algorithm 2 of Calandriello, Lazaric and Valko [1]_, with the loops of Algorithm 1 that
collect blocks of edges. Every edge is treated as N copies. Each copy is kept with a probability p
that only decreases, because resistances decrease as the graph grows:

    p' = min(p, a R / (alpha (n - 1))),   q' ~ Binomial(q, p' / p),   weight = q' a / (N p').

Here a is the original weight of the edge, q the number of copies left, and R the effective
resistance in H + A, where H is the sparsifier so far and A the block of edges read since. New edges
have p = 1 and q = N, so that the same rule covers both loops of Algorithm 2. Given the past, the
expected new weight equals the old weight for any value of R. The weights printed in the paper
use p' before taking the minimum. The resulting weights are too low.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ohmlearn import _core
from ohmlearn._arrays_file import check_arrays
from ohmlearn._core import LARGEST_WEIGHT, SMALLEST_WEIGHT
from ohmlearn._display import Shown
from ohmlearn.checks.edge_arrays import (
    EdgeNames,
    check_n_nodes,
    check_node_ids,
    check_same_length,
    check_weights,
    raise_edge_fault,
)
from ohmlearn.checks.parameters import (
    check_count,
    check_fraction,
    check_n_jobs,
    check_option,
    check_positive,
    check_seed,
)
from ohmlearn.errors import InputError, Param
from ohmlearn.graph import Graph
from ohmlearn.resistance import effective_resistance

Floats = NDArray[np.float64]
Rows = NDArray[np.void]
State = Mapping[str, NDArray[Any]]

EDGE = [("u", np.int32), ("v", np.int32), ("a", np.float64)]
ROW = [*EDGE, ("p", np.float64), ("q", np.int64)]
PRINTED_ROW = [*ROW, ("p_printed", np.float64)]
MAX_COPIES = 2**53
MOST_EDGES = 2**60  # as in the C++ sampler
PARAMETERS = ("n_nodes", "epsilon", "constant", "printed")  # must be equal to merge two sketches
COUNTERS = {  # their names in files
    "n_resamples": "n_blocks",
    "position": "n_edges_seen",
    "n_self_loops": "n_self_loops_dropped",
    "n_zero_weights": "n_zero_weights_dropped",
}


class KelnerLevin(Shown):
    """Algorithm 2 of the Sparse-HFS paper: the sparsifier of Kelner and Levin.

    The edges of a stream wait until there is a block of n ln(n)² / epsilon² of them. Then Algorithm
    2 resamples the sparsifier H and the block together. Every edge e counts as N = n ln(n)² / ((1 -
    epsilon)² epsilon²) copies. With R an estimate, within a factor alpha, of the effective
    resistance of its ends in H and the block, and alpha = 1 / (1 - epsilon), a copy is kept with
    the probability

        p' = min(p, a R / (alpha (n - 1))),

    and the q' copies that are left weigh q' a / (N p').

    With ``StreamingSparsifier(scheme="paper")`` the same method is behind the interface of the
    other sparsifiers; there, ``constants="practical"``, the default, takes a tenth of the copies,
    as ``constant=0.1`` does here.

    Parameters
    ----------
    n_nodes : int
        The number n.
    epsilon : float
        Target accuracy: energies should stay within a factor 1 ± epsilon. Between 0 and 1.
    constant : float
        Factor on the number of copies; 1 is the paper's.
    random_state : int, Generator, RandomState or None
        The random numbers depend only on the seed and the number of the block. Sparsifiers that
        will be merged should have different seeds, because with equal random numbers their errors
        add up.
    n_jobs : int, optional
        Number of threads, as in scikit-learn; the result does not depend on it.
    weight_rule : {"corrected", "printed"}
        "printed" computes weights from the probability before the minimum, as the paper prints it;
        it is kept to show that these weights are too low.
    block_size : int, optional
        Number of edges after which H is resampled; that of the paper by default.

    Attributes
    ----------
    n_copies : int
        The number N.
    block_size : int
        See the parameter. Self-loops and edges of weight 0 are dropped and not counted.
    n_resamples : int
        How often Algorithm 2 was run.
    position, n_self_loops, n_zero_weights : int
        Number of edges read, and how many of them were dropped.
    weight_seen : float
        Sum of the weights of edges that are not self-loops.
    seed : int

    References
    ----------
    .. [1] D. Calandriello, A. Lazaric and M. Valko, "Large-scale semi-supervised learning with
       online spectral graph sparsification", 2015. Algorithm 2.
    .. [2] J. A. Kelner and A. Levin, "Spectral sparsification in the semi-streaming setting",
       Theory of Computing Systems 53, 2013.
    .. [3] D. A. Spielman and N. Srivastava, "Graph sparsification by effective resistances",
       SIAM Journal on Computing 40, 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from ohmlearn.paper import KelnerLevin
    >>> u, v = np.triu_indices(40, 1)
    >>> sketch = KelnerLevin(n_nodes=40, epsilon=0.8, constant=0.2, random_state=0)
    >>> h = sketch.update(np.tile(u, 10), np.tile(v, 10), np.full(7800, 0.1)).graph()
    >>> sketch.n_resamples, sketch.n_copies, round(h.weights.sum() / 1560)
    (9, 4253, 1)
    """

    beta = math.inf  # this scheme has no sampling rate; probabilities only decrease
    changes_at_once = True  # an interrupted update leaves it as it was

    def __init__(
        self,
        n_nodes: int,
        epsilon: float,
        *,
        constant: float = 1.0,
        random_state: object = None,
        n_jobs: int | None = None,
        weight_rule: Literal["corrected", "printed"] = "corrected",
        block_size: int | None = None,
    ) -> None:
        nothing = np.empty(0, np.int32)
        self.n_nodes = n = check_n_nodes(n_nodes, nothing, nothing)
        self.epsilon = check_fraction("epsilon", epsilon)
        self.constant = check_positive("constant", constant)
        self.seed, self.n_jobs = check_seed(random_state), check_n_jobs(n_jobs)
        rule = check_option("weight_rule", weight_rule, ("corrected", "printed"))
        self.printed = rule == "printed"
        self.alpha = 1 / (1 - epsilon)
        square = epsilon**2  # 0 if it is too small for a float
        size = n * math.log(max(n, 2)) ** 2 / square if square > 0 else math.inf
        if self.constant * self.alpha**2 * size > MAX_COPIES:
            raise InputError(
                f"{Param('epsilon', epsilon)} is too close to 0 or 1 for the paper's sparsifier "
                f"with {n} nodes, because it needs more than {MAX_COPIES} copies of each edge"
            )
        given = None if block_size is None else check_count("block_size", block_size)
        self.block_size = given or math.ceil(size)
        self.capacity = self.block_size  # as the other samplers call it
        self.n_copies = math.ceil(self.constant * self.alpha**2 * size)
        self.n_resamples = self.position = self.n_self_loops = self.n_zero_weights = 0
        self.weight_seen = 0.0
        self._rows: Rows = np.empty(0, PRINTED_ROW if self.printed else ROW)
        self._buffer: Rows = np.empty(0, EDGE)  # grows up to block_size
        self._n_buffered = 0
        self._merged = False  # True if rows of two sketches were not sampled together yet

    def _facts(self) -> dict[str, Any]:
        return {"edges seen": self.position, "rows": self.n_rows, "nodes": self.n_nodes}

    @property
    def n_rows(self) -> int:
        """Number of rows of H, without the edges that wait for the end of their block."""
        return len(self._rows)

    @property
    def n_missing(self) -> int:
        """Number of edges that the present block still needs."""
        return self.block_size - self._n_buffered

    def update(self, u: ArrayLike, v: ArrayLike, w: ArrayLike | None = None) -> Self:
        """Add edges; each of several parallel edges becomes a separate row.

        Parameters
        ----------
        u, v : array-like of int
            Ends of the edges.
        w : array-like of float, optional
            Weights; all 1 by default.

        Examples
        --------
        >>> from ohmlearn.paper import KelnerLevin
        >>> KelnerLevin(3, 0.5, random_state=0).update([0, 1, 2], [1, 2, 2]).n_self_loops
        1
        """
        a, b = check_node_ids(u, "u"), check_node_ids(v, "v")
        if a.dtype != b.dtype:
            a, b = a.astype(np.int64), b.astype(np.int64)
        weights = np.ones(len(a)) if w is None else check_weights(w, "w").astype(np.float64)
        check_same_length(u=a, v=b, w=weights)
        fault = _core.find_fault(self.n_nodes, self.n_jobs, a, b, weights)
        if fault is not None:
            raise_edge_fault(fault, self.n_nodes, EdgeNames())
        # A copy is changed, which then replaces this sketch in one step: after Ctrl-C it is either
        # the old or the new one.
        changed = copy.copy(self)
        changed._add(a, b, weights)
        self.__dict__ = changed.__dict__
        return self

    def _add(self, u: NDArray[Any], v: NDArray[Any], w: Floats) -> None:
        loops = u == v
        zeros = (w < SMALLEST_WEIGHT) & ~loops
        self.position += len(u)
        self.n_self_loops += int(np.count_nonzero(loops))
        self.n_zero_weights += int(np.count_nonzero(zeros))
        # Add the weights one by one, so that the result does not depend on the batches.
        kept = np.append(self.weight_seen, np.where(loops, 0.0, w))
        self.weight_seen = float(np.cumsum(kept)[-1])
        edges = np.empty(len(u), EDGE)
        edges["u"], edges["v"], edges["a"] = np.minimum(u, v), np.maximum(u, v), w
        self._append(edges[~(loops | zeros)])

    def _append(self, edges: Rows) -> None:
        start = 0
        while start < len(edges):
            part = edges[start : start + self.n_missing]
            filled = self._n_buffered + len(part)
            if filled > len(self._buffer):
                room = min(self.block_size, max(filled, 2 * len(self._buffer)))
                more = np.empty(room - len(self._buffer), EDGE)
                self._buffer = np.concatenate([self._buffer, more])
            self._buffer[self._n_buffered : filled] = part
            self._n_buffered = filled
            start += len(part)
            if filled == self.block_size:
                self._resample()

    def flush(self) -> Self:
        """End the current block now; do nothing if it is empty."""
        if self._n_buffered > 0 or self._merged:
            self._resample()
        return self

    def _resample(self) -> None:
        """Run Algorithm 2 on H + A."""
        key = np.array([self.seed, self.n_resamples], dtype=np.uint64)
        rng = np.random.Generator(np.random.Philox(key=key))
        new = np.ones(self._n_buffered, self._rows.dtype)  # p = 1
        new[["u", "v", "a"]] = self._buffer[: self._n_buffered]
        new["q"] = self.n_copies  # so that its weight q a / (N p) is a
        rows = np.concatenate([self._rows, new])
        asked = rows["a"] * self._resistances(rows, rng) / (self.alpha * (self.n_nodes - 1))
        p = np.minimum(rows["p"], asked)
        rows["q"] = rng.binomial(rows["q"], p / rows["p"])
        rows["p_printed" if self.printed else "p"] = asked
        rows["p"] = p
        self._rows = rows[rows["q"] > 0]
        # Make a new buffer, because copies of this sketch may still use the old one.
        self._buffer, self._n_buffered, self._merged = np.empty(0, EDGE), 0, False
        self.n_resamples += 1

    def _resistances(self, rows: Rows, rng: np.random.Generator) -> Floats:
        graph = self._as_graph(rows)
        # The analysis needs every estimate within a factor alpha. An estimate from q columns is
        # below 1 / alpha times the resistance with probability at most
        # exp(-q (ln(alpha) + 1 / alpha - 1) / 2). The sketch has q = 8 / accuracy^2 columns; this
        # accuracy makes the probability e^-18.
        accuracy = math.sqrt((math.log(self.alpha) + 1 / self.alpha - 1) / 4.5)
        r = effective_resistance(graph, rtol=accuracy, random_state=rng, n_jobs=self.n_jobs)
        u, v, _ = graph.edges()
        # Shorting all other nodes gives a lower bound of the resistance. It prevents rounding from
        # making a probability zero or negative.
        floored = np.fmax(r, 1 / np.minimum(graph.degrees[u], graph.degrees[v]))
        keys, wanted = (np.int64(self.n_nodes) * i.astype(np.int64) for i in (u, rows["u"]))
        return np.asarray(floored[np.searchsorted(keys + v, wanted + rows["v"])], np.float64)

    def _weights(self, rows: Rows) -> Floats:
        p = rows["p_printed" if self.printed else "p"]
        return np.asarray(rows["a"] * (rows["q"] / (self.n_copies * p)), np.float64)

    def graph(self) -> Graph:
        """Return H, as it is if the present block ends now; the sketch does not change.

        Examples
        --------
        >>> from ohmlearn.paper import KelnerLevin
        >>> KelnerLevin(3, 0.5, random_state=0).update([0, 1], [1, 2]).graph()
        Graph(n_nodes=3, n_edges=2)
        """
        return self._as_graph(self._flushed_rows())

    def _flushed_rows(self) -> Rows:
        return copy.copy(self).flush()._rows  # a flush does not write to the arrays that they share

    def _as_graph(self, rows: Rows) -> Graph:
        return Graph.from_edges(rows["u"], rows["v"], self._weights(rows), n_nodes=self.n_nodes)

    def snapshot(self) -> tuple[Any, ...]:
        """Return H as the other samplers do: its arrays, probabilities, and whether it is whole."""
        rows = self._flushed_rows()
        h = self._as_graph(rows)
        # A row, which is the sum of its q copies, has variance / weight^2 = (1 - p) / q.
        probability = 1.0 - (1.0 - rows["p"]) / rows["q"]
        keys = rows["u"].astype(np.int64) * self.n_nodes + rows["v"]
        _, edge = np.unique(keys, return_inverse=True)
        parts = self._weights(rows) / h.edges()[2][edge]
        variances = np.bincount(edge, (1.0 - probability) * parts**2, h.n_edges)
        is_whole = len(rows) == self.position and bool(np.all(probability >= 1.0))
        return h.indptr, h.indices, h.weights, (1.0 - variances).astype(np.float32), is_whole

    def merge(self, others: list[KelnerLevin]) -> None:
        """Add the rows of other sketches with their p and q; the next block resamples them."""
        changed = copy.copy(self)
        for other in others:
            for name in PARAMETERS:
                changed._check_equal(name, getattr(other, name))
            if changed.position + other.position > MOST_EDGES:
                raise ValueError("the two sparsifiers have seen more than 2**60 edges")
            changed._rows = np.concatenate([changed._rows, other._rows])
            changed._merged = True
            changed.position += other.position
            changed.n_self_loops += other.n_self_loops
            changed.n_zero_weights += other.n_zero_weights
            changed.weight_seen += other.weight_seen
            # Random numbers that either sketch has used are not used again.
            changed.n_resamples = max(changed.n_resamples, other.n_resamples)
            changed._append(other._buffer[: other._n_buffered].copy())
        self.__dict__ = changed.__dict__

    def copy(self, threads: int) -> Self:
        """Return an independent sketch with the same state."""
        found = copy.copy(self)
        found._buffer, found.n_jobs = self._buffer[: self._n_buffered].copy(), threads
        return found

    def get_state(self) -> dict[str, NDArray[Any]]:
        """Return everything that is needed to continue, as arrays with names."""
        state: dict[str, Any] = {name: getattr(self, name) for name in ("seed", *PARAMETERS)}
        state |= {key: getattr(self, name) for name, key in COUNTERS.items()}
        state["merged"] = self._merged
        for kind, table in ("row", self._rows), ("buffer", self._buffer[: self._n_buffered]):
            for name in table.dtype.names or ():
                state[f"{kind}_{name}"] = table[name].copy()
        state["weight_seen"] = self.weight_seen
        return {name: np.asarray(value) for name, value in state.items()}

    def set_state(self, state: State) -> Self:
        """Continue from the state of a sketch with the same seed and parameters.

        Raises
        ------
        ValueError
            If no sketch can have this state, which may come from a damaged or forged file.
        """
        numbers: dict[str, type] = dict.fromkeys(COUNTERS.values(), np.int64)
        check_arrays(state, numbers | {"merged": np.bool_, "weight_seen": np.float64}, ndim=0)
        for name in ("seed", *PARAMETERS):
            self._check_equal(name, state.get(name))
        seen = float(state["weight_seen"])
        if not 0 <= seen <= LARGEST_WEIGHT * MOST_EDGES:
            raise ValueError(f"weight_seen = {seen} is out of range")
        counts = {name: int(state[key]) for name, key in COUNTERS.items()}
        for name, key in COUNTERS.items():
            if not 0 <= counts[name] <= MOST_EDGES:
                raise ValueError(f"{key} = {counts[name]} is out of range")
        rows = _read_table(state, "row", self._rows.dtype)
        buffer = _read_table(state, "buffer", np.dtype(EDGE))
        self._check_rows(rows, buffer)
        n_kept = counts["position"] - counts["n_self_loops"] - counts["n_zero_weights"]
        if len(rows) + len(buffer) > n_kept:
            raise ValueError(f"{len(rows) + len(buffer)} rows cannot come from {n_kept} edges")
        self._rows, self._buffer, self._n_buffered = rows, buffer, len(buffer)
        self.weight_seen, self._merged = seen, bool(state["merged"])
        self.__dict__.update(counts)
        return self

    def _check_rows(self, rows: Rows, buffer: Rows) -> None:
        for kind, table in ("row", rows), ("waiting edge", buffer):
            u, v, a = table["u"], table["v"], table["a"]
            _check_all((u >= 0) & (u < v) & (v < self.n_nodes), kind, "a node")
            _check_all((a > 0) & (a <= LARGEST_WEIGHT), kind, "the weight")
        for name in ("p", "p_printed")[: 1 + self.printed]:
            _check_all((rows[name] > 0) & (rows[name] < math.inf), "row", name)
        _check_all(rows["p"] <= 1, "row", "p")
        _check_all((rows["q"] > 0) & (rows["q"] <= self.n_copies), "row", "q")
        _check_all(self._weights(rows) <= LARGEST_WEIGHT * MOST_EDGES, "row", "the weight")
        if len(buffer) > max(self.block_size - 1, 0):
            raise ValueError(f"{len(buffer)} edges wait for a block of {self.block_size}")

    def _check_equal(self, name: str, other: Any) -> None:
        if not np.array_equal(getattr(self, name), other):  # it may be anything
            values = f"{name} = {getattr(self, name)} and {other}"
            raise ValueError(f"sketches differ: {values}; make both with the same parameters")


def _check_all(good: NDArray[np.bool_], kind: str, what: str) -> None:
    if not good.all():
        raise ValueError(f"{what} of {kind} {int(np.argmin(good))} is out of range")


def _read_table(state: State, kind: str, fields: np.dtype[np.void]) -> Rows:
    columns = {name: f"{kind}_{name}" for name in fields.names or ()}
    check_arrays(state, {column: fields[name] for name, column in columns.items()})
    check_same_length(**{column: state[column] for column in columns.values()})
    table = np.empty(len(state[f"{kind}_u"]), fields)
    for name, column in columns.items():
        table[name] = state[column]
    return table
