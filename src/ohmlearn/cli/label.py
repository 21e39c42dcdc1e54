"""The command ``label``: from files of edges and of labels to a label for every node."""

import time
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from ohmlearn.cli.cluster import cluster_option, open_on_cluster
from ohmlearn.cli.edges import (
    WatchedEdges,
    edge_options_with_state,
    fraction,
    open_edges,
    seed_option,
)
from ohmlearn.cli.forgetting import Forgetting, forgetting_options
from ohmlearn.cli.group import main, repeat_command
from ohmlearn.cli.label_summary import make_summary, print_summary, show_time
from ohmlearn.cli.messages import tell
from ohmlearn.cli.model import (
    label_columns_options,
    make_model,
    model_options,
    read_label_file,
    sparsifier_options,
)
from ohmlearn.cli.outputs import check_outputs, output_options
from ohmlearn.cli.threads import threads_option

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from ohmlearn.certificate import Certificate
    from ohmlearn.cli.checkpoint import Checkpoint
    from ohmlearn.dask import ClusterEdges
    from ohmlearn.semi_supervised import HFSClassifier
    from ohmlearn.sparsifier import StreamingSparsifier
    from ohmlearn.streams import EdgeStream

    Source = EdgeStream | ClusterEdges
    # The model, its stream, figures for the summary, and what is left to do after the output.
    Outcome = tuple[HFSClassifier, Any, Certificate | None, dict[str, Any], Callable[[], None]]

__all__ = ["label"]


@main.command()
@edge_options_with_state
@click.option(
    "--labels",
    "labels_file",
    type=click.Path(exists=True, dir_okay=False),
    help="Table with a node and its label in each row, in any format of EDGES. A node may have "
    "several rows. Needed, unless --state has labels; then they replace those of the same nodes.",
)
@label_columns_options
@output_options
@sparsifier_options
@click.option(
    "--memory", help="Memory limit, such as 500MB; replaces --epsilon and needs --n-nodes."
)
@click.option("--n-nodes", type=click.IntRange(min=1), help="Number of nodes, for --memory.")
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
    help="Leave the label empty where its probability is less, or where there is no evidence, and "
    "mark these nodes in a column called abstained.",
)
@click.option(
    "--report",
    type=click.Path(dir_okay=False),
    help="Write a page about the result; measures the sparsifier in up to 20 more passes.",
)
@click.option(
    "--checkpoint",
    type=click.Path(dir_okay=False),
    help="Save progress here; the same command continues from it.",
)
@click.option("--checkpoint-every", type=float, default=2.0, hidden=True)
@click.option(
    "--state",
    type=click.Path(dir_okay=False),
    help="Keep the model in this file: EDGES are added to those of earlier runs, labels are kept, "
    "and the file is replaced when the answers have been written. It may start as the output "
    "h.ohm of sparsify.",
)
@click.option(
    "--again", is_flag=True, help="Add EDGES to --state even if it has taken them in before."
)
@cluster_option
@seed_option
@threads_option
def label(**options: Any) -> None:
    """Label every node of a graph from a few labelled ones.

    EDGES are files, patterns, folders, or - for standard input: CSV, TSV, blank-separated text,
    JSON lines, Parquet, Arrow, MatrixMarket, numpy; text may be compressed. They are never stored:
    one pass makes a sparsifier, and some more passes bring the answer close to that of the full
    graph. With --state they are only the new edges, and the answer is that of the sparsifier.
    """
    from ohmlearn.report.tables import check_table_path, write_table
    from ohmlearn.validation.parameters import check_fraction, require_extra

    if options["min_confidence"] is not None:
        check_fraction("min_confidence", options["min_confidence"])  # click lets NaN pass
    check_table_path(options["output"], options["csv_safe"])
    files = ("report", "checkpoint", "state")
    outputs = {"-o": options["output"], **{f"--{x}": options[x] for x in files}}
    _check_state_options(options)
    check_outputs(outputs, *options["edges"], options["labels_file"])
    if options["report"]:
        require_extra("matplotlib", "plot")  # before the work, not after it
    start = time.perf_counter()
    labels = None
    if options["labels_file"] is not None:
        labels = read_label_file(options["labels_file"], options)
    job = _label_with_state if options["state"] else _label
    model, stream, certificate, about, finish = job(options, labels, Forgetting(options))
    _check_window(model, stream)
    abstained = _abstained(model, options["min_confidence"])
    write_table(options["output"], _result(model, stream, abstained), options["csv_safe"])
    if options["report"] or not options["quiet"]:
        summary = make_summary(model, stream, abstained, options) | about
        summary |= _cost(time.perf_counter() - start)
        if options["report"]:
            _write_page(model, stream, summary, certificate, options["report"])
        print_summary(summary, options)
    finish()


