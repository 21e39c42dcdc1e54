"""Commands about edges: info, sparsify, certify, resistance, solve."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import click

__all__ = ["COMMANDS"]

# Options that all commands with edges have, and how they are called in Python.
EDGE_OPTIONS = (
    click.option("--source-col", help="Column of the one end: a name or a position from 0."),
    click.option("--target-col", help="Column of the other end."),
    click.option("--weight-col", help="Column of weights."),
    click.option(
        "--format",
        type=click.Choice(["csv", "tsv", "text", "parquet", "arrow", "matrix_market", "numpy"]),
        help="Told from the name or the first bytes by default.",
    ),
    click.option("--id-type", type=click.Choice(["int64", "string"]), help="Of node ids in text."),
    click.option("--header/--no-header", default=None, help="Whether text has one; guessed."),
    click.option("--delimiter", help="Of text; a blank stands for any blanks and tabs. Guessed."),
    click.option("--comment", help="Marks that begin a comment in text."),
    click.option(
        "--on-bad",
        type=click.Choice(["raise", "skip"]),
        default="raise",
        help="Bad rows end the reading, or are left out and counted.",
    ),
)
OUTPUT = click.option(
    "-o",
    "--output",
    required=True,
    help="Parquet, CSV, TSV, JSON lines or Arrow by its ending; - prints CSV.",
)
SEED = click.option("--seed", type=click.IntRange(min=0), default=0)
THREADS = click.option("--threads", type=int, default=1, help="-1: all cores.")
QUIET = click.option("-q", "--quiet", is_flag=True, help="Nothing but errors on stderr.")
JSON = click.option("--json", "as_json", is_flag=True, help="Print figures as JSON.")


def edge_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that say how edges are to be read."""
    for option in reversed(EDGE_OPTIONS):
        command = option(command)
    return command


def open_edges(source: str, wanted: dict[str, Any], quiet: bool, nodes: Any = None) -> Any:
    """Return the stream; the columns taken are printed."""
    from ohmlearn.streams import read_edges

    wanted = dict(wanted)
    for side in ("source_col", "target_col", "weight_col"):
        if wanted.get(side) is not None and wanted[side].isdecimal():
            wanted[side] = int(wanted[side])
    stream = read_edges(source, **wanted, nodes=nodes)
    if not quiet and stream.columns is not None:
        click.echo(f"{source}: {stream.columns}", err=True)
    return stream


def tell_bad(stream: Any, quiet: bool) -> None:
    """Report rows that were left out."""
    if stream.n_bad and not quiet:
        rows = "row" if stream.n_bad == 1 else "rows"
        click.echo(f"{stream.n_bad} bad {rows} left out; {stream.first_bad}", err=True)


def build_graph(source: str, wanted: dict[str, Any], quiet: bool) -> tuple[Any, Any]:
    """Return all edges of a source as a Graph, and its nodes."""
    import numpy as np

    from ohmlearn._watch import watch
    from ohmlearn.graph import Graph

    stream = open_edges(source, wanted, quiet)
    batches = list(watch(stream, quiet=quiet))
    tell_bad(stream, quiet)
    u, v = (np.concatenate([b[side] for b in batches] or [np.zeros(0, int)]) for side in (0, 1))
    w = None
    if any(batch.w is not None for batch in batches):
        w = np.concatenate([np.ones(len(b.u)) if b.w is None else b.w for b in batches])
    return Graph.from_edges(u, v, w, n_nodes=len(stream.nodes)), stream.nodes


@click.command()
@click.argument("edges")
@edge_options
@JSON
@QUIET
def info(edges: str, as_json: bool, quiet: bool, **wanted: Any) -> None:
    """Count nodes, edges, components, degrees and weights of EDGES in one reading."""
    from ohmlearn._watch import watch
    from ohmlearn._summary import EdgeSummary

    stream = open_edges(edges, wanted, quiet)
    summary = EdgeSummary()
    for batch in watch(stream, quiet=quiet):
        summary.update(*batch)
    tell_bad(stream, quiet or as_json)
    figures = summary.figures(len(stream.nodes)) | {"bad_rows": stream.n_bad}
    figures["columns"] = stream.columns
    if as_json:
        click.echo(json.dumps(figures))
        return
    low, middle, high = figures["degree_quartiles"]
    largest = figures["largest_component"]
    click.echo(f"Nodes        {figures['nodes']:,}, {figures['isolated_nodes']:,} isolated")
    click.echo(f"Edges        {figures['edges']:,}, parallel ones each")
    click.echo(f"Left out     {figures['self_loops']:,} self-loops")
    click.echo(f"             {figures['zero_weights']:,} edges of weight 0")
    click.echo(f"Components   {figures['components']:,}, the largest of {largest:,} nodes")
    click.echo(f"Degree       mean {figures['degree_mean']:.4g}, at most {figures['degree_max']:,}")
    click.echo(f"             quartiles {low:g}, {middle:g}, {high:g}")
    if figures["weighted"] and figures["edges"]:
        click.echo(f"Weight       {figures['weight_min']:g} to {figures['weight_max']:g}")
        click.echo(f"             {figures['weight_sum']:g} in all")


