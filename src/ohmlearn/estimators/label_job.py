"""The labelling job: edges -> graph in memory -> scores -> scores of the full graph.

The estimators, the command line and the clusters call `label`. State files and the server, which
take in edges in their own ways, share its last steps, `Labelling.solve`. Progress is shown by
whoever watches the phases (see `_phases`). Neither this module nor what it calls imports
scikit-learn, which takes longer than to label a small graph.
"""

from typing import Any, NamedTuple

from ohmlearn._phases import Phase, phase
from ohmlearn.checks.times import check_moment
from ohmlearn.edges import Edges
from ohmlearn.errors import Param, Setting
from ohmlearn.estimators.answer import ClassAnswer, NodeAnswer
from ohmlearn.estimators.kept_graph import KeptGraph
from ohmlearn.estimators.label_input import is_mapping, refuse_unknown
from ohmlearn.estimators.problem import HFSParameters, Problem
from ohmlearn.harmonic import HFSResult
from ohmlearn.points.affinity import refuse_lost_points
from ohmlearn.sparsifier import StreamingSparsifier
from ohmlearn.sparsifier.sparsifier_times import check_moments


class Labelling(NamedTuple):
    """What is kept of the edges, the labels on it, and the answer, as far as there are any."""

    parameters: HFSParameters
    kept: KeptGraph
    problem: Problem | None = None  # once there are labels
    answer: NodeAnswer | None = None  # unless edges were added since
    before: HFSResult | None = None  # the last result, where the next solve starts

    @property
    def class_answer(self) -> ClassAnswer:
        """The answer, for labels that are classes."""
        assert isinstance(self.answer, ClassAnswer)
        return self.answer

    def solve(self, problem: Problem | None = None, edges: Edges | None = None) -> "Labelling":
        """Return the answer for other labels or for the same ones.

        It is that of the edges kept. If some were dropped, and all `edges` can be read again, it is
        refined by the passes of the parameters.
        """
        p = self.parameters
        if problem is None:
            assert self.problem is not None
            problem = self.problem.on(self.kept, p)
        if edges is not None and p.passes > 1 and not self.kept.holds_all_edges:
            return self.with_answer(problem, problem.answer(problem.refine(edges, p.passes - 1)))
        with phase("solving", p.verbose):
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
    # A stream that is still numbering its nodes does not know how many there will be.
    if n_nodes is None and (edges.nodes_are_final or edges.nodes is None):
        n_nodes = edges.n_nodes
    if n_nodes is None and y is not None and not is_mapping(y, edges.nodes):
        n_nodes = len(y)
    # `take` checks this again, but only after labels are read and edges are prepared.
    check_moments(edges.time_unit, at, since)
    cut = None  # without times in memory, edges before `since` are left out as they are read
    kept_by = edges if isinstance(edges, StreamingSparsifier) else sparsifier
    has_times = (p.forgetting if kept_by is None else kept_by.options).has_times
    if since is not None and not has_times:
        cut, since = check_moment("since", since), None
        edges = edges.since(cut)
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
    kept.cut = cut

    problem = kind.make(rows, kept, p)
    refuse_lost_points(edges, problem.full_graph, problem.labels.nodes)
    return Labelling(p, kept).solve(problem, edges if refines else None)
