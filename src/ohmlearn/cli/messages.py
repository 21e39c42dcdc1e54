"""What a command prints to the standard error: messages, and a line that shows its progress."""

from collections.abc import Callable
from contextlib import nullcontext
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from ohmlearn.report.progress import StatusLine

__all__ = ["shows_progress", "status_line", "tell", "visible"]

LINE = "ohmlearn.status_line"  # where the context of a command has it


def visible(text: str) -> str:
    r"""Return text in which control characters, such as escape sequences, are written out.

    Examples
    --------
    >>> print(visible("a\x1b[31mb\nc, naïve ±"))
    a\x1b[31mb\nc, naïve ±
    """
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii")
        for letter in text
    )


def tell(*lines: str) -> None:
    """Print lines to the standard error; control characters in them are made visible."""
    status = status_line()
    with nullcontext() if status is None else status.aside():
        for line in lines:
            click.echo(visible(line), err=True)


def shows_progress(command: Callable[..., Any]) -> Callable[..., Any]:
    """Show the phases of a command on the standard error, unless it has --quiet."""

    @wraps(command)
    def run(*args: Any, **options: Any) -> Any:
        from ohmlearn._phases import watch
        from ohmlearn.report.progress import StatusLine

        context = click.get_current_context()
        line = StatusLine(bool(options.get("as_json")), bool(options.get("quiet")))
        context.meta[LINE] = context.with_resource(line)
        context.with_resource(watch(line))
        return command(*args, **options)

    return run


def status_line() -> "StatusLine | None":
    """Return the line that shows the progress of the present command, if it has one."""
    context = click.get_current_context(silent=True)  # there is none in other threads
    return None if context is None else context.meta.get(LINE)
