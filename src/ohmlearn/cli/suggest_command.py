"""The command ``suggest``: which nodes to label next."""

import json
import warnings
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from ohmlearn.cli.cluster_option import cluster_option, open_on_cluster
from ohmlearn.cli.edge_options import (
    check_ids,
    edge_options_with_state,
    nodes_read,
    open_edges,
    seed_option,
    watch_edges,
)
from ohmlearn.cli.forgetting_options import Forgetting, check_window, forgetting_options
from ohmlearn.cli.main import main, was_given
from ohmlearn.cli.messages import tell
from ohmlearn.cli.model_options import (
    check_label_columns,
    label_columns_options,
    make_parameters,
    read_label_file,
    sparsifier_options,
    warn_apart,
)
from ohmlearn.cli.output_options import check_outputs, output_options, write_output
from ohmlearn.cli.threads_option import threads_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from ohmlearn.edges import Edges
    from ohmlearn.estimators.answer import ClassAnswer
    from ohmlearn.estimators.label_job import Labelling
    from ohmlearn.estimators.suggest_labels import Suggestion
    from ohmlearn.nodes import NodeTable

    Fitted = tuple[Labelling, NodeTable]
    Names = tuple[str, list[str], list[int]]  # a file, the ids in it, and their rows

__all__ = ["suggest"]

# What a state has already, or cannot have.
STATED = {
    "labels_file": "--labels",
    "cluster": "--cluster",
    "half_life": "--half-life",
    "last": "--last",
    "since": "--since",
    "epsilon": "--epsilon",
    "max_edges": "--max-edges",
    "passes": "--passes",
    "seed": "--seed",
}
KINDS = {
    "component": "in components without a label",
    "influence": "with influence on others",
    "borderline": "between two classes",
}


@main.command()
@edge_options_with_state
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
@forgetting_options
@click.option(
    "--state",
    type=click.Path(exists=True, dir_okay=False),
    help="Suggest for the model in this file, as label --state has written it, or for the output "
    "h.ohm of sparsify. EDGES and --labels are left out then.",
)
@cluster_option
@seed_option
@threads_option
def suggest(count: int, **options: Any) -> None:
    """Suggest which nodes to label next, best first.

    No two suggested nodes are next to each other. The columns are node, kind (component: in a
    component without a label; influence: settles other nodes; borderline: between two classes),
    n_settled (how many nodes the label settles), reason in words, and with labels the present
    label and its probability. EDGES are read once, as by label, and not stored.
    """
    import numpy as np

    from ohmlearn._phases import phase
    from ohmlearn.estimators.suggest_labels import suggest_labels
    from ohmlearn.report.write_table import check_table_path

    check_table_path(options["output"], options["csv_safe"])
    inputs = (*options["edges"], options["labels_file"], options["exclude"], options["state"])
    check_outputs({"-o": options["output"]}, *inputs)
    _check_options(options)
    excluded = _read_names(options["exclude"])
    labelling, nodes = _fit(options, excluded) if options["state"] is None else _load(options)
    with phase("choosing nodes"):
        names, kept = _find_names(excluded, nodes), labelling.kept
        how = {"exclude": names, "n_jobs": options["threads"]}
        found = suggest_labels(kept, labelling.answer, count, **how)
    numbers: Any = nodes.find([pick.node for pick in found]) if found else np.zeros(0, np.int64)
    columns = {
        "node": nodes.ids(numbers),
        "kind": np.array([pick.kind for pick in found], dtype=str),
        "n_settled": np.array([pick.n_settled for pick in found], dtype=np.int64),
        "reason": np.array([pick.reason for pick in found], dtype=str),
    }
    if labelling.answer is not None:
        columns |= _present_labels(labelling.answer, numbers)
    write_output(options["output"], columns, options["csv_safe"])
    _print_summary(found, len(nodes), count, options)


