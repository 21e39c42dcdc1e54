"""The command ``label``: from files of edges and of labels to a label for every node."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ohmlearn._defaults import LABEL_EPSILON
from ohmlearn.cli import options as cli
from ohmlearn.cli.label_model import (
    CLASS_PRIOR,
    FEATURE_METHODS,
    GAMMA,
    METHODS,
    MODEL_KEYS,
    MODEL_KEYS_HELP,
    check_feature_ids,
    check_feature_options,
    fit_with_features,
    make_parameters,
    open_to_label,
    read_feature_file,
    read_label_file,
    warn_doubts,
)
from ohmlearn.cli.label_summary import make_summary, print_summary
from ohmlearn.cli.main import main, repeat_command
from ohmlearn.cli.messages import tell
from ohmlearn.cli.open_edges import (
    Forgetting,
    check_ids,
    check_window,
    nodes_read,
    open_edges,
    watch_edges,
)
from ohmlearn.cli.outputs import check_outputs, write_output

if TYPE_CHECKING:
    from ohmlearn.certificate import Certificate
    from ohmlearn.edges import Edges
    from ohmlearn.estimators.kept_graph import KeptGraph
    from ohmlearn.estimators.reasons import Explanation
    from ohmlearn.estimators.review import Answer
    from ohmlearn.features.feature_reasons import PooledExplanation
    from ohmlearn.graph import Graph
    from ohmlearn.reading.label_table import FileLabels

MOST_COLUMNS = 1000  # of probabilities
MANY = 20  # classes; if most nodes have their own, they may be the other ends of edges
MOST_PASSES = 20  # of certify=yes
REMEDY = "ohmlearn explain --edges FILE computes reasons from all edges"


class LabelOutcome(NamedTuple):
    """What was found, and what is left to do."""

    answer: Any  # ClassAnswer or FeatureClassAnswer
    kept: "KeptGraph | None"  # None with features
    sparsifier: Any
    stream: "Edges"
    certificate: "Certificate | str"  # or why there is none
    about: dict[str, Any] | None = None  # figures for the summary
    reasons: "Sequence[Explanation | PooledExplanation]" = ()
    finish: Callable[[], None] = lambda: None  # after the output


INPUT_OPTIONS = (
    cli.option(
        "--labels", "labels_file", metavar="FILE", group="Input", common=True,
        help="Table with a node and its label in each row, in any format of EDGES. A node may have "
        "several rows, and -1 means unlabelled. Required, unless --state has labels; then these "
        "replace those of the same nodes.",
    ),
    cli.READ_LABELS,
    *cli.FEATURES,
)  # fmt: skip
OUTPUT_OPTIONS = (
    cli.OUTPUT,
    cli.option(
        "--min-probability", type=cli.fraction, group="Output", common=True,
        help="Leave the label empty where its probability is smaller, and add a column, abstained, "
        "that marks the nodes without a label.",
    ),
    cli.option(
        "--top", type=click.IntRange(1, 100), group="Output",
        help="Write this many of the most probable classes of each node, as label, probability, "
        "label_2, probability_2, ..., instead of a column of probabilities for each class.",
    ),
    cli.option(
        "--report", type=click.Path(dir_okay=False), group="Output", common=True,
        help="Write a page about the result to this file.",
    ),
    cli.option(
        "--review", is_flag=True, group="Output",
        help="Print how many nodes of each class are above a probability, about how many of them "
        "are right, and the surest and the least sure nodes. A page of --report has all this.",
    ),
    cli.option(
        "--explain", type=cli.as_explained, metavar="top:N|borderline:N", group="Output",
        help="Add a column with the reasons for the N surest nodes of each class, or for the N "
        "nodes with the closest classes; and a part of the page of --report.",
    ),
)  # fmt: skip
METHOD_OPTIONS = (
    cli.option(
        "--passes", type=click.IntRange(min=1), group="Method",
        help="Number of passes over the edges: more bring the answer closer to that of all edges. "
        "Default: 3, or 1 for a pipe and with --state.",
    ),
    GAMMA,
    cli.option(
        "--method", type=click.Choice([*METHODS, *FEATURE_METHODS]), group="Method",
        help="How labels are predicted. From the edges alone: auto (default), harmonic functions "
        "with a little of random walks with restart and a bias for each class, as predicts "
        "left-out labels best; harmonic, these functions alone; or restart, the walks alone. With "
        "--features: logistic regression (default), or gradient boosting, which needs more labels.",
    ),
    CLASS_PRIOR,
    cli.epsilon_option(LABEL_EPSILON),
    cli.MAX_EDGES,
    cli.option(
        "--option", "rare", cls=cli.KeyValues, group="Method",
        keys={**MODEL_KEYS, "certify": ("certify", click.BOOL, False), **cli.SAFE},
        help=f"{MODEL_KEYS_HELP} {cli.SAFE_HELP}",
    ),
)  # fmt: skip
STATE = cli.option(
    "--state", type=click.Path(dir_okay=False), group="Continue", common=True,
    help="Keep the model in this file. EDGES are added to those of earlier runs, except files that "
    "it has already, and labels are kept. The same command continues an interrupted run. The file "
    "may start as the output h.ohm of sparsify.",
)  # fmt: skip


@main.command()
@cli.takes_edges(
    *INPUT_OPTIONS,
    *OUTPUT_OPTIONS,
    *METHOD_OPTIONS,
    *cli.FORGETTING,
    STATE,
    cli.SEED,
    *cli.MEMORY,
    cli.CLUSTER,
    cli.THREADS,
    required=False,
)
def label(**options: Any) -> None:
    """Label every node of a graph from a few labelled ones.

    \b
    ohmlearn label events.csv --labels known.csv -o labels.csv

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
    import numpy as np

    from ohmlearn._phases import phase
    from ohmlearn.checks.parameters import require_extra
    from ohmlearn.estimators.label_columns import AnswerTable
    from ohmlearn.report.progress import peak_memory
    from ohmlearn.report.write_table import NodeIds, check_table_path

    check_table_path(options["output"], options["csv_safe"])
    outputs = {"-o": options["output"], "--report": options["report"], "--state": options["state"]}
    if options["state"] is None and not options["edges"]:
        raise click.UsageError("Missing argument 'EDGES...'.")
    if options["state"] is None and options["labels_file"] is None:
        raise click.UsageError("Missing option '--labels'.")
    if options["state"] is not None and options["cluster"] is not None:
        raise click.UsageError("--cluster and --state cannot be used together")
    check_feature_options(options)
    if options["certify"] and not options["report"]:
        raise click.UsageError("--option certify= needs --report")
    check_outputs(outputs, *options["edges"], options["labels_file"], options["features_file"])
    if options["report"]:
        require_extra("matplotlib", "plot")  # before the work, not after it
    start = time.perf_counter()
    labels = read_label_file(options)
    if labels is not None:
        check_classes(labels.classes(), options, labels)
    job: Callable[..., LabelOutcome] = _with_features if options["features_file"] else _from_edges
    if options["state"]:
        from ohmlearn.cli.label_state import label_with_state as job
    outcome = job(options, labels, Forgetting(options))
    check_window(outcome.answer.problem.full_graph, outcome.sparsifier, outcome.stream)
    with phase("calibrating probabilities"):
        answers = AnswerTable(outcome.answer, options["min_probability"])
        columns = answers.columns(NodeIds(nodes_read(outcome.stream)), options["top"])
    if options["explain"]:
        nodes = nodes_read(outcome.stream)
        sentences = np.ma.masked_array(np.full(len(nodes), None, dtype=object), True)
        for one in outcome.reasons:
            sentences[int(nodes.find([one.node])[0])] = one.text(changes=False)
        columns["reason"] = sentences
    write_output(options, columns)
    if options["report"] or not options["quiet"]:
        with phase("estimating accuracy and stability"):
            summary = make_summary(outcome, answers, options) | (outcome.about or {})
        summary["seconds"] = round(time.perf_counter() - start, 3)
        summary |= {"cpu_seconds": round(time.process_time(), 3), "peak_memory": peak_memory()}
        if options["report"]:
            from ohmlearn.report.label_report import make_page

            with phase(f"making {options['report']}"):
                page = make_page(
                    outcome.kept, outcome.answer, nodes_read(outcome.stream), answers, summary,
                    outcome.certificate, repeat_command(), outcome.reasons,
                )  # fmt: skip
                page.write(options["report"])
            summary["report"] = options["report"]
        print_summary(summary)
    outcome.finish()


