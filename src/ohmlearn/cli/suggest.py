"""The command ``suggest``: which nodes to label next."""

import json
import warnings
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from ohmlearn.cli.cluster import cluster_option, open_on_cluster
from ohmlearn.cli.edges import (
    WatchedEdges,
    edge_options,
    open_edges,
    seed_option,
)
from ohmlearn.cli.group import main
from ohmlearn.cli.messages import tell
from ohmlearn.cli.model import (
    label_columns_options,
    make_model,
    read_label_file,
    sparsifier_options,
)
from ohmlearn.cli.outputs import check_outputs, output_options
from ohmlearn.cli.threads import threads_option

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ohmlearn.nodes import NodeTable
    from ohmlearn.semi_supervised import HFSClassifier
    from ohmlearn.semi_supervised.suggest import Suggestion

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
        else:
            edges = WatchedEdges(open_edges(options), options)
        model = make_model(options, edges.rereadable)
        if labels is None:
            model.update(edges)
        else:
            model.fit_edges(edges, labels, sample_weight=labels.weights)
    nodes = edges.nodes
    excluded = _read_nodes(options["exclude"], nodes) if options["exclude"] else ()
    found = model.suggest_labels(count, exclude=excluded)
    numbers = nodes.find([pick.node for pick in found]) if found else np.zeros(0, dtype=np.int64)
    columns = {
        "node": nodes.ids(numbers),
        "kind": np.array([pick.kind for pick in found], dtype=str),
        "n_settled": np.array([pick.n_settled for pick in found], dtype=np.int64),
        "reason": np.array([pick.reason for pick in found], dtype=str),
    }
    if labels is not None:
        columns |= _present_labels(model, numbers)
    write_table(options["output"], columns, options["csv_safe"])
    _print_summary(found, len(nodes), count, options)


def _read_nodes(path: str, nodes: "NodeTable") -> "NDArray[Any]":
    """Return the ids of the nodes that a text file names, one in each line."""
    from ohmlearn.streams.errors import reading
    from ohmlearn.streams.labels import as_node_ids

    with reading(path, "text"), open(path, encoding="utf-8-sig") as file:
        lines = [(row, line.strip()) for row, line in enumerate(file, 1) if line.strip()]
    rows, names = [row for row, _ in lines], [name for _, name in lines]
    ids = as_node_ids(path, names, nodes.kind, rows=rows)
    unknown = ids[nodes.find(ids) < 0].tolist()
    if unknown:
        warnings.warn(
            f"{len(unknown)} of the {len(ids)} nodes in {path} are in no edge, such as "
            f"{unknown[0]!r}",
            UserWarning,
            stacklevel=2,
        )
    return ids


def _present_labels(model: "HFSClassifier", nodes: "NDArray[np.int64]") -> dict[str, Any]:
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
        if len(found) < count:
            text += ", as there are no others to choose from"
        tell(f"{text}: {reasons}" if found else text)
