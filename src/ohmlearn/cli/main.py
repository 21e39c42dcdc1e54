"""The group of all commands, and how they fail: with one line that says why."""

import errno
import io
import json
import os
import shlex
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import click

from ohmlearn import __version__
from ohmlearn.cli.messages import option_style, tell, visible
from ohmlearn.cli.options import ARGUMENTS, Commands, was_given
from ohmlearn.errors import OhmError, OhmWarning

_FREE = "free some space, or write to another place"
_RIGHTS = "give the right to use it, or name another place"
REMEDIES = dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), _FREE)
REMEDIES |= dict.fromkeys((errno.EROFS, errno.EACCES, errno.EPERM), _RIGHTS)


class BadInput(click.ClickException):
    """What the user gave cannot be right."""

    exit_code = 2


class OneLineErrors(Commands):
    """A group whose commands fail with one line instead of a traceback."""

    group_class = Commands

    def main(self, *args: Any, **options: Any) -> Any:
        """Run a command, also if the caller has closed the standard streams."""
        _reopen_streams()
        return super().main(*args, **options)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Find the command; what is wrong about it is shown without control characters."""
        with _visible_errors():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; with --debug, let errors through as they are."""
        try:
            with warnings.catch_warnings(), _visible_errors():
                warnings.simplefilter("always", UserWarning)  # those meant for users
                warnings.showwarning = _print_warnings(partial(self._command, ctx))
                return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except KeyboardInterrupt:
            tell("Interrupted")
            raise click.exceptions.Exit(130) from None
        except Exception as error:
            if ctx.params["debug"]:
                raise
            _drop_lost_output()
            bad_input = isinstance(error, ValueError | FileNotFoundError | PermissionError)
            failure = BadInput if bad_input else click.ClickException
            raise failure(visible(_one_line(error, self._command(ctx)))) from error

    def _command(self, ctx: click.Context) -> click.Command | None:
        return self.get_command(ctx, str(ctx.invoked_subcommand))


class ClosedOutput(io.TextIOBase):
    """Stands in for a standard output that is closed; a command that prints nothing may run."""

    def write(self, text: str) -> int:
        """Refuse the text."""
        raise click.ClickException(
            "standard output is closed, so the results are lost; open it, or name a file with -o"
        )


def _reopen_streams() -> None:
    """Replace standard streams that the caller has closed, as in ``ohmlearn info e.csv >&-``.

    A file that is opened later must not get one of their numbers.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the first number that is free
    if sys.stdout is None:
        sys.stdout = ClosedOutput()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (until the process ends)


def _drop_lost_output() -> None:
    """Drop output that cannot be written, or Python would report it once more at its end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def _visible_errors() -> Iterator[None]:
    """Make control characters visible in errors of click, which quote arguments as they are."""
    try:
        yield
    except click.ClickException as error:
        vars(error)["message"] = visible(error.message)  # final by its type, so not assigned
        raise


def _print_warnings(command: Callable[[], click.Command | None]) -> Callable[..., None]:
    """Return what prints each warning once; none with --quiet, an object with --json."""
    told: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        if isinstance(message, DeprecationWarning):  # for developers, even if a UserWarning as well
            return
        context = click.get_current_context(silent=True)  # there is none in other threads
        options = context.params if context else {}
        text = _one_line(message, command())
        if text in told or options.get("quiet"):
            return
        told.add(text)
        if options.get("as_json"):
            click.echo(json.dumps({"warning": text}), err=True)
        else:
            tell(f"Warning: {text}")

    return show


def _one_line(error: Exception | str, command: click.Command | None) -> str:
    if isinstance(error, OhmError | OhmWarning):
        text = error.render(option_style(command))
    else:
        text = str(error)
    if isinstance(error, OSError) and (remedy := REMEDIES.get(error.errno or 0)):
        return f"{error.filename or 'the output'}: {error.strerror}; {remedy}"
    text = " ".join(text.split())
    known = str | OSError | ImportError | ValueError | OhmError | Warning
    if isinstance(error, known) and text:
        return text
    # Not something the user did: name its type and say how to see more.
    return f"{type(error).__name__}: {text} (--debug shows where)"


@click.group(
    cls=OneLineErrors,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
    epilog="Results go to stdout or -o, all else to stderr. "
    "Exit codes: 0 done, 1 failed, 2 wrong usage or input, 130 interrupted.",
)
@click.version_option(__version__, prog_name="ohmlearn")
@click.option("--debug", is_flag=True, help="Show tracebacks of errors.")
def main(debug: bool) -> None:
    """Labels for graphs too dense or too fast to store."""


def repeat_command() -> str:
    """Return the command line that repeats the present one, but for where it writes."""
    context = click.get_current_context()
    given, *_ = context.command.make_parser(context).parse_args(list(context.meta[ARGUMENTS]))
    parts: list[str] = []
    inner = context
    while inner.parent is not None:  # the command, and the groups that it is in
        parts.insert(0, str(inner.info_name))
        inner = inner.parent
    for parameter in context.command.params:
        name = str(parameter.name)
        if name in ("output", "report") or not was_given(name):
            continue
        flags = [] if isinstance(parameter, click.Argument) else [max(parameter.opts, key=len)]
        values = given[name] if isinstance(given[name], list | tuple) else [given[name]]
        for value in values:
            parts += flags if value is True else [*flags, shlex.quote(value)]
    return " ".join(["ohmlearn", *parts])


@main.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a script that completes commands and options.

    In bash: eval "$(ohmlearn completion bash)"
    """
    from click.shell_completion import get_completion_class

    script = get_completion_class(shell)
    assert script is not None  # it is one of the choices
    click.echo(script(main, {}, "ohmlearn", "_OHMLEARN_COMPLETE").source())
