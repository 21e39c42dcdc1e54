"""The command ``suggest``: which nodes to label next."""

from typing import TYPE_CHECKING, Any

import click

from ohmlearn._defaults import LABEL_EPSILON
from ohmlearn.cli import options as cli
from ohmlearn.cli.label_model import CLASS_PRIOR, open_to_label, read_label_file, warn_doubts
from ohmlearn.cli.main import main
from ohmlearn.cli.messages import flag_of, summarise
from ohmlearn.cli.open_edges import Forgetting, check_window, find_ids, nodes_read
from ohmlearn.cli.outputs import check_table, write_output

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ohmlearn.estimators.label_job import Labelling
    from ohmlearn.nodes import NodeTable

    Fitted = tuple[Labelling, NodeTable]
    Names = tuple[str, list[str], list[int]]  # a file, the ids in it, and their rows

# What a state has already, or cannot have.
STATED = (
    "labels_file", "cluster", "half_life", "horizon", "since", "epsilon", "max_edges", "passes",
    "seed", "class_prior",
)  # fmt: skip
KINDS = {
    "component": "in components without a label",
    "influence": "with influence on others",
    "borderline": "between two classes",
}


existing_file = click.Path(exists=True, dir_okay=False)


@main.command()
@cli.takes_edges(
    cli.option(
        "--labels", "labels_file", type=existing_file, group="Input", common=True,
        help="Table with a node and its label in each row, as for label. Without it, the position "
        "of nodes in the graph decides.",
    ),
    cli.READ_LABELS,
    cli.method_option(
        "-k", "--count", type=click.IntRange(min=1), default=20, help="Number of nodes to suggest."
    ),
    cli.option(
        "--exclude", type=existing_file, group="Input", common=True,
        help="Text file of nodes that cannot be labelled, one in each line.",
    ),
    cli.OUTPUT,
    cli.CSV_SAFE,
    CLASS_PRIOR,
    cli.epsilon_option(LABEL_EPSILON),
    cli.MAX_EDGES,
    cli.option(
        "--passes", type=click.IntRange(min=1), default=1, group="Method",
        help="Number of passes over the edges, for the present labels.",
    ),
    *cli.FORGETTING,
    cli.option(
        "--state", type=existing_file, group="Continue", common=True,
        help="Suggest for the model in this file, as label --state has written it, or for the "
        "output h.ohm of sparsify. EDGES and --labels are left out then.",
    ),
    cli.CLUSTER,
    cli.SEED,
    cli.THREADS,
    required=False,
)  # fmt: skip
def suggest(count: int, **options: Any) -> None:
    """Suggest which nodes to label next, best first.

    \b
    ohmlearn suggest events.csv --labels known.csv -k 10

    No two suggested nodes are next to each other. The columns are node, kind (component: in a
    component without a label; influence: settles other nodes; borderline: between two classes),
    n_settled (how many nodes the label settles), reason in words, and with labels the present
    label and its probability. EDGES are read once, as by label, and not stored.
    """
    import numpy as np

    from ohmlearn._phases import phase
    from ohmlearn.estimators.suggest_labels import suggest_labels

    check_table(options, options["labels_file"], options["exclude"], options["state"])
    _check_options(options)
    excluded = read_names(options["exclude"])
    labelling, nodes = _fit(options, excluded) if options["state"] is None else load_model(options)
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
        answer = labelling.class_answer
        answer.warn_few()
        known, unknown = answer.probabilities[numbers].max(axis=1), ~answer.reached[numbers]
        columns["label"] = np.ma.masked_array(answer.labels[numbers], unknown)  # without evidence
        columns["probability"] = np.ma.masked_array(known, unknown)
    write_output(options, columns)
    kinds = {kind: sum(pick.kind == kind for pick in found) for kind in KINDS}
    reasons = ", ".join(f"{n} {KINDS[kind]}" for kind, n in kinds.items() if n)
    text = f"{len(found):,} of {len(nodes):,} nodes suggested"
    if len(found) < count:
        text += ", as there are no others to choose from"
    figures = {"n_nodes": len(nodes), "n_suggested": len(found), "kinds": kinds}
    summarise(figures, f"{text}: {reasons}" if found else text)


def _check_options(options: cli.Options) -> None:
    """Refuse combinations of options that mean nothing."""
    if options["state"] is None:
        if options["class_prior"] and options["labels_file"] is None:
            raise click.UsageError("--class-prior needs --labels")
        if not options["edges"]:
            raise click.UsageError("Missing argument 'EDGES...'.")
        return
    if options["edges"]:
        raise click.UsageError("--state has its edges; leave out EDGES, or add them with label")
    for name in STATED:
        if cli.was_given(name):
            raise click.UsageError(f"{flag_of(name)} and --state cannot be used together")


def _fit(options: cli.Options, excluded: "Names | None") -> "Fitted":
    """Return a model of edges and labels, and the nodes."""
    from ohmlearn._phases import Phase, phase
    from ohmlearn.estimators.kept_graph import KeptGraph
    from ohmlearn.estimators.label_job import Labelling, label
    from ohmlearn.estimators.problem import ClassProblem

    forgetting, labels = Forgetting(options), read_label_file(options)
    with open_to_label(options, labels, forgetting, excluded) as (stream, edges, p, sparsifier):
        if labels is None:
            found = Labelling(p, KeptGraph.start(p, sparsifier=sparsifier))
            with phase(Phase("reading edges", 1, 1)):
                found.kept.take(edges, **forgetting.moment)
        else:
            how = {"sample_weight": labels.weights, "sparsifier": sparsifier, **forgetting.moment}
            found = label(edges, ClassProblem, labels, p, **how)
            warn_doubts(found)
    check_window(found.kept.graph, found.kept.sparsifier, stream)
    return found, nodes_read(stream)


def load_model(options: cli.Options) -> "Fitted":
    """Return the model of a state, and its nodes."""
    from ohmlearn.cli.label_state import load_state
    from ohmlearn.estimators.state_file import StateFile

    found = load_state(StateFile(options["state"]), options)
    nodes = found.kept.nodes
    if nodes is None:
        raise ValueError(f"{options['state']} has no edges yet")
    if found.problem is not None and found.answer is None:
        found = found.solve()
    return found, nodes


def read_names(path: str | None) -> "Names | None":
    """Return the path, the nodes that a text file names, one in each line, and their rows."""
    from ohmlearn.reading.source_errors import reading

    if path is None:
        return None
    with reading(path, "text"), open(path, encoding="utf-8-sig") as file:
        lines = [(row, line.strip()) for row, line in enumerate(file, 1) if line.strip()]
    return path, [name for _, name in lines], [row for row, _ in lines]


def _find_names(named: "Names | None", nodes: "NodeTable") -> "Sequence[Any]":
    """Return the ids of nodes that a file names."""
    from ohmlearn._warnings import warn

    if named is None:
        return ()
    path, names, rows = named
    ids, numbers = find_ids(nodes, path, names, rows)
    unknown = ids[numbers.mask].tolist()
    if unknown:
        what = f"{len(unknown)} of the {len(ids)} nodes in {path} are in no edge"
        warn(f"{what}, such as {unknown[0]!r}")
    return list(ids.tolist())
