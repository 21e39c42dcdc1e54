"""The command ``label``: from files of edges and of labels to a label for every node."""

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from ohmlearn.cli.cluster import cluster_option, open_on_cluster
from ohmlearn.cli.edges import (
    WatchedEdges,
    edge_options,
    fraction,
    open_edges,
    seed_option,
    threads_option,
)
from ohmlearn.cli.forgetting import Forgetting, forgetting_options
from ohmlearn.cli.group import main, repeat_command
from ohmlearn.cli.label_summary import make_summary, print_summary
from ohmlearn.cli.messages import tell
from ohmlearn.cli.model import (
    label_columns_options,
    make_model,
    model_options,
    read_label_file,
    sparsifier_options,
)
from ohmlearn.cli.outputs import check_outputs, output_options

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ohmlearn.certificate import Certificate
    from ohmlearn.cli.checkpoint import Checkpoint
    from ohmlearn.dask import ClusterEdges
    from ohmlearn.semi_supervised import HFSClassifier
    from ohmlearn.sparsifier import StreamingSparsifier
    from ohmlearn.streams import EdgeStream

    Source = EdgeStream | ClusterEdges

__all__ = ["label"]


@main.command()
@edge_options
@click.option(
    "--labels",
    "labels_file",
    required=True,
    type=click.Path(exists=True, dir_okay=False),
    help="Table with a node and its label in each row, in any format of EDGES. A node may have "
    "several rows.",
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
    help="Number of passes over the edges. Default: 3, or 1 for a pipe.",
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
@click.option("--checkpoint-every", type=float, default=10.0, hidden=True)
@cluster_option
@seed_option
@threads_option
def label(**options: Any) -> None:
    """Label every node of a graph from a few labelled ones.

    EDGES are files, patterns, folders, or - for standard input: CSV, TSV, blank-separated text,
    JSON lines, Parquet, Arrow, MatrixMarket, numpy; text may be compressed. They are never stored:
    one pass makes a sparsifier, and some more passes bring the answer close to that of the full
    graph.
    """
    from ohmlearn.report.tables import check_table_path, write_table
    from ohmlearn.validation.parameters import check_fraction, require_extra

    if options["min_confidence"] is not None:
        check_fraction("min_confidence", options["min_confidence"])  # click lets NaN pass
    check_table_path(options["output"], options["csv_safe"])
    outputs = {"-o": options["output"], **{f"--{x}": options[x] for x in ("report", "checkpoint")}}
    check_outputs(outputs, *options["edges"], options["labels_file"])
    if options["report"]:
        require_extra("matplotlib", "plot")  # before the work, not after it
    start = time.perf_counter()
    forgetting = Forgetting(options)
    labels = read_label_file(options["labels_file"], options)
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
    abstained = _abstained(model, options["min_confidence"])
    write_table(options["output"], _result(model, stream, abstained), options["csv_safe"])
    if options["report"] or not options["quiet"]:
        summary = make_summary(model, stream, abstained, options)
        summary |= _cost(time.perf_counter() - start)
        if options["report"]:
            _write_page(model, stream, summary, certificate, options["report"])
        print_summary(summary, options)
    if checkpoint is not None:
        checkpoint.remove()


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
    """Return a new sparsifier, or that of the checkpoint; on a cluster, workers make their own."""
    from ohmlearn.cli.checkpoint import Checkpoint
    from ohmlearn.sparsifier import StreamingSparsifier

    if options["cluster"]:
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