def _from_edges(options: cli.Options, labels: "FileLabels", forgetting: Forgetting) -> LabelOutcome:
    """Label all nodes from the edges alone."""
    from ohmlearn.estimators.label_job import label as label_nodes
    from ohmlearn.estimators.problem import ClassProblem

    with open_to_label(options, labels, forgetting) as (stream, edges, p, sparsifier):
        seen = "; with --state FILE the same command continues at the file where it was stopped"
        with interrupted(
            lambda: f" after {sparsifier.n_edges_seen_:,} edges{seen}" if sparsifier else ""
        ):
            found = label_nodes(
                edges, ClassProblem, labels, p, sample_weight=labels.weights,
                sparsifier=sparsifier, **forgetting.moment,
            )  # fmt: skip
            answer, kept = found.class_answer, found.kept
            certificate = _certify(answer.problem.full_graph, edges, options)
            reasons = explain_some(answer, options["explain"], edges if edges.rereadable else None)
    warn_doubts(found)
    return LabelOutcome(answer, kept, kept.sparsifier, stream, certificate, None, reasons)


def explain_some(
    answer: "Answer", wanted: tuple[str, int] | None, edges: "Edges | None" = None
) -> "Sequence[Explanation | PooledExplanation]":
    """Return the reasons that --explain asks for."""
    from ohmlearn._phases import phase
    from ohmlearn.estimators.answer import ClassAnswer
    from ohmlearn.estimators.explanation import explain_nodes
    from ohmlearn.estimators.review import choose_nodes

    if wanted is None:
        return []
    with phase("finding reasons"):
        nodes = choose_nodes(answer, *wanted)
        if isinstance(answer, ClassAnswer):
            return explain_nodes(answer, nodes, edges=edges, remedy=REMEDY)
        from ohmlearn.features.feature_reasons import explain_pool

        return explain_pool(answer, nodes)


