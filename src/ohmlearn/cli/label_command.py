"""The command ``label``: from files of edges and of labels to a label for every node."""

import json
import time
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ohmlearn.cli.cluster_option import cluster_option, open_on_cluster
from ohmlearn.cli.edge_options import (
    check_durations,
    check_ids,
    edge_options_with_state,
    fraction,
    nodes_read,
    open_edges,
    seed_option,
    watch_edges,
)
from ohmlearn.cli.feature_options import (
    OF_EDGES_ALONE,
    check_feature_ids,
    check_feature_options,
    feature_options,
    fit_features,
    label_with_features,
    read_feature_file,
)
from ohmlearn.cli.forgetting_options import Forgetting, check_window, forgetting_options
from ohmlearn.cli.label_summary import make_summary, print_summary
from ohmlearn.cli.main import main, repeat_command
from ohmlearn.cli.messages import status_line, tell
from ohmlearn.cli.model_options import (
    check_label_columns,
    has_many_classes,
    label_columns_options,
    make_parameters,
    model_options,
    read_label_file,
    sparsifier_options,
    warn_apart,
)
from ohmlearn.cli.output_options import check_outputs, output_options, write_output
from ohmlearn.cli.threads_option import threads_option

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ohmlearn.certificate import Certificate
    from ohmlearn.edges import Edges
    from ohmlearn.estimators.kept_graph import KeptGraph
    from ohmlearn.estimators.label_job import Labelling
    from ohmlearn.estimators.state_file import Recorded, StateFile
    from ohmlearn.features import NodeFeatures
    from ohmlearn.features.feature_classifier import FeatureClassAnswer
    from ohmlearn.graph import Graph
    from ohmlearn.reading.label_table import FileLabels
    from ohmlearn.report.label_columns import AnswerTable
    from ohmlearn.sparsifier import StreamingSparsifier

__all__ = ["LabelOutcome", "label"]

MOST_COLUMNS = 1000  # of probabilities
MOST_PASSES = 20  # of the certificate on the page
MOST_NOTES = 5  # about files that are skipped


class LabelOutcome(NamedTuple):
    """What was found, and what is left to do."""

    answer: Any  # ClassAnswer or FeatureClassAnswer
    kept: "KeptGraph | None"  # None with features
    sparsifier: Any
    stream: "Edges"
    certificate: "Certificate | str"  # or why there is none
    about: dict[str, Any]  # figures for the summary
    finish: "Callable[[], None]"  # after the output