@click.command()
@click.argument("edges")
@OUTPUT
@click.option("--epsilon", type=float, default=0.5, help="Accuracy to aim at.")
@click.option("--max-edges", type=click.IntRange(min=1), help="Budget instead of an accuracy.")
@click.option("--memory", help="Budget as peak memory, like 500MB; needs --nodes.")
@click.option("--nodes", "n_nodes", type=click.IntRange(min=1), help="Number of nodes, if known.")
@click.option("--scheme", type=click.Choice(["resample", "online", "paper"]), default="resample")
@click.option("--constants", type=click.Choice(["practical", "theory"]), default="practical")
@edge_options
@SEED
@THREADS
@JSON
@QUIET
def sparsify(
    edges: str,
    output: str,
    epsilon: float,
    max_edges: int | None,
    memory: str | None,
    n_nodes: int | None,
    scheme: Any,
    constants: Any,
    seed: int,
    threads: int,
    as_json: bool,
    quiet: bool,
    **wanted: Any,
) -> None:
    """Write a small graph whose energies are near those of EDGES, read once.

    The output has the columns u, v (ids as in EDGES) and w.
    """
    from ohmlearn import StreamingSparsifier
    from ohmlearn._watch import watch
    from ohmlearn._tables import check_table_path, write_table

    check_table_path(output)
    stream = open_edges(edges, wanted, quiet)
    sparsifier = StreamingSparsifier(
        n_nodes=n_nodes,
        epsilon=epsilon,
        max_edges=max_edges,
        memory=memory,
        scheme=scheme,
        constants=constants,
        random_state=seed,
        n_jobs=threads,
    )
    for batch in watch(stream, sparsifier, quiet):
        sparsifier.update(*batch)
    tell_bad(stream, quiet)
    u, v, w = sparsifier.snapshot().edges()
    ids = stream.nodes.ids()
    write_table(output, {"u": ids[u], "v": ids[v], "w": w})
    figures = {**sparsifier.stats_, "n_edges_kept": len(u), "bad_rows": stream.n_bad}
    if as_json:
        click.echo(json.dumps(figures), err=output == "-")
    elif not quiet:
        seen = sparsifier.n_edges_seen_
        share = f"{len(u) / seen:.2%}" if seen else "all"
        click.echo(f"{seen:,} edges seen, {len(u):,} kept ({share}): {output}", err=True)


@click.command()
@click.argument("edges")
@click.argument("sparsifier")
@click.option("--eta", type=float, default=0.05, help="How near bounds and estimates must be.")
@click.option("--confidence", type=float, default=0.999, help="With which the bounds hold.")
@click.option("--max-passes", type=click.IntRange(min=1), help="Most readings of EDGES; 100.")
@edge_options
@SEED
@THREADS
@JSON
@QUIET
def certify(
    edges: str,
    sparsifier: str,
    eta: float,
    confidence: float,
    max_passes: int | None,
    seed: int,
    threads: int,
    as_json: bool,
    quiet: bool,
    **wanted: Any,
) -> None:
    """Measure how far SPARSIFIER, as written by sparsify, is from EDGES, read several times."""
    from dataclasses import asdict

    from ohmlearn import certify as measure

    # The columns of H are known; its ids are of the kind that those of EDGES are.
    graph, nodes = build_graph(sparsifier, {"id_type": wanted["id_type"]}, quiet=True)
    stream = open_edges(edges, wanted, quiet, nodes)
    found = measure(
        graph,
        stream,
        eta=eta,
        confidence=confidence,
        max_passes=max_passes,
        random_state=seed,
        n_jobs=threads,
    )
    tell_bad(stream, quiet)
    if as_json:
        figures = asdict(found) | {"epsilon": found.epsilon, "epsilon_bound": found.epsilon_bound}
        finite = {
            k: v if abs(v) != float("inf") and v == v else str(v)
            for k, v in figures.items()
            if isinstance(v, float)
        }
        click.echo(json.dumps(figures | finite))
    else:
        click.echo(str(found))


