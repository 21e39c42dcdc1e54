"""The labelling job: edges -> graph in memory -> scores -> scores of the full graph.

`label` is the only place where these steps follow each other. The estimators, the command line and
the clusters call it. A state file wraps the stream of edges; progress is shown by whoever watches
the phases (see `_phases`). Neither this module nor what it calls imports scikit-learn, which takes
longer than to label a small graph.
"""

from typing import Any, NamedTuple

from ohmlearn._phases import Phase, phase
from ohmlearn.checks.times import check_moment
from ohmlearn.edges import Edges
from ohmlearn.errors import Param, Setting
from ohmlearn.estimators.answer import NodeAnswer
from ohmlearn.estimators.kept_graph import KeptGraph
from ohmlearn.estimators.label_input import is_mapping, refuse_unknown
from ohmlearn.estimators.problem import HFSParameters, Problem
from ohmlearn.harmonic import HFSResult
from ohmlearn.points.affinity import refuse_lost_points
from ohmlearn.sparsifier import StreamingSparsifier
from ohmlearn.sparsifier.sparsifier_times import check_moments

__all__ = ["Labelling", "label"]


class Labelling(NamedTuple):
    """What is kept of the edges, the labels on it, and the answer, as far as there are any."""

    parameters: HFSParameters
    kept: KeptGraph
    problem: Any = None  # a Problem, once there are labels
    answer: Any = None  # a NodeAnswer, unless edges were added since
    before: HFSResult | None = None  # the last result, where the next solve starts

    def solve(self, problem: Problem | None = None) -> "Labelling":
        """Return the answer of the edges kept, for other labels or for the same ones."""
        if problem is None:
            problem = self.problem.on(self.kept, self.parameters, self.before)
            assert problem is not None
        with phase("solving", self.parameters.verbose):
            return self.with_answer(problem, problem.answer(problem.solve(self.before)))

    def with_answer(self, problem: Problem, answer: NodeAnswer) -> "Labelling":
        """Return the labelling with another answer."""
        return self._replace(problem=problem, answer=answer, before=answer.result)


def label(
    edges: Edges,
    kind: type[Problem],
    y: Any,
    p: HFSParameters,
    *,
    sample_weight: object = None,
    n_nodes: int | None = None,
    sparsifier: StreamingSparsifier | None = None,
    at: object = None,
    since: object = None,
) -> Labelling:
    """Sparsify the edges, solve on what is kept of them, refine on all of them.

    The arguments are those of `HFSClassifier.fit_edges`; `kind` says what the labels y are.
    """
    # The table of a stream has only the nodes read so far.
    if n_nodes is None and (edges.nodes_are_final or edges.nodes is None):
        n_nodes = edges.n_nodes
    if n_nodes is None and y is not None and not is_mapping(y, edges.nodes):
        n_nodes = len(y)
    check_moments(edges.time_unit, at, since)
    first = None
    if since is not None and not _keeps_times(p, edges, sparsifier):
        first, since = check_moment("since", since), None
        edges = edges.since(first)
    # Labels are checked before the edges are read, and numbered afterwards.
    rows = kind.read(p, y, n_nodes, edges.nodes, sample_weight)
    if edges.nodes_are_final:
        refuse_unknown(rows, edges.nodes)
    refines = p.passes > 1 and not edges.is_sample
    if refines and p.epsilon is not None:
        edges.again(f"an estimator with {Param('passes')} > 1 ({Setting('passes', 1)} does not)")

    kept = None if sparsifier is not None else KeptGraph.of_log(edges, p, n_nodes, at, since)
    edges.prepare(p.verbose)
    if kept is None:
        kept = KeptGraph.start(p, n_nodes, sparsifier)
        with phase(Phase("reading edges", 1, p.passes), p.verbose):
            kept.take(edges, at, since)
    kept.first = first

    problem = kind.make(rows, kept, p)
    refuse_lost_points(edges, problem.full_graph, problem.labels.nodes)
    found = Labelling(p, kept)
    if refines and not kept.holds_all_edges:
        return found.with_answer(problem, problem.answer(problem.refine(edges, p.passes - 1)))
    return found.solve(problem)


def _keeps_times(p: HFSParameters, edges: Edges, sparsifier: StreamingSparsifier | None) -> bool:
    """Whether edges fade, or are kept with their times, so that any window can be asked for."""
    kept = edges if isinstance(edges, StreamingSparsifier) else sparsifier
    return (p.forgetting if kept is None else kept.options).has_times