@main.command()
@edge_options_with_state
@click.option(
    "--labels",
    "labels_file",
    help="Table with a node and its label in each row, in any format of EDGES. A node may have "
    "several rows, and -1 means unlabelled. Needed, unless --state has labels; then they replace "
    "those of the same nodes.",
)
@label_columns_options
@feature_options
@output_options
@sparsifier_options
@click.option(
    "--memory",
    help="Memory limit of the whole command, such as 2GB; replaces --epsilon, needs --n-nodes.",
)
@click.option(
    "--n-nodes", type=click.IntRange(min=1), help="At least the number of nodes, for --memory."
)
@click.option(
    "--passes",
    type=click.IntRange(min=1),
    help="Number of passes over the edges. Default: 3, or 1 for a pipe and with --state.",
)
@model_options
@forgetting_options
@click.option(
    "--min-confidence",
    type=fraction,
    help="Leave the label empty where its probability is less, too, and mark nodes without a "
    "label in a column called abstained.",
)
@click.option(
    "--top",
    type=click.IntRange(1, 100),
    help="Write so many of the likeliest classes of each node and their probabilities, instead of "
    "a column of probabilities for each class: label, probability, label_2, probability_2, ...",
)
@click.option(
    "--report",
    type=click.Path(dir_okay=False),
    help="Write a page about the result; measures the sparsifier in up to 20 more passes.",
)
@click.option(
    "--no-certificate", is_flag=True, help="With --report: leave out measuring the sparsifier."
)
@click.option(
    "--state",
    type=click.Path(dir_okay=False),
    help="Keep the model in this file: EDGES are added to those of earlier runs, except files that "
    "it has already, and labels are kept. The same command continues an interrupted run. It may "
    "start as the output h.ohm of sparsify.",
)
@cluster_option
@seed_option
@threads_option
def label(**options: Any) -> None:
    """Label every node of a graph from a few labelled ones.

    EDGES are files, patterns, folders, addresses such as s3://bucket/edges/, or - for standard
    input: CSV, TSV, blank-separated text, JSON lines, Parquet, Arrow, MatrixMarket, numpy; text may
    be compressed. They are never stored: one pass makes a sparsifier, and some more passes bring
    the answer close to that of the full graph. With --state they are only the new edges, and the
    answer is that of the sparsifier.

    With --features, labels are predicted from columns about each node and the edges together. The
    summary says how much each of them counts, and whether the edges help at all.

    The output has a row for each node, with the columns node, label, the probability of each class
    (or those of --top), reached, and prior_label. If a node is not connected to any label, reached
    is false, label and probabilities are empty, and prior_label is the most common class among the
    labels, unless there are several. With --features, such nodes have a label if they have
    features.
    """
    from ohmlearn._phases import phase
    from ohmlearn.checks.parameters import require_extra
    from ohmlearn.report.label_columns import AnswerTable
    from ohmlearn.report.write_table import NodeIds, check_table_path

    check_table_path(options["output"], options["csv_safe"])
    outputs = {"-o": options["output"], "--report": options["report"], "--state": options["state"]}
    _check_state_options(options)
    check_label_columns(options)
    check_feature_options(options)
    check_outputs(outputs, *options["edges"], options["labels_file"], options["features_file"])
    if options["report"]:
        require_extra("matplotlib", "plot")  # before the work, not after it
    elif options["no_certificate"]:
        raise click.UsageError("--no-certificate needs --report")
    start = time.perf_counter()
    labels = None
    if options["labels_file"] is not None:
        labels = read_label_file(options["labels_file"], options)
        _check_classes(labels.classes(), options, labels)
    job = _label_with_features if options["features_file"] else _label
    job = _label_with_state if options["state"] else job
    outcome = job(options, labels, Forgetting(options))
    check_window(outcome.answer.problem.full_graph, outcome.sparsifier, outcome.stream)
    with phase("calibrating probabilities"):
        answers = AnswerTable(outcome.answer, options["min_confidence"])
        columns = answers.columns(NodeIds(nodes_read(outcome.stream)), options["top"])
    write_output(options["output"], columns, options["csv_safe"])
    if options["report"] or not options["quiet"]:
        with phase("estimating accuracy and stability"):
            summary = make_summary(outcome, answers, options) | outcome.about
        summary |= _cost(time.perf_counter() - start)
        if options["report"]:
            with phase(f"making {options['report']}"):
                _write_page(outcome, answers, summary, options["report"])
        print_summary(summary, options)
    outcome.finish()


def _check_state_options(options: dict[str, Any]) -> None:
    """Refuse combinations of options that mean nothing."""
    if options["state"] is None:
        if not options["edges"]:
            raise click.UsageError("Missing argument 'EDGES...'.")
        if options["labels_file"] is None:
            raise click.UsageError("Missing option '--labels'.")
        return
    if options["cluster"] is not None:
        raise click.UsageError("--cluster and --state cannot be used together")


def _label(options: dict[str, Any], labels: Any, forgetting: Forgetting) -> LabelOutcome:
    """Label all edges."""
    from ohmlearn.estimators.label_job import label
    from ohmlearn.estimators.problem import ClassProblem

    with ExitStack() as stack:
        if options["cluster"]:
            stream: Edges = stack.enter_context(
                open_on_cluster(options, needs_times=forgetting.needs_times)
            )
        else:
            stream = open_edges(options, needs_times=forgetting.needs_times)
        sparsifier = _make_sparsifier(options, stream, forgetting, labels)
        p = make_parameters(options, stream.rereadable, labels, **forgetting.parameters)
        edges = stream
        if options["cluster"]:
            check_durations(options, stream.time_unit)
        else:
            check_ids(stream, labels.path, list(labels), heading=labels.id_heading)
            edges = watch_edges(stream, options, sparsifier, needs_edges=True)
        line = status_line()
        if line is not None and options["report"] and not options["no_certificate"]:
            line.n_later = MOST_PASSES
        try:
            assert edges is not None
            found = label(
                edges, ClassProblem, labels, p, sample_weight=labels.weights,
                sparsifier=sparsifier, **forgetting.moment,
            )  # fmt: skip
            certificate = _certify(found.problem.full_graph, edges, options)
        except KeyboardInterrupt:
            seen = ""
            if sparsifier is not None:
                seen = f" after {sparsifier.n_edges_seen_:,} edges; with --state FILE the same "
                seen += "command continues at the file where it was stopped"
            tell(f"Interrupted{seen}")
            raise click.exceptions.Exit(130) from None
    return _outcome(found, stream, certificate, {}, lambda: None)