def _check_options(options: dict[str, Any]) -> None:
    """Refuse combinations of options that mean nothing."""
    check_label_columns(options)
    if options["state"] is None:
        if not options["edges"]:
            raise click.UsageError("Missing argument 'EDGES...'.")
        return
    if options["edges"]:
        raise click.UsageError("--state has its edges; leave out EDGES, or add them with label")
    for name, option in STATED.items():
        if was_given(name):
            raise click.UsageError(f"{option} and --state cannot be used together")


def _fit(options: dict[str, Any], excluded: "Names | None") -> "Fitted":
    """Return a model of edges and labels, and the nodes."""
    from ohmlearn._phases import Phase, phase
    from ohmlearn.estimators.kept_graph import KeptGraph
    from ohmlearn.estimators.label_job import Labelling, label
    from ohmlearn.estimators.problem import ClassProblem

    forgetting, labels = Forgetting(options), None
    if options["labels_file"] is not None:
        labels = read_label_file(options["labels_file"], options)
    with ExitStack() as stack:
        if options["cluster"]:
            edges: Edges = stack.enter_context(
                open_on_cluster(options, needs_times=forgetting.needs_times)
            )
        else:
            stream = open_edges(options, needs_times=forgetting.needs_times)
            if labels is not None:
                check_ids(stream, labels.path, list(labels), heading=labels.id_heading)
            if excluded is not None:
                check_ids(stream, *excluded)
            edges = watch_edges(stream, options, needs_edges=True)
        p = make_parameters(options, edges.rereadable, **forgetting.parameters)
        if labels is None:
            found = Labelling(p, KeptGraph.start(p))
            with phase(Phase("reading edges", 1, 1)):
                found.kept.take(edges, **forgetting.moment)
        else:
            how = {"sample_weight": labels.weights, **forgetting.moment}
            found = label(edges, ClassProblem, labels, p, **how)
            warn_apart(found)
    check_window(found.kept.graph, found.kept.sparsifier, edges)
    return found, nodes_read(edges)


def _load(options: dict[str, Any]) -> "Fitted":
    """Return the model of a state, and its nodes."""
    from ohmlearn.cli.state_option import load_state
    from ohmlearn.estimators.state_file import StateFile

    found = load_state(StateFile(options["state"]), options)
    nodes = found.kept.nodes
    if nodes is None:
        raise ValueError(f"{options['state']} has no edges yet")
    if found.problem is not None and found.answer is None:
        found = found.solve()
    return found, nodes


def _read_names(path: str | None) -> "Names | None":
    """Return the path, the nodes that a text file names, one in each line, and their rows."""
    from ohmlearn.reading.source_errors import reading

    if path is None:
        return None
    with reading(path, "text"), open(path, encoding="utf-8-sig") as file:
        lines = [(row, line.strip()) for row, line in enumerate(file, 1) if line.strip()]
    return path, [name for _, name in lines], [row for row, _ in lines]


def _find_names(named: "Names | None", nodes: "NodeTable") -> "Sequence[Any]":
    """Return the ids of nodes that a file names."""
    from ohmlearn.reading.label_table import as_node_ids

    if named is None:
        return ()
    path, names, rows = named
    ids = as_node_ids(path, names, nodes.kind, nodes.kinds, rows=rows)
    unknown = ids[nodes.find(ids, missing="mask").mask].tolist()
    if unknown:
        warnings.warn(
            f"{len(unknown)} of the {len(ids)} nodes in {path} are in no edge, such as "
            f"{unknown[0]!r}",
            UserWarning,
            stacklevel=2,
        )
    known: list[Any] = ids.tolist()
    return known


def _present_labels(answer: "ClassAnswer", nodes: "NDArray[np.int64]") -> dict[str, Any]:
    """Return labels of nodes and their probabilities; null where there is no evidence."""
    import numpy as np

    answer.warn_few()
    unknown = ~answer.reached[nodes]
    likeliest = answer.probabilities[nodes].max(axis=1)
    return {
        "label": np.ma.masked_array(answer.labels[nodes], unknown),
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
