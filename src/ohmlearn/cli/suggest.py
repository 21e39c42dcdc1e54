"""The command ``suggest``: which nodes to label next."""

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from ohmlearn.cli.cluster import cluster_option, open_on_cluster
from ohmlearn.cli.edges import (
    WatchedEdges,
    edge_options,
    open_edges,
    seed_option,
    threads_option,
)
from ohmlearn.cli.group import main
from ohmlearn.cli.messages import tell
from ohmlearn.cli.model import (
    label_columns_options,
    make_model,
    make_sparsifier,
    read_label_file,
    sparsifier_options,
)
from ohmlearn.cli.outputs import check_outputs, output_options

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ohmlearn.nodes import NodeTable
    from ohmlearn.semi_supervised import HFSClassifier
    from ohmlearn.semi_supervised.suggest import Suggestion
    from ohmlearn.sparsifier import StreamingSparsifier

__all__ = ["suggest"]

KINDS = {
    "component": "in components without a label",
    "influence": "with influence on others",
    "borderline": "between two classes",
}


@main.command()
@edge_options
@click.option(
    "--labels",
    "labels_file",
    type=click.Path(exists=True, dir_okay=False),
    help="Table with a node and its label in each row, as for label. Without it, the position of "
    "nodes in the graph decides.",
)
@label_columns_options
@click.option(
    "-k", "--count", type=click.IntRange(min=1), default=20, help="Number of nodes to suggest."
)
@click.option(
    "--exclude",
    type=click.Path(exists=True, dir_okay=False),
    help="Text file of nodes that cannot be labelled, one in each line.",
)
@output_options
@sparsifier_options
@click.option(
    "--passes",
    type=click.IntRange(min=1),
    default=1,
    help="Number of passes over the edges, for the present labels.",
)
@cluster_option
@seed_option
@threads_option
def suggest(count: int, **options: Any) -> None:
    """Suggest which nodes to label next, best first.

    No two suggested nodes are next to each other. The columns are node, kind (component: in a
    component without a label; influence: settles other nodes; borderline: between two classes),
    n_settled (how many nodes the label settles), reason in words, and with --labels the present
    label and its probability. EDGES are read once, as by label, and not stored.
    """
    import numpy as np

    from ohmlearn.report.tables import check_table_path, write_table

    check_table_path(options["output"], options["csv_safe"])
    inputs = (*options["edges"], options["labels_file"], options["exclude"])
    check_outputs({"-o": options["output"]}, *inputs)
    labels = None
    if options["labels_file"] is not None:
        labels = read_label_file(options["labels_file"], options)
    with ExitStack() as stack:
        if options["cluster"]:
            edges: Any = stack.enter_context(open_on_cluster(options))
            sparsifier = None
        else:
            sparsifier = make_sparsifier(options)
            edges = WatchedEdges(open_edges(options), options, sparsifier)
        model = make_model(options, edges.rereadable)
        if labels is None:
            found = _suggest_first(edges, sparsifier, count, options)
        else:
            model.fit_edges(edges, labels, sample_weight=labels.weights, sparsifier=sparsifier)
            excluded = _read_nodes(options["exclude"], edges.nodes)
            found = model.suggest_labels(count, exclude=excluded)
    columns = {
        "node": edges.nodes.ids([pick.node for pick in found]),
        "kind": np.array([pick.kind for pick in found]),
        "n_settled": np.array([pick.n_settled for pick in found]),
        "reason": np.array([pick.reason for pick in found]),
    }
    if labels is not None:
        columns |= _present_labels(model, [pick.node for pick in found])
    write_table(options["output"], columns, options["csv_safe"])
    _print_summary(found, len(edges.nodes), count, options)


def _suggest_first(
    edges: Any, sparsifier: "StreamingSparsifier | None", count: int, options: dict[str, Any]
) -> "list[Suggestion]":
    """Suggest nodes of a graph without labels."""
    from ohmlearn.semi_supervised.suggest import suggest_nodes

    seed, epsilon, max_edges = (options[name] for name in ("seed", "epsilon", "max_edges"))
    if sparsifier is None:
        sparsifier = edges.sparsify(epsilon=epsilon, max_edges=max_edges, random_state=seed)
    else:
        sparsifier.update(edges)
    excluded = _read_nodes(options["exclude"], edges.nodes)
    return suggest_nodes(
        sparsifier.snapshot(), (), count, exclude=excluded, random_state=seed,
        n_jobs=options["threads"],
    )  # fmt: skip


def _read_nodes(path: str | None, nodes: "NodeTable") -> "NDArray[np.int64]":
    """Return the numbers of the nodes that a text file names, one in each line."""
    import numpy as np

    from ohmlearn.streams.errors import reading, refuse_source
    from ohmlearn.streams.labels import as_node_ids

    if path is None:
        return np.zeros(0, dtype=np.int64)
    with reading(path, "text"), open(path, encoding="utf-8-sig") as file:
        lines = [(row, line.strip()) for row, line in enumerate(file, 1) if line.strip()]
    rows, names = [row for row, _ in lines], [name for _, name in lines]
    numbers = nodes.find(as_node_ids(path, names, nodes.kind, rows=rows))
    if (numbers < 0).any():
        at = int(np.argmax(numbers < 0))
        refuse_source(path, f"node {names[at]!r} is not in the graph", f"row {rows[at]}")
    return numbers.astype(np.int64)


def _present_labels(model: "HFSClassifier", nodes: list[int]) -> dict[str, Any]:
    """Return labels of nodes and their probabilities; null where there is no evidence."""
    import numpy as np

    unknown = ~model.reached_[nodes]
    likeliest = model.label_distributions_[nodes].max(axis=1)
    return {
        "label": np.ma.masked_array(model.transduction_[nodes], unknown),
        "probability": np.ma.masked_array(likeliest, unknown),
    }


def _print_summary(
    found: "list[Suggestion]", n_nodes: int, count: int, options: dict[str, Any]
) -> None:
    kinds = {kind: sum(pick.kind == kind for pick in found) for kind in KINDS}
    if options["as_json"] and not options["quiet"]:
        figures = {"n_nodes": n_nodes, "n_suggested": len(found), "kinds": kinds}
        click.echo(json.dumps(figures), err=True)
    elif not options["quiet"]:
        reasons = ", ".join(f"{n} {KINDS[kind]}" for kind, n in kinds.items() if n)
        text = f"{len(found):,} of {n_nodes:,} nodes suggested"
        tell(f"{text}: {reasons}" if found else text)
        if len(found) < count:
            tell("There are no others to choose from")