def _outcome(
    found: "Labelling",
    stream: "Edges",
    certificate: "Certificate | str",
    about: dict[str, Any],
    finish: Callable[[], None],
) -> LabelOutcome:
    """Return the outcome of a job on edges alone, and warn of what may be wrong."""
    warn_apart(found)
    found.answer.warn_few()
    kept = found.kept
    return LabelOutcome(found.answer, kept, kept.sparsifier, stream, certificate, about, finish)


def _label_with_features(
    options: dict[str, Any], labels: Any, forgetting: Forgetting
) -> LabelOutcome:
    """Label all nodes from features and edges."""
    model, stream, edges = label_with_features(options, labels, forgetting)
    about = {}
    if forgetting.moment.get("since") is not None:
        when = {"since": edges.view.since, "latest": edges.latest, "unit": edges.time_unit}
        about["time"] = {"at": None, "half_life": None, "asked": None, **when}
    certificate, answer = _certify(model.graph_, edges, options), model.answer_
    return LabelOutcome(answer, None, model.sparsifier_, stream, certificate, about, lambda: None)


def _label_with_state(options: dict[str, Any], labels: Any, forgetting: Forgetting) -> LabelOutcome:
    """Add edges and labels to the model in a file, or start one."""
    from ohmlearn.cli.state_option import NoEdges, check_options, load_state
    from ohmlearn.estimators.kept_graph import KeptGraph
    from ohmlearn.estimators.label_job import Labelling
    from ohmlearn.estimators.state_file import StateFile
    from ohmlearn.reading.label_table import FileLabels

    state = StateFile(options["state"])
    if not state.exists and not options["edges"]:
        raise click.UsageError(f"there is no {state.path} yet; give the first EDGES")

    def start() -> Labelling:
        first = {**options, "passes": options["passes"] or 1}
        p = make_parameters(first, True, labels, **forgetting.parameters)
        sparsifier = _make_sparsifier(options, None, forgetting, labels)
        return Labelling(p, KeptGraph.start(p, sparsifier=sparsifier))

    load = partial(load_state, state, options, start)
    before = None if labels is None and not state.exists else load()
    if before is None or (labels is None and before.problem is None):
        raise click.UsageError(f"{state.path} has no labels yet; give them with --labels")
    classes = set(() if before.problem is None else before.problem.classes)
    _check_classes(classes, options)
    sparsifier, nodes, files = before.kept.sparsifier, before.kept.nodes, None
    asked = _make_sparsifier(options, None, forgetting, labels, classes)
    assert sparsifier is not None
    assert asked is not None
    check_options(state.path, sparsifier, asked)
    features = answer = None
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
    job, new = StateJob(state, options, labels, forgetting), None
    n_before = before.kept.n_edges_seen
    try:
        if files is None:
            job.read(before, stream)
        else:
            before, new = state.read_new(before, load, files, job.read)
        found = job.solve(before)
        if features is not None:
            answer = _answer_with_features(options, found, features, stream)
    except KeyboardInterrupt:
        seen = f"; {state.path} has the files up to its last save" if state.exists else ""
        tell(f"Interrupted{seen}; the same command continues")
        raise click.exceptions.Exit(130) from None
    about = {"path": state.path, "n_edges_before": n_before, "labels": job.counts}
    about["n_skipped"] = 0 if new is None else new.n_skipped
    why = "Not measured, because only the new edges can be read, not those of earlier runs."
    is_new = found.answer is not before.answer or (new is not None and new.has_new)
    finish = partial(_save_state, state, found) if is_new else lambda: None
    if answer is not None:
        kept = found.kept.sparsifier
        return LabelOutcome(answer, None, kept, stream, why, {"state": about}, finish)
    return _outcome(found, stream, why, {"state": about}, finish)