@contextmanager
def interrupted(describe: Callable[[], str]) -> Iterator[None]:
    """Say what is left of the work when the user interrupts it."""
    try:
        yield
    except KeyboardInterrupt:
        tell(f"Interrupted{describe()}")
        raise click.exceptions.Exit(130) from None


def _with_features(
    options: cli.Options, labels: "FileLabels", forgetting: Forgetting
) -> LabelOutcome:
    """Label all nodes from features and edges."""
    from ohmlearn.checks.times import check_moment
    from ohmlearn.edges.wrapped import TimeFiltered
    from ohmlearn.estimators.kept_graph import KeptGraph
    from ohmlearn.graph.time_view import TimeView

    features = read_feature_file(options, labels)
    stream = open_edges(options, needs_times=forgetting.needs_times)
    check_ids(stream, labels.path, list(labels), heading=labels.id_heading)
    check_feature_ids(stream, features)
    since = forgetting.moment.get("since")
    times = forgetting.parameters if since is None else {}
    sparsifier = KeptGraph.start(make_parameters(options, stream, labels, times)).sparsifier
    edges, recent = watch_edges(stream, options, sparsifier, needs_edges=True), None
    if since is not None:
        view = TimeView(since=check_moment("since", since))
        edges = recent = TimeFiltered(edges, view, needs_edges=True)
    model, about = fit_with_features(options, features, edges, labels, sparsifier), None
    if recent is not None:
        when = {"since": recent.view.since, "latest": recent.latest, "unit": recent.time_unit}
        about = {"time": {"at": None, "half_life": None, "asked": None, **when}}
    certificate = _certify(model.graph_, edges, options)
    reasons = explain_some(model.answer_, options["explain"])
    return LabelOutcome(model.answer_, None, model.sparsifier_, stream, certificate, about, reasons)


def check_classes(
    classes: Iterable[Any], options: cli.Options, labels: "FileLabels | None" = None
) -> None:
    """Refuse a table with a column for each of thousands of classes; warn of nodes as classes."""
    from ohmlearn._warnings import warn

    n_classes = len(set(classes))
    where = options["state"] if labels is None else labels.path
    swapped = ""
    if labels is not None and n_classes > MANY and n_classes > len(labels) / 2:
        swapped = "if this is the file of edges, the two files are swapped"
    if options["top"] is None and n_classes > MOST_COLUMNS:
        raise ValueError(
            f"{where}: there are {n_classes:,} classes, and the output would have a column for "
            f"each; give --top 3 for the most probable ones, or --read-labels label= if these "
            f"labels are no classes{swapped and '; '}{swapped}"
        )
    if swapped:
        what = f"{where}: {len(labels or ()):,} nodes have {n_classes:,} different labels"
        warn(f"{what}; {swapped}")


def _certify(h: "Graph", edges: "Edges", options: cli.Options) -> "Certificate | str":
    """Measure the sparsifier for the page, or return why not."""
    if not options["certify"]:
        return "The sparsifier was not measured; --option certify=yes does this."
    if not edges.rereadable:
        return "Not measured, because edges from a pipe cannot be read again."
    from ohmlearn.certificate import certify

    return certify(
        edges, h, eta=0.2, max_passes=MOST_PASSES, random_state=options["seed"],
        n_jobs=options["threads"],
    )  # fmt: skip
