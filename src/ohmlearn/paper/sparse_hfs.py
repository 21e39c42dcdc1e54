"""Sparse-HFS, Algorithm 1 of the paper: an answer after each block of edges of a stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ohmlearn.checks.edge_arrays import check_nodes_of
from ohmlearn.checks.parameters import check_positive
from ohmlearn.edges.protocol import one_pass
from ohmlearn.graph import Graph
from ohmlearn.harmonic.solve_hfs import solve_hfs
from ohmlearn.reading.as_edges import as_edges
from ohmlearn.sparsifier.kelner_levin import KelnerLevin


class BlockAnswer(NamedTuple):
    """The answer of `SparseHFS` after a block of edges.

    Attributes
    ----------
    f : ndarray of shape (n_nodes,) or (n_nodes, n_columns)
        The scores f~ of the paper.
    mu : ndarray of shape (n_columns,)
        The multiplier mu of Eq. (2), which is subtracted from y_S.
    graph : Graph
        The sparsifier H.
    n_edges_seen : int
        Edges read so far, without self-loops and edges of weight 0.

    Examples
    --------
    >>> from ohmlearn.paper import SparseHFS
    >>> job = SparseHFS([0, 2], [1.0, -1.0], n_nodes=3, random_state=0)
    >>> (answer,) = job.answers(([0, 1], [1, 2]))
    >>> answer.graph.n_edges, answer.f.round(3).tolist()
    (2, [0.383, 0.022, -0.405])
    """

    f: NDArray[np.float64]
    mu: NDArray[np.float64]
    graph: Graph
    n_edges_seen: int


class SparseHFS:
    """Algorithm 1 of the paper: stable-HFS on a sparsifier of a stream of edges.

    After each block of n ln(n)² / epsilon² edges, Algorithm 2 (`KelnerLevin`) makes the sparsifier
    H of all edges so far, and the answer is that of stable-HFS on H, Eq. (1) and (2) of the paper:

        f~ = (gamma l L_H + I_S)^+ (y_S - mu 1),    with mu such that f~ sums to zero.

    The paper subtracts mu 1 after solving, which gives another vector; docs/theory.md says more.

    `HFSClassifier` with ``passes=1, gamma=1.0`` answers once, at the end, for labels of any type,
    with a sparsifier that needs fewer edges and less time.

    Parameters
    ----------
    labelled : array-like of int, shape (l,)
        The labelled nodes S.
    y : array-like of float, shape (l,) or (l, n_columns)
        Their labels, for example 1 and -1.
    n_nodes : int
        The number n.
    epsilon : float
        Accuracy of the sparsifier; the paper's experiment has 0.8.
    gamma : float
        Regularisation; the paper's experiment has 1.
    constant : float
        Factor on the number of copies of an edge, see `KelnerLevin`. 1 is the paper's;
        ``scheme="paper"`` elsewhere in this library takes 0.1.
    random_state : int, Generator, RandomState or None
    n_jobs : int, optional
        Number of threads, as in scikit-learn; the result does not depend on it.

    Attributes
    ----------
    sparsifier : KelnerLevin
        What is kept of the edges.

    References
    ----------
    .. [1] D. Calandriello, A. Lazaric and M. Valko, "Large-scale semi-supervised learning with
       online spectral graph sparsification", 2015. Algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from ohmlearn import gallery
    >>> from ohmlearn.paper import SparseHFS
    >>> graph = gallery.stochastic_blocks([100, 100], 1.0, bridges=300, random_state=0)
    >>> u, v, _ = graph.edges()
    >>> order = np.random.default_rng(0).permutation(graph.n_edges)
    >>> job = SparseHFS([0, 150], [1.0, -1.0], n_nodes=200, epsilon=0.9, random_state=0)
    >>> for answer in job.answers((u[order], v[order])):
    ...     right = np.mean((answer.f > 0) == (np.arange(200) < 100))
    ...     print(f"after {answer.n_edges_seen} edges {right:.0%} are right")
    after 6932 edges 100% are right
    after 10200 edges 100% are right
    """

    def __init__(
        self,
        labelled: ArrayLike,
        y: ArrayLike,
        *,
        n_nodes: int,
        epsilon: float = 0.8,
        gamma: float = 1.0,
        constant: float = 1.0,
        random_state: object = None,
        n_jobs: int | None = None,
    ) -> None:
        self.sparsifier = KelnerLevin(
            n_nodes, epsilon, constant=constant, random_state=random_state, n_jobs=n_jobs
        )
        self.labelled = check_nodes_of(self.sparsifier.n_nodes, labelled, "labelled")
        self.y, self.gamma = np.asarray(y, np.float64), check_positive("gamma", gamma)

    def answers(self, edges: object) -> Iterator[BlockAnswer]:
        """Read edges, and yield an answer after each block, and one for the rest of the edges.

        Parameters
        ----------
        edges : Edges, Graph, tuple (u, v) or (u, v, w) of arrays, or iterable of such tuples
            Edges between the nodes 0, ..., n_nodes - 1, or with ids, of which there are at most
            that many.
        """
        sketch = self.sparsifier
        with one_pass(as_edges(edges)) as batches:
            for u, v, w, _ in batches:
                start = 0
                while start < len(u):
                    part = slice(start, start + sketch.n_missing)
                    n_before = sketch.n_resamples
                    sketch.update(u[part], v[part], None if w is None else w[part])
                    start = part.stop
                    if sketch.n_resamples > n_before:
                        yield self._solve()
        if sketch.n_missing < sketch.block_size or sketch.n_resamples == 0:
            sketch.flush()
            yield self._solve()

    def _solve(self) -> BlockAnswer:
        """Solve Eq. (1) and (2) on the sparsifier."""
        sketch = self.sparsifier
        h = sketch.graph()
        found = solve_hfs(
            h, self.labelled, self.y, gamma=self.gamma, random_state=sketch.seed,
            n_jobs=sketch.n_jobs,
        )  # fmt: skip
        n_seen = sketch.position - sketch.n_self_loops - sketch.n_zero_weights
        return BlockAnswer(found.f, found.mu, h, n_seen)