def _answer_with_features(
    options: dict[str, Any], found: "Labelling", features: "NodeFeatures", stream: "Edges"
) -> "FeatureClassAnswer":
    """Return the answer of features and of the edges and labels in a state, which stay as they are.

    Ids that only the features have become nodes of the answer, but not of the state: so the numbers
    of later nodes, and with them later answers, do not depend on the features.
    """
    from ohmlearn.cli.state_option import join_labels
    from ohmlearn.features.feature_problem import KnownGraph
    from ohmlearn.graph.graph import with_nodes

    labels, _ = join_labels(found, None)
    nodes = copy(found.kept.nodes)
    assert nodes is not None
    graph = with_nodes(found.kept.graph, len(nodes))
    edges = KnownGraph(graph, graph.degrees, nodes, found.kept.sparsifier)
    model = fit_features({**options, "seed": found.kept.seed}, features, edges, labels)
    stream.nodes = nodes
    return model.answer_


class StateJob:
    """What a run adds to the model in a file, and its answer.

    Attributes
    ----------
    counts : dict
        How many labels are kept, replaced and new.
    """

    def __init__(
        self, state: "StateFile", options: dict[str, Any], labels: Any, forgetting: Forgetting
    ) -> None:
        self._state, self._options, self._labels = state, options, labels
        self._moment, self._passes = forgetting.moment, options["passes"] or 1

    def read(self, found: "Labelling", stream: "Edges") -> None:
        """Check options and labels, then take in the edges."""
        from ohmlearn._phases import Phase, phase
        from ohmlearn.checks.times import check_moment
        from ohmlearn.cli.state_option import change_options, join_labels
        from ohmlearn.estimators.problem import ClassProblem
        from ohmlearn.estimators.state_file import Recorded

        kept, options, labels = found.kept, self._options, self._labels
        new = stream if isinstance(stream, Recorded) else None
        if labels is not None:
            kept.headings = labels.id_heading, labels.label_heading
        self._parameters = p = change_options(self._state.path, found, options, labels)
        self.counts = {"kept": 0, "replaced": 0, "new": len(labels or ())}
        if found.problem is not None:
            labels, self.counts = join_labels(found, labels)
        self._rows = ClassProblem.read(p, labels, kept.n_nodes, stream.nodes, labels.weights)
        if new is not None:
            self._print_notes(new)
        assert kept.sparsifier is not None
        if self._passes > 1 and (new is None or not new.has_all_of(kept.sparsifier)):
            raise ValueError(
                f"more passes would need all edges that {self._state.path} has seen, but only "
                f"those of this command can be read; leave out --passes, or label all edges "
                f"without --state"
            )
        if self._passes > 1:
            stream.again("an estimator with passes > 1 (passes=1 does not)")
        moment = {name: check_moment(name, value) for name, value in self._moment.items()}
        asks = moment != kept.moment if new is not None or moment else False
        self._has_more = (new is not None and new.has_new) or asks
        self._new, needs_edges = new, kept.is_empty
        self._edges = watch_edges(stream, options, kept.sparsifier, needs_edges=needs_edges)
        if self._has_more:
            with phase(Phase("reading edges", 1, self._passes)):
                kept.take(self._edges, **self._moment)

    def solve(self, found: "Labelling") -> "Labelling":
        """Return the model with its answer: the present one, if nothing is new."""
        from ohmlearn.estimators.problem import ClassProblem
        from ohmlearn.estimators.state_file import has_answer

        p, problem = self._parameters, None
        if self._labels is not None or p != found.parameters:
            problem = ClassProblem.make(self._rows, found.kept, p, found.before)
        if not self._has_more and has_answer(found, problem):
            return found
        found = found._replace(parameters=p)
        if self._passes == 1 or found.kept.holds_all_edges:
            return found.solve(problem)
        assert self._new is not None
        self._new.reads_all = True
        problem = problem or found.problem.on(found.kept, p, found.before)
        return found.with_answer(problem, problem.answer(problem.refine(self._edges, p.passes - 1)))

    def _print_notes(self, new: "Recorded") -> None:
        if self._options["quiet"] or self._options["as_json"]:
            return
        notes = new.notes
        if len(notes) > MOST_NOTES:
            notes = [f"{len(notes):,} files are skipped: {self._state.path} has them already"]
        tell(*notes)


