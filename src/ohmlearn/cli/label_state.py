"""``label --state``: what a run adds to the model in a file, and what its options mean for it."""

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import numpy as np

from ohmlearn._phases import Phase, phase
from ohmlearn.checks.times import check_moment
from ohmlearn.cli.label_command import LabelOutcome, check_classes, explain_some, interrupted
from ohmlearn.cli.label_model import (
    as_list,
    check_feature_ids,
    fit_with_features,
    make_parameters,
    model_choices,
    read_feature_file,
    warn_doubts,
)
from ohmlearn.cli.messages import flag_of, note
from ohmlearn.cli.open_edges import Forgetting, check_ids, open_edges, watch_edges
from ohmlearn.cli.options import Options, was_given
from ohmlearn.edges import Batch, Edges
from ohmlearn.errors import InputError, Param
from ohmlearn.estimators.answer import ClassAnswer
from ohmlearn.estimators.kept_graph import KeptGraph
from ohmlearn.estimators.label_input import Labels
from ohmlearn.estimators.label_job import Labelling
from ohmlearn.estimators.problem import ClassProblem, HFSParameters
from ohmlearn.estimators.review import LISTED, compare_labels
from ohmlearn.estimators.state_file import Recorded, StateFile, has_answer
from ohmlearn.graph.graph import with_nodes
from ohmlearn.nodes import NodeTable
from ohmlearn.reading.label_table import FileLabels, as_node_ids, gather
from ohmlearn.sparsifier import StreamingSparsifier

if TYPE_CHECKING:  # the package imports scikit-learn, which labels without features do not need
    from ohmlearn.features import NodeFeatures
    from ohmlearn.features.feature_classifier import FeatureClassAnswer

MOST_NOTES = 5  # about files that are skipped
REMEDY = "leave out the option, or name another state to start over"
NOT_MEASURED = "Not measured, because only the new edges can be read, not those of earlier runs."


class NoEdges(Edges):
    """Stands in for the stream of a run that only changes labels or asks again."""

    rereadable = False

    def __init__(self, nodes: NodeTable | None) -> None:
        self.nodes = nodes

    def batches(self, n_jobs: int = 1) -> Iterator[Batch]:
        """Yield nothing."""
        return iter(())


def label_with_state(
    options: Options, labels: FileLabels | None, forgetting: Forgetting
) -> LabelOutcome:
    """Add edges and labels to the model in a file, or start one.

    1. Load the model, or start one, and compare it with the options.
    2. Open the new edges; compare labels and features with their ids before they are read.
    3. Take in the edges of new sources (`_take_in`), and solve if anything is new (`_solve`).
    4. The file is written after the output (`LabelOutcome.finish`).
    """
    state = StateFile(options["state"])
    if not state.exists and not options["edges"]:
        raise click.UsageError(f"there is no {state.path} yet; give the first EDGES")

    def start() -> Labelling:
        p = make_parameters(options, None, labels, forgetting.parameters)
        return Labelling(p, KeptGraph.start(p))

    load = partial(load_state, state, options, start)
    before = None if labels is None and not state.exists else load()
    if before is None or (labels is None and before.problem is None):
        raise click.UsageError(f"{state.path} has no labels yet; give them with --labels")
    classes = set(() if before.problem is None else before.problem.classes)
    check_classes(classes, options)
    sparsifier, nodes = before.kept.sparsifier, before.kept.nodes
    assert sparsifier is not None
    asked = make_parameters(options, None, labels, forgetting.parameters, classes)
    _check_options(state.path, sparsifier, asked)
    features = files = None
    answer: ClassAnswer | FeatureClassAnswer | None = None
    if options["features_file"]:
        own = FileLabels(state.path)
        own.id_heading, own.label_heading = before.kept.headings
        features = read_feature_file(options, own if labels is None else labels)
    if options["edges"]:
        files = open_edges(options, nodes, needs_times=sparsifier.options.has_times)
    stream = NoEdges(nodes) if files is None else files
    if stream.is_log:
        raise click.UsageError("a log of edges keeps its own sparsifier; leave out --state")
    if labels is not None:
        check_ids(stream, labels.path, list(labels), heading=labels.id_heading)
    if features is not None:
        check_feature_ids(stream, features)
    take, n_before = partial(_take_in, state, options, labels, forgetting), before.kept.n_edges_seen
    with interrupted(
        lambda: (
            (f"; {state.path} has the files up to its last save" if state.exists else "")
            + "; the same command continues"
        )
    ):
        taken = take(before, stream) if files is None else state.read_new(before, load, files, take)
        found, new = _solve(taken, options, labels is not None), taken.new
        if features is not None:
            answer = _answer_with_features(options, found, features, stream)
    about: dict[str, Any] = {
        "path": state.path, "n_edges_before": n_before, "labels": taken.counts,
        "n_skipped": 0 if new is None else new.n_skipped,
    }  # fmt: skip
    kept = None
    if answer is None:
        answer, kept = found.class_answer, found.kept
        warn_doubts(found)
    reasons = explain_some(answer, options["explain"])
    is_new = found.answer is not taken.found.answer or (new is not None and new.has_new)
    if is_new and isinstance(answer, ClassAnswer):
        about |= _compare(found.kept, answer)

    def save() -> None:
        if is_new:
            with phase(f"writing {state.path}"):
                state.save(found)

    return LabelOutcome(
        answer, kept, found.kept.sparsifier, stream, NOT_MEASURED, {"state": about}, reasons, save
    )


