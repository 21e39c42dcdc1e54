"""What a command prints to the standard error: messages, and a line that shows its progress."""

import json
import math
from collections.abc import Callable
from contextlib import nullcontext
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from ohmlearn.errors import Mention, Style, python_style

if TYPE_CHECKING:
    from ohmlearn.report.progress import StatusLine

LINE = "ohmlearn.status_line"  # where the context of a command has it
# Parameters of Python functions, and the parameter of a command that means the same.
ALIASES = {
    "n_jobs": "threads",
    "random_state": "seed",
    "window": "horizon",
    "sample_weight": "label_weight_col",
    "node_col": "feature_node_col",
}
# Values of Python, as KEY=VALUE has them, and as some options have them.
WORDS = {"True": "yes", "False": "no", "None": "none"}
WORDS_OF = {
    "bipartite": {"True": "columns", "False": "no"},
    "weight_col": {"False": "none"},
    "time": {"True": ""},
}


def visible(text: str) -> str:
    """Return text in which control characters, such as escape sequences, are written out."""
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


def note(*lines: str) -> None:
    """Print lines for people: not with --quiet or --json."""
    options = click.get_current_context().params
    if not (options.get("quiet") or options.get("as_json")):
        tell(*lines)


def summarise(figures: dict[str, Any], *lines: str) -> None:
    """Print figures with --json, else lines about them, and nothing with --quiet."""
    options = click.get_current_context().params
    if options.get("as_json") and not options.get("quiet"):
        click.echo(json.dumps(figures), err=True)
    else:
        note(*lines)


def print_json(figures: dict[str, Any]) -> None:
    """Print figures to the standard output; infinity and NaN, which JSON does not have, as text."""
    click.echo(json.dumps(_as_json(figures)))


def _as_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _as_json(each) for name, each in value.items()}
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


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


def option_style(command: click.Command | None) -> Style:
    """Return the style that writes a parameter as the option that the command has for it.

    A parameter without an option is written as in Python. The commands of a group count together.
    """
    commands = command.commands.values() if isinstance(command, click.Group) else [command]
    flags: dict[str | None, str] = {}
    for parameter in (one for command in commands if command for one in command.params):
        flag = max(parameter.opts, key=len)
        if isinstance(parameter, click.Option):
            flags[parameter.name] = flag if parameter.is_flag else f"{flag} "
            keys: dict[str, Any] = getattr(parameter, "keys", {})
            flags |= {name: f"{flag} {key}=" for key, (name, *_) in keys.items()}

    def write(mention: Mention) -> str:
        flag = flags.get(mention.name) or flags.get(ALIASES.get(mention.name))
        if flag is None:
            return python_style(mention)
        if mention.plain in (None, "...") or flag[-1] not in " =":
            return f"{flag}..." if flag[-1] == "=" else flag.rstrip()
        words = WORDS if flag[-1] == "=" else WORDS_OF.get(mention.name, {})
        return (flag + words.get(str(mention.value), str(mention.plain))).rstrip()

    return write


def flag_of(name: str) -> str:
    """Return how the present command writes a parameter."""
    return option_style(click.get_current_context().command)(Mention(name, ""))
