"""The three experts for nodes with features, and the tables of features that they see."""

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from ohmlearn.edges.in_memory import GraphEdges
from ohmlearn.estimators.answer import NodeAnswer
from ohmlearn.estimators.kept_graph import KeptGraph
from ohmlearn.estimators.label_input import choose_labels
from ohmlearn.estimators.problem import HFSParameters
from ohmlearn.features.expert_tasks import Floats, Mask, Predictor, Task
from ohmlearn.features.feature_problem import FeatureProblem
from ohmlearn.features.smoothing import Smoothing, make_room
from ohmlearn.points.point_arrays import Matrix

WIDE = 30  # columns; rows of so many get the same length


class ScaledFeatures:
    """Features of nodes, scaled when they are asked for.

    A column is divided by its standard deviation. Columns most of whose entries are zero, as those
    of words, categories and pixels at the margin, keep their scales relative to each other, so that
    rare words do not count more than frequent ones; they are divided by a typical entry that is not
    zero. Only columns whose entries are ten times larger or smaller than usual are divided by their
    own. Dense columns are centred, and sparse ones only where they become dense. `size` is the root
    mean square of the lengths of centred rows.
    """

    def __init__(self, X: Matrix) -> None:
        self.is_sparse = scipy.sparse.issparse(X)
        self._X = scipy.sparse.csr_array(X) if self.is_sparse else X
        self._columns = self._X.tocsc() if self.is_sparse else X
        self.shape: tuple[int, int] = self._X.shape
        self.dtype = np.dtype(np.float32 if self._X.dtype == np.float32 else np.float64)
        self.mean, self.scale, self.size = self._measure()

    def _measure(self) -> tuple[Floats, Floats, float]:
        """Return the means of the columns, what to divide them by, and `size`."""
        n, n_columns = self.shape
        mean, variance = np.zeros(n_columns), np.zeros(n_columns)
        square, count, unit = np.zeros(n_columns), np.zeros(n_columns), np.ones(n_columns)
        for part in blocks(n_columns, n):
            block = self._dense(part)
            # In units of the largest entries, so that squares of extreme numbers do not overflow.
            largest = np.maximum(block.max(axis=0), -block.min(axis=0))
            unit[part] = np.ldexp(1.0, np.clip(np.frexp(largest)[1], -1000, 1000))
            block /= unit[part]
            mean[part] = block.mean(axis=0)
            square[part] = np.mean(block**2, axis=0)
            count[part] = np.count_nonzero(block, axis=0)
            variance[part] = np.mean((block - mean[part]) ** 2, axis=0)
        mean *= unit
        deviation = np.sqrt(variance) * unit
        typical = np.sqrt(square * n / np.maximum(count, 1.0)) * unit
        mostly_zero = (count <= n / 2) & (count > 0)
        scale = deviation
        if mostly_zero.any():
            usual = float(np.median(typical[mostly_zero]))
            unusual = (typical > 10.0 * usual) | (typical * 10.0 < usual)
            scale = np.where(mostly_zero, np.where(unusual, typical, usual), scale)
        # What rounding leaves of a constant column is no deviation.
        is_constant = deviation <= 1e-12 * typical
        scale = np.where(is_constant, np.inf, scale)
        total = float(np.sum((deviation / scale) ** 2))
        return mean, scale, float(np.sqrt(total)) if total > 0 else 1.0

    def _dense(self, part: slice) -> Floats:
        block = self._columns[:, part]
        block = block.toarray() if self.is_sparse else block
        return np.array(block, dtype=np.float64)

    def columns(self, part: slice) -> Floats:
        """Return some columns of all nodes, centred and scaled."""
        return (self._dense(part) - self.mean[part]) / self.scale[part]

    def rows(self, chosen: Any) -> Matrix:
        """Return all columns of some nodes, for an estimator; sparse if X is."""
        return self.scale_rows(self._X[chosen])

    def scale_rows(self, rows: Matrix) -> Matrix:
        """Return further rows on the same scale."""
        rows = self._like(rows)
        if self.is_sparse:
            return scipy.sparse.csr_array(rows.multiply(1.0 / self.scale), dtype=self.dtype)
        scaled = np.empty(rows.shape, dtype=self.dtype)
        for part in blocks(*rows.shape):
            scaled[part] = (rows[part] - self.mean) / self.scale
        return scaled

    def _like(self, rows: Matrix) -> Matrix:
        """Return rows as a sparse matrix if X is one, else as an array."""
        return scipy.sparse.csr_array(rows) if self.is_sparse else as_dense(rows)

    def for_distances(self, rows: Matrix = None) -> Matrix:
        """Return the rows, or further ones, between which distances are computed.

        They are scaled if the scales of two columns differ by more than ten times. Otherwise the
        columns probably have the same unit, as lengths or pixels have, and stay as they are.
        """
        rows = self._X if rows is None else self._like(rows)
        scales = self.scale[np.isfinite(self.scale)]
        if len(scales) > 0 and scales.max() > 10.0 * scales.min():
            return self.scale_rows(rows)
        return rows


