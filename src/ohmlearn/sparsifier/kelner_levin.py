"""Scheme "paper": Kelner and Levin's sparsification of a stream, which keeps copies of edges.

It follows Algorithms 1 and 2 of Calandriello, Lazaric and Valko, "Large-scale semi-supervised
learning with online spectral graph sparsification" (2015). Every edge is treated as N copies. Each
copy is kept with a probability p that only decreases, because resistances decrease as the graph
grows:

    p' = min(p, a R / (alpha (n - 1))),   q' ~ Binomial(q, p' / p),   weight = q' a / (N p').

Here a is the original weight of the edge, q the number of copies left, and R the effective
resistance in H + A, where H is the sparsifier so far and A the block of edges read since. New edges
have p = 1 and q = N, so that the same rule covers both loops of Algorithm 2. Given the past, the
expected new weight equals the old weight for any value of R. The weights printed in the paper
use p' before taking the minimum. The resulting weights are too low.
"""

import copy
import math
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from ohmlearn._arrays_file import check_arrays
from ohmlearn._core import LARGEST_WEIGHT, SMALLEST_WEIGHT
from ohmlearn.checks.edge_arrays import check_same_length
from ohmlearn.errors import InputError, Param, Setting
from ohmlearn.graph import Graph
from ohmlearn.resistance import effective_resistance

Floats = NDArray[np.float64]

EDGE = [("u", np.int32), ("v", np.int32), ("a", np.float64)]
ROW = [*EDGE, ("p", np.float64), ("q", np.int64)]
PRINTED_ROW = [*ROW, ("p_printed", np.float64)]
MAX_COPIES = 2**53
PARAMETERS = ("n_nodes", "epsilon", "constant", "printed")  # must be equal to merge two sketches
COUNTERS = ("n_blocks", "n_edges_seen", "n_self_loops_dropped", "n_zero_weights_dropped")
MOST_EDGES = 2**60  # as in the C++ sampler


