"""Commands on a graph in files: info, sparsify, certify, resistance, solve."""

from typing import TYPE_CHECKING, Any

import click

from ohmlearn._defaults import EPSILON
from ohmlearn._phases import Phase, phase
from ohmlearn.cli import options as cli
from ohmlearn.cli.main import main
from ohmlearn.cli.messages import print_json, summarise
from ohmlearn.cli.open_edges import Forgetting, check_ids, find_ids, open_edges, watch_edges
from ohmlearn.cli.outputs import check_outputs, check_table, write_output

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ohmlearn.graph import Graph
    from ohmlearn.nodes import NodeTable
    from ohmlearn.reading import EdgeStream

READING = Phase("reading edges", 1, 1)
SCHEMES, CONSTANTS = ("resample", "online"), ("practical", "theory")


@main.command()
@cli.takes_edges()
def info(**options: Any) -> None:
    """Count nodes, edges, components, degrees and weights.

    EDGES are read once.
    """
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
        print_json(figures)
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
@cli.takes_edges(
    cli.OUTPUT,
    cli.epsilon_option(EPSILON, common=True),
    cli.MAX_EDGES,
    cli.option(
        "--option", "rare", cls=cli.KeyValues, group="Method",
        keys={
            "scheme": ("scheme", click.Choice(SCHEMES), SCHEMES[0]),
            "constants": ("constants", click.Choice(CONSTANTS), CONSTANTS[0]),
            **cli.SAFE,
        },
        help="A rare option; may be repeated. scheme= is how edges are sampled: resample "
        "(default) or online. constants= says how many are kept: practical (default) or "
        f"theory. {cli.SAFE_HELP}",
    ),
    *cli.FORGETTING,
    cli.SEED,
    *cli.MEMORY,
    cli.THREADS,
)  # fmt: skip
def sparsify(**options: Any) -> None:
    """Write a small graph that is close to a large one.

    \b
    ohmlearn sparsify events.csv -o h.parquet

    Its energies are close to those of EDGES, which are read once. The output has the columns u, v
    (ids as in EDGES) and w. If its name ends in .ohm, it is the sparsifier itself, which can take
    in more edges: with label --state, or in Python with StreamingSparsifier.load.
    """
    write_sparsifier(options)


def write_sparsifier(options: cli.Options) -> None:
    """Sparsify edges, and write H or the sparsifier."""
    from ohmlearn._arrays_file import pack_arrays
    from ohmlearn.reading.remote import is_remote, write_remote
    from ohmlearn.reading.source_errors import show_name
    from ohmlearn.sparsifier import StreamingSparsifier

    output = options["output"]
    is_state = output.endswith(".ohm")
    if is_state:
        check_outputs({"-o": output}, *options["edges"])
    else:
        check_table(options)
    forgetting = Forgetting(options)
    stream = open_edges(options, needs_times=forgetting.needs_times)
    if options.get("memory") is not None:
        from ohmlearn.cli.memory_budget import within_memory

        options = within_memory(options, stream)
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
        write_output(options, {"u": ids[u], "v": ids[v], "w": w})
    figures = {**sparsifier.stats_, "n_edges_kept": len(u), "n_bad_rows": stream.n_bad}
    seen = sparsifier.n_edges_seen_
    fraction_kept = f"{len(u) / seen:.3%}" if seen else "all"
    summarise(figures, f"{seen:,} edges seen, {len(u):,} kept ({fraction_kept})")


