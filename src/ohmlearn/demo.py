"""What ``ohmlearn demo`` does: islands of points joined by bridges, their voltages and leverage."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from ohmlearn._validation import require_extra
from ohmlearn.graph import Graph
from ohmlearn.resistance import effective_resistance
from ohmlearn.solver import LaplacianSolver, SolveReport

__all__ = [
    "Archipelago",
    "Leverage",
    "Solution",
    "describe_leverage",
    "describe_solution",
    "draw",
    "make_archipelago",
    "measure_leverage",
    "require_matplotlib",
    "solve",
]

NEIGHBOURS = 8
RING = 6  # islands in a ring; one more hangs on the last of them by a single bridge
SHOWN = 8  # critical edges printed


@dataclass(frozen=True)
class Archipelago:
    """Points in the plane and the graph of their neighbours, with bridges."""

    points: NDArray[np.float64]
    graph: Graph


@dataclass(frozen=True)
class Solution:
    """Voltages when one ampere flows from `source` to `sink`."""

    source: int
    sink: int
    voltages: NDArray[np.float64]
    report: SolveReport


@dataclass(frozen=True)
class Leverage:
    """Weight times effective resistance of every edge."""

    values: NDArray[np.float64]
    seconds: float


def make_archipelago(n_nodes: int, seed: int) -> Archipelago:
    """Make islands in a ring, and one beside it, each joined to the next by its shortest bridge.

    Examples
    --------
    >>> from ohmlearn.demo import make_archipelago
    >>> graph = make_archipelago(700, seed=0).graph
    >>> graph.n_nodes, graph.components()[0]
    (700, 1)
    """
    rng = np.random.default_rng(seed)
    angles = 2 * np.pi * np.arange(RING) / RING
    centres = np.column_stack([3.1 * np.cos(angles), 2.3 * np.sin(angles)])
    centres = np.vstack([centres, [6.1, 0.9]])
    island = np.arange(n_nodes) * len(centres) // n_nodes
    # A disc with a wavy coast.
    angle = rng.uniform(0, 2 * np.pi, n_nodes)
    waves = rng.uniform(0, 2 * np.pi, len(centres))[island]
    coast = 1 + 0.18 * np.sin(3 * angle + waves) + 0.08 * np.sin(5 * angle - 2 * waves)
    radius = coast * np.sqrt(rng.random(n_nodes))
    points = centres[island] + radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])

    ends = [_join_neighbours(np.flatnonzero(island == i), points) for i in range(len(centres))]
    ring = [(i, (i + 1) % RING) for i in range(RING)]
    ends += [_join_nearest(island == a, island == b, points) for a, b in [*ring, (0, RING)]]
    pairs = np.unique(np.sort(np.concatenate(ends), axis=1), axis=0)
    return Archipelago(points, Graph.from_edges(pairs[:, 0], pairs[:, 1], n_nodes=n_nodes))


def _join_neighbours(nodes: NDArray[np.int64], points: NDArray[np.float64]) -> NDArray[np.int64]:
    near = cKDTree(points[nodes]).query(points[nodes], NEIGHBOURS + 1)[1][:, 1:]
    return np.column_stack([np.repeat(nodes, NEIGHBOURS), nodes[near.ravel()]])


def _join_nearest(
    here: NDArray[np.bool_], there: NDArray[np.bool_], points: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return the shortest edge between two sets of nodes."""
    a, b = np.flatnonzero(here), np.flatnonzero(there)
    distance, nearest = cKDTree(points[b]).query(points[a])
    best = np.argmin(distance)
    return np.array([[a[best], b[nearest[best]]]])


def solve(archipelago: Archipelago) -> Solution:
    """Send one ampere from the westernmost to the easternmost point."""
    graph = archipelago.graph
    east = archipelago.points[:, 0]
    source, sink = int(np.argmin(east)), int(np.argmax(east))
    current = np.zeros(graph.n_nodes)
    current[source], current[sink] = 1.0, -1.0
    solver = LaplacianSolver(graph, random_state=0)
    return Solution(source, sink, solver.solve(current), solver.report_)


def measure_leverage(graph: Graph) -> Leverage:
    """Compute the effective resistances of all edges, exactly."""
    start = time.perf_counter()
    resistance = effective_resistance(graph, exact=True, random_state=0)
    return Leverage(graph.edges()[2] * resistance, time.perf_counter() - start)