def _compare(kept: KeptGraph, answer: ClassAnswer) -> dict[str, Any]:
    """Return what changed since the last run, if its labels are known."""
    if kept.written is None:
        return {}
    classes, codes = kept.written
    past = np.append(classes.astype(object), np.array([None]))[codes]
    return {"changes": compare_labels(answer, past, answer.problem.nodes, LISTED).to_dict()}


def load_state(
    state: StateFile, options: Options, start: Callable[[], Labelling] | None = None
) -> Labelling:
    """Return the model in a file, with the threads of this command, or a new one."""

    def continue_with(kept: StreamingSparsifier) -> Labelling:
        budget = {"epsilon": kept.options.epsilon, "max_edges": kept.options.max_edges}
        times = {name: getattr(kept.options, name) for name in ("half_life", "horizon")}
        own = {**options, **budget, "memory": None, "seed": kept.seed}
        p = make_parameters(own, None, None, times)
        return Labelling(p, KeptGraph.start(p, sparsifier=kept))

    found, threads = state.load(continue_with, start), options["threads"]
    found.kept.use_threads(threads)
    kept = found.kept.store
    if kept.nodes is None and found.kept.graph.n_nodes > 0:  # numbers; they become its ids
        n_nodes = found.kept.graph.n_nodes if found.problem is None else found.problem.n_nodes
        kept.nodes = NodeTable()
        kept.nodes.add(np.arange(n_nodes))
    p = replace(found.parameters, n_jobs=threads)
    problem, answer = found.problem, found.answer
    if problem is not None:
        problem = replace(problem, parameters=p, nodes=found.kept.nodes)
        if answer is not None:
            answer = problem.answer(answer.result, answer.n_iter)
    return found._replace(parameters=p, problem=problem, answer=answer)


def _check_options(path: str, kept: StreamingSparsifier, asked: HFSParameters) -> None:
    """Refuse options for the sparsifier of a state that differ from its own."""
    own, times = kept.options, asked.forgetting
    for name, before, now, shown, given in (
        ("seed", kept.seed, asked.random_state, kept.seed, asked.random_state),
        ("epsilon", own.epsilon, asked.epsilon, own.epsilon, asked.epsilon),
        ("max_edges", own.max_edges, asked.max_edges, own.max_edges, asked.max_edges),
        ("half_life", own.decay, times.decay, own.half_life, asked.half_life),
        ("horizon", own.reach, times.reach, own.horizon, asked.horizon),
    ):
        if was_given(name) and before != now:
            how = f"without {Param(name)}" if shown is None else f"with {Param(name, shown)}"
            why = f"{path} was started {how}, but this command has {given}"
            raise InputError(why, remedy=REMEDY)
    if was_given("since") and own.reach is None:
        why = f"{path} was started without --horizon and --since, so it has no times"
        raise InputError(why, remedy=REMEDY)


def _change_options(
    path: str, found: Labelling, options: Options, labels: FileLabels | None
) -> HFSParameters:
    """Return the parameters with the options that were given."""
    classes = () if found.problem is None else found.problem.classes.tolist()
    known = {str(one): one for one in classes} if found.problem is not None else labels or {}
    changed: dict[str, Any] = {}
    for name, value in model_choices(options, known).items():
        before = getattr(found.parameters, name)
        if was_given(name) and before != value:
            changed[name] = value
            note(f"{path}: {flag_of(name)} was {before!r}, and is {value!r} from now on")
    if options["passes"] is not None:
        changed["passes"] = options["passes"]
    return replace(found.parameters, **changed)


class Taken(NamedTuple):
    """A model with the edges of a run, which is to be solved again."""

    found: Labelling
    parameters: HFSParameters  # with the options of the run
    rows: Labels
    counts: dict[str, int]  # how many labels are kept, replaced and new
    edges: Edges  # for more passes
    new: Recorded | None  # the sources, if there are any
    has_more: bool  # whether there are new edges, or a new time is asked for


