"""A picture of the communities of H: a few hundred nodes, where to draw them, and links.

Who calls what, after each new answer:

    layout = graph_map.update(h, given=numbers, suggested=numbers)  # a `Layout`
    page = layout.describe(version, answers)                        # the body of /v1/map

Coordinates. Nodes of one community are close to each other in the smoothest directions x of the
graph, those that minimise x'Lx / x'Dx: D the degrees, x not constant. Plain directions often single
out a few nodes that hang on the rest by one edge, or that are alone. So all pairs of nodes are
joined by weights that give each node tau more degree, which makes such small cuts expensive (Zhang
and Rohe, 2018):

    L_tau = L + tau I - (tau / n) 1 1',    D_tau = D + tau I

Where b sums to zero, the solution of (L + tau I) x = b does as well, so that the last term of L_tau
vanishes: an inverse iteration is one solve with a ground of tau. The ground also bounds the number
of iterations that a solve takes, and isolated nodes and many components need no special case.

Steps of one update:

    1. choose the nodes
    2. from the previous columns X (random ones at first), repeat:
           Z = L_tau^+ D_tau X
           X = Z (Z' D_tau Z)^(-1/2)
       The symmetric root gives the orthonormal columns that are closest to Z, so columns that are
       still right stay as they are, and the picture moves only as much as the graph does.
    3. link each chosen node with those nearest to it in Z, in which smooth directions weigh more
    4. place the chosen nodes in the plane so that distances are close to those in Z: stress
       majorisation (de Leeuw, 1977) from the previous places, at first from principal components.
       A projection of Z alone would put communities on top of each other, four of them already.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist

from ohmlearn._blas import one_blas_thread
from ohmlearn.graph import Graph
from ohmlearn.solver import LaplacianSolver

MOST_NODES = 400
N_COLUMNS = 8  # smooth directions, which tell one community more apart
N_LINKS = 3  # of each node
REGULARISATION = 0.1  # tau, in mean degrees
FADED = 0.1  # nodes with less than this fraction of the mean degree are seldom chosen
NOISE = 0.03  # added to the previous columns, compared with their size
KEPT = 0.75  # factor on the sort keys of nodes that were shown: few leave by small changes
# Steps if there are no previous columns, steps if there are, and the tolerance of a solve.
SMALL, LARGE = (6, 2, 1e-3), (8, 1, 3e-2)
MANY_ENTRIES = 2_000_000  # entries of H from which on it is large
N_FIRST_MOVES, N_MOVES = 150, 12  # steps of stress majorisation


@dataclass(frozen=True)
class Layout:
    """Which nodes a map has, where they are, and which of them are linked."""

    nodes: NDArray[np.int64]
    xy: NDArray[np.float64]
    links: NDArray[np.int64]

    def describe(self, version: int, rows: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the body of ``/v1/map``; `rows` are those of ``Answers.lookup`` for the nodes."""
        nodes = []
        for row, (x, y) in zip(rows, self.xy.round(4).tolist(), strict=True):
            about = {name: row[name] for name in ("label", "probability", "given")}
            nodes.append({"id": row["node"], "x": x, "y": y, **about})
        return {"version": version, "nodes": nodes, "links": self.links.tolist()}


