"""Commands on a graph in files: info, sparsify, certify, resistance, solve."""

import json
from typing import TYPE_CHECKING, Any

import click

from ohmlearn._phases import Phase, phase
from ohmlearn.cli.edge_options import (
    check_ids,
    edge_options,
    fraction,
    open_edges,
    seed_option,
    watch_edges,
)
from ohmlearn.cli.forgetting_options import Forgetting, forgetting_options
from ohmlearn.cli.main import main
from ohmlearn.cli.messages import tell
from ohmlearn.cli.output_options import check_outputs, output_options, write_output
from ohmlearn.cli.threads_option import threads_option

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ohmlearn.graph import Graph
    from ohmlearn.reading import EdgeStream

__all__ = ["certify", "info", "load_graph", "resistance", "solve", "sparsify", "write_sparsifier"]

READING = Phase("reading edges", 1, 1)


@main.command()
@edge_options
def info(**options: Any) -> None:
    """Count nodes, edges, components, degrees and weights of EDGES in one reading."""
    from ohmlearn.checks.times import describe_time
    from ohmlearn.report.edge_summary import EdgeSummary

    stream = open_edges(options)
    summary = EdgeSummary()
    with phase(READING):
        for batch in watch_edges(stream, options):
            summary.update(*batch)
    figures = summary.figures(len(stream.nodes)) | {"n_bad_rows": stream.n_bad}
    figures["columns"] = stream.columns
    figures["time_unit"] = stream.time_unit
    if options["as_json"]:
        click.echo(json.dumps(figures))
        return
    low, middle, high = figures["degree_quartiles"]
    largest = figures["largest_component"]
    click.echo(f"Nodes        {figures['n_nodes']:,}, {figures['n_isolated_nodes']:,} isolated")
    click.echo(f"Edges        {figures['n_edges_seen']:,}, parallel ones counted each")
    click.echo(f"Left out     {figures['n_self_loops_dropped']:,} self-loops")
    click.echo(f"             {figures['n_zero_weights_dropped']:,} edges of weight 0")
    click.echo(f"Components   {figures['n_components']:,}, the largest of {largest:,} nodes")
    click.echo(f"Degree       mean {figures['degree_mean']:.4g}, at most {figures['degree_max']:,}")
    click.echo(f"             quartiles {low:g}, {middle:g}, {high:g}")
    if figures["weighted"] and figures["n_edges_seen"]:
        click.echo(f"Weight       {figures['weight_min']:g} to {figures['weight_max']:g}")
        click.echo(f"             {figures['weight_seen']:g} in all")
    if figures["time_min"] is not None:
        unit = figures["time_unit"]
        ends = (describe_time(figures[end], unit == "date") for end in ("time_min", "time_max"))
        what = "" if unit in (None, "date") else f", Unix times in {unit}"
        click.echo(f"Times        {' to '.join(ends)}{what}")


@main.command()
@edge_options
@output_options
@click.option("--epsilon", type=fraction, default=0.5, help="Accuracy to aim at.")
@click.option("--max-edges", type=click.IntRange(min=1), help="Edges to keep, instead of epsilon.")
@click.option(
    "--memory",
    help="Memory limit of the whole command, such as 2GB; replaces --epsilon, needs --n-nodes.",
)
@click.option("--n-nodes", type=click.IntRange(min=1), help="Number of nodes, if known.")
@click.option("--scheme", type=click.Choice(["resample", "online"]), default="resample")
@click.option("--constants", type=click.Choice(["practical", "theory"]), default="practical")
@forgetting_options
@seed_option
@threads_option
def sparsify(output: str, **options: Any) -> None:
    """Write a small graph whose energies are close to those of EDGES, which are read once.

    The output has the columns u, v (ids as in EDGES) and w. If its name ends in .ohm, it is the
    sparsifier itself, which can take in more edges: with label --state, or in Python with
    StreamingSparsifier.load.
    """
    write_sparsifier(output, options)


