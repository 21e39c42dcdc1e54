"""Commands on a graph in files: info, sparsify, certify, resistance, solve."""

import json
from typing import TYPE_CHECKING, Any

import click

from ohmlearn.cli.edges import (
    check_output,
    edge_options,
    fraction,
    open_edges,
    output_option,
    seed_option,
    threads_option,
    watch,
)
from ohmlearn.cli.group import main

if TYPE_CHECKING:
    from ohmlearn.graph import Graph
    from ohmlearn.streams import EdgeStream

__all__ = ["certify", "info", "resistance", "solve", "sparsify"]


@main.command()
@edge_options
def info(**options: Any) -> None:
    """Count nodes, edges and components, and sum up degrees and weights, in one pass."""
    from ohmlearn._stream_summary import StreamSummary

    stream = open_edges(options["edges"], options)
    summary = StreamSummary()
    for batch in watch(stream, options):
        summary.update(*batch)
    facts = summary.describe(len(stream.nodes)) | {"bad_rows": stream.n_bad}
    if options["as_json"]:
        click.echo(json.dumps(facts))
        return
    for name, value in facts.items():
        text = f"{value:,}" if isinstance(value, int) else f"{value:.6g}"
        click.echo(f"{name.replace('_', ' '):20} {text}")


@main.command()
@edge_options
@output_option
@click.option("--epsilon", type=fraction, default=0.5, help="Accuracy asked for.")
@click.option("--max-edges", type=click.IntRange(min=1), help="Edges to keep, instead of epsilon.")
@click.option("--memory", help="Like 500MB, instead of epsilon; needs --n-nodes.")
@click.option("--n-nodes", type=click.IntRange(min=1), help="Number of nodes, if it is known.")
@click.option("--scheme", type=click.Choice(["resample", "online", "paper"]), default="resample")
@click.option("--constants", type=click.Choice(["practical", "theory"]), default="practical")
@seed_option
@threads_option
def sparsify(output: str | None, **options: Any) -> None:
    """Keep a small weighted graph whose energies are near those of all edges, in one pass."""
    from ohmlearn._tables import write_table
    from ohmlearn.sparsifier import StreamingSparsifier

    check_output(output)
    stream = open_edges(options["edges"], options)
    names = ("epsilon", "max_edges", "memory", "n_nodes", "scheme", "constants")
    sparsifier = StreamingSparsifier(
        **{name: options[name] for name in names},
        random_state=options["seed"],
        n_jobs=options["threads"],
    )
    for batch in watch(stream, options, sparsifier):
        sparsifier.update(*batch)
    u, v, w = sparsifier.snapshot().edges()
    ids = stream.nodes.ids()
    write_table(output, {"u": ids[u], "v": ids[v], "w": w})
    _tell(sparsifier.stats_ | {"n_edges_kept": len(u)}, options)


@main.command()
@edge_options
@click.argument("sparsifier", type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--eta", type=fraction, default=0.05, help="Stop when bounds are so close to estimates."
)
@click.option("--confidence", type=fraction, default=0.999, help="With which the bounds hold.")
@click.option("--max-passes", type=click.IntRange(min=1), help="Over the edges; 100 by default.")
@seed_option
@threads_option
def certify(sparsifier: str, **options: Any) -> None:
    """Measure how far SPARSIFIER, a file of edges, is from the graph of EDGES."""
    from ohmlearn.certificate import certify as measure
    from ohmlearn.streams import read_edges

    kept = read_edges(sparsifier, verbose=0)
    h = _load(kept)
    stream = open_edges(options["edges"], options, nodes=kept.nodes)
    if not stream.rereadable:
        raise click.UsageError("certify reads the edges several times: give a file, not a pipe")
    found = measure(
        h,
        stream,
        options["eta"],
        options["confidence"],
        options["max_passes"],
        random_state=options["seed"],
        n_jobs=options["threads"],
    )
    if options["as_json"]:
        names = ("lower", "upper", "lower_bound", "upper_bound", "epsilon", "epsilon_bound")
        facts = {name: getattr(found, name) for name in (*names, "confidence", "passes")}
        click.echo(json.dumps(facts))
    else:
        click.echo(str(found))