def blocks(size: int, n_cells: int) -> list[slice]:
    """Return slices of columns or rows, each with `n_cells` entries, that are treated together."""
    width = max(1, (1 << 22) // max(1, n_cells))  # 32 MiB
    return [slice(start, min(start + width, size)) for start in range(0, size, width)]


def as_dense(rows: Matrix) -> NDArray[Any]:
    """Return rows as an array."""
    return np.asarray(rows.toarray() if scipy.sparse.issparse(rows) else rows)


class Experts:
    """The three experts on one graph with one table of features.

    Answers are arrays of shape (n_experts, n_rows, n_columns), NaN where an expert does not apply.
    `estimator` is a regressor or classifier of scikit-learn, or None for the one of the task.
    Features are smoothed with `gamma`.
    """

    def __init__(
        self,
        task: Task,
        problem: FeatureProblem,
        *,
        estimator: BaseEstimator,
        gamma: float,
        seed: int,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.task, self.graph, self.gamma = task, problem.known.graph, gamma
        self.features, self.labels = ScaledFeatures(problem.features), problem.used
        self.seed, self.n_jobs, self.verbose = seed, n_jobs, verbose
        self._kept = KeptGraph.start(HFSParameters(epsilon=None), seed=seed)
        self._kept.take(GraphEdges(self.graph))
        # Rows get the same length for the usual estimator; another one gets plain columns.
        self._same_length = task.has_classes and self.features.shape[1] >= WIDE
        self._is_usual = estimator is None
        usual = task.usual_estimators(self.features.size) if estimator is None else [estimator]
        # Candidates for each expert: a table of features, and the estimator that is fitted to it.
        self._tables = [(table, candidate) for table in (0, 1) for candidate in usual]
        self.candidates = [*np.arange(2 * len(usual)).reshape(2, -1), np.array([2 * len(usual)])]
        self.has_edges: Mask = np.diff(self.graph.indptr) > 0
        _, component = self.graph.components()
        near_features = np.isin(component, component[~problem.missing]) & self.has_edges
        self._known_rows: list[Mask] = [~problem.missing, near_features]
        self._smoothed = self._smooth(problem.known.degrees)
        self._bases: list[Any] = [None, None]
        self._rows = [self._table(expert, self.labels.nodes) for expert in (0, 1)]
        if estimator is None and len(self.labels.nodes) < self.features.shape[1]:
            # A linear model with a penalty lies in the space of the rows that it is fitted to, so
            # the coordinates in that space give the same model in less time.
            self._bases = [np.linalg.qr(as_dense(rows).T)[0] for rows in self._rows]
            self._rows = [rows @ basis for rows, basis in zip(self._rows, self._bases, strict=True)]
        self._fits: dict[bytes, Floats] = {}

    def _smooth(self, degrees: Floats) -> NDArray[Any]:
        """Return smoothed features of all nodes: weighted means over the nodes around each one.

        A node with many edges has a part in many means and says less about each neighbour, so nodes
        count by their inverse degrees. Means are smaller than single values: all rows get the same
        length if there are many columns, and otherwise all together the size that they had before.
        """
        n_nodes, n_columns = self.features.shape
        smoothing = Smoothing(
            self.graph, self.gamma, degrees=degrees, tol=1e-4, random_state=self.seed,
            n_jobs=self.n_jobs, verbose=self.verbose,
        )  # fmt: skip
        # `Smoothing` is D^(1/2) (D + gamma L)^-1 D^(1/2).
        counts = 1.0 / np.sqrt(np.where(self.has_edges, degrees, 1.0))[:, np.newaxis]
        smoothed = make_room(n_nodes, n_columns, self.features.dtype)
        smoothing.apply_to(lambda part: self.features.columns(part) * counts, smoothed)
        if self._same_length:
            for part in blocks(n_nodes, n_columns):
                smoothed[part] = self._resize(smoothed[part])
            return smoothed
        smoothed /= smoothing.apply(counts)
        parts = blocks(n_nodes, n_columns)
        total = sum(float(np.sum(np.square(smoothed[part], dtype=float))) for part in parts)
        if total > 0.0:
            smoothed *= self.features.size / np.sqrt(total / n_nodes)
        return smoothed

    def _resize(self, rows: Matrix) -> Matrix:
        """Return rows of the same length."""
        is_sparse = scipy.sparse.issparse(rows)
        square = rows.multiply(rows).sum(axis=1) if is_sparse else np.einsum("ij,ij->i", rows, rows)
        lengths = np.sqrt(np.asarray(square, dtype=np.float64).ravel())
        scale = (self.features.size / np.where(lengths > 0.0, lengths, 1.0))[:, np.newaxis]
        if is_sparse:
            return rows.multiply(scale).tocsr()
        return (rows * scale).astype(rows.dtype, copy=False)

    def own_rows(self, rows: Matrix) -> Matrix:
        """Return rows of features of further nodes, as the estimator on own features takes them."""
        return self._as_input(0, self.features.scale_rows(rows))

    def _table(self, expert: int, chosen: Any) -> Matrix:
        """Return rows of features or of smoothed features."""
        rows = self._smoothed[chosen] if expert == 1 else self.features.rows(chosen)
        return self._as_input(expert, rows)

    def _as_input(self, expert: int, rows: Matrix) -> Matrix:
        if expert == 0 and self._same_length and self._is_usual:
            rows = self._resize(rows)
        return rows if self._bases[expert] is None else rows @ self._bases[expert]

    def forget(self) -> None:
        """Free what is large and is not needed for answers to new points."""
        self._smoothed, self._rows = np.empty((0, 0)), []
        self._fits.clear()

    def fit(self, candidate: int, known: Mask) -> Predictor | None:
        """Return the estimator fitted to labels that are known; None if it can learn from none."""
        table, estimator = self._tables[candidate]
        usable = known & self._known_rows[table][self.labels.nodes]
        if not usable.any():
            return None
        labels = choose_labels(self.labels, usable)
        return self.task.fit(estimator, self._rows[table][usable], labels)

    def at_labels(self, known: Mask) -> Floats:
        """Return the answers of all candidates for all labels, from those that are known."""
        key = known.tobytes()
        if key not in self._fits:
            nodes, found = self.labels.nodes, self.no_answers()
            for candidate, (table, _) in enumerate(self._tables):
                predict = self.fit(candidate, known)
                if predict is not None:
                    there = self._known_rows[table][nodes]
                    found[candidate][there] = predict(self._rows[table])[there]
            found[-1] = self._by_graph(known)[nodes]
            self._fits[key] = found
        return self._fits[key]

    def no_answers(self) -> Floats:
        """Return room for answers of all candidates for all labels."""
        return np.full((len(self._tables) + 1, *self.labels.values.shape), np.nan)

    def _by_graph(self, known: Mask) -> Floats:
        labels = choose_labels(self.labels, known & self.has_edges[self.labels.nodes])
        if len(labels.nodes) == 0:
            return np.full((self.graph.n_nodes, self.labels.values.shape[1]), np.nan)
        return self.task.by_graph(self._kept, labels, self.n_jobs)

    def graph_answer(self, classes: NDArray[Any] | None) -> NodeAnswer:
        """Return the answer of the edges and labels alone."""
        labels = choose_labels(self.labels, self.has_edges[self.labels.nodes])
        return self.task.solve_graph(self._kept, labels, self.n_jobs, classes)

    def everywhere(self, own: Predictor | None, both: int, wanted: Mask) -> Floats:
        """Return the answers of the three experts for all nodes, from all labels.

        `own` is the estimator on the features of a node, and `both` the candidate on smoothed ones.
        Experts that are not `wanted` answer only if some nodes have no other one.
        """
        known = np.ones(len(self.labels.nodes), dtype=bool)
        found = np.full((3, self.graph.n_nodes, self.labels.values.shape[1]), np.nan)
        for expert in (1, 2, 0) if not wanted[0] else (0, 1, 2):
            if not wanted[expert] and not np.isnan(found[wanted, :, 0]).all(axis=0).any():
                continue
            if expert == 2:
                found[2] = self._by_graph(known)
                continue
            predict = own if expert == 0 else self.fit(both, known)
            if predict is not None:
                for part in blocks(*self.features.shape):
                    found[expert][part] = predict(self._table(expert, part))
                found[expert][~self._known_rows[expert]] = np.nan
        return found
