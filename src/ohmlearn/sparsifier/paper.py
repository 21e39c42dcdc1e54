"""Scheme "paper": Kelner and Levin's sparsification of a stream, kept as copies of its edges.

After Algorithms 1 and 2 of Calandriello, Lazaric and Valko, "Large-scale semi-supervised learning
with online spectral graph sparsification" (2015). Every edge stands for N copies, each kept with
a probability p that only falls, as resistances fall while the graph grows:

    p' = min(p, a R / (alpha (n - 1))),   q' ~ Binomial(q, p' / p),   weight = q' a / (N p').

a is the weight the edge came with, R its effective resistance in H + A: H what was kept so far, A
the block of edges since. Arriving edges enter with p = 1 and q = N: one rule serves both loops of
Algorithm 2. Given the past, the expected weight is the weight before, whatever R is. The weight as
printed takes p' before the minimum and so comes out too low wherever the minimum matters.
"""

import copy
import math
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from ohmlearn._storage import check_arrays
from ohmlearn.graph import Graph
from ohmlearn.resistance import effective_resistance
from ohmlearn.validation.edges import check_same_length

EDGE = [("u", np.int32), ("v", np.int32), ("a", np.float64)]
ROW = [*EDGE, ("p", np.float64), ("q", np.int64)]
PRINTED_ROW = [*ROW, ("p_printed", np.float64)]
MAX_COPIES = 2**53
PARAMETERS = ("n_nodes", "epsilon", "constant", "printed")  # alike in sketches to be merged
COUNTERS = ("n_blocks", "n_edges_seen", "n_self_loops_dropped", "n_zero_weights_dropped")
MOST_EDGES, LARGEST_WEIGHT = 2**60, 1e27  # as in the C++ sampler


