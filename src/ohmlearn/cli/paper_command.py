"""The demo, and the commands of the Sparse-HFS paper: its experiment, sparsifier and bound."""

from functools import partial
from pathlib import Path
from typing import Any

import click

from ohmlearn._defaults import EPSILON
from ohmlearn.cli import options as cli
from ohmlearn.cli.graph_commands import load_graph, write_sparsifier
from ohmlearn.cli.main import main, repeat_command
from ohmlearn.cli.messages import note, print_json, visible
from ohmlearn.cli.open_edges import open_edges
from ohmlearn.cli.outputs import check_outputs

POINTS = click.option(
    "--points", type=click.IntRange(300, 100_000), default=12_100, help="Points to label."
)
number = partial(cli.method_option, type=float)
SEED = click.option(
    "--seed", type=click.IntRange(min=0), default=0, help="Seed of labels and sampling."
)


@main.command()
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path),
    default=Path("out/demo.html"), help="The page; its picture is put beside it.",
)  # fmt: skip
@POINTS
@click.option(
    "--neighbors", type=click.IntRange(min=1), default=4500, help="Neighbours of a point."
)
@SEED
def demo(output: Path, points: int, neighbors: int, seed: int) -> None:
    """Label 12,100 points from four, and show it on a page.

    The graph has 30 million edges and is never stored. They are read once by Sparse-HFS. Then the
    command measures how good the sparsifier is, refines the answer in a few more passes, and
    compares both with the exact answer of the whole graph.
    """
    from ohmlearn.checks.parameters import require_extra

    require_extra("matplotlib", "plot")  # before the work, not after it
    from ohmlearn import demo as steps

    _make_default_folder(output, Path("out"))
    picture = output.parent / f"{output.stem}.png"
    check_outputs({"-o": str(output), "its picture": str(picture)})
    found = steps.run(points, neighbors, seed)
    click.echo(steps.describe(found))
    steps.write(found, output, picture, repeat_command())
    click.echo(f"Page         {visible(str(output))}\nPicture      {visible(str(picture))}")


@main.group()
def paper() -> None:
    """Repeat the experiment of the paper, and use its parts.

    The Sparse-HFS paper: its experiment, Algorithm 2 and Theorem 1.

    D. Calandriello, A. Lazaric and M. Valko, "Large-scale semi-supervised learning with online
    spectral graph sparsification", 2015. Algorithm 1 is ohmlearn.paper.SparseHFS in Python.
    """


@paper.command()
@click.option(
    "-o", "--output", type=click.Path(file_okay=False, path_type=Path),
    default=Path("out/paper"), help="Folder for the page, the figures and the numbers.",
)  # fmt: skip
@click.option("--quick", is_flag=True, help="Fewer graphs and draws: less than a minute.")
@SEED
@click.option(
    "-k", "--neighbors", type=click.IntRange(min=1), multiple=True,
    help="Neighbours of a point, once for each graph; by default eleven from 100 to 12000.",
)  # fmt: skip
@click.option("--draws", type=click.IntRange(min=1), help="Draws of the labels; 10, or 3 if quick.")
@POINTS
@click.option(
    "--paper-scheme", type=click.Choice(["none", "some", "all"]), default="some",
    help="For which graphs to sample as the paper does, too, with a tenth of its copies; all takes "
    "a quarter of an hour.",
)  # fmt: skip
def run(output: Path, quick: bool, paper_scheme: str, **wanted: Any) -> None:
    """Repeat the experiment of the Sparse-HFS paper.

    Labels 12,100 points from four of them, on graphs of 0.7 to 73 million edges that are streamed
    and never stored, and on their sparsifiers. Takes about six minutes of processor time. Most of
    it, and the peak memory of 3.2 GiB, is for graphs that are stored for comparison.
    """
    from ohmlearn.checks.parameters import require_extra

    require_extra("matplotlib", "plot")  # before the work, not after it
    from ohmlearn._arrays_file import check_folder, check_writable
    from ohmlearn.paper import experiment

    _make_default_folder(output, Path("out"))
    check_folder(output, "-o")
    check_writable(output / "page" if output.is_dir() else output, "-o")
    settings = experiment.ExperimentSettings.choose(quick, paper_scheme, **wanted)
    results = experiment.run_experiment(settings)
    click.echo(experiment.describe(results))
    for path in experiment.write_results(results, output, repeat_command()):
        click.echo(visible(str(path)))


