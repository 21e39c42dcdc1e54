"""Which nodes to label next.

A label at node i, with weight 1, changes the scores f of all nodes by

    C_i (y_i - f_i) / (1 + C_ii),

where C is the covariance of the Gaussian field of `harmonic.posterior` and C_i its column. How far
y_i is from f_i is not known, but it will be far where the two likeliest classes are close. So the
next node is the one with the largest

    (1 - margin_i) |C_i| / (1 + C_ii),

the expected change of the model (Miller and Bertozzi 2021, here with the covariance itself instead
of 50 eigenvectors). With few labels |C_i| decides, and the nodes are centres of regions without
labels. With more labels the margin does, and the nodes lie between classes.

|C_i| and C_ii are estimated for all nodes at once, from a few columns C z with random signs z, and
from samples of the field. After a pick, the field is that with one more label: C, C z and samples
change by a multiple of the exact column C_i (for samples this is Matheron's rule). That takes one
solve. So a batch of picks does not ask the same thing twice.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ohmlearn.graph import Graph
from ohmlearn.harmonic.posterior import BLOCK, Posterior
from ohmlearn.validation.edges import check_graph, check_node_ids
from ohmlearn.validation.parameters import check_count, check_seed

__all__ = ["Suggestion", "suggest_nodes"]

Floats = NDArray[np.float64]
# Weight of the Laplacian times mean degree. Chosen on real data (benchmarks/active.py); it is not
# the gamma of the estimators, which is large for few labels, so that all nodes would look alike.
STIFFNESS = 0.5
ROUNDS = 2  # blocks of samples, and as many of probes
SMALL_COMPONENT = 1000  # a component with less than 1 / 1000 of all nodes is not worth a label
SETTLED = 0.5  # share of the variance that a label must remove for a node to count as settled


@dataclass(frozen=True)
class Suggestion:
    """A node that is worth a label.

    Attributes
    ----------
    node : int
    kind : {"component", "influence", "borderline"}
        Why: it is in a component without a label, its label would influence many nodes, or two
        classes are equally likely.
    n_settled : int
        Number of nodes whose variance the label would halve at least, or that it would connect to
        a label.
    between : tuple of two int, or None
        The two likeliest classes, as columns of `shares`, if these are known.
    gain : float
        Expected change of all scores; infinite for a component without a label.
    """

    node: int
    kind: Literal["component", "influence", "borderline"]
    n_settled: int
    between: tuple[int, int] | None = None
    gain: float = np.inf

    def reason(self, classes: ArrayLike | None = None) -> str:
        """Return the reason in words.

        Examples
        --------
        >>> Suggestion(7, "component", 40).reason()
        'covers a component of 40 nodes without a label'
        >>> Suggestion(3, "borderline", 1, (0, 2)).reason(["cat", "cow", "dog"])
        'borderline between cat and dog'
        """
        if self.kind == "component":
            if self.n_settled == 1:
                return "is connected to no other node, and has no label"
            return f"covers a component of {self.n_settled:,} nodes without a label"
        settles = f"would settle about {self.n_settled:,} nodes"
        if self.kind == "influence" or self.between is None:
            return settles if self.n_settled > 1 else "is far from all labels"
        names = self.between if classes is None else [np.asarray(classes)[c] for c in self.between]
        borderline = f"borderline between {names[0]} and {names[1]}"
        return f"{borderline}, {settles}" if self.n_settled > 1 else borderline


def suggest_nodes(
    graph: Graph | Any,
    labelled: ArrayLike,
    k: int,
    *,
    shares: ArrayLike | None = None,
    exclude: ArrayLike = (),
    random_state: Any = None,
    n_jobs: int | None = None,
) -> list[Suggestion]:
    """Suggest which nodes to label next, best first.

    Nodes in components without a label come first, by the size of the component; those with less
    than a thousandth of all nodes come last. Then come nodes whose labels would change the scores
    most.

    Parameters
    ----------
    graph : Graph, or a matrix that `Graph.from_scipy` accepts
    labelled : array-like of int
        The labelled nodes, each once; may be empty.
    k : int
        Number of suggestions. There are fewer if there are not as many nodes to choose from. No
        two suggested nodes are joined by an edge, as long as there are others.
    shares : array-like of shape (n_nodes, n_classes), optional
        Probabilities of classes. Without them only the position in the graph counts.
    exclude : array-like of int
        Nodes that cannot be labelled.
    random_state : int, Generator, RandomState or None
        Seeds the samples.
    n_jobs : int, optional
        Number of threads, as in scikit-learn. It does not change the answer.

    Returns
    -------
    list of Suggestion

    Examples
    --------
    >>> from ohmlearn import gallery
    >>> from ohmlearn.semi_supervised.suggest import suggest_nodes
    >>> first, *_ = suggest_nodes(gallery.path(9), [0], 2, random_state=0)
    >>> first.node, first.reason()
    (6, 'would settle about 6 nodes')
    """
    graph = check_graph(graph, Graph)
    n = graph.n_nodes
    wanted = check_count("k", k)
    known = _check_nodes(labelled, "labelled", n)
    allowed = np.ones(n, dtype=np.bool_)
    allowed[known] = False
    allowed[_check_nodes(exclude, "exclude", n)] = False
    uncertainty, between = _compare_classes(shares, n)
    large, small = _unlabelled_components(graph, known, allowed)

    found = large[:wanted]
    covered = np.concatenate([known, [pick.node for pick in found]]).astype(np.int64)
    if len(found) < wanted and len(covered) > 0:
        allowed[covered] = False
        field = _Field(graph, covered, check_seed(random_state), n_jobs)
        allowed &= field.reached
        blocked = _neighbours(graph, [pick.node for pick in found])
        while len(found) < wanted and allowed.any():
            gain = field.norms() / (1.0 + field.variances())
            free = allowed & ~blocked if (allowed & ~blocked).any() else allowed
            i = int(np.argmax(np.where(free, uncertainty * gain, -1.0)))
            # Compared with other nodes, is it the margin or the influence that stands out?
            closer = np.count_nonzero(uncertainty[allowed] < uncertainty[i])
            borderline = closer > np.count_nonzero(gain[allowed] < gain[i])
            found.append(
                Suggestion(
                    node=i,
                    kind="borderline" if between is not None and borderline else "influence",
                    n_settled=field.add_label(i, len(found)),
                    between=None if between is None else (int(between[i, 0]), int(between[i, 1])),
                    gain=float(uncertainty[i] * gain[i]),
                )
            )
            allowed[i] = False
            blocked |= _neighbours(graph, [i])
    return found + small[: wanted - len(found)]


class _Field:
    """Estimates of |C_i| and C_ii for all nodes, updated for each further label."""

    def __init__(
        self, graph: Graph, labelled: NDArray[np.int64], seed: int, n_jobs: int | None
    ) -> None:
        degree = float(graph.degrees.mean())
        self._posterior = Posterior(
            graph,
            labelled,
            scale=STIFFNESS / (degree if degree > 0 else 1.0),
            random_state=seed,
            n_jobs=n_jobs,
        )
        self.reached = self._posterior.reached
        self._seed = seed
        # Rows of nodes: columns C z, then samples. Single precision is enough for estimates.
        self._rows = np.empty((graph.n_nodes, 2 * ROUNDS * BLOCK), dtype=np.float32)
        for number in range(ROUNDS):
            at = slice(number * BLOCK, (number + 1) * BLOCK)
            self._rows[:, at] = self._posterior.probe(number)
        for number in range(ROUNDS):
            at = slice((ROUNDS + number) * BLOCK, (ROUNDS + number + 1) * BLOCK)
            self._rows[:, at] = self._posterior.sample(number)[0]
        self._picked: list[tuple[NDArray[np.float32], float]] = []

    def norms(self) -> Floats:
        """Return |C_i| of each node."""
        found: Floats = np.sqrt(_mean_squares(self._rows[:, : ROUNDS * BLOCK]))
        return found

    def variances(self) -> Floats:
        """Return C_ii of each node."""
        return _mean_squares(self._rows[:, ROUNDS * BLOCK :])

    def add_label(self, node: int, number: int) -> int:
        """Condition on a label at a node; return the number of nodes that it settles."""
        column = self._posterior.columns([node])[:, 0]
        for earlier, noisy in self._picked:  # C loses C_j C_j' / (1 + C_jj) for each pick j
            column -= earlier * (float(earlier[node]) / noisy)
        noisy = 1.0 + float(column[node])
        short = column.astype(np.float32)
        self._picked.append((short, noisy))
        removed = column**2 / noisy
        settled = np.count_nonzero(removed[self.reached] >= SETTLED * self.variances()[self.reached])

        change = self._rows[node].astype(np.float64)
        rng = np.random.default_rng([self._seed, number])
        change[ROUNDS * BLOCK :] -= rng.standard_normal(ROUNDS * BLOCK)
        self._rows -= np.multiply.outer(short, (change / noisy).astype(np.float32))
        return max(1, int(settled))


def _mean_squares(rows: NDArray[np.float32]) -> Floats:
    squares: Floats = np.einsum("ij,ij->i", rows, rows).astype(np.float64)
    return squares / rows.shape[1]


def _compare_classes(shares: Any, n_nodes: int) -> tuple[Floats, NDArray[np.intp] | None]:
    """Return 1 - margin of each node, and its two likeliest classes, if two classes are known."""
    if shares is None:
        return np.ones(n_nodes), None
    values = np.asarray(shares, dtype=np.float64)
    if values.ndim != 2 or len(values) != n_nodes:
        raise ValueError(
            f"shares must have one row for each of the {n_nodes} nodes, got shape {values.shape}"
        )
    if values.shape[1] < 2:
        return np.ones(n_nodes), None
    likeliest = np.argmax(values, axis=1)
    rows = np.arange(n_nodes)
    others = values.copy()
    others[rows, likeliest] = -np.inf
    second = np.argmax(others, axis=1)
    margin = values[rows, likeliest] - values[rows, second]
    return np.clip(1.0 - margin, 1e-9, 1.0), np.column_stack([likeliest, second])


def _unlabelled_components(
    graph: Graph, labelled: NDArray[np.int64], allowed: NDArray[np.bool_]
) -> tuple[list[Suggestion], list[Suggestion]]:
    """Return the node of largest degree of each component without a label: large ones, small ones.

    Components are sorted by size. Where no node is allowed, there is none.
    """
    component = graph.components()[1]
    sizes = np.bincount(component)
    open_ = np.ones(len(sizes), dtype=np.bool_)
    open_[component[labelled]] = False
    nodes = np.flatnonzero(allowed & open_[component])
    order = np.lexsort((nodes, -graph.degrees[nodes], component[nodes], -sizes[component[nodes]]))
    nodes = nodes[order]
    first = np.ones(len(nodes), dtype=np.bool_)
    first[1:] = component[nodes[1:]] != component[nodes[:-1]]
    found = [Suggestion(int(i), "component", int(sizes[component[i]])) for i in nodes[first]]
    least = max(2, graph.n_nodes / SMALL_COMPONENT)
    n_large = sum(pick.n_settled >= least for pick in found)
    return found[:n_large], found[n_large:]


def _neighbours(graph: Graph, nodes: list[int]) -> NDArray[np.bool_]:
    """Return which nodes are joined to one of these by an edge."""
    found = np.zeros(graph.n_nodes, dtype=np.bool_)
    for i in nodes:
        found[graph.indices[graph.indptr[i] : graph.indptr[i + 1]]] = True
    return found


def _check_nodes(values: Any, name: str, n_nodes: int) -> NDArray[np.int64]:
    """Return node ids that are in range."""
    nodes = check_node_ids(values, name).astype(np.int64)
    bad = (nodes < 0) | (nodes >= n_nodes)
    if bad.any():
        at = int(np.argmax(bad))
        raise ValueError(
            f"nodes must lie in 0, ..., n_nodes - 1 with n_nodes = {n_nodes}, but "
            f"{name}[{at}] = {nodes[at]}"
        )
    return nodes
