"""Three kinds of experts: own features, features and graph together, and the graph alone.

The expert for both works in steps, as Correct and Smooth (Huang et al. 2020) does:

1. the estimator is fitted to features that are smoothed along the edges;
2. its errors at labelled nodes are spread to the nodes around them, and corrected there. A model
   that was fitted to a label makes no error there, so these are errors at labels it has not seen;
3. its answers are smoothed, with the given labels put in.

Each step may help or not. So the expert has variants, with and without steps 2 and 3, and
`mixture` weighs them by how well they predict labels that are left out.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ohmlearn.estimators.label_input import NodeLabels
from ohmlearn.features.expert_tasks import Floats, Predictor, Task
from ohmlearn.features.scaled_features import ScaledFeatures, blocks
from ohmlearn.features.smoothing import Smoothing, make_room
from ohmlearn.graph import Graph
from ohmlearn.solver import LaplacianSolver

__all__ = ["FEATURES", "GRAPH", "Experts", "Variant"]

CORRECT_GAMMA = 9.0  # how far errors are spread
SPREAD_GAMMAS = (4.0, 250.0)  # how far answers are smoothed
MANY = 30  # columns; with fewer, the length of a row says much
LABEL_WEIGHT = 10.0  # of a label in step 3, in units of the degree of its node
SPREAD_TOL = 1e-5
SMOOTH_TOL = 1e-4  # an estimator does not see smaller errors


class Variant(NamedTuple):
    """An expert: which steps it takes.

    Examples
    --------
    >>> print(Variant("both", corrected=True, spread=4.0))
    both, corrected, smoothed with gamma 4
    """

    kind: str
    corrected: bool = False
    spread: float = 0.0

    def __str__(self) -> str:
        corrected = ", corrected" if self.corrected else ""
        return (
            self.kind
            + corrected
            + (f", smoothed with gamma {self.spread:g}" if self.spread else "")
        )


FEATURES, GRAPH = Variant("features"), Variant("graph")


@dataclass
class Experts:
    """Answers of experts for all nodes, given labels of some.

    Parameters
    ----------
    graph : Graph
    degrees : ndarray of shape (n_nodes,)
        Degrees of all edges that the graph was made from.
    features : ScaledFeatures
    task : Task
    estimators : tuple
        Regressors or classifiers of scikit-learn, of which left-out labels choose one.
    seed : int
    n_jobs : int, optional
    verbose : int
    """

    graph: Graph
    degrees: NDArray[np.float64]
    features: ScaledFeatures
    task: Task
    estimators: tuple[Any, ...]
    seed: int
    n_jobs: int | None = None
    verbose: int = 0

    def __post_init__(self) -> None:
        has_edges = np.diff(self.graph.indptr) > 0
        self.sizes: Floats = np.where(has_edges, self.degrees, 1.0)
        self._correcting: Smoothing | None = None
        self._enlargement: dict[float, float] = {}  # of smoothed features, for each gamma

    # Features and estimators.

    def smooth_features(self, gamma: float, nodes: Any = None) -> NDArray[Any]:
        """Return smoothed features of all nodes, or of some: means over the nodes around each one.

        Nodes with many edges have a part in many means, and say less about each of their
        neighbours. So a node counts by one over the root of its degree. All columns together are
        enlarged to the size that they had before. If there are many columns, all rows get the
        same length instead: how much a node has in common with those around it says little about
        its class.
        """
        n_nodes, n_columns = self.features.shape
        n_rows = n_nodes if nodes is None else len(nodes)
        smoothing = self.smoothing(gamma)
        smoothed = make_room(n_rows, n_columns, self.features.dtype)
        counts = 1.0 / np.sqrt(self.sizes)[:, np.newaxis]
        if nodes is None or n_columns < 2 * n_rows:
            smoothing.apply_to(
                lambda part: self.features.columns(part) * counts, smoothed, rows=nodes
            )
        else:  # the matrix is symmetric, and it has fewer rows than the features have columns
            unit = np.zeros((n_nodes, n_rows))
            unit[nodes, np.arange(n_rows)] = 1.0
            matrix = smoothing.apply(unit) * counts
            for part in blocks(n_columns, n_nodes):
                smoothed[:, part] = matrix.T @ self.features.columns(part)
        if n_columns >= MANY and self.task.has_classes:
            size = self.features.size
            for rows in blocks(n_rows, n_columns):
                lengths = np.sqrt(np.einsum("ij,ij->i", smoothed[rows], smoothed[rows]))
                smoothed[rows] *= (size / np.where(lengths > 0, lengths, 1.0))[:, np.newaxis]
            return smoothed
        total = smoothing.apply_quietly(np.array(counts))
        smoothed /= total if nodes is None else total[nodes]
        if gamma not in self._enlargement:
            spread = float(np.sqrt(np.sum(np.var(smoothed, axis=0, dtype=np.float64))))
            self._enlargement[gamma] = self.features.size / spread if spread > 0 else 1.0
        smoothed *= self._enlargement[gamma]
        return smoothed

    def smoothing(self, gamma: float) -> Smoothing:
        """Return the smoothing with some gamma."""
        return Smoothing(
            self.graph,
            gamma,
            degrees=self.degrees,
            tol=SMOOTH_TOL,
            random_state=self.seed,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )

    def predict_all(self, predict: Predictor, smoothed: NDArray[Any] | None = None) -> Floats:
        """Return the answers of a fitted estimator for all nodes, computed in blocks of rows."""
        n_nodes, n_columns = self.features.shape
        found = None
        for rows in blocks(n_nodes, n_columns):
            answers = predict(self.features.rows(rows) if smoothed is None else smoothed[rows])
            if found is None:
                found = np.empty((n_nodes, answers.shape[1]))
            found[rows] = answers
        assert found is not None
        return found

    # Steps 2 and 3.

    def correct(self, answers: Floats, labels: NodeLabels, errors: Floats) -> Floats:
        """Add errors at labelled nodes, which are spread to the nodes around them."""
        if self._correcting is None:
            self._correcting = self.smoothing(CORRECT_GAMMA)
        n_columns = answers.shape[1]
        given = np.zeros((len(answers), n_columns + 1))
        given[labels.nodes, :-1] = labels.weights[:, np.newaxis] * errors
        given[labels.nodes, -1] = labels.weights
        spread = self._correcting.apply_quietly(given)
        corrections = self.task.scale_errors(spread[:, :-1], spread[:, -1:], errors, labels)
        corrections += answers
        return self.task.tidy(corrections)

    def spread(self, answers: list[Floats], labels: NodeLabels, gamma: float) -> list[Floats]:
        """Smooth several answers, with the labels put in.

        The answers f minimise the sum of d (f - answer)^2 over all nodes, of LABEL_WEIGHT gamma d
        (f - label)^2 over labelled ones, and of gamma w (difference)^2 over edges.
        """
        ground = self.sizes / gamma
        pull = LABEL_WEIGHT * labels.weights / labels.weights.mean() * self.sizes[labels.nodes]
        right = np.hstack(answers) * ground[:, np.newaxis]
        given = np.tile(labels.values, len(answers))
        right[labels.nodes] += pull[:, np.newaxis] * given
        ground[labels.nodes] += pull
        solver = LaplacianSolver(
            self.graph, ground=ground, random_state=self.seed, n_jobs=self.n_jobs
        )
        found = solver.solve_block(right, SPREAD_TOL)
        return [self.task.tidy(np.array(part)) for part in np.split(found, len(answers), axis=1)]

    def variants_of_both(
        self,
        answers: Floats,
        labels: NodeLabels,
        errors: Floats | None,
        wanted: Collection[Variant],
    ) -> Iterator[tuple[Variant, Floats]]:
        """Yield the wanted variants, given the answers after step 1 and the errors for step 2."""
        starts = [(Variant("both"), answers)]
        if errors is not None and any(variant.corrected for variant in wanted):
            corrected = self.correct(answers, labels, errors)
            starts.append((Variant("both", corrected=True), corrected))
        yield from ((variant, found) for variant, found in starts if variant in wanted)
        for gamma in SPREAD_GAMMAS:
            these = [(variant._replace(spread=gamma), found) for variant, found in starts]
            these = [(variant, found) for variant, found in these if variant in wanted]
            if these:
                spread = self.spread([found for _, found in these], labels, gamma)
                yield from zip((variant for variant, _ in these), spread, strict=True)

    def by_graph(self, labels: NodeLabels) -> Floats:
        """Return the answers of the graph alone."""
        return self.task.by_graph(self.graph, labels, self.seed, self.n_jobs)