class KelnerLevin:
    """A spectral sparsifier of a stream of edges between a known number of nodes.

    Parameters
    ----------
    n_nodes : int
    epsilon : float
        Energies are to be kept within a factor 1 ± epsilon; between 0 and 1.
    seed : int
        In 0, ..., 2**64 - 1. Coins depend on it and the number of the block, nothing else. Give
        sketches to be merged different ones: with equal coins their errors add up.
    constant : float
        Factor on `n_copies`.
    n_jobs : int
        Threads; the result does not depend on it.
    weight_rule : {"corrected", "printed"}
        "printed" weighs by the probability before the minimum; kept to show that it is biased.
    block_size : int, optional
        As below; n ln(n)^2 / epsilon^2 by default, as in the paper.

    Attributes
    ----------
    n_copies : int
        N, the copies that an arriving edge stands for.
    block_size : int
        Edges, dropped ones not counted, after which H is sampled anew.
    n_blocks, n_edges_seen, n_self_loops_dropped, n_zero_weights_dropped : int

    Examples
    --------
    >>> import numpy as np
    >>> u, v = np.triu_indices(40, 1)
    >>> sketch = KelnerLevin(n_nodes=40, epsilon=0.8, seed=0, constant=0.2)
    >>> sketch.update(np.tile(u, 10), np.tile(v, 10), np.full(7800, 0.1))
    >>> u, v, weight = sketch.snapshot_edges()
    >>> sketch.n_edges_seen, len(u) < 1500, round(weight.sum() / 780)
    (7800, True, 1)
    """

    def __init__(
        self,
        n_nodes: int,
        epsilon: float,
        seed: int,
        constant: float = 1.0,
        n_jobs: int = 1,
        weight_rule: Literal["corrected", "printed"] = "corrected",
        block_size: int | None = None,
    ) -> None:
        self.n_nodes, self.epsilon, self.seed = n_nodes, epsilon, seed
        self.constant, self.n_jobs, self.printed = constant, n_jobs, weight_rule == "printed"
        self.alpha = 1 / (1 - epsilon)
        square = epsilon**2  # 0 if it is too small for a float
        size = n_nodes * math.log(max(n_nodes, 2)) ** 2 / square if square > 0 else math.inf
        if constant * self.alpha**2 * size > MAX_COPIES:
            raise ValueError(
                f'epsilon = {epsilon} is too near to 0 or 1 for scheme="paper": it asks for more '
                f"than {MAX_COPIES} copies of an edge among {n_nodes} nodes"
            )
        self.block_size = math.ceil(size) if block_size is None else block_size
        self.n_copies = math.ceil(constant * self.alpha**2 * size)
        self.n_blocks = self.n_edges_seen = 0
        self.n_self_loops_dropped = self.n_zero_weights_dropped = 0
        self._rows = np.empty(0, PRINTED_ROW if self.printed else ROW)
        self._buffer = np.empty(0, EDGE)  # grows up to block_size
        self._n_buffered = 0
        self.merged = False  # rows of two sketches, not sampled together yet

    @property
    def n_rows(self) -> int:
        """Rows of H, without the edges that wait for the end of their block."""
        return len(self._rows)

    def update(self, u: NDArray[Any], v: NDArray[Any], w: NDArray[Any]) -> None:
        """Take in edges that have been checked; parallel ones are rows of their own."""
        loops = u == v
        zeros = (w == 0) & ~loops
        self.n_edges_seen += len(u)
        self.n_self_loops_dropped += int(np.count_nonzero(loops))
        self.n_zero_weights_dropped += int(np.count_nonzero(zeros))
        edges = np.empty(len(u), EDGE)
        edges["u"], edges["v"], edges["a"] = np.minimum(u, v), np.maximum(u, v), w
        self._append(edges[~(loops | zeros)])

    def _append(self, edges: NDArray[np.void]) -> None:
        start = 0
        while start < len(edges):
            part = edges[start : start + self.block_size - self._n_buffered]
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

    def flush(self) -> None:
        """End the current block here; nothing happens if it is empty."""
        if self._n_buffered > 0 or self.merged:
            self._resample()

    def _resample(self) -> None:
        """Algorithm 2 on H + A."""
        key = np.array([self.seed, self.n_blocks], dtype=np.uint64)
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
        # A new buffer: copies of this sketch may still look at the old one.
        self._buffer, self._n_buffered, self.merged = np.empty(0, EDGE), 0, False
        self.n_blocks += 1

    def _resistances(self, rows: NDArray[np.void], rng: np.random.Generator) -> NDArray[np.float64]:
        graph = Graph.from_edges(rows["u"], rows["v"], self._weights(rows), n_nodes=self.n_nodes)
        # The analysis wants every estimate within a factor alpha. One from q columns is below
        # 1 / alpha with probability at most exp(-q (ln(alpha) + 1 / alpha - 1) / 2), made e^-18;
        # the sketch has q = 8 / accuracy^2.
        accuracy = math.sqrt((math.log(self.alpha) + 1 / self.alpha - 1) / 4.5)
        r = effective_resistance(graph, epsilon=accuracy, random_state=rng, n_jobs=self.n_jobs)
        u, v, _ = graph.edges()
        # Shorting all other nodes; rounding may not drive a probability to zero or below.
        floored = np.fmax(r, 1 / np.minimum(graph.degrees[u], graph.degrees[v]))
        keys, wanted = (np.int64(self.n_nodes) * i.astype(np.int64) for i in (u, rows["u"]))
        return np.asarray(floored[np.searchsorted(keys + v, wanted + rows["v"])], np.float64)

    def _weights(self, rows: NDArray[np.void]) -> NDArray[np.float64]:
        p = rows["p_printed" if self.printed else "p"]
        return np.asarray(rows["a"] * (rows["q"] / (self.n_copies * p)), np.float64)

    def snapshot_edges(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]:
        """Return (u, v, weight), u < v, as they would be after a flush; nothing is changed."""
        flushed = copy.copy(self)  # shares the arrays, of which a flush writes none
        flushed.flush()
        rows = flushed._rows
        return rows["u"].copy(), rows["v"].copy(), self._weights(rows)

    def merge(self, other: "KelnerLevin") -> None:
        """Add what another sketch holds, its rows with their p and q; the next block resamples."""
        self._check_parameters({name: getattr(other, name) for name in PARAMETERS})
        if self.n_edges_seen + other.n_edges_seen > MOST_EDGES:
            raise ValueError("the two sparsifiers have seen more than 2**60 edges")
        self._rows = np.concatenate([self._rows, other._rows])
        self.merged = True
        for name in COUNTERS[1:]:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        # Coins that either has tossed are not used again.
        self.n_blocks = max(self.n_blocks, other.n_blocks)
        self._append(other._buffer[: other._n_buffered].copy())

    def get_state(self) -> dict[str, Any]:
        """Return all that is needed to go on, as arrays and numbers."""
        state = {name: getattr(self, name) for name in ("seed", *PARAMETERS, *COUNTERS, "merged")}
        for kind, table in ("row", self._rows), ("buffer", self._buffer[: self._n_buffered]):
            for name in table.dtype.names or ():
                state[f"{kind}_{name}"] = table[name].copy()
        return state

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from a state of a sketch with the same parameters; the seed comes with it.

        Raises
        ------
        ValueError
            Says what no sketch can hold: the state may come from a file that anyone can write.
        """
        numbers = {
            name: _number(state, name) for name in ("seed", *PARAMETERS, *COUNTERS, "merged")
        }
        self._check_parameters(numbers)
        tables = []
        for kind, fields in ("row", self._rows.dtype), ("buffer", np.dtype(EDGE)):
            columns = {name: f"{kind}_{name}" for name in fields.names or ()}
            check_arrays(state, {column: fields[name] for name, column in columns.items()})
            check_same_length(**{column: state[column] for column in columns.values()})
            table = np.empty(len(state[f"{kind}_u"]), fields)
            for name, column in columns.items():
                table[name] = state[column]
            tables.append(table)
        self._check_state(tables[0], tables[1], numbers)
        self._rows, self._buffer, self._n_buffered = tables[0], tables[1], len(tables[1])
        for name in ("seed", *COUNTERS, "merged"):
            setattr(self, name, int(numbers[name]))

    def _check_state(
        self, rows: NDArray[np.void], buffer: NDArray[np.void], numbers: dict[str, Any]
    ) -> None:
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
        for name in ("seed", *COUNTERS):
            if not 0 <= numbers[name] <= (2**64 - 1 if name == "seed" else MOST_EDGES):
                raise ValueError(f"{name} = {numbers[name]} is out of range")
        seen, loops, zeros = (numbers[name] for name in COUNTERS[1:])
        if len(rows) + len(buffer) > seen - loops - zeros:
            raise ValueError(
                f"{len(rows) + len(buffer)} rows come from {seen - loops - zeros} edges"
            )

    def _check_parameters(self, others: dict[str, Any]) -> None:
        for name in PARAMETERS:
            if getattr(self, name) != others[name]:
                values = f"{name} = {getattr(self, name)} and {others[name]}"
                raise ValueError(f"sketches differ: {values}; make both with the same parameters")


def _check_all(good: NDArray[np.bool_], kind: str, what: str) -> None:
    if not good.all():
        raise ValueError(f"{what} of {kind} {int(np.argmin(good))} is out of range")


def _number(state: dict[str, Any], name: str) -> Any:
    """Return a single number of a state; from a file it comes as an array without dimensions."""
    value = np.asarray(state.get(name))
    if value.ndim != 0 or value.dtype.kind not in "biuf" or not np.isfinite(value):
        raise ValueError(f"{name} must be there, as a single number")
    number = value.item()
    if name in ("epsilon", "constant", "weight_seen"):
        return float(number)
    if number != int(number) or not -(2**63) <= number < 2**64:
        raise ValueError(f"{name} must be an integer, got {number}")
    return int(number)


class PaperSampler:
    """The scheme "paper" behind the interface of the C++ sampler."""

    beta = math.inf  # probabilities only fall; there is no rate of sampling
    changes_at_once = True  # an update that is cut off leaves the sampler as it was

    def __init__(self, n_nodes: int, epsilon: float, seed: int, constant: float, threads: int):
        self._now = KelnerLevin(n_nodes, epsilon, seed, constant, threads), 0.0
        self.n_nodes = n_nodes

    @property
    def _sketch(self) -> KelnerLevin:
        return self._now[0]

    @property
    def weight_seen(self) -> float:
        return self._now[1]

    def update(self, u: NDArray[Any], v: NDArray[Any], w: NDArray[Any] | None = None) -> None:
        weights = np.ones(len(u)) if w is None else w.astype(np.float64)
        # Added one by one, so that the split into batches makes no difference.
        kept = np.where(u == v, 0.0, weights)
        seen = float(np.cumsum(np.append(self.weight_seen, kept))[-1])
        # On a copy that takes the place of the original at once: Ctrl-C leaves one or the other.
        sketch = copy.copy(self._sketch)
        sketch.update(u, v, weights)
        self._now = sketch, seen

    def snapshot(self) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
        u, v, w = self._sketch.snapshot_edges()
        h = Graph.from_edges(u, v, w, n_nodes=self.n_nodes)
        return h.indptr, h.indices, h.weights

    def merge(self, other: "PaperSampler") -> None:
        sketch = copy.copy(self._sketch)
        sketch.merge(other._sketch)
        self._now = sketch, self.weight_seen + other.weight_seen

    def get_state(self) -> dict[str, Any]:
        state = {**self._sketch.get_state(), "weight_seen": self.weight_seen}
        return {name: np.asarray(value) for name, value in state.items()}

    @classmethod
    def from_state(cls, state: dict[str, Any], *parameters: Any) -> Self:
        """Make a sampler with these parameters that continues from a state."""
        sampler = cls(*parameters)
        sketch = sampler._sketch
        seed, seen = _number(state, "seed"), _number(state, "weight_seen")
        if seed != sketch.seed:
            raise ValueError(f"seed = {seed} is not that of the parameters, {sketch.seed}")
        if not 0 <= seen <= LARGEST_WEIGHT * MOST_EDGES:
            raise ValueError(f"weight_seen = {seen} is out of range")
        sketch.set_state(state)
        sampler._now = sketch, seen
        return sampler

    @property
    def position(self) -> int:
        return self._sketch.n_edges_seen

    @property
    def n_self_loops(self) -> int:
        return self._sketch.n_self_loops_dropped

    @property
    def n_zero_weights(self) -> int:
        return self._sketch.n_zero_weights_dropped

    @property
    def n_rows(self) -> int:
        return self._sketch.n_rows

    @property
    def n_resamples(self) -> int:
        return self._sketch.n_blocks

    @property
    def capacity(self) -> int:
        return self._sketch.block_size
