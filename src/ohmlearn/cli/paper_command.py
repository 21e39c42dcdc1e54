"""Commands that show the library at work: demo, paper and bench."""

from pathlib import Path
from typing import Any

import click

from ohmlearn.cli.main import main, repeat_command
from ohmlearn.cli.messages import visible
from ohmlearn.cli.output_options import check_outputs

__all__ = ["bench", "demo", "paper"]


@main.command()
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("out/demo.html"),
    help="The page; its picture is put beside it.",
)
@click.option(
    "--points", type=click.IntRange(300, 100_000), default=12_100, help="Points to label."
)
@click.option(
    "--neighbors", type=click.IntRange(min=1), default=4500, help="Neighbours of a point."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Seed of labels and sampling.")
def demo(output: Path, points: int, neighbors: int, seed: int) -> None:
    """Label 12,100 points from four, by a graph of 30 million edges that is never stored.

    Streams the edges once through Sparse-HFS, measures how good the sparsifier is, refines the
    answer in a few more passes, and compares both with the exact answer of the whole graph. Writes
    a page with pictures.
    """
    from ohmlearn.checks.parameters import require_extra

    require_extra("matplotlib", "plot")  # before the work, not after it
    from ohmlearn import demo as steps

    _make_default_folder(output, Path("out"))
    page, picture = steps.find_paths(output)
    check_outputs({"-o": str(page), "its picture": str(picture)})
    found = steps.run(points, neighbors, seed)
    click.echo(steps.describe(found))
    steps.write(found, output, repeat_command())
    click.echo(f"Page         {visible(str(page))}\nPicture      {visible(str(picture))}")


@main.command()
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("out/paper"),
    help="Folder for the page, the figures and the numbers.",
)
@click.option("--quick", is_flag=True, help="Fewer graphs and draws: less than a minute.")
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Seed of labels and sampling.")
@click.option(
    "-k",
    "--neighbors",
    type=click.IntRange(min=1),
    multiple=True,
    help="Neighbours of a point, once for each graph; by default eleven from 100 to 12000.",
)
@click.option("--draws", type=click.IntRange(min=1), help="Draws of the labels; 10, or 3 if quick.")
@click.option(
    "--points", type=click.IntRange(300, 100_000), default=12_100, help="Points to label."
)
@click.option(
    "--paper-scheme",
    type=click.Choice(["none", "some", "all"]),
    default="some",
    help="For which graphs to sample as the paper does, too; all takes a quarter of an hour.",
)
def paper(output: Path, quick: bool, paper_scheme: str, **wanted: Any) -> None:
    """Repeat the experiment of the Sparse-HFS paper.

    Labels 12,100 points from four of them, on graphs of 0.7 to 73 million edges that are streamed
    and never stored, and on their sparsifiers. Takes about five minutes and 4 GiB, most of it to
    store graphs for comparison.
    """
    from ohmlearn.checks.parameters import require_extra

    require_extra("matplotlib", "plot")  # before the work, not after it
    from ohmlearn._arrays_file import check_folder
    from ohmlearn.paper import experiment as experiment

    _make_default_folder(output, Path("out"))
    check_folder(output, "-o")
    settings = experiment.ExperimentSettings.choose(quick, paper_scheme, **wanted)
    results = experiment.run_experiment(settings)
    click.echo(experiment.describe(results))
    for path in experiment.write_results(results, output, repeat_command()):
        click.echo(visible(str(path)))


def _make_default_folder(output: Path, folder: Path) -> None:
    """Make the folder of the default output; another one must exist."""
    if output.parent == folder:
        folder.mkdir(exist_ok=True)


@main.command()
@click.option("--size", type=click.IntRange(5, 100), default=100, help="In percent of the usual.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def bench(size: int, as_json: bool) -> None:
    """Measure a few jobs on this machine, beside numpy, scipy and scikit-learn, on one thread.

    Each measurement runs in a separate process. Memory is the peak of that process, including the
    data that the job starts from.
    """
    import json
    from dataclasses import asdict

    from ohmlearn.paper import short_benchmarks as steps
    from ohmlearn.report.html_page import describe_versions

    if not as_json:
        click.echo(describe_versions())
    for found in steps.run(size):
        if as_json:
            click.echo(json.dumps(asdict(found) | {"ratio": found.ratio}))
            continue
        click.echo(found.job)
        for name, seconds, used, result in (
            ("ohmlearn", found.our_seconds, found.our_bytes, found.our_result),
            (found.peer, found.peer_seconds, found.peer_bytes, found.peer_result),
        ):
            click.echo(f"  {name:15} {seconds:8.2f} CPU s {used / 2**20:7.0f} MiB  {result}")