def _take_in(
    state: StateFile,
    options: Options,
    labels: FileLabels | None,
    forgetting: Forgetting,
    found: Labelling,
    stream: Edges,
) -> Taken:
    """Check options and labels, then take in the edges."""
    kept, passes = found.kept, options["passes"] or 1
    new = stream if isinstance(stream, Recorded) else None
    if labels is not None:
        kept.headings = labels.id_heading, labels.label_heading
    p = _change_options(state.path, found, options, labels)
    counts = {"kept": 0, "replaced": 0, "new": len(labels or ())}
    if found.problem is not None:
        labels, counts = _join_labels(found, labels)
    assert labels is not None
    rows = ClassProblem.read(p, labels, kept.n_nodes, stream.nodes, labels.weights)
    if new is not None and len(new.notes) > MOST_NOTES:
        note(f"{len(new.notes):,} files are skipped: {state.path} has them already")
    elif new is not None:
        note(*new.notes)
    assert kept.sparsifier is not None
    if passes > 1:
        if new is None or not new.has_all_of(kept.sparsifier):
            raise ValueError(
                f"more passes would need all edges that {state.path} has seen, but only "
                f"those of this command can be read; leave out --passes, or label all edges "
                f"without --state"
            )
        new.inner.again("an estimator with passes > 1 (passes=1 does not)")
    moment = {name: check_moment(name, value) for name, value in forgetting.moment.items()}
    # Without EDGES and without a time, the answers are for the same moment as before.
    has_moment = moment != kept.moment and (new is not None or bool(moment))
    has_more = has_moment or (new is not None and new.has_new)
    edges = watch_edges(stream, options, kept.sparsifier, needs_edges=kept.is_empty)
    if has_more:
        with phase(Phase("reading edges", 1, passes)):
            kept.take(edges, **forgetting.moment)
    return Taken(found, p, rows, counts, edges, new, has_more)


def _solve(taken: Taken, options: Options, has_labels: bool) -> Labelling:
    """Return the model with its answer: the present one, if nothing is new."""
    found, p, problem = taken.found, taken.parameters, None
    if has_labels or p != found.parameters:
        problem = ClassProblem.make(taken.rows, found.kept, p)
    if not taken.has_more and has_answer(found, problem):
        return found
    edges = None
    if (options["passes"] or 1) > 1:
        assert taken.new is not None
        edges, taken.new.reads_all = taken.edges, True
    return found._replace(parameters=p).solve(problem, edges)


def _answer_with_features(
    options: Options, found: Labelling, features: "NodeFeatures", stream: Edges
) -> "FeatureClassAnswer":
    """Return the answer of features and of the edges and labels in a state, which stay as they are.

    Ids that only the features have become nodes of the answer, but not of the state: so the numbers
    of later nodes, and with them later answers, do not depend on the features.
    """
    from ohmlearn.features.feature_problem import KnownGraph

    labels, _ = _join_labels(found, None)
    nodes = copy(found.kept.nodes)
    assert nodes is not None
    graph = with_nodes(found.kept.graph, len(nodes))
    edges = KnownGraph(graph, graph.degrees, nodes, found.kept.sparsifier)
    model = fit_with_features({**options, "seed": found.kept.seed}, features, edges, labels)
    stream.nodes = nodes
    return model.answer_


def _join_labels(found: Labelling, new: FileLabels | None) -> tuple[FileLabels, dict[str, int]]:
    """Return labels of a state with those of a file added, and how many are of which kind.

    Labels of the file replace those of the same nodes. If one of the two has names and the other
    integers, all labels become names, as they would in one file.
    """
    ids = found.kept.nodes
    assert ids is not None
    given = FileLabels("the state") if new is None else _with_ids_of(ids, new)
    joined = FileLabels(given.path)
    joined.columns, joined.weights = given.columns, {}
    known = None if found.problem is None else found.problem.labels
    names = [] if known is None else [str(name) for name in ids.ids(known.nodes)]
    nodes = {node: at for at, node in enumerate(names)}
    classes = [] if found.problem is None else found.problem.classes.tolist()
    every = [*classes, *(one for label in given.values() for one in as_list(label))]
    as_text = any(isinstance(one, str) for one in every)
    for node, at in nodes.items():
        if node not in given:
            assert known is not None
            parts = {
                str(name) if as_text else name: part
                for name, part in zip(classes, known.values[at].tolist(), strict=True)
                if part > 0
            }
            joined[node] = next(iter(parts)) if len(parts) == 1 else parts
            joined.weights[node] = float(known.weights[at])
    for node, label in given.items():
        labels = [str(one) if as_text else one for one in as_list(label)]
        joined[node] = labels if isinstance(label, list) else labels[0]
        joined.weights[node] = 1.0 if given.weights is None else given.weights[node]
        if isinstance(label, list) and given.weights is None:
            joined.weights[node] = [1.0] * len(label)
    n_replaced = sum(node in nodes for node in given)
    counts = {"kept": len(nodes) - n_replaced, "replaced": n_replaced}
    return joined, counts | {"new": len(given) - n_replaced}


def _with_ids_of(nodes: NodeTable, labels: FileLabels) -> FileLabels:
    """Return labels whose ids are written as those of the state."""
    own = as_node_ids(labels.path, list(labels), nodes.kind, nodes.kinds, heading=labels.id_heading)
    ids = [str(node) for node in own.tolist()]
    found = FileLabels(labels.path)
    found.update(_join_rows(ids, labels))
    found.columns, found.id_heading = labels.columns, labels.id_heading
    if labels.weights is not None:
        found.weights = _join_rows(ids, labels.weights)
    return found


def _join_rows(ids: list[str], rows: dict[str, Any]) -> dict[str, Any]:
    """Return rows by other ids; 17 and 17.0 are one node, which has the values of both then."""
    pairs = zip(ids, rows.values(), strict=True)
    return gather((node, value) for node, values in pairs for value in as_list(values))