def describe_solution(archipelago: Archipelago, solution: Solution) -> str:
    """Say what was solved and how."""
    graph, report = archipelago.graph, solution.report
    n_components, _ = graph.components()
    volts = solution.voltages[solution.source] - solution.voltages[solution.sink]
    seconds = report.setup_seconds + report.solve_seconds
    return (
        f"Graph      {graph.n_nodes:,} nodes, {graph.n_edges:,} edges, "
        f"{n_components} component{'s' if n_components > 1 else ''}\n"
        f"Solve      1 ampere from node {solution.source} to node {solution.sink}: "
        f"{volts:.4f} volts between them\n"
        f"           method {report.method} ({report.reason})\n"
        f"           {report.iterations[0]} iterations, residual {report.residual[0]:.1e}, "
        f"{seconds:.3f} s"
    )


def describe_leverage(graph: Graph, leverage: Leverage) -> str:
    """Check the sum of all leverages and list the largest."""
    u, v, w = graph.edges()
    n_components, _ = graph.components()
    rows = [
        f"           {u[e]:>5} -- {v[e]:<5} {w[e]:>6g}  {leverage.values[e]:.4f}"
        for e in np.argsort(-leverage.values, kind="stable")[:SHOWN]
    ]
    return "\n".join(
        [
            f"Resistance {len(u):,} edges, exact, {leverage.seconds:.2f} s",
            f"           sum of weight x resistance = {leverage.values.sum():.6f}; "
            f"nodes - components = {graph.n_nodes - n_components}",
            "Critical           edge  weight  weight x resistance",
            *rows,
        ]
    )


def require_matplotlib() -> Any:
    """Import matplotlib, or say how to install it."""
    return require_extra("matplotlib", "plot")


def draw(archipelago: Archipelago, solution: Solution, leverage: Leverage, output: Path) -> None:
    """Draw voltages and leverage side by side."""
    require_matplotlib()
    from matplotlib import colormaps
    from matplotlib.collections import LineCollection
    from matplotlib.colors import ListedColormap
    from matplotlib.figure import Figure  # no pyplot: no window, no global state

    points = archipelago.points
    u, v, _ = archipelago.graph.edges()
    figure = Figure(figsize=(11, 4.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    for axes in (left, right):
        axes.set(xticks=[], yticks=[], aspect="equal", facecolor="#14141c")
        axes.margins(0.04)

    # Without its dark end, which would be lost on the dark ground.
    viridis = ListedColormap(colormaps["viridis"](np.linspace(0.2, 1.0, 256)))
    left.set_title("Voltages: one ampere flows from A to B")
    left.add_collection(LineCollection(_lines(points, u, v), colors="#70707c", linewidths=0.5))
    nodes = left.scatter(*points.T, c=solution.voltages, s=8, cmap=viridis, zorder=2)
    bar: dict[str, Any] = {"location": "bottom", "shrink": 0.8, "aspect": 40, "pad": 0.03}
    figure.colorbar(nodes, ax=left, label="volts: level on an island, a step at a bridge", **bar)
    for name, node in (("A", solution.source), ("B", solution.sink)):
        left.annotate(
            name,
            points[node],
            ha="center",
            va="center",
            zorder=3,
            bbox={"boxstyle": "circle", "facecolor": "white", "edgecolor": "black"},
        )

    right.set_title("Leverage of each edge: weight × effective resistance")
    order = np.argsort(leverage.values, kind="stable")  # the critical ones on top
    shown = leverage.values[order]
    edges = LineCollection(
        _lines(points, u[order], v[order]),
        array=shown,
        linewidths=0.5 + 3.0 * shown**2,
        cmap="inferno",
        capstyle="round",
    )
    edges.set_clim(0.0, 1.0)
    right.add_collection(edges)
    right.set(xlim=left.get_xlim(), ylim=left.get_ylim())
    figure.colorbar(edges, ax=right, label="0: one of many ways, 1: the only way", **bar)
    output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(output, dpi=90)


def _lines(
    points: NDArray[np.float64], u: NDArray[np.int32], v: NDArray[np.int32]
) -> list[NDArray[np.float64]]:
    return list(np.stack([points[u], points[v]], axis=1))