def _check_window(model: "HFSClassifier", stream: Any) -> None:
    """Refuse answers without any edge, because of a window or because all were removed."""
    view, kept = model.graph_.view, model.sparsifier_
    if model.graph_.n_edges > 0 or kept is None:
        return
    if view is not None and kept.latest_ is not None:
        unit = getattr(stream, "time_unit", None)
        since, latest = (show_time(time, unit) for time in (view.earliest, kept.latest_))
        raise ValueError(f"no edge counts since {since}; the latest is of {latest}")
    if hasattr(stream, "kept_sparsifier"):
        raise ValueError(f"there are no live edges in {' and '.join(stream.sources)}")


def _check_state_options(options: dict[str, Any]) -> None:
    """Refuse combinations of options that mean nothing."""
    if options["state"] is None:
        if not options["edges"]:
            raise click.UsageError("Missing argument 'EDGES...'.")
        if options["labels_file"] is None:
            raise click.UsageError("Missing option '--labels'.")
        if options["again"]:
            raise click.UsageError("--again needs --state")
        return
    for name in ("checkpoint", "cluster"):
        if options[name] is not None:
            raise click.UsageError(f"--{name} and --state cannot be used together")


def _label(options: dict[str, Any], labels: Any, forgetting: Forgetting) -> "Outcome":
    """Label all edges."""
    with ExitStack() as stack:
        if options["cluster"]:
            stream: Any = stack.enter_context(
                open_on_cluster(options, needs_times=forgetting.needs_times)
            )
        else:
            stream = open_edges(options, needs_times=forgetting.needs_times)
        model = make_model(options, stream.rereadable, labels, **forgetting.parameters)
        sparsifier, checkpoint = _make_sparsifier(options, stream, forgetting)
        edges = stream
        if not options["cluster"]:
            edges = WatchedEdges(stream, options, sparsifier, checkpoint)
        try:
            model.fit_edges(
                edges, labels, sample_weight=labels.weights, sparsifier=sparsifier,
                **forgetting.moment,
            )  # fmt: skip
            certificate = _certify(model, edges, options) if options["report"] else None
        except KeyboardInterrupt:
            _save(sparsifier, checkpoint)
            raise click.exceptions.Exit(130) from None

    finish = (lambda: None) if checkpoint is None else checkpoint.remove
    return model, stream, certificate, {}, finish


def _label_with_state(options: dict[str, Any], labels: Any, forgetting: Forgetting) -> "Outcome":
    """Add edges and labels to the model in a file, or start one."""
    from ohmlearn.cli.state import Intake, NoEdges, State, join_labels

    state = State(options["state"], options)
    model, n_before = state.model, 0
    if model is None and not options["edges"]:
        raise click.UsageError(f"there is no {state.path} yet; give the first EDGES")
    if labels is None and not hasattr(model, "labelled_"):
        raise click.UsageError(f"{state.path} has no labels yet; give them with --labels")
    sparsifier, _ = _make_sparsifier(options, None, forgetting)
    assert sparsifier is not None
    if model is not None:
        sparsifier = state.check_options(sparsifier)
        n_before = sparsifier.n_edges_seen_
    stream: Any = NoEdges(None if model is None else model.nodes_)
    if options["edges"]:
        stream = open_edges(options, stream.nodes, needs_times=sparsifier.options.has_times)
    if hasattr(stream, "kept_sparsifier"):
        raise click.UsageError("a log of edges keeps its own sparsifier; leave out --state")
    intake = Intake(getattr(model, "sources_", []), stream, state.path, options["again"])
    edges = WatchedEdges(stream, options, sparsifier, intake) if options["edges"] else None
    counts = {"kept": 0, "replaced": 0, "new": len(labels or ())}
    try:
        if model is None:
            options["passes"] = options["passes"] or 1
            model = make_model(options, stream.rereadable, labels, **forgetting.parameters)
            model.fit_edges(
                edges, labels, sample_weight=labels.weights, sparsifier=sparsifier,
                **forgetting.moment,
            )  # fmt: skip
        else:
            is_changed = state.change_options(options)
            if edges is not None or forgetting.moment:
                model.update([] if edges is None else edges, **forgetting.moment)
            joined, counts = join_labels(model, labels)
            if labels is not None or is_changed:
                model.relabel(joined, sample_weight=joined.weights)
    except KeyboardInterrupt:
        tell(f"Interrupted; {state.path} is as it was" if n_before else "Interrupted")
        raise click.exceptions.Exit(130) from None
    about = {"path": state.path, "n_edges_before": n_before, "labels": counts}
    return model, stream, None, {"state": about}, partial(state.save, model, intake.sources)


