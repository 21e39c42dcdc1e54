"""The command ``label``: from files of edges and of labels to a label for every node."""

import json
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from ohmlearn.cli.cluster import cluster_option, open_on_cluster
from ohmlearn.cli.edges import (
    WatchedEdges,
    as_column,
    edge_options,
    fraction,
    open_edges,
    seed_option,
    threads_option,
)
from ohmlearn.cli.group import main, repeat_command
from ohmlearn.cli.messages import tell
from ohmlearn.cli.outputs import check_outputs, output_options

if TYPE_CHECKING:
    from ohmlearn.certificate import Certificate
    from ohmlearn.cli.checkpoint import Checkpoint
    from ohmlearn.dask import ClusterEdges
    from ohmlearn.semi_supervised import HFSClassifier
    from ohmlearn.sparsifier import StreamingSparsifier
    from ohmlearn.streams import EdgeStream

    Source = EdgeStream | ClusterEdges

__all__ = ["label"]

LABEL_COLUMNS = ("node_col", "label_col", "label_weight_col")


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
@click.option("--node-col", help="Name or position of the column of nodes in --labels.")
@click.option("--label-col", help="Name or position of the column of labels in --labels.")
@click.option(
    "--label-weight-col",
    help="Name or position of the column in --labels that says how much each label counts. "
    "Default: a column called weight, confidence or trust, if there is one.",
)
@output_options
@click.option("--epsilon", type=fraction, default=0.8, help="Accuracy of the sparsifier.")
@click.option("--max-edges", type=click.IntRange(min=1), help="Edges to keep, instead of epsilon.")
@click.option(
    "--memory", help="Memory limit, such as 500MB; replaces --epsilon and needs --n-nodes."
)
@click.option("--n-nodes", type=click.IntRange(min=1), help="Number of nodes, for --memory.")
@click.option(
    "--passes",
    type=click.IntRange(min=1),
    help="Number of passes over the edges. Default: 3, or 1 for a pipe.",
)
@click.option(
    "--normalization", type=click.Choice(["stable", "cmn", "none"]), default="stable",
    help="How the scores of the classes are made comparable.",
)  # fmt: skip
@click.option(
    "--gamma",
    type=float,
    help="Weight of the smoothness term. Default: chosen from the labels and the mean degree.",
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
    from ohmlearn.streams.labels import read_labels
    from ohmlearn.validation.parameters import require_extra

    check_table_path(options["output"], options["csv_safe"])
    outputs = {"-o": options["output"], **{f"--{x}": options[x] for x in ("report", "checkpoint")}}
    check_outputs(outputs, *options["edges"], options["labels_file"])
    if options["report"]:
        require_extra("matplotlib", "plot")  # before the work, not after it
    start = time.perf_counter()
    columns = {name: as_column(options[name]) for name in LABEL_COLUMNS}
    labels = read_labels(options["labels_file"], **columns)
    if labels.weights is not None and not (options["quiet"] or options["as_json"]):
        tell(f"{labels.path}: {labels.columns}")
    with ExitStack() as stack:
        if options["cluster"]:
            stream: Any = stack.enter_context(open_on_cluster(options))
        else:
            stream = open_edges(options)
        model = _make_model(options, stream)
        sparsifier, checkpoint = _make_sparsifier(options, stream)
        edges = stream
        if not options["cluster"]:
            edges = WatchedEdges(stream, options, sparsifier, checkpoint)
        try:
            model.fit_edges(edges, labels, sample_weight=labels.weights, sparsifier=sparsifier)
            certificate = _certify(model, edges, options) if options["report"] else None
        except KeyboardInterrupt:
            _save(sparsifier, checkpoint)
            raise click.exceptions.Exit(130) from None
    write_table(options["output"], _result(model, stream), options["csv_safe"])
    summary = _summary(model, stream, time.perf_counter() - start)
    if options["report"]:
        from ohmlearn.report.label_page import make_page

        page = make_page(model, stream.nodes.ids(), summary, certificate, repeat_command())
        page.write(options["report"])
        summary["report"] = options["report"]
    if checkpoint is not None:
        checkpoint.remove()
    _print_summary(summary, options)


def _make_model(options: dict[str, Any], stream: Any) -> "HFSClassifier":
    from ohmlearn.semi_supervised import HFSClassifier

    passes = options["passes"] or (3 if stream.rereadable else 1)
    if passes > 1 and not stream.rereadable:
        raise click.UsageError("a pipe can be read only once: use --passes 1, or a file")
    return HFSClassifier(
        gamma="auto" if options["gamma"] is None else options["gamma"],
        epsilon=options["epsilon"],
        max_edges=options["max_edges"],
        passes=passes,
        normalization=None if options["normalization"] == "none" else options["normalization"],
        random_state=options["seed"],
        n_jobs=options["threads"],
    )


def _make_sparsifier(
    options: dict[str, Any], stream: Any
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


def _result(model: "HFSClassifier", stream: "Source") -> dict[str, Any]:
    shares = model.label_distributions_
    columns = {"node": stream.nodes.ids(), "label": model.transduction_}
    for at, name in enumerate(model.classes_):
        columns[f"probability_{name}"] = shares[:, at]
    return columns | {"reached": model.reached_}


def _summary(model: Any, stream: "Source", seconds: float) -> dict[str, Any]:
    from ohmlearn.report.process import cpu_seconds, peak_memory

    stats = model.sparsifier_.stats_
    labels = model.transduction_
    counts = {str(name): int((labels == name).sum()) for name in model.classes_}
    return {
        "sources": stream.sources,
        "n_nodes": len(stream.nodes),
        "n_edges_seen": int(stats["n_edges_seen"]),
        "n_self_loops_dropped": int(stats["n_self_loops_dropped"]),
        "n_zero_weights_dropped": int(stats["n_zero_weights_dropped"]),
        "n_bad_rows": stream.n_bad,
        "n_edges_kept": model.graph_.n_edges,
        "passes": model.n_iter_,
        "residual": model.residual_.tolist(),
        "n_labelled": len(model.labelled_),
        "n_unreached": int((~model.reached_).sum()),
        "classes": counts,
        "seconds": round(seconds, 3),
        "cpu_seconds": round(cpu_seconds(), 3),
        "peak_memory": peak_memory(),
    }


def _print_summary(summary: dict[str, Any], options: dict[str, Any]) -> None:
    if options["quiet"]:
        return
    if options["as_json"]:
        click.echo(json.dumps(summary), err=True)
        return
    kept = summary["n_edges_kept"]
    share = 100.0 * kept / max(1, summary["n_edges_seen"])
    largest = sorted(summary["classes"].items(), key=lambda item: -item[1])
    classes = ", ".join(f"{name[:30]}: {count:,}" for name, count in largest[:10])
    if len(largest) > 10:
        classes += f", and {len(largest) - 10} more"
    if summary["n_unreached"]:
        classes += f" ({summary['n_unreached']:,} of them without evidence)"
    where = "full graph" if summary["passes"] > 1 else "sparsifier"
    lines = [
        f"Edges    {summary['n_edges_seen']:,} seen, {kept:,} kept ({share:.3g}%)",
        f"Nodes    {summary['n_nodes']:,}, {summary['n_labelled']} of them with a label given",
        f"Classes  {classes}",
        f"Passes   {summary['passes']}, residual {max(summary['residual']):.2g} ({where})",
        f"Cost     {summary['seconds']:.1f} s, {summary['peak_memory'] / 2**20:.0f} MiB at peak",
    ]
    dropped = summary["n_self_loops_dropped"] + summary["n_zero_weights_dropped"]
    if dropped:
        lines[0] += f"; {dropped:,} self-loops and zero weights left out"
    if "report" in summary:
        lines.append(f"Page     {summary['report']}")
    tell(*lines)