@main.command()
@edge_options
@output_option
@click.option(
    "--pairs",
    type=click.Path(exists=True, dir_okay=False),
    help="Pairs of nodes, read like edges; all edges by default.",
)
@click.option("--epsilon", type=fraction, default=0.2, help="Relative error of estimates.")
@click.option("--exact", is_flag=True, help="A solve for each answer; always up to 500 nodes.")
@seed_option
@threads_option
def resistance(output: str | None, pairs: str | None, **options: Any) -> None:
    """Effective resistances of edges, or of pairs of nodes. Holds the graph in memory."""
    import numpy as np

    from ohmlearn._tables import write_table
    from ohmlearn.resistance import effective_resistance
    from ohmlearn.streams import read_edges

    check_output(output)
    stream = open_edges(options["edges"], options)
    graph = _load(stream, options)
    u, v, _ = graph.edges()
    if pairs is not None:
        parts = [(batch.u, batch.v) for batch in read_edges(pairs, nodes=stream.nodes)]
        _refuse_new(pairs, stream, graph)
        u, v = (np.concatenate([part[at] for part in parts]) for at in (0, 1))
    values = effective_resistance(
        graph,
        None if pairs is None else np.column_stack([u, v]),
        options["epsilon"],
        exact=options["exact"] or None,
        random_state=options["seed"],
        n_jobs=options["threads"],
    )
    ids = stream.nodes.ids()
    write_table(output, {"u": ids[u], "v": ids[v], "resistance": values})


@main.command()
@edge_options
@click.argument("values", type=click.Path(exists=True, dir_okay=False))
@output_option
@click.option("--tol", type=fraction, default=1e-8, help="Relative residual.")
@seed_option
@threads_option
def solve(values: str, output: str | None, tol: float, **options: Any) -> None:
    """Solve L x = b, L the Laplacian of EDGES and b in VALUES, a table of nodes and numbers.

    Nodes that VALUES does not have get 0. In each component x has mean 0, and so has b without its
    mean.
    """
    import numpy as np

    from ohmlearn._tables import find_labelled, read_labels, write_table
    from ohmlearn.solver import LaplacianSolver

    check_output(output)
    pairs = read_labels(values, unlabelled=())
    stream = open_edges(options["edges"], options)
    graph = _load(stream, options)
    b = np.zeros(graph.n_nodes)
    given = find_labelled(values, pairs, stream.nodes)
    _refuse_new(values, stream, graph)
    for node, text in given.items():
        try:
            b[node] = float(text)
        except (TypeError, ValueError):
            raise ValueError(f"{values}: a number is needed for each node, got {text!r}") from None
    solver = LaplacianSolver(graph, random_state=options["seed"], n_jobs=options["threads"])
    x = solver.solve(b, tol=tol)
    write_table(output, {"node": stream.nodes.ids(), "value": x})
    report = solver.report_
    _tell({"iterations": int(np.max(report.iterations)),
           "residual": float(np.max(report.residual))}, options)  # fmt: skip


def _load(stream: "EdgeStream", options: dict[str, Any] | None = None) -> "Graph":
    """Return the graph of a stream, in memory."""
    import numpy as np

    from ohmlearn.graph import Graph

    empty = np.empty(0, dtype=np.int32)
    ends: tuple[list[Any], list[Any]] = [empty], [empty]
    weights: list[Any] = [np.empty(0)]
    for batch in stream if options is None else watch(stream, options):
        ends[0].append(batch.u)
        ends[1].append(batch.v)
        weights.append(np.ones(len(batch.u)) if batch.w is None else batch.w)
    u, v = (np.concatenate(parts) for parts in ends)
    return Graph.from_edges(u, v, np.concatenate(weights), len(stream.nodes))


def _refuse_new(path: str, stream: "EdgeStream", graph: "Graph") -> None:
    if len(stream.nodes) > graph.n_nodes:
        stranger = stream.nodes.ids([graph.n_nodes])[0]
        raise ValueError(f"{path}: node {stranger!r} is not in the graph")


def _tell(facts: dict[str, Any], options: dict[str, Any]) -> None:
    """Say on stderr how it went."""
    if options["quiet"]:
        return
    if options["as_json"]:
        click.echo(json.dumps(facts), err=True)
        return
    for name, value in facts.items():
        text = f"{value:,}" if isinstance(value, int) else f"{value:.6g}"
        click.echo(f"{name.removeprefix('n_').replace('_', ' '):22} {text}", err=True)
