"""Errors and warnings in the words of the command line: options instead of parameters."""

import click

from ohmlearn.errors import Mention, Style, python_style

__all__ = ["option_style"]

# Parameters of Python functions, and the parameter of a command that means the same.
ALIASES = {
    "n_jobs": "threads",
    "random_state": "seed",
    "horizon": "last",
    "sample_weight": "label_weight_col",
}


def option_style(command: click.Command | None) -> Style:
    """Return the style that writes a parameter as the option that the command has for it.

    A parameter without an option is written as in Python. The commands of a group count together.

    Examples
    --------
    >>> from ohmlearn.cli import main
    >>> from ohmlearn.errors import Param, Setting, render
    >>> text = f"{Param('memory', '5MB')} needs {Param('n_nodes')}, or {Setting('quiet', True)}"
    >>> render(text, option_style(main.commands["label"]))
    '--memory 5MB needs --n-nodes, or --quiet'
    """
    commands = command.commands.values() if isinstance(command, click.Group) else [command]
    options = {
        parameter.name: parameter
        for one in commands
        if one is not None
        for parameter in one.params
        if isinstance(parameter, click.Option)
    }

    def write(mention: Mention) -> str:
        alias = ALIASES.get(mention.name, "")
        if mention.name == "bipartite" and "," in (mention.plain or ""):
            alias = "kinds"  # two names; without names it is a flag
        option = options.get(alias) or options.get(mention.name)
        if option is None:
            return python_style(mention)
        names = option.secondary_opts if mention.value == "False" else option.opts
        name = max(names or option.opts, key=len)
        if mention.plain is None or mention.value in ("True", "False", "..."):
            return name
        return f"{name} {mention.plain}"

    return write