class KelnerLevin:
    """A spectral sparsifier of a stream of edges between a known number of nodes.

    Parameters
    ----------
    n_nodes : int
    epsilon : float
        Target accuracy: energies should stay within a factor 1 ± epsilon. Between 0 and 1.
    seed : int
        In 0, ..., 2**64 - 1. The random numbers depend only on the seed and the block number.
        Sketches that will be merged should have different seeds, because with equal random numbers
        their errors add up.
    constant : float
        Factor on `n_copies`.
    n_jobs : int
        Number of threads; the result does not depend on it.
    weight_rule : {"corrected", "printed"}
        "printed" computes weights from the probability before the minimum; it is kept to show that
        it is biased.
    block_size : int, optional
        See the attribute; n ln(n)^2 / epsilon^2 by default, as in the paper.

    Attributes
    ----------
    n_copies : int
        N, the number of copies of a new edge.
    block_size : int
        H is resampled after this many edges (dropped edges are not counted).
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
            raise InputError(
                f"{Param('epsilon', epsilon)} is too close to 0 or 1 for "
                f"{Setting('scheme', 'paper')} with {n_nodes} nodes, because it needs more than "
                f"{MAX_COPIES} copies of each edge"
            )
        self.block_size = math.ceil(size) if block_size is None else block_size
        self.n_copies = math.ceil(constant * self.alpha**2 * size)
        self.n_blocks = self.n_edges_seen = 0
        self.n_self_loops_dropped = self.n_zero_weights_dropped = 0
        self._rows = np.empty(0, PRINTED_ROW if self.printed else ROW)
        self._buffer = np.empty(0, EDGE)  # grows up to block_size
        self._n_buffered = 0
        self.merged = False  # True if rows of two sketches were not sampled together yet

    @property
    def n_rows(self) -> int:
        """Number of rows of H, without the edges that wait for the end of their block."""
        return len(self._rows)

    def update(self, u: NDArray[Any], v: NDArray[Any], w: NDArray[Any]) -> None:
        """Add checked edges; each of several parallel edges becomes a separate row."""
        loops = u == v
        zeros = (w < SMALLEST_WEIGHT) & ~loops
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
        """End the current block now; do nothing if it is empty."""
        if self._n_buffered > 0 or self.merged:
            self._resample()

    def _resample(self) -> None:
        """Run Algorithm 2 on H + A."""
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
        # Make a new buffer, because copies of this sketch may still use the old one.
        self._buffer, self._n_buffered, self.merged = np.empty(0, EDGE), 0, False
        self.n_blocks += 1

    def _resistances(self, rows: NDArray[np.void], rng: np.random.Generator) -> NDArray[np.float64]:
        graph = Graph.from_edges(rows["u"], rows["v"], self._weights(rows), n_nodes=self.n_nodes)
        # The analysis needs every estimate within a factor alpha. An estimate from q columns is
        # below 1 / alpha times the resistance with probability at most
        # exp(-q (ln(alpha) + 1 / alpha - 1) / 2). The sketch has q = 8 / accuracy^2 columns; this
        # accuracy makes the probability e^-18.
        accuracy = math.sqrt((math.log(self.alpha) + 1 / self.alpha - 1) / 4.5)
        r = effective_resistance(graph, epsilon=accuracy, random_state=rng, n_jobs=self.n_jobs)
        u, v, _ = graph.edges()
        # Shorting all other nodes gives a lower bound of the resistance. It prevents rounding from
        # making a probability zero or negative.
        floored = np.fmax(r, 1 / np.minimum(graph.degrees[u], graph.degrees[v]))
        keys, wanted = (np.int64(self.n_nodes) * i.astype(np.int64) for i in (u, rows["u"]))
        return np.asarray(floored[np.searchsorted(keys + v, wanted + rows["v"])], np.float64)

    def _weights(self, rows: NDArray[np.void]) -> NDArray[np.float64]:
        p = rows["p_printed" if self.printed else "p"]
        return np.asarray(rows["a"] * (rows["q"] / (self.n_copies * p)), np.float64)

    def _chances(self, rows: NDArray[np.void]) -> NDArray[np.float64]:
        """Return 1 - variance / weight^2 for each row, which is the sum of its q copies."""
        return np.asarray(1.0 - (1.0 - rows["p"]) / rows["q"], np.float64)

    def snapshot_edges(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]:
        """Return (u, v, weight), u < v, as they would be after a flush; change nothing."""
        return self.snapshot_rows()[:3]

    def snapshot_rows(self) -> tuple[NDArray[np.int32], NDArray[np.int32], Floats, Floats]:
        """Return (u, v, weight) as `snapshot_edges` does, and the chance of each row."""
        flushed = copy.copy(self)  # shares the arrays, which a flush does not write to
        flushed.flush()
        rows = flushed._rows
        return rows["u"].copy(), rows["v"].copy(), self._weights(rows), self._chances(rows)

    def merge(self, other: "KelnerLevin") -> None:
        """Add the rows of another sketch with their p and q; the next block resamples them."""
        self._check_parameters({name: getattr(other, name) for name in PARAMETERS})
        if self.n_edges_seen + other.n_edges_seen > MOST_EDGES:
            raise ValueError("the two sparsifiers have seen more than 2**60 edges")
        self._rows = np.concatenate([self._rows, other._rows])
        self.merged = True
        for name in COUNTERS[1:]:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        # Random numbers that either sketch has used are not used again.
        self.n_blocks = max(self.n_blocks, other.n_blocks)
        self._append(other._buffer[: other._n_buffered].copy())

    def get_state(self) -> dict[str, Any]:
        """Return everything that is needed to continue, as arrays and numbers."""
        state = {name: getattr(self, name) for name in ("seed", *PARAMETERS, *COUNTERS, "merged")}
        for kind, table in ("row", self._rows), ("buffer", self._buffer[: self._n_buffered]):
            for name in table.dtype.names or ():
                state[f"{kind}_{name}"] = table[name].copy()
        return state

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from the state of a sketch with the same parameters; also set its seed.

        Raises
        ------
        ValueError
            If no sketch can have this state, which may come from a damaged or forged file.
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
                f"{len(rows) + len(buffer)} rows cannot come from {seen - loops - zeros} edges"
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
    """Return a single number of a state; in a file it is an array without dimensions."""
    value = np.asarray(state.get(name))
    if value.ndim != 0 or value.dtype.kind not in "biuf" or not np.isfinite(value):
        raise ValueError(f"{name} must be present as a single finite number")
    number = value.item()
    if name in ("epsilon", "constant", "weight_seen"):
        return float(number)
    if number != int(number) or not -(2**63) <= number < 2**64:
        raise ValueError(f"{name} must be an integer, got {number}")
    return int(number)


class PaperSampler:
    """The scheme "paper" with the interface of the C++ sampler."""

    beta = math.inf  # this scheme has no sampling rate; probabilities only decrease
    changes_at_once = True  # an interrupted update leaves the sampler as it was

    def __init__(
        self,
        n_nodes: int,
        epsilon: float,
        seed: int,
        constant: float,
        threads: int,
        state: dict[str, Any] | None = None,
    ) -> None:
        sketch, seen = KelnerLevin(n_nodes, epsilon, seed, constant, threads), 0.0
        if state is not None:
            given, seen = _number(state, "seed"), _number(state, "weight_seen")
            if given != seed:
                raise ValueError(f"seed = {given} is not that of the parameters, {seed}")
            if not 0 <= seen <= LARGEST_WEIGHT * MOST_EDGES:
                raise ValueError(f"weight_seen = {seen} is out of range")
            sketch.set_state(state)
        self._now = sketch, seen
        self.n_nodes = n_nodes

    @property
    def _sketch(self) -> KelnerLevin:
        return self._now[0]

    @property
    def weight_seen(self) -> float:
        return self._now[1]

    def update(self, u: NDArray[Any], v: NDArray[Any], w: NDArray[Any] | None = None) -> None:
        weights = np.ones(len(u)) if w is None else w.astype(np.float64)
        # Add the weights one by one, so that the result does not depend on the batches.
        kept = np.where(u == v, 0.0, weights)
        seen = float(np.cumsum(np.append(self.weight_seen, kept))[-1])
        # Update a copy, which then replaces the original in one step: after Ctrl-C the sampler is
        # either the old or the new one.
        sketch = copy.copy(self._sketch)
        sketch.update(u, v, weights)
        self._now = sketch, seen

    def snapshot(self) -> tuple[Any, ...]:
        """Return H as the C++ sampler does: its arrays, the chances, and whether it is whole."""
        u, v, w, chance = self._sketch.snapshot_rows()
        h = Graph.from_edges(u, v, w, n_nodes=self.n_nodes)
        _, edge = np.unique(u.astype(np.int64) * self.n_nodes + v, return_inverse=True)
        parts = w / h.edges()[2][edge]
        variances = np.bincount(edge, (1.0 - chance) * parts**2, h.n_edges)
        is_whole = len(u) == self._sketch.n_edges_seen and bool(np.all(chance >= 1.0))
        return h.indptr, h.indices, h.weights, (1.0 - variances).astype(np.float32), is_whole

    def merge(self, others: "list[PaperSampler]") -> None:
        sketch, seen = copy.copy(self._sketch), self.weight_seen
        for other in others:
            sketch.merge(other._sketch)
            seen += other.weight_seen
        self._now = sketch, seen

    def copy(self, threads: int) -> Self:
        """Return an independent sampler with the same state."""
        found, sketch = copy.copy(self), copy.copy(self._sketch)
        sketch._buffer, sketch.n_jobs = sketch._buffer[: sketch._n_buffered].copy(), threads
        found._now = sketch, self.weight_seen
        return found

    def get_state(self) -> dict[str, Any]:
        state = {**self._sketch.get_state(), "weight_seen": self.weight_seen}
        return {name: np.asarray(value) for name, value in state.items()}

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