def write_sparsifier(output: str, options: dict[str, Any]) -> None:
    """Sparsify edges, and write H or the sparsifier."""
    from ohmlearn._arrays_file import pack_arrays
    from ohmlearn.reading.remote import is_remote, write_remote
    from ohmlearn.reading.source_errors import show_name
    from ohmlearn.report.write_table import check_table_path
    from ohmlearn.sparsifier import StreamingSparsifier

    is_state = output.endswith(".ohm")
    if not is_state:
        check_table_path(output, options["csv_safe"])
    check_outputs({"-o": output}, *options["edges"])
    forgetting = Forgetting(options)
    stream = open_edges(options, needs_times=forgetting.needs_times)
    if options.get("memory") is not None:
        from ohmlearn.cli.memory_budget import find_budget

        options["max_edges"] = find_budget(options, stream).edges_within(options["memory"])
    names = ("epsilon", "max_edges", "n_nodes", "scheme", "constants")
    sparsifier = StreamingSparsifier(
        **{name: options[name] for name in names if name in options},
        **forgetting.parameters,
        random_state=options["seed"],
        n_jobs=options["threads"],
    )
    with phase(READING):
        sparsifier.update(watch_edges(stream, options, sparsifier))
    with phase("choosing the edges to keep"):
        u, v, w = sparsifier.snapshot(**forgetting.moment).edges()
    if is_state:
        with phase(f"writing {show_name(output)}"):
            if is_remote(output):
                with write_remote(output) as file:
                    file.write(pack_arrays(sparsifier.get_state()))
            else:
                sparsifier.save(output)
    else:
        ids = stream.nodes.ids()
        write_output(output, {"u": ids[u], "v": ids[v], "w": w}, options["csv_safe"])
    if options["as_json"]:
        figures = {**sparsifier.stats_, "n_edges_kept": len(u), "n_bad_rows": stream.n_bad}
        click.echo(json.dumps(figures), err=True)
    elif not options["quiet"]:
        seen = sparsifier.n_edges_seen_
        share = f"{len(u) / seen:.3%}" if seen else "all"
        tell(f"{seen:,} edges seen, {len(u):,} kept ({share})")


@main.command()
@edge_options
@click.argument("h")
@click.option(
    "--eta", type=fraction, default=0.05, help="Largest relative gap of bounds and estimates."
)
@click.option("--confidence", type=fraction, default=0.999, help="Probability of the bounds.")
@click.option(
    "--max-passes", type=click.IntRange(min=1), help="Largest number of passes over EDGES; 100."
)
@forgetting_options
@seed_option
@threads_option
def certify(h: str, **options: Any) -> None:
    """Measure how far the sparsifier H, written by sparsify, is from EDGES.

    EDGES are read several times, H once. If sparsify was told to forget old edges, give the same
    options here.
    """
    from dataclasses import fields

    from ohmlearn.certificate import certify as measure
    from ohmlearn.reading import read_edges

    kept, forgetting = read_edges(h, id_type=options["id_type"]), Forgetting(options)
    stream = open_edges(options, kept.nodes, needs_times=forgetting.needs_times)
    if not stream.rereadable:
        raise click.UsageError("a pipe can be read only once, but certify needs several passes")
    edges = watch_edges(stream, options, needs_edges=True)
    with phase(f"reading {h}"):
        sparsifier = load_graph(kept)
    if forgetting.needs_times:
        with phase("finding the latest time"):
            sparsifier.view = forgetting.view_of(edges)
    found = measure(
        edges,
        sparsifier,
        eta=options["eta"],
        confidence=options["confidence"],
        max_passes=options["max_passes"],
        random_state=options["seed"],
        n_jobs=options["threads"],
    )
    if options["as_json"]:
        names = [field.name for field in fields(found) if field.name != "nodes"]
        figures = {name: getattr(found, name) for name in [*names, "epsilon", "epsilon_bound"]}
        figures |= {name: found.ids(figures[name]) for name in ("lost_edge", "extra_edge")}
        finite = {  # JSON has neither infinity nor NaN
            name: value if abs(value) < float("inf") else str(value)
            for name, value in figures.items()
            if isinstance(value, float)
        }
        click.echo(json.dumps(figures | finite))
    else:
        click.echo(str(found))


@main.command()
@edge_options
@output_options
@click.option("--pairs", help="Table with two columns of node ids; all edges by default.")
@click.option(
    "--epsilon", type=fraction, default=0.2, help="Relative error of 95 in 100 estimates."
)
@click.option("--exact", is_flag=True, help="Solve for each answer instead of estimating it.")
@seed_option
@threads_option
def resistance(output: str, pairs: str | None, **options: Any) -> None:
    """Effective resistance of all edges, or between given pairs; EDGES is held in memory."""
    import numpy as np

    from ohmlearn.reading.label_table import as_node_ids
    from ohmlearn.reading.source_errors import refuse_source
    from ohmlearn.report.write_table import check_table_path
    from ohmlearn.resistance import effective_resistance

    check_table_path(output, options["csv_safe"])
    check_outputs({"-o": output}, *options["edges"], pairs)
    stream = open_edges(options)
    asked = None if pairs is None else _read_pairs(pairs, stream.kinds)
    if pairs is not None and asked is not None:
        check_ids(stream, pairs, asked.ravel().tolist())
    graph, nodes = load_graph(stream, options), stream.nodes
    how = {"epsilon": options["epsilon"], "exact": options["exact"] or None}
    how |= {"random_state": options["seed"], "n_jobs": options["threads"]}
    ids = nodes.ids()
    if pairs is None:
        u, v, w = graph.edges()
        columns = {"u": ids[u], "v": ids[v], "w": w}
        with phase("computing resistances"):
            columns["resistance"] = effective_resistance(graph, **how)
        write_output(output, columns, options["csv_safe"])
        return
    assert asked is not None
    a, b = (as_node_ids(pairs, side.tolist(), nodes.kind, nodes.kinds) for side in asked)
    numbers = np.ma.stack([nodes.find(side, missing="mask") for side in (a, b)], axis=1)
    if numbers.mask.any():
        row, side = np.argwhere(numbers.mask)[0]
        stranger = (a, b)[side][row]
        refuse_source(pairs, f"node {stranger!r} is not in the graph", f"pair {row + 1}")
    with phase("computing resistances"):
        found = effective_resistance(graph, numbers.data, **how)
    write_output(output, {"u": a, "v": b, "resistance": found}, options["csv_safe"])


