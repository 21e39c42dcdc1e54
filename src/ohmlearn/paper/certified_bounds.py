"""The bounds of Theorem 1 for a fitted classifier, and the eigenvalues that they need."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, eigsh
from sklearn.utils.validation import check_is_fitted

from ohmlearn._blas import one_blas_thread
from ohmlearn.certificate import Certificate
from ohmlearn.checks.parameters import check_fraction, check_seed
from ohmlearn.errors import InputError, Param, Setting
from ohmlearn.estimators import HFSClassifier
from ohmlearn.graph import Graph
from ohmlearn.paper.bounds import GeneralizationBound, generalization_bound
from ohmlearn.reading.as_edges import as_graph
from ohmlearn.solver import LaplacianSolver

DENSE_LIMIT = 500  # nodes up to which all eigenvalues are computed
EIGEN_TOL = 1e-8  # relative accuracy of eigenvalues beyond that
SOLVE_TOL = 1e-8
NOISE = 1e-6  # of a vector that is nearly constant, relative to its length


@dataclass(frozen=True)
class CertifiedBound:
    """What `certified_bound` found for a fitted classifier; ``print`` shows it.

    Attributes
    ----------
    bounds : dict
        A `GeneralizationBound` for each class. It bounds the mean over the unlabelled nodes of the
        squared error of the score, which should be 1 for nodes of the class and 0 for others.
    lambda_1 : float
        Second smallest eigenvalue, or a lower bound of it, of the graph that the answer belongs to.
    n_labelled, n_unlabelled : int
    confidence : float
        Probability with which the repaired bounds of all classes hold together.

    Examples
    --------
    >>> from ohmlearn import HFSClassifier, gallery
    >>> from ohmlearn.paper import certified_bound
    >>> model = HFSClassifier(gamma=1.0, epsilon=None)
    >>> model = model.fit_edges(gallery.complete(50), {0: "a", 1: "b"})
    >>> bound = certified_bound(model)
    >>> sorted(bound.bounds), bound.vacuous
    (['a', 'b'], True)
    """

    bounds: dict[Any, GeneralizationBound]
    lambda_1: float
    n_labelled: int
    n_unlabelled: int
    confidence: float

    @property
    def vacuous(self) -> bool:
        """Whether the repaired bound of every class is vacuous."""
        return all(bound.vacuous for bound in self.bounds.values())

    def __str__(self) -> str:
        worst, bound = max(self.bounds.items(), key=lambda item: item[1].repaired.value)
        verdict = "are all vacuous" if self.vacuous else "are not all vacuous"
        return (
            f"{len(self.bounds)} classes, {self.n_labelled:,} labelled and {self.n_unlabelled:,} "
            f"other nodes, lambda_1 = {self.lambda_1:.4g}; bounds {verdict}\n"
            f"the largest bound is that of class {worst}:\n{bound}\n"
            f"the bounds of all classes hold together with probability {self.confidence:g}, if the "
            f"labelled nodes were drawn uniformly"
        )


def certified_bound(
    estimator: Any,
    certificate: Certificate | None = None,
    *,
    delta: float = 0.05,
    random_state: object = None,
    n_jobs: int | None = None,
) -> CertifiedBound:
    """Compute the bounds for the answer of a fitted `HFSClassifier`.

    The error on the labelled nodes is that of the answer itself, so sparsification adds nothing.
    The answer of one pass belongs to the sparsifier, whose eigenvalues are computed. The answer of
    more passes, which must have reached `tol`, belongs to the full graph; a certificate bounds its
    eigenvalues.

    Parameters
    ----------
    estimator : fitted classifier with ``normalization="stable"``
    certificate : Certificate, optional
        Certificate of the sparsifier, from `certify`; needed if the estimator made more than one
        pass. The probability that it fails is subtracted from the confidence of the bounds.
    delta : float
        Probability with which the bounds of all classes together may fail, without the probability
        that the certificate fails.
    random_state, n_jobs
        Used to compute the eigenvalues.

    Examples
    --------
    >>> import numpy as np
    >>> from ohmlearn import HFSClassifier, gallery
    >>> from ohmlearn.paper import certified_bound
    >>> y = np.full(400, -1)
    >>> y[::2] = np.arange(200) % 2
    >>> model = HFSClassifier(gamma=1.0, passes=1, random_state=0)
    >>> bound = certified_bound(model.fit_edges(gallery.complete(400), y))
    >>> bound.n_labelled, bound.vacuous
    (200, False)
    """
    graph, labelled, columns = _check_classifier(estimator)
    delta = check_fraction("delta", delta)
    extremes = spectral_extremes(graph, random_state=random_state, n_jobs=n_jobs)
    lambda_1, sure = extremes.lambda_1, 1.0
    if hasattr(estimator, "sparsifier_") and estimator.n_iter_ > 1:
        if certificate is None:
            raise InputError(
                f"{type(estimator).__name__} made {estimator.n_iter_} passes, so its answer is "
                f"that of the full graph; pass certificate=certify(edges, estimator.sparsifier_) "
                f"or fit with {Setting('passes', 1)}"
            )
        if not estimator.converged_.all():
            raise InputError(
                f"the answer after {estimator.n_iter_} passes is not yet that of the full graph, "
                f"which the bounds need: its residual is {estimator.residual_.max():.2g}; fit "
                f"with more passes, for example 20, or with {Setting('passes', 1)}"
            )
        lambda_1 /= certificate.upper_bound  # as L_H <= upper_bound L_G
        sure = certificate.confidence
    n_unlabelled = graph.n_nodes - len(labelled)
    errors = np.mean((estimator.scores_[labelled] - columns) ** 2, axis=0)
    bounds = {
        label: generalization_bound(
            float(error),
            len(labelled),
            n_unlabelled,
            gamma=estimator.gamma_,
            lambda_1=lambda_1,
            lambda_n=max(extremes.lambda_n, lambda_1),  # has no effect with epsilon=0
            delta=delta / len(errors),
        )
        for label, error in zip(estimator.classes_.tolist(), errors, strict=True)
    }
    confidence = max(0.0, sure - delta)
    return CertifiedBound(bounds, lambda_1, len(labelled), n_unlabelled, confidence)


def _check_classifier(estimator: Any) -> tuple[Graph, NDArray[np.int64], NDArray[np.float64]]:
    """Return the graph kept by a fitted classifier, the labelled nodes, and their columns."""
    if not isinstance(estimator, HFSClassifier):
        raise TypeError(
            f"an HFSClassifier is needed, got {type(estimator).__name__}; the bounds are about "
            f"classes"
        )
    check_is_fitted(estimator, "answer_")
    if estimator.normalization != "stable":
        raise InputError(
            f"the bounds are about stable-HFS, but "
            f"{Param('normalization', estimator.normalization)}; fit with "
            f"{Setting('normalization', 'stable')}"
        )
    problem = estimator.problem_
    graph, labelled = problem.graph, problem.used.nodes
    if graph.n_nodes == len(labelled):
        raise ValueError("all nodes are labelled, so there is no error on other nodes to bound")
    return graph, labelled, problem.columns


@dataclass(frozen=True)
class SpectralExtremes:
    """Eigenvalues of a Laplacian that the bounds need.

    Attributes
    ----------
    lambda_1 : float
        Second smallest eigenvalue; 0 if the graph is not connected, and then no bound holds.
    lambda_n : float
        Largest eigenvalue.
    n_components : int

    Examples
    --------
    >>> from ohmlearn import gallery
    >>> from ohmlearn.paper import spectral_extremes
    >>> found = spectral_extremes(gallery.disjoint_union(gallery.path(2), gallery.path(2)))
    >>> found.lambda_1, found.n_components
    (0.0, 2)
    """

    lambda_1: float
    lambda_n: float
    n_components: int


@one_blas_thread()
def spectral_extremes(
    graph: object, *, random_state: object = None, n_jobs: int | None = None
) -> SpectralExtremes:
    """Compute the second smallest and the largest eigenvalue of the Laplacian.

    For up to 500 nodes all eigenvalues are computed. For larger graphs, Lanczos finds the largest
    eigenvalues of L and, with `LaplacianSolver`, of its pseudo-inverse, to about eight digits.

    Parameters
    ----------
    graph : Graph, or a matrix that `Graph.from_scipy` accepts
    random_state : int, Generator, RandomState or None
        Seeds the starting vector of Lanczos and the solver.
    n_jobs : int, optional
        Number of threads of the solver, as in scikit-learn.

    Examples
    --------
    >>> from ohmlearn import gallery
    >>> from ohmlearn.paper import spectral_extremes
    >>> found = spectral_extremes(gallery.star(10))
    >>> round(found.lambda_1, 9), round(found.lambda_n, 9)
    (1.0, 10.0)
    """
    g = as_graph(graph)
    if g.n_nodes < 2:
        raise ValueError(
            f"the graph must have at least two nodes to have a second eigenvalue, got {g.n_nodes}"
        )
    n_components, _ = g.components()
    seed = check_seed(random_state)
    if g.n_edges == 0:
        return SpectralExtremes(0.0, 0.0, n_components)
    if g.n_nodes <= DENSE_LIMIT:
        values = np.linalg.eigvalsh(g.laplacian().toarray())
        lambda_1, lambda_n = float(values[1]), float(values[-1])
    else:
        lambda_n = _largest(g.laplacian(), g.n_nodes, seed)
        lambda_1 = 0.0
        if n_components == 1:
            solver = LaplacianSolver(g, random_state=seed, n_jobs=n_jobs)
            lambda_1 = 1.0 / _largest(_make_inverse(solver, g.n_nodes), g.n_nodes, seed)
    return SpectralExtremes(0.0 if n_components > 1 else lambda_1, lambda_n, n_components)


def _make_inverse(solver: LaplacianSolver, n: int) -> LinearOperator:
    """Return the pseudo-inverse as an operator; vectors that are constant up to rounding give 0.

    Lanczos comes across them when it has found all that its start leads to. What is left of them
    without their mean is noise, which no solver can solve for to a relative tolerance.
    """
    inverse = solver.as_linear_operator(tol=SOLVE_TOL)

    def multiply(x: NDArray[np.float64]) -> NDArray[np.float64]:
        centred = x - x.mean()
        is_noise = np.linalg.norm(centred) <= NOISE * np.linalg.norm(x)
        return np.zeros_like(x) if is_noise else np.asarray(inverse @ centred)

    return LinearOperator((n, n), multiply, dtype=np.float64)


def _largest(operator: Any, n: int, seed: int) -> float:
    start = np.random.default_rng(seed).standard_normal(n)
    start -= start.mean()  # orthogonal to the null space
    found = eigsh(operator, k=1, which="LA", v0=start, tol=EIGEN_TOL, return_eigenvectors=False)
    return float(found[0])
