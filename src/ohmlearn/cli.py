"""The command line. numpy and the rest are imported by the commands: ``--help`` must be quick."""

from pathlib import Path
from typing import Any

import click

from ohmlearn import __version__
from ohmlearn._cli_edges import COMMANDS

__all__ = ["main"]


class BadInput(click.ClickException):
    """What was given is wrong, not what was done with it."""

    exit_code = 2


class OneLineErrors(click.Group):
    """A group whose commands fail with one line instead of a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; with --debug, let errors through as they are."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            if ctx.params["debug"]:
                raise
            is_bad_input = isinstance(error, ValueError | FileNotFoundError)
            raise (BadInput if is_bad_input else click.ClickException)(_one_line(error)) from error


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    if isinstance(error, OSError | ImportError | ValueError) and text:
        return text
    # Not something the user did: name its type and say how to see more.
    return f"{type(error).__name__}: {text} (--debug shows where)"


@click.group(
    cls=OneLineErrors,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
    epilog="Results go to stdout or -o, all else to stderr. "
    "Exit codes: 0 done, 1 failed, 2 wrong usage or bad input.",
)
@click.version_option(__version__, prog_name="ohmlearn")
@click.option("--debug", is_flag=True, help="Show tracebacks of errors.")
def main(debug: bool) -> None:
    """Labels for graphs too dense or too fast to store."""


for command in COMMANDS:
    main.add_command(command)


@main.command()
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("out/demo.png"),
    help="The picture; its ending (.png, .svg, .pdf) sets the format.",
)
@click.option("--nodes", type=click.IntRange(100, 5000), default=1000, help="Size of the graph.")
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Seed of the points.")
def demo(output: Path, nodes: int, seed: int) -> None:
    """Solve a Laplacian system, find the critical edges, draw both.

    The graph is an archipelago: dense islands of points joined by a few bridges. Voltages are level
    on an island and fall at the bridges; weight times effective resistance, the chance that a
    random spanning tree needs the edge, is near 1 on them.
    """
    from ohmlearn import demo as steps

    steps.require_matplotlib()  # before the work, not after it
    archipelago = steps.make_archipelago(nodes, seed)
    solution = steps.solve(archipelago)
    click.echo(steps.describe_solution(archipelago, solution))
    leverage = steps.measure_leverage(archipelago.graph)
    click.echo(steps.describe_leverage(archipelago.graph, leverage))
    steps.draw(archipelago, solution, leverage, output)
    click.echo(f"Picture    {output}")
