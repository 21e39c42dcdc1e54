"""The command ``explain``: why nodes have their labels."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from ohmlearn.cli import options as cli
from ohmlearn.cli.label_command import METHOD_OPTIONS, REMEDY
from ohmlearn.cli.label_model import open_to_label, read_label_file, warn_doubts
from ohmlearn.cli.main import main, repeat_command
from ohmlearn.cli.messages import note, shows_progress, visible
from ohmlearn.cli.open_edges import Forgetting, check_window, find_ids, open_edges
from ohmlearn.cli.outputs import check_outputs
from ohmlearn.cli.suggest_command import existing_file, load_model, read_names
from ohmlearn.errors import InputError

if TYPE_CHECKING:
    from ohmlearn.edges import Edges
    from ohmlearn.estimators.label_job import Labelling
    from ohmlearn.estimators.reasons import Explanation

BLOCK = 16  # nodes that are solved for together
NAMED = "the command line"  # where nodes come from, in messages

OPTIONS = (
    cli.option(
        "--labels", "labels_file", type=existing_file, group="Input", common=True,
        help="Table with a node and its label in each row, as for label.",
    ),
    cli.READ_LABELS,
    cli.option(
        "--from-file", "nodes_file", type=existing_file, group="Input", common=True,
        help="Text file of more nodes to explain, one in each line.",
    ),
    cli.option(
        "--edges", "more_edges", multiple=True, metavar="FILE", group="Input",
        help="More files of edges; may be repeated. With --state: all edges of the model, which "
        "are needed if too few are kept for reasons.",
    ),
    cli.option(
        "--against", metavar="CLASS", group="Method", common=True,
        help="Explain why nodes are not of this class. Default: the second most likely one.",
    ),
    cli.option(
        "--no-changes", is_flag=True, group="Method", common=True,
        help="Do not find which labels would have to go, or be wrong, for another answer. This "
        "takes up to six refits for each node.",
    ),
    cli.option(
        "-o", "--output", default="-", metavar="FILE", group="Output", common=True,
        help="Write all reasons to this file as JSON lines, instead of printing sentences.",
    ),
    cli.option(
        "--report", type=click.Path(dir_okay=False), group="Output", common=True,
        help="Write a page with the reasons and a picture for each node to this file.",
    ),
    *METHOD_OPTIONS,
    *cli.FORGETTING,
    cli.option(
        "--state", type=existing_file, group="Continue", common=True,
        help="Explain the answers of the model in this file, as label --state has written it.",
    ),
    cli.CLUSTER,
    cli.SEED,
    cli.THREADS,
)  # fmt: skip


@main.command()
@click.argument("given", nargs=-1, required=True, metavar="[EDGES] NODE...")
@cli.with_options(*OPTIONS, *cli.READING, *cli.QUIET)
@shows_progress
def explain(given: tuple[str, ...], **options: Any) -> None:
    """Explain why nodes have their labels.

    \b
    ohmlearn explain events.csv --labels known.csv p17 p18

    For each node: which labels, neighbours and edges decide it, what speaks against it, and what
    would change it. EDGES is a file, pattern, folder or log, as for label; with --state there is
    none. EDGES are read a few more times, so that reasons are those of all edges.
    """
    from ohmlearn._phases import Phase, phase

    first = 0 if options["state"] else 1
    options["edges"] = (*given[:first], *options["more_edges"])
    if options["state"] is None and options["labels_file"] is None:
        raise click.UsageError("Missing option '--labels'.")
    names = read_names(options["nodes_file"])
    asked = [*given[first:], *(names[1] if names else ())]
    if not asked:
        raise click.UsageError("name a node to explain, or give --from-file")
    outputs = {"-o": options["output"], "--report": options["report"]}
    check_outputs(outputs, *options["edges"], options["labels_file"], options["nodes_file"])
    if options["report"]:
        from ohmlearn.checks.parameters import require_extra

        require_extra("matplotlib", "plot")  # before the work, not after it
    found: list[Any] = []
    with _open_model(options) as (model, edges):
        nodes = _find_nodes(model, asked)
        for at in range(0, len(nodes), BLOCK):
            number, total = at // BLOCK + 1, -(-len(nodes) // BLOCK)
            with phase(Phase("finding reasons", number, total, part="block")):
                found += _explain(model, nodes[at : at + BLOCK], options, edges)
        _write(found, options)


@contextmanager
def _open_model(options: cli.Options) -> "Iterator[tuple[Labelling, Edges | None]]":
    """Give the answer of the options, and all edges if they can be read again."""
    from ohmlearn.estimators.label_job import label
    from ohmlearn.estimators.problem import ClassProblem

    if options["state"]:
        found, nodes = load_model(options)
        if found.answer is None:
            raise ValueError(f"{options['state']} has no labels yet")
        yield found, open_edges(options, nodes) if options["edges"] else None
        return
    forgetting, labels = Forgetting(options), read_label_file(options)
    assert labels is not None  # --labels is required
    with open_to_label(options, labels, forgetting) as (stream, edges, p, sparsifier):
        how = {"sample_weight": labels.weights, "sparsifier": sparsifier, **forgetting.moment}
        found = label(edges, ClassProblem, labels, p, **how)
        warn_doubts(found)
        check_window(found.kept.graph, found.kept.sparsifier, stream)
        yield found, edges if edges.rereadable else None


def _find_nodes(model: "Labelling", asked: list[str]) -> list[int]:
    """Return the numbers of nodes; refuse those that are in no edge."""
    nodes = model.kept.nodes
    assert nodes is not None
    ids, numbers = find_ids(nodes, NAMED, asked)
    if numbers.mask.any():
        unknown = ids[numbers.mask].tolist()
        are = "is" if len(unknown) == 1 else "are"
        what = f"{len(unknown)} of the nodes to explain {are} in no edge"
        remedy = "give more files of edges with --edges" if os.path.exists(unknown[0]) else None
        raise InputError(f"{what}: {unknown[0]!r}", remedy=remedy)
    return [int(number) for number in numbers]


def _explain(
    model: "Labelling", nodes: list[int], options: cli.Options, edges: "Edges | None"
) -> "list[Explanation]":
    from ohmlearn.estimators.explanation import explain_nodes

    answer, against = model.class_answer, options["against"]
    classes = answer.problem.classes.tolist()
    if against is not None:  # classes may be integers
        against = {str(one): one for one in classes}.get(against, against)
    return explain_nodes(answer, nodes, against=against, edges=edges, remedy=REMEDY)


def _write(found: "list[Explanation]", options: cli.Options) -> None:
    """Write reasons as JSON lines, as a page, or as sentences."""
    changes = not options["no_changes"]
    if options["output"] != "-":
        from ohmlearn._arrays_file import write_whole

        lines = (one.to_json(changes=changes) + "\n" for one in found)
        write_whole(options["output"], "".join(lines).encode())
    if options["report"]:
        from ohmlearn.report.reasons_page import make_reasons_page

        make_reasons_page(found, repeat_command(), changes=changes).write(options["report"])
    if options["output"] == "-" and not options["report"]:
        for one in found:
            click.echo(visible(one.text(changes=changes)))
        for basis in dict.fromkeys(one.basis for one in found if one.labels):
            note(f"From {basis}.")
