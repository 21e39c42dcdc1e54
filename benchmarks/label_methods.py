"""The methods of labelling that are compared, with their defaults but for one tolerance.

A method first converts the edges into the form it takes. Then it labels all nodes, once for each
set of labels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

Labels = np.ndarray


class Edges(NamedTuple):
    """Arrays of edges; each edge occurs once."""

    u: np.ndarray
    v: np.ndarray
    w: np.ndarray
    n_nodes: int


@dataclass(frozen=True)
class Method:
    """A package, its conversion of edges, and its labelling; -1 in ``y`` means unlabelled."""

    package: str
    prepare: Callable[[Edges], Any]
    label: Callable[[Any, Labels, int], Labels]


def to_graph(edges: Edges) -> Any:
    """Convert edges to an ohmlearn Graph."""
    from ohmlearn import Graph

    return Graph.from_edges(edges.u, edges.v, edges.w, n_nodes=edges.n_nodes)


def to_matrix(edges: Edges) -> sp.csr_matrix:
    """Convert edges to a symmetric scipy matrix, the old class, as graphlearning requires."""
    half = sp.coo_array((edges.w, (edges.u, edges.v)), shape=(edges.n_nodes,) * 2).tocsr()
    return sp.csr_matrix(half + half.T)


def to_networkx(edges: Edges) -> Any:
    """Convert edges to a networkx graph."""
    import networkx

    graph = networkx.Graph()
    graph.add_nodes_from(range(edges.n_nodes))
    graph.add_weighted_edges_from(zip(*(a.tolist() for a in edges[:3]), strict=True))
    return graph


def ours_in(passes: int) -> Callable[[Any, Labels, int], Labels]:
    """Return Sparse-HFS with the given number of passes."""

    def label(graph: Any, y: Labels, seed: int) -> Labels:
        from ohmlearn import HFSClassifier

        model = HFSClassifier(passes=passes, random_state=seed)
        return np.asarray(model.fit_edges(graph, y).transduction_)

    return label


def exact(graph: Any, y: Labels, seed: int) -> Labels:
    """Stable-HFS on the whole graph."""
    from ohmlearn import HFSClassifier

    return np.asarray(
        HFSClassifier(epsilon=None, random_state=seed).fit_edges(graph, y).transduction_
    )


def poisson(matrix: sp.csr_matrix, y: Labels, seed: int) -> Labels:
    """Poisson learning from graphlearning.

    With its default tolerance of 1e-3 it stops after one step on dense graphs, far from the answer.
    """
    import graphlearning

    labelled = np.flatnonzero(y >= 0)
    return np.asarray(
        graphlearning.ssl.poisson(matrix, tol=1e-5).fit_predict(labelled, y[labelled])
    )


def label_spreading(matrix: sp.csr_matrix, y: Labels, seed: int) -> Labels:
    """LabelSpreading from scikit-learn; a kernel function passes it the matrix."""
    from sklearn.semi_supervised import LabelSpreading

    model = LabelSpreading(kernel=lambda a, b: matrix)
    return np.asarray(model.fit(np.zeros((len(y), 1)), y).transduction_)


def diffusion(matrix: sp.csr_matrix, y: Labels, seed: int) -> Labels:
    """Heat diffusion from scikit-network."""
    from sknetwork.classification import DiffusionClassifier

    return np.asarray(DiffusionClassifier().fit_predict(matrix, labels=y))


def harmonic_function(graph: Any, y: Labels, seed: int) -> Labels:
    """Harmonic functions from networkx, thirty steps."""
    from networkx.algorithms.node_classification import harmonic_function as work

    for node, data in graph.nodes(data=True):
        data.pop("label", None)
        if y[node] >= 0:
            data["label"] = int(y[node])
    return np.asarray(work(graph))


METHODS: dict[str, Method] = {
    "1 pass": Method("ohmlearn", to_graph, ours_in(1)),
    "3 passes": Method("ohmlearn", to_graph, ours_in(3)),
    "exact": Method("ohmlearn", to_graph, exact),
    "Poisson": Method("graphlearning", to_matrix, poisson),
    "LabelSpreading": Method("scikit-learn", to_matrix, label_spreading),
    "Diffusion": Method("scikit-network", to_matrix, diffusion),
    "harmonic_function": Method("networkx", to_networkx, harmonic_function),
}


def warm_up(name: str) -> None:
    """Run a method once, so that the time and memory of its imports are not measured.

    Examples
    --------
    >>> warm_up("exact")
    """
    ends = np.arange(60)
    ring = Edges(ends, (ends + 1) % 60, np.ones(60), 60)
    y = np.full(60, -1)
    y[[0, 30]] = 0, 1
    METHODS[name].label(METHODS[name].prepare(ring), y, 0)