def _write_page(
    model: "HFSClassifier",
    stream: "Source",
    summary: dict[str, Any],
    certificate: "Certificate | None",
    path: str,
) -> None:
    from ohmlearn.report.label_page import make_page

    make_page(model, stream.nodes, summary, certificate, repeat_command()).write(path)
    summary["report"] = path


def _make_sparsifier(
    options: dict[str, Any], stream: Any, forgetting: Forgetting
) -> tuple["StreamingSparsifier | None", "Checkpoint | None"]:
    """Return a new sparsifier, or that of the checkpoint; clusters and logs have their own."""
    from ohmlearn.cli.checkpoint import Checkpoint
    from ohmlearn.sparsifier import StreamingSparsifier

    if options["cluster"]:
        return None, None
    if hasattr(stream, "kept_sparsifier"):
        if options["checkpoint"] is not None:
            raise click.UsageError("a log keeps its own sparsifier; leave out --checkpoint")
        return None, None
    sparsifier = StreamingSparsifier(
        n_nodes=options["n_nodes"],
        epsilon=options["epsilon"],
        max_edges=options["max_edges"],
        memory=options["memory"],
        random_state=options["seed"],
        n_jobs=options["threads"],
        **forgetting.parameters,
    )
    if options["checkpoint"] is None:
        return sparsifier, None
    checkpoint = Checkpoint(options["checkpoint"], sparsifier, stream, **options)
    if not options["quiet"]:
        checkpoint.print_start()
    return checkpoint.sparsifier, checkpoint


def _save(sparsifier: "StreamingSparsifier | None", checkpoint: "Checkpoint | None") -> None:
    """Save what an interrupted run has seen, and say how to continue."""
    if sparsifier is None:
        tell("Interrupted")
        return
    hint = "with --checkpoint FILE an interrupted run can be continued"
    if checkpoint is not None:
        checkpoint.save()
        hint = f"the same command continues from {checkpoint.path}"
    tell(f"Interrupted after {sparsifier.n_edges_seen_:,} edges; {hint}")


def _certify(model: "HFSClassifier", edges: Any, options: dict[str, Any]) -> "Certificate | None":
    from ohmlearn.certificate import certify

    if not edges.rereadable:
        return None
    return certify(
        edges, model.graph_, eta=0.2, max_passes=20, random_state=options["seed"],
        n_jobs=options["threads"],
    )  # fmt: skip


def _abstained(model: "HFSClassifier", least: float | None) -> "NDArray[np.bool_] | None":
    """Return which nodes have no label of that probability."""
    if least is None:
        return None
    unsure: NDArray[np.bool_] = model.label_distributions_.max(axis=1) < least
    return unsure | ~model.reached_


def _result(
    model: "HFSClassifier", stream: "Source", abstained: "NDArray[np.bool_] | None"
) -> dict[str, Any]:
    import numpy as np

    shares, labels = model.label_distributions_, model.transduction_
    if abstained is not None:
        labels = np.ma.masked_array(labels, abstained)  # null, and the type stays
    columns = {"node": stream.nodes.ids(), "label": labels}
    for at, name in enumerate(model.classes_):
        columns[f"probability_{name}"] = shares[:, at]
    columns["reached"] = model.reached_
    return columns if abstained is None else columns | {"abstained": abstained}


def _cost(seconds: float) -> dict[str, Any]:
    from ohmlearn.report.process import cpu_seconds, peak_memory

    return {
        "seconds": round(seconds, 3),
        "cpu_seconds": round(cpu_seconds(), 3),
        "peak_memory": peak_memory(),
    }