def _read_pairs(path: str, kinds: tuple[str, ...]) -> "NDArray[np.object_]":
    """Return the ids of pairs in a table, as strings: an array of two rows.

    If nodes are of several `kinds`, the headings may name those of the two columns.
    """
    import numpy as np

    from ohmlearn.reading.read_edges import open_stream
    from ohmlearn.reading.read_options import PairOptions
    from ohmlearn.reading.source_errors import refuse_source

    stream = open_stream(path, PairOptions(id_type="string", bipartite=bool(kinds)))
    if not set(stream.kinds) <= set(kinds):
        stream = open_stream(path, PairOptions(id_type="string", bipartite=False))
    batches = list(stream)
    if not stream.n_read:
        refuse_source(path, "has no pair; a row is two nodes")
    ids = stream.nodes.ids()
    return np.stack([ids[np.concatenate([batch[at] for batch in batches])] for at in (0, 1)])


@main.command()
@edge_options
@click.argument("right_hand_sides")
@output_options
@click.option("--tol", type=fraction, default=1e-8, help="Relative residual to reach.")
@seed_option
@threads_option
def solve(right_hand_sides: str, output: str, tol: float, **options: Any) -> None:
    """Solve L x = b for the Laplacian L of EDGES.

    RIGHT_HAND_SIDES is a table: node ids first, then one or more columns b; nodes that it does not
    name have 0. Where b does not sum to 0 over a component, its mean is subtracted there. The
    output has all nodes and the same columns.
    """
    import numpy as np

    from ohmlearn.reading.feature_table import read_node_values
    from ohmlearn.reading.label_table import as_node_ids
    from ohmlearn.reading.source_errors import refuse_source
    from ohmlearn.report.write_table import check_table_path
    from ohmlearn.solver import LaplacianSolver

    check_table_path(output, options["csv_safe"])
    check_outputs({"-o": output}, *options["edges"], right_hand_sides)
    heading, named, names, values, rows = read_node_values(right_hand_sides)
    stream = open_edges(options)
    check_ids(stream, right_hand_sides, named, rows, heading)
    graph, nodes = load_graph(stream, options), stream.nodes
    asked = as_node_ids(
        right_hand_sides, named, nodes.kind, nodes.kinds, heading=heading, rows=rows
    )
    numbers = nodes.find(asked, missing="mask")
    if numbers.mask.any():
        at = int(np.argmax(numbers.mask))
        why = f"node {named[at]!r} is not in the graph"
        refuse_source(right_hand_sides, why, rows[at])
    b = np.zeros((graph.n_nodes, len(names)))
    np.add.at(b, numbers.data, values)
    with phase("solving"):
        solver = LaplacianSolver(graph, random_state=options["seed"], n_jobs=options["threads"])
        x = solver.solve(b, tol=tol)
    columns = {name: x[:, at] for at, name in enumerate(names)}
    write_output(output, {"node": nodes.ids(), **columns}, options["csv_safe"])
    report = solver.report_
    balanced = bool(report.projected_out.max(initial=0.0) <= 1e-9)
    if options["as_json"]:
        figures = {
            "n_nodes": graph.n_nodes,
            "residual": report.residual.tolist(),
            "converged": report.converged.tolist(),
            "balanced": balanced,
        }
        click.echo(json.dumps(figures), err=True)
    elif not options["quiet"]:
        if not balanced:
            tell("b does not sum to 0 over each component, so its mean there was subtracted")
        tell(f"{graph.n_nodes:,} nodes, residual {report.residual.max(initial=0.0):.2g}")


def load_graph(stream: "EdgeStream", options: dict[str, Any] | None = None) -> "Graph":
    """Return the graph of a stream, in memory."""
    from ohmlearn.graph import Graph

    with phase(READING):
        watched = None if options is None else watch_edges(stream, options, needs_edges=True)
        batches = list(watched or stream)
    graph = Graph.from_batches(batches, n_nodes=len(stream.nodes))
    graph.nodes = stream.nodes
    return graph
