"""Stacking of three experts by a linear opinion pool (Wolpert 1992; Stone 1961).

1. Three experts answer: the estimator on the features of a node ("features"); the estimator on
   (D + gamma L)^-1 X, features smoothed along the edges ("both"); and labels that spread along the
   edges as in `HFSClassifier` ("graph").
2. The labels are divided into folds. Each expert answers for the labels of a fold from the others.
3. Each expert gets an exponent a that makes these answers o as sure as they should be: it minimises
   -sum log sharpen(o, a) + log(a)^2 / 2, where sharpen(p, a) = .99 p^a / sum p^a + .01 / n_classes.
   The penalty of logistic regression is the one of two, for each expert, with the lesser minimum.
4. The weights w of the experts maximise the likelihood of the labels in the pool sum_e w_e o_e. One
   further label's worth is divided between "both" and "graph". EM finds the maximum, because the
   problem is convex. For numbers the weights minimise the squared error (Breiman 1996), and there
   are no exponents.
5. The answer is the pool of the experts fitted to all labels. An expert that does not apply to a
   node, because the node has no features or no edges, has no weight there.
6. For estimates, steps 2 to 4 are repeated without the labels of each fold in turn, so no label has
   a part in the exponents, penalties and weights of its own answer. The folds are the same ones:
   experts are fitted without one fold (5 times) and without two (10 times).

If fewer than two classes have two labels, nothing can be learned about the experts. Then the answer
is the mean of "both" and "graph".
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ohmlearn._phases import Phase, phase
from ohmlearn._warnings import warn
from ohmlearn.estimators.calibration import Calibration
from ohmlearn.estimators.label_input import NodeLabels, choose_labels
from ohmlearn.features.expert_tasks import PRIOR, Floats, Predictor, Task
from ohmlearn.features.scaled_features import ScaledFeatures, blocks
from ohmlearn.features.smoothing import Smoothing, make_room
from ohmlearn.graph import Graph

__all__ = ["EXPERTS", "FEATURES", "Experts", "Stack", "fit_stack", "split_labels"]

Mask = NDArray[np.bool_]
EXPERTS = ("features", "both", "graph")
FEATURES = np.array([1.0, 0.0, 0.0])  # weights if the graph is left out
ALONE = 0.9  # weight of the features from which the graph is left out
WIDE = 30  # columns; rows of so many get the same length


class ExpertAnswers(NamedTuple):
    """Answers of experts, and to which rows each of them applies."""

    answers: Floats  # (n_experts, n_rows, n_columns)
    applies: Mask  # (n_experts, n_rows)

    def at(self, experts: Any, rows: Any) -> "ExpertAnswers":
        """Return those of some experts for some rows."""
        return ExpertAnswers(self.answers[experts][:, rows], self.applies[experts][:, rows])


@dataclass
class Stack:
    """How experts are pooled, and how well labels that were left out are predicted.

    Attributes
    ----------
    exponents, weights : ndarray of shape (3,)
        Of "features", "both" and "graph".
    chosen : ndarray of int, shape (3,)
        Which of the answers of `Experts.at_labels` are those of the three experts.
    usable : ndarray of bool, shape (n_labels,)
        Which labels can be left out: those that are not the only ones of their class.
    left_out : ndarray of shape (n_labels, n_columns)
        ExpertAnswers for labels, each from a pool that has not seen the labels of its fold.
    alone, around : ndarray of the same shape
        The same from the features alone, and from the graph alone; NaN where no label reaches.
    """

    exponents: Floats
    weights: Floats
    chosen: NDArray[np.int64]
    usable: Mask
    left_out: Floats
    alone: Floats
    around: Floats
    calibration: Calibration | None = None  # of the pool; the classifier puts it here

    def pool(self, task: Task, found: ExpertAnswers) -> Floats:
        """Return the weighted mean of the experts that apply; zeros where none does."""
        total = np.zeros(found.applies.shape[1])
        pooled = np.zeros(found.answers.shape[1:])
        for answers, applies, exponent, weight in zip(
            *found, self.exponents, np.maximum(self.weights, 1e-9), strict=True
        ):
            share = np.where(applies, weight, 0.0)
            pooled += share[:, np.newaxis] * task.sharpen(answers, exponent)
            total += share
        pooled /= np.where(total > 0.0, total, 1.0)[:, np.newaxis]
        return pooled


class Experts:
    """The three experts on one graph with one table of features.

    Parameters
    ----------
    task : Task
    graph : Graph
    degrees : ndarray of shape (n_nodes,)
        Those of all edges that the graph was made from.
    features : ScaledFeatures
    missing : ndarray of bool, shape (n_nodes,)
        Which nodes have no features.
    labels : NodeLabels
    estimator : object
        Regressor or classifier of scikit-learn; None is the one of the task.
    gamma : float
        How far features are smoothed.
    seed : int
    n_jobs : int, optional
    verbose : int
    """

    def __init__(
        self,
        task: Task,
        graph: Graph,
        degrees: Floats,
        features: ScaledFeatures,
        missing: Mask,
        labels: NodeLabels,
        *,
        estimator: Any,
        gamma: float,
        seed: int,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.task, self.graph, self.features, self.labels = task, graph, features, labels
        self.seed, self.n_jobs, self.verbose = seed, n_jobs, verbose
        # Rows get the same length for the usual estimator; another one gets plain columns.
        self._same_length = task.has_classes and features.shape[1] >= WIDE
        self._is_usual = estimator is None
        usual = task.usual_estimators(features.size) if estimator is None else [estimator]
        # Candidates for each expert: a table of features, and the estimator that is fitted to it.
        self._tables = [(table, candidate) for table in (0, 1) for candidate in usual]
        self.candidates = [*np.arange(2 * len(usual)).reshape(2, -1), np.array([2 * len(usual)])]
        self.has_edges: Mask = np.diff(graph.indptr) > 0
        _, component = graph.components()
        near_features = np.isin(component, component[~missing]) & self.has_edges
        self._known_rows: list[Mask] = [~missing, near_features]
        self._smoothed = self._smooth(gamma, degrees)
        self._bases: list[Any] = [None, None]
        self._rows = [self._table(expert, labels.nodes) for expert in (0, 1)]
        if estimator is None and len(labels.nodes) < features.shape[1]:
            # A linear model with a penalty lies in the space of the rows that it is fitted to, so
            # the coordinates in that space give the same model in less time.
            self._bases = [np.linalg.qr(as_dense(rows).T)[0] for rows in self._rows]
            self._rows = [rows @ basis for rows, basis in zip(self._rows, self._bases, strict=True)]
        self._fits: dict[bytes, ExpertAnswers] = {}

    def _smooth(self, gamma: float, degrees: Floats) -> NDArray[Any]:
        """Return smoothed features of all nodes: weighted means over the nodes around each one.

        A node with many edges has a part in many means and says less about each neighbour, so nodes
        count by their inverse degrees. Means are smaller than single values: all rows get the same
        length if there are many columns, and otherwise all together the size that they had before.
        """
        n_nodes, n_columns = self.features.shape
        smoothing = Smoothing(
            self.graph, gamma, degrees=degrees, tol=1e-4, random_state=self.seed,
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
        smoothed /= smoothing.apply_quietly(counts)
        parts = blocks(n_nodes, n_columns)
        total = sum(float(np.sum(np.square(smoothed[part], dtype=float))) for part in parts)
        if total > 0.0:
            smoothed *= self.features.size / np.sqrt(total / n_nodes)
        return smoothed

    def _resize(self, rows: Any) -> Any:
        """Return rows of the same length."""
        is_sparse = not isinstance(rows, np.ndarray)
        square = rows.multiply(rows).sum(axis=1) if is_sparse else np.einsum("ij,ij->i", rows, rows)
        lengths = np.sqrt(np.asarray(square, dtype=np.float64).ravel())
        scale = (self.features.size / np.where(lengths > 0.0, lengths, 1.0))[:, np.newaxis]
        if is_sparse:
            return rows.multiply(scale).tocsr()
        return (rows * scale).astype(rows.dtype, copy=False)

    def own_rows(self, rows: Any) -> Any:
        """Return rows of features of further nodes, as the estimator on own features takes them."""
        return self._as_input(0, self.features.scale_rows(rows))

    def _table(self, expert: int, chosen: Any) -> Any:
        """Return rows of features or of smoothed features."""
        rows = self._smoothed[chosen] if expert == 1 else self.features.rows(chosen)
        return self._as_input(expert, rows)

    def _as_input(self, expert: int, rows: Any) -> Any:
        if expert == 0 and self._same_length and self._is_usual:
            rows = self._resize(rows)
        return rows if self._bases[expert] is None else rows @ self._bases[expert]

    def forget(self) -> None:
        """Free what is large and is not needed for answers to new points."""
        self._smoothed, self._rows = np.empty((0, 0)), []
        self._fits.clear()

    # ExpertAnswers.

    def fit(self, candidate: int, known: Mask) -> Predictor | None:
        """Return the estimator fitted to labels that are known; None if it can learn from none."""
        table, estimator = self._tables[candidate]
        usable = known & self._known_rows[table][self.labels.nodes]
        if not usable.any():
            return None
        labels = choose_labels(self.labels, usable)
        return self.task.fit(estimator, self._rows[table][usable], labels)

    def at_labels(self, known: Mask) -> ExpertAnswers:
        """Return the answers of all candidates for all labels, from those that are known."""
        key = known.tobytes()
        if key not in self._fits:
            nodes, found = self.labels.nodes, self.no_answers()
            for candidate, (table, _) in enumerate(self._tables):
                predict = self.fit(candidate, known)
                if predict is not None:
                    found.answers[candidate] = predict(self._rows[table])
                    found.applies[candidate] = self._known_rows[table][nodes]
            answers, reached = self._by_graph(known)
            found.answers[-1], found.applies[-1] = answers[nodes], reached[nodes]
            self._fits[key] = found
        return self._fits[key]

    def no_answers(self) -> ExpertAnswers:
        """Return room for answers of all candidates for all labels."""
        shape = (len(self._tables) + 1, *self.labels.values.shape)
        return ExpertAnswers(np.zeros(shape), np.zeros(shape[:2], dtype=bool))

    def _by_graph(self, known: Mask) -> tuple[Floats, Mask]:
        labels = choose_labels(self.labels, known & self.has_edges[self.labels.nodes])
        if len(labels.nodes) == 0:
            n_nodes, n_columns = self.graph.n_nodes, self.labels.values.shape[1]
            return np.zeros((n_nodes, n_columns)), np.zeros(n_nodes, dtype=bool)
        return self.task.by_graph(self.graph, labels, self.seed, self.n_jobs)

    def everywhere(self, own: Predictor | None, both: int, wanted: Mask) -> ExpertAnswers:
        """Return the answers for all nodes, from all labels.

        `own` is the estimator on the features of a node, and `both` the candidate on smoothed ones.
        Experts that are not `wanted` answer only if some nodes have no other one.
        """
        n_nodes, n_columns = self.features.shape
        known = np.ones(len(self.labels.nodes), dtype=bool)
        shape = (3, n_nodes, self.labels.values.shape[1])
        found = ExpertAnswers(np.zeros(shape), np.zeros(shape[:2], dtype=bool))
        for expert in (1, 2, 0) if not wanted[0] else (0, 1, 2):
            if not wanted[expert] and found.applies[wanted].any(axis=0).all():
                continue
            if expert == 2:
                found.answers[2], found.applies[2] = self._by_graph(known)
                continue
            predict = own if expert == 0 else self.fit(both, known)
            if predict is not None:
                for part in blocks(n_nodes, n_columns):
                    found.answers[expert][part] = predict(self._table(expert, part))
                found.applies[expert] = self._known_rows[expert]
        return found


def fit_stack(experts: Experts, n_folds: int) -> Stack:
    """Learn exponents and weights of the experts, and what they say about labels left out."""
    task, labels = experts.task, experts.labels
    everything = np.ones(len(labels.nodes), dtype=bool)
    folds = split_labels(task.groups(labels), n_folds, experts.seed)
    with phase("comparing features and graph", experts.verbose):
        stack = _learn(experts, folds, everything)
    if not stack.usable.any():
        return stack
    try:
        for number, at in enumerate(_fold_masks(folds, everything)):
            what = Phase("estimating the accuracy", number + 1, int(folds.max()) + 1, part="fold")
            with phase(what, experts.verbose):
                inner = _learn(experts, folds, ~at)
                found = experts.at_labels(~at).at(inner.chosen, at)
                _predict(task, inner, found, choose_labels(labels, ~at), stack, at)
    except ValueError as error:  # of the estimator, which could do with four of five labels
        warn(f"estimates of accuracy and probabilities are too high: {error}")
        for at in _fold_masks(folds, everything):
            found = experts.at_labels(~at).at(stack.chosen, at)
            _predict(task, stack, found, choose_labels(labels, ~at), stack, at)
    return stack


def _learn(experts: Experts, folds: NDArray[np.int64], known: Mask) -> Stack:
    """Learn exponents, candidates, weights from the known labels, each left out with its fold."""
    task, labels = experts.task, experts.labels
    usable = np.zeros_like(known)
    usable[known] = task.can_be_left_out(choose_labels(labels, known))
    unknown = [np.full_like(labels.values, np.nan) for _ in range(3)]
    first = np.array([candidates[0] for candidates in experts.candidates])
    stack = Stack(np.ones(3), PRIOR.copy(), first, usable, unknown[0], unknown[1], unknown[2])
    if not usable.any():
        return stack
    found = experts.no_answers()
    for at in _fold_masks(folds, known):
        fold = experts.at_labels(known & ~at)
        found.answers[:, at], found.applies[:, at] = fold.answers[:, at], fold.applies[:, at]
    judged, found = choose_labels(labels, usable), found.at(slice(None), usable)
    # Labels of unequal weight count together as fewer labels of equal weight.
    judged = judged._replace(
        weights=judged.weights * judged.weights.sum() / np.sum(judged.weights**2)
    )
    for expert, candidates in enumerate(experts.candidates):
        some = choose_labels(judged, found.applies[candidates[0]])
        _, stack.exponents[expert], stack.chosen[expert] = min(
            (*task.find_exponent(found.answers[at][found.applies[at]], some), at)
            for at in candidates
        )
    found = found.at(stack.chosen, slice(None))
    for expert, exponent in enumerate(stack.exponents):
        found.answers[expert] = task.sharpen(found.answers[expert], exponent)
    stack.weights = task.find_weights(*found, judged)
    if stack.weights[0] >= ALONE:  # here, so that estimates are those of this choice
        stack.weights = FEATURES.copy()
    return stack


def _predict(
    task: Task, inner: Stack, found: ExpertAnswers, known: NodeLabels, stack: Stack, at: Mask
) -> None:
    """Put the answers of a pool, and those from the features alone, among those of the labels."""
    same = task.without_evidence(known)
    pooled, own = inner.pool(task, found), task.sharpen(found.answers[0], inner.exponents[0])
    applies = found.applies[:, :, np.newaxis]
    stack.left_out[at] = np.where(applies.any(axis=0), pooled, same)
    stack.alone[at] = np.where(applies[0], own, same)
    stack.around[at] = np.where(applies[2], found.answers[2], np.nan)


def as_dense(rows: Any) -> NDArray[Any]:
    """Return rows as an array."""
    return rows if isinstance(rows, np.ndarray) else np.asarray(rows.toarray())


def split_labels(groups: NDArray[np.int64], n_folds: int, seed: int) -> NDArray[np.int64]:
    """Return a fold for each label; folds have about the same size and mixture of groups.

    Examples
    --------
    >>> split_labels(np.array([0, 0, 0, 0, 1, 1]), 2, seed=0)
    array([0, 1, 1, 0, 1, 0])
    """
    order = np.random.default_rng(seed).permutation(len(groups))
    order = order[np.argsort(groups[order], kind="stable")]
    folds = np.empty(len(groups), dtype=np.int64)
    folds[order] = np.arange(len(groups)) % min(n_folds, len(groups))
    return folds


def _fold_masks(folds: NDArray[np.int64], known: Mask) -> Iterator[Mask]:
    """Yield which of the known labels each fold has."""
    for fold in np.unique(folds[known]):
        yield known & (folds == fold)