def _make_default_folder(output: Path, folder: Path) -> None:
    """Make the folder of the default output; another one must exist."""
    if output.parent == folder:
        folder.mkdir(exist_ok=True)


@paper.command()
@cli.takes_edges(
    cli.OUTPUT,
    cli.CSV_SAFE,
    cli.method_option(
        "--n-nodes", type=click.IntRange(min=1), required=True, help="The number n of nodes."
    ),
    cli.epsilon_option(EPSILON, common=True),
    cli.method_option(
        "--constants", type=click.Choice(["practical", "theory"]), default="practical",
        help="With theory, take the N copies of each edge that the paper prints; with practical, a "
        "tenth of them.",
    ),
    cli.SEED,
    cli.THREADS,
)  # fmt: skip
def sparsify(**options: Any) -> None:
    """Write the sparsifier of Algorithm 2, Kelner and Levin's.

    EDGES are read once. The output has the columns u, v (ids as in EDGES) and w, or is the
    sparsifier itself if its name ends in .ohm. ohmlearn sparsify is faster and keeps fewer edges
    for the same accuracy.
    """
    if options["constants"] == "practical":
        note("a tenth of the paper's copies of each edge; --constants theory takes all")
    write_sparsifier({**options, "scheme": "paper"})


@paper.command()
@cli.takes_edges(
    number(
        "--error", "empirical_error", required=True,
        help="Mean squared error of stable-HFS on the labelled nodes.",
    ),
    number(
        "--labelled", "n_labelled", type=int, required=True, help="The number l of labelled nodes."
    ),
    number(
        "--unlabelled", "n_unlabelled", type=int,
        help="The number u of other nodes. Default: that of EDGES.",
    ),
    number("--gamma", default=1.0, help="Regularisation of stable-HFS."),
    number("--lambda-1", help="Second smallest eigenvalue of L. Default: that of EDGES."),
    number("--lambda-n", help="Largest eigenvalue of L. Default: that of EDGES."),
    number(
        "--epsilon", default=0.0, help="Accuracy of the sparsifier; 0 means that there is none."
    ),
    number("--label-bound", default=1.0, help="The number k, the largest label."),
    number("--delta", default=0.05, help="Probability that the bound fails."),
    cli.SEED,
    cli.THREADS,
    required=False,
)  # fmt: skip
def bound(edges: tuple[str, ...], **options: Any) -> None:
    """Print the bound of Theorem 1.

    It is given as printed and as repaired, with its parts. The numbers that are about the graph
    are found from EDGES, which are held in memory, unless they are given.
    """
    from dataclasses import asdict

    from ohmlearn.paper import generalization_bound, spectral_extremes

    found: dict[str, Any] = {}
    of_graph = ("n_unlabelled", "lambda_1", "lambda_n")
    if edges and None in (options[name] for name in of_graph):
        options["edges"] = edges
        graph = load_graph(open_edges(options), options)
        how = {"random_state": options["seed"], "n_jobs": options["threads"]}
        found = asdict(spectral_extremes(graph, **how))
        found["n_unlabelled"] = graph.n_nodes - options["n_labelled"]
    elif not edges and None in (options[name] for name in of_graph):
        raise click.UsageError("give EDGES, or --unlabelled, --lambda-1 and --lambda-n")
    names = ("empirical_error", "n_labelled", "gamma", "epsilon", "label_bound", "delta")
    numbers = {name: options[name] for name in names}
    numbers |= {x: found[x] if options[x] is None else options[x] for x in of_graph}
    result = generalization_bound(**numbers)
    if options["as_json"]:
        print_json({**numbers, **asdict(result)})
        return
    click.echo(
        f"l = {numbers['n_labelled']:,}, u = {numbers['n_unlabelled']:,}, "
        f"lambda_1 = {numbers['lambda_1']:.4g}, lambda_n = {numbers['lambda_n']:.4g}"
    )
    click.echo(str(result))