def _save_state(state: "StateFile", found: "Labelling") -> None:
    from ohmlearn._phases import phase

    with phase(f"writing {state.path}"):
        state.save(found)


def _write_page(
    outcome: LabelOutcome, answers: "AnswerTable", summary: dict[str, Any], path: str
) -> None:
    from ohmlearn.report.label_report import make_page

    without = OF_EDGES_ALONE if "features" in summary else ()
    command = repeat_command(without)
    nodes, certificate = nodes_read(outcome.stream), outcome.certificate
    page = make_page(outcome.kept, outcome.answer, nodes, answers, summary, certificate, command)
    page.write(path)
    summary["report"] = path


def _make_sparsifier(
    options: dict[str, Any],
    stream: "Edges | None",
    forgetting: Forgetting,
    labels: Any,
    classes: "Iterable[Any]" = (),
) -> "StreamingSparsifier | None":
    """Return a new sparsifier; clusters and logs have their own."""
    from ohmlearn.sparsifier import StreamingSparsifier

    if options["cluster"] or (stream is not None and stream.is_log):
        return None
    max_edges = options["max_edges"]
    if options["memory"] is not None:
        from ohmlearn.cli.memory_budget import find_budget

        rereadable = stream is not None and stream.rereadable
        passes = options["passes"] or (3 if rereadable else 1)
        classes = classes or labels.classes()
        budget = find_budget(options, stream, passes, classes, labels or ())
        max_edges = budget.edges_within(options["memory"])
    return StreamingSparsifier(
        epsilon=options["epsilon"],
        max_edges=max_edges,
        random_state=options["seed"],
        n_jobs=options["threads"],
        **forgetting.parameters,
    )


def _certify(h: "Graph", edges: "Edges", options: dict[str, Any]) -> "Certificate | str":
    """Measure the sparsifier for the page, or return why not."""
    if options["no_certificate"]:
        return "The sparsifier was not measured (--no-certificate)."
    if not edges.rereadable:
        return "Not measured, because edges from a pipe cannot be read again."
    if not options["report"]:
        return ""
    from ohmlearn.certificate import certify

    _print_cost(options)
    return certify(
        edges, h, eta=0.2, max_passes=MOST_PASSES, random_state=options["seed"],
        n_jobs=options["threads"],
    )  # fmt: skip


def _check_classes(
    classes: "Iterable[Any]", options: dict[str, Any], labels: "FileLabels | None" = None
) -> None:
    """Refuse a table with a column for each of thousands of classes; warn of nodes as classes."""
    n_classes = len(set(classes))
    where = options["state"] if labels is None else labels.path
    swapped = ""
    if labels is not None and has_many_classes(labels):
        swapped = "if this is the file of edges, the two files are swapped"
    if options["top"] is None and n_classes > MOST_COLUMNS:
        raise ValueError(
            f"{where}: there are {n_classes:,} classes, and the output would have a column for "
            f"each; give --top 3 for the likeliest ones, or --label-col if these labels are no "
            f"classes{swapped and '; '}{swapped}"
        )
    if swapped:
        tell_of = f"{where}: {len(labels or ()):,} nodes have {n_classes:,} different labels"
        warnings.warn(f"{tell_of}; {swapped}", UserWarning, stacklevel=2)


def _print_cost(options: dict[str, Any]) -> None:
    """Say how long the certificate may take, before it is computed."""
    from ohmlearn.report.progress import describe_seconds

    line = status_line()
    if options["quiet"] or line is None:
        return
    cost = f"The certificate of --report reads the edges up to {MOST_PASSES} more times"
    if line.pass_seconds is not None:
        cost += f", at most about {describe_seconds(MOST_PASSES * line.pass_seconds)}"
    line.n_later = 0
    cost += "; --no-certificate leaves it out"
    if options["as_json"]:
        click.echo(json.dumps({"note": cost}), err=True)
    else:
        tell(cost)


def _cost(seconds: float) -> dict[str, Any]:
    from ohmlearn.report.process_cost import cpu_seconds, peak_memory

    return {
        "seconds": round(seconds, 3),
        "cpu_seconds": round(cpu_seconds(), 3),
        "peak_memory": peak_memory(),
    }