@main.command()
@cli.takes_edges(
    cli.option(
        "--eta", type=cli.fraction, default=0.05, group="Method", common=True,
        help="Largest relative gap between bounds and estimates.",
    ),
    cli.method_option(
        "--confidence", type=cli.fraction, default=0.999, help="Probability of the bounds."
    ),
    cli.option(
        "--max-passes", type=click.IntRange(min=1), group="Method", common=True,
        help="Largest number of passes over EDGES. Default: 100.",
    ),
    *cli.FORGETTING,
    cli.SEED,
    cli.THREADS,
)  # fmt: skip
@click.argument("h")
def certify(h: str, **options: Any) -> None:
    """Measure how far a sparsifier is from EDGES.

    H is the file that sparsify has written. EDGES are read several times, H once. If sparsify was
    given --half-life, --horizon or --since, give the same option here.
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
    how = {name: options[name] for name in ("eta", "confidence", "max_passes")}
    how |= {"random_state": options["seed"], "n_jobs": options["threads"]}
    found = measure(edges, sparsifier, **how)
    if options["as_json"]:
        names = [field.name for field in fields(found) if field.name != "nodes"]
        figures = {name: getattr(found, name) for name in [*names, "epsilon", "epsilon_bound"]}
        figures |= {name: found.ids(figures[name]) for name in ("lost_edge", "extra_edge")}
        print_json(figures)
    else:
        click.echo(str(found))


@main.command()
@cli.takes_edges(
    cli.option(
        "--pairs", metavar="FILE", group="Input", common=True,
        help="Table with two columns of node ids. Default: all edges.",
    ),
    cli.OUTPUT,
    cli.CSV_SAFE,
    cli.option(
        "--rtol", type=cli.fraction, default=0.2, group="Method", common=True,
        help="Relative error of 95 in 100 estimates.",
    ),
    cli.method_option(
        "--exact", is_flag=True, help="Solve for each answer instead of estimating it."
    ),
    cli.SEED,
    cli.THREADS,
)  # fmt: skip
def resistance(pairs: str | None, **options: Any) -> None:
    """Compute effective resistances of edges or pairs of nodes.

    EDGES are kept in memory.
    """
    from ohmlearn.resistance import effective_resistance

    check_table(options, pairs)
    stream = open_edges(options)
    how = {"rtol": options["rtol"], "exact": options["exact"] or None}
    how |= {"random_state": options["seed"], "n_jobs": options["threads"]}
    if pairs is None:
        graph, ids = load_graph(stream, options), stream.nodes.ids()
        u, v, w = graph.edges()
        columns = {"u": ids[u], "v": ids[v], "w": w}
        with phase("computing resistances"):
            columns["resistance"] = effective_resistance(graph, **how)
        write_output(options, columns)
        return
    names = _read_pairs(pairs, stream.kinds)
    places = [f"pair {at // 2 + 1}" for at in range(len(names))]
    check_ids(stream, pairs, names, places)
    graph = load_graph(stream, options)
    asked, numbers = _find_known(stream.nodes, pairs, names, places)
    with phase("computing resistances"):
        found = effective_resistance(graph, numbers.reshape(-1, 2), **how)
    write_output(options, {"u": asked[::2], "v": asked[1::2], "resistance": found})


def _find_known(
    nodes: "NodeTable", path: str, names: list[Any], rows: list[Any], heading: str | None = None
) -> tuple["NDArray[Any]", "NDArray[np.int64]"]:
    """Return the ids in a file and their numbers; refuse the first that is not in the graph."""
    from ohmlearn.reading.source_errors import refuse_source

    asked, numbers = find_ids(nodes, path, names, rows, heading)
    if numbers.mask.any():
        at = int(numbers.mask.argmax())
        refuse_source(path, f"node {names[at]!r} is not in the graph", rows[at])
    return asked, numbers.data


def _read_pairs(path: str, kinds: tuple[str, ...]) -> list[str]:
    """Return the ids of pairs in a table, as strings: two for each pair.

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
    ends = [np.concatenate([batch[at] for batch in batches]) for at in (0, 1)]
    names: list[str] = stream.nodes.ids()[np.stack(ends, axis=1).ravel()].tolist()
    return names


@main.command()
@cli.takes_edges(
    cli.OUTPUT,
    cli.CSV_SAFE,
    cli.method_option(
        "--tol", type=cli.fraction, default=1e-8, help="Relative residual to reach."
    ),
    cli.SEED,
    cli.THREADS,
)  # fmt: skip
@click.argument("right_hand_sides")
def solve(right_hand_sides: str, tol: float, **options: Any) -> None:
    """Solve L x = b for the Laplacian L of EDGES.

    RIGHT_HAND_SIDES is a table: node ids first, then one or more columns b; nodes that it does not
    name have 0. Where b does not sum to 0 over a component, its mean is subtracted there. The
    output has all nodes and the same columns.
    """
    import numpy as np

    from ohmlearn.reading.feature_table import read_node_values
    from ohmlearn.solver import LaplacianSolver

    check_table(options, right_hand_sides)
    heading, named, names, values, rows = read_node_values(right_hand_sides)
    stream = open_edges(options)
    check_ids(stream, right_hand_sides, named, rows, heading)
    graph, nodes = load_graph(stream, options), stream.nodes
    _, numbers = _find_known(nodes, right_hand_sides, named, rows, heading)
    b = np.zeros((graph.n_nodes, len(names)))
    np.add.at(b, numbers, values)
    with phase("solving"):
        solver = LaplacianSolver(graph, random_state=options["seed"], n_jobs=options["threads"])
        x = solver.solve(b, tol=tol)
    columns = {name: x[:, at] for at, name in enumerate(names)}
    write_output(options, {"node": nodes.ids(), **columns})
    report = solver.report_
    balanced = bool(report.projected_out.max(initial=0.0) <= 1e-9)
    figures = {
        "n_nodes": graph.n_nodes,
        "residual": report.residual.tolist(),
        "converged": report.converged.tolist(),
        "balanced": balanced,
    }
    mean = "b does not sum to 0 over each component, so its mean there was subtracted"
    found = f"{graph.n_nodes:,} nodes, residual {report.residual.max(initial=0.0):.2g}"
    summarise(figures, *([] if balanced else [mean]), found)


def load_graph(stream: "EdgeStream", options: cli.Options | None = None) -> "Graph":
    """Return the graph of a stream, in memory."""
    from ohmlearn.graph import Graph

    with phase(READING):
        watched = None if options is None else watch_edges(stream, options, needs_edges=True)
        batches = list(watched or stream)
    graph = Graph.from_batches(batches, n_nodes=len(stream.nodes))
    graph.nodes = stream.nodes
    return graph