@click.command()
@click.argument("edges")
@OUTPUT
@click.option("--pairs", help="Table with two columns of node ids; all edges by default.")
@click.option("--epsilon", type=float, default=0.2, help="Relative error of 95 in 100 estimates.")
@click.option("--exact", is_flag=True, help="Solve for each answer instead of estimating it.")
@edge_options
@SEED
@THREADS
@QUIET
def resistance(
    edges: str,
    output: str,
    pairs: str | None,
    epsilon: float,
    exact: bool,
    seed: int,
    threads: int,
    quiet: bool,
    **wanted: Any,
) -> None:
    """Effective resistance of all edges, or between given pairs; EDGES is held in memory."""
    import numpy as np

    from ohmlearn import effective_resistance
    from ohmlearn._tables import check_table_path, write_table
    from ohmlearn._validation_sources import refuse_source
    from ohmlearn.streams import read_edges

    check_table_path(output)
    graph, nodes = build_graph(edges, wanted, quiet)
    options: dict[str, Any] = {"epsilon": epsilon, "exact": True if exact else None}
    options |= {"random_state": seed, "n_jobs": threads}
    ids = nodes.ids()
    if pairs is None:
        u, v, w = graph.edges()
        found = effective_resistance(graph, **options)
        columns = {"u": ids[u], "v": ids[v], "w": w, "resistance": found}
    else:
        asked = read_edges(pairs, id_type=nodes.kind)
        batches = list(asked)
        names = asked.nodes.ids()
        a, b = (names[np.concatenate([batch[side] for batch in batches])] for side in (0, 1))
        numbers = np.stack([nodes.find(a), nodes.find(b)], axis=1)
        if (numbers < 0).any():
            at = np.argwhere(numbers < 0)[0]
            name = (a, b)[at[1]][at[0]]
            refuse_source(pairs, f"node {name!r} is not in {edges}", f"pair {at[0]}")
        found = effective_resistance(graph, numbers, **options)
        columns = {"u": a, "v": b, "resistance": found}
    write_table(output, columns)


@click.command()
@click.argument("edges")
@click.argument("right_hand_sides")
@OUTPUT
@click.option("--tol", type=float, default=1e-8, help="Relative residual to reach.")
@edge_options
@THREADS
@QUIET
def solve(
    edges: str,
    right_hand_sides: str,
    output: str,
    tol: float,
    threads: int,
    quiet: bool,
    **wanted: Any,
) -> None:
    """Solve L x = b for the Laplacian L of EDGES.

    RIGHT_HAND_SIDES is a table: node ids first, then one or more columns b; nodes that it does not
    name have 0. The output has all nodes and the same columns.
    """
    import numpy as np

    from ohmlearn import LaplacianSolver
    from ohmlearn._tables import check_table_path, read_node_values, write_table
    from ohmlearn._validation_sources import refuse_source

    check_table_path(output)
    graph, nodes = build_graph(edges, wanted, quiet)
    named, names, values = read_node_values(right_hand_sides)
    if nodes.kind == "int64":
        with_numbers = [int(name) if str(name).lstrip("-").isdecimal() else None for name in named]
        if None in with_numbers:
            at = with_numbers.index(None)
            refuse_source(right_hand_sides, f"no integer: {named[at]!r}", f"row {at}")
        numbers = nodes.find(with_numbers)
    else:
        numbers = nodes.find([str(name) for name in named])
    if (numbers < 0).any():
        at = int(np.argmax(numbers < 0))
        refuse_source(right_hand_sides, f"node {named[at]!r} is not in {edges}", f"row {at}")
    b = np.zeros((graph.n_nodes, len(names)))
    np.add.at(b, numbers, values)
    solver = LaplacianSolver(graph, n_jobs=threads)
    x = solver.solve(b, tol=tol)
    columns = {name: x[:, at] for at, name in enumerate(names)}
    write_table(output, {"node": nodes.ids(), **columns})
    if not quiet:
        worst = float(solver.report_.residual.max(initial=0.0))
        click.echo(f"{graph.n_nodes:,} nodes, residual {worst:.2g}: {output}", err=True)


COMMANDS = (info, sparsify, certify, resistance, solve)