class GraphMap:
    """Chooses nodes of a graph that changes, and places them so that communities can be seen.

    The same sequence of updates with the same seed gives the same layouts, to the last bit. An
    object serves one thread at a time.
    """

    def __init__(self, *, seed: int = 0, n_jobs: int | None = None) -> None:
        self.seed, self.n_jobs = seed, n_jobs
        self._forget()

    def _forget(self) -> None:
        self._columns = np.zeros((0, N_COLUMNS))
        self._shown: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._places = np.zeros((0, 2))  # of the nodes shown

    def update(self, graph: Graph, *, given: ArrayLike = (), suggested: ArrayLike = ()) -> Layout:
        """Return the layout of a graph; nodes keep their numbers between updates.

        The nodes `given` and `suggested` are shown before others, which have a third of the places.
        """
        if graph.n_nodes < self._columns.shape[0]:  # another graph
            self._forget()
        first = self._columns.shape[0] == 0
        with one_blas_thread():
            nodes = self._choose(graph, _as_numbers(given), _as_numbers(suggested))
            smooth = self._smoothen(graph, first)[nodes]
            links = _link(smooth, graph.components()[1][nodes], graph.degrees[nodes] > 0)
            places = self._place(nodes, smooth)
        self._shown, self._places = nodes, places
        return Layout(nodes, _fit_circle(places), links)

    def _choose(
        self, graph: Graph, given: NDArray[np.int64], suggested: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return the nodes to show: those of least key, which is exponential with a rate.

        The rate of a node is close to 1 if it has edges that count, and 0.001 if it has none.
        """
        degrees, n_nodes = graph.degrees, graph.n_nodes
        if n_nodes == 0:
            return np.zeros(0, dtype=np.int64)
        rates = 0.001 + degrees / (degrees + FADED * (degrees.mean() or 1.0))
        # The first numbers of a seed are the same for any number of nodes.
        keys = np.random.default_rng(self.seed).standard_exponential(n_nodes) / rates
        keys[self._shown] *= KEPT
        chosen = np.zeros(n_nodes, dtype=bool)
        room = MOST_NODES * 2 // 3
        for first in (suggested, given):  # there are few suggestions
            first = _least(first[(first >= 0) & (first < n_nodes)], keys, room)
            chosen[first] = True
            room -= first.size
        others = np.flatnonzero(~chosen)
        chosen[_least(others, keys, MOST_NODES - int(chosen.sum()))] = True
        return np.flatnonzero(chosen)

    def _smoothen(self, graph: Graph, first: bool) -> NDArray[np.float64]:
        """Take the steps of subspace iteration that the size of the graph allows; return Z."""
        n_nodes, degrees = graph.n_nodes, graph.degrees
        total = float(degrees.sum())
        if n_nodes == 0 or total == 0:
            return np.zeros((n_nodes, N_COLUMNS))
        is_large = graph.weights.size > MANY_ENTRIES
        n_first, n_next, tolerance = LARGE if is_large else SMALL
        # The same little noise in each update, or only noise in the first one. Without it, the
        # columns could not turn to a new community, nor become more than a tiny graph has. New
        # nodes start with it: a solve puts them beside their neighbours.
        columns = np.random.default_rng(self.seed).standard_normal((n_nodes, N_COLUMNS))
        columns *= NOISE / np.sqrt(n_nodes)
        columns[: self._columns.shape[0]] += self._columns
        scaled = degrees / (total / n_nodes)  # so that neither tau nor Z depends on units
        mass = (scaled + REGULARISATION)[:, None]
        tau = REGULARISATION * (total / n_nodes)
        solver = LaplacianSolver(
            graph, ground=np.full(n_nodes, tau), random_state=self.seed, n_jobs=self.n_jobs
        )
        smooth = columns
        for _ in range(n_first if first else n_next):
            b = mass * columns
            b -= mass * (b.sum(axis=0) / mass.sum())  # now it sums to zero
            smooth = solver.solve_block(b, tolerance) * (total / n_nodes)
            smooth -= (mass * smooth).sum(axis=0) / mass.sum()
            columns = _orthonormal(smooth, mass)
        self._columns = columns
        return np.asarray(smooth * np.sqrt(n_nodes))  # entries of columns are about 1 / sqrt(n)

    def _place(self, nodes: NDArray[np.int64], smooth: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return places in the plane, in units of the distances between communities."""
        wanted = cdist(smooth, smooth)
        far = float(np.sqrt(np.mean(wanted**2))) if nodes.size else 0.0
        if far == 0:
            return np.zeros((nodes.size, 2))
        # Communities are about equally far from each other, however well they are separated.
        wanted = np.minimum(wanted / far, 1.5)
        was_shown = np.isin(nodes, self._shown, assume_unique=True)
        if np.count_nonzero(was_shown) < 3 or not self._places.any():
            centred = smooth - smooth.mean(axis=0)
            _, axes = np.linalg.eigh(centred.T @ centred)
            return _reduce_stress(centred @ axes[:, :-3:-1] / far, wanted, N_FIRST_MOVES)
        places = np.empty((nodes.size, 2))
        places[was_shown] = self._places[np.isin(self._shown, nodes, assume_unique=True)]
        to_shown = wanted[:, was_shown]
        nearest = np.argsort(to_shown[~was_shown], axis=1, kind="stable")[:, :N_LINKS]
        places[~was_shown] = places[was_shown][nearest].mean(axis=1)
        return _reduce_stress(places, wanted, N_MOVES)


def _reduce_stress(
    places: NDArray[np.float64], wanted: NDArray[np.float64], n_moves: int
) -> NDArray[np.float64]:
    """Return places after some Guttman transforms, each of which lowers the sum of squared errors.

    With unit weights and centred places X, a transform is X <- B X / n, where b_ij is minus the
    wanted distance over the present one, and rows of B sum to zero.
    """
    places = places - places.mean(axis=0)
    for _ in range(n_moves):
        present = cdist(places, places)
        ratios = np.divide(wanted, present, out=np.zeros_like(wanted), where=present > 1e-9)
        places = (ratios.sum(axis=1)[:, None] * places - ratios @ places) / places.shape[0]
    return places


def _fit_circle(places: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return places within the unit circle; nodes far out are squeezed more than others."""
    radii = np.hypot(places[:, 0], places[:, 1])
    scale = float(np.sqrt(np.mean(radii**2))) if radii.size else 0.0
    if scale == 0:
        return np.zeros_like(places)
    return np.asarray(places / (1.2 * scale + radii)[:, None])


def _as_numbers(nodes: ArrayLike) -> NDArray[np.int64]:
    return np.unique(np.asarray(nodes, dtype=np.int64))


def _least(nodes: NDArray[np.int64], keys: NDArray[np.float64], n_nodes: int) -> NDArray[np.int64]:
    """Return the nodes with the least keys."""
    if nodes.size <= n_nodes:
        return nodes
    return nodes[np.argpartition(keys[nodes], n_nodes)[:n_nodes]] if n_nodes > 0 else nodes[:0]


def _orthonormal(columns: NDArray[np.float64], mass: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the closest columns that are orthonormal in the inner product x' diag(mass) y.

    Directions that the columns lack, as those of a tiny graph do, become zero.
    """
    values, vectors = np.linalg.eigh(columns.T @ (mass * columns))
    there = values > 1e-12 * values[-1]
    scales = np.zeros_like(values)
    scales[there] = values[there] ** -0.5
    return np.asarray(columns @ ((vectors * scales) @ vectors.T))


def _link(
    smooth: NDArray[np.float64], component: NDArray[np.int32], has_edges: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Return pairs of nodes of which one is among the nearest of the other in its component."""
    n_nodes = smooth.shape[0]
    distances = cdist(smooth, smooth)
    apart = (component[:, None] != component[None, :]) | ~has_edges[:, None]
    np.fill_diagonal(apart, True)
    distances[apart] = np.inf
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :N_LINKS]
    rows = np.repeat(np.arange(n_nodes), nearest.shape[1])
    ends = np.column_stack([rows, nearest.ravel()])
    ends = ends[np.isfinite(distances[ends[:, 0], ends[:, 1]])]
    ends.sort(axis=1)
    return np.unique(ends.reshape(-1, 2), axis=0)
