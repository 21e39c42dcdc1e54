"""Messages of Python functions in the words of the command line: options instead of parameters."""

import re
from collections.abc import Callable
from functools import partial

import click

__all__ = ["in_options"]

# Parameters of Python functions, and the parameter of a command that means the same.
ALIASES = {
    "n_jobs": "threads",
    "random_state": "seed",
    "horizon": "last",
    "sample_weight": "label_weight_col",
}
# What a message may mention that only Python has.
WORDS: dict[str, str | Callable[[re.Match[str]], str]] = {
    r" of [A-Z]\w+ (?=must be )": " ",
    r"\bgive a file that save has written": "give an .ohm file of --state, or of sparsify -o",
    r"(?<=for )where\b|\bwhere(?= compares | needs: | is empty| has more)": "--where",
    r'\bbipartite=\("([^"]*)", "([^"]*)"\)': r"--kinds \1,\2",
    r"\bbipartite=False\b": "--one-kind",
    r"; see graph_use_\b": "",
    r"\bt\[\d+\] = (\S+)": r"the time \1",
    r"\bread_edges\(\.\.\., ([^()]*)\)": r"\1",
    r"\bthe first is at position (\d+)": lambda at: f"the first is number {int(at[1]) + 1}",
}
# A word that is no part of a path or a quotation.
START, END = r"(?<![\w./'\"-])", r"(?![\w./'\"=-])"
VALUE = r"\d{4}-\d\d-\d\d[\dT:.+Z-]*|'[^']*'|\"[^\"]*\"|\.\.\.|-?\d[\d.]*(?:e[+-]?\d+)?|\w+"
BEFORE = r"(?<=give )|(?<=raise )|(?<=lower )|(?<=without )"
AFTER = r"(?= must )|(?= needs )"


def in_options(text: str, command: click.Command | None) -> str:
    """Write parameters of Python functions as the options that the command has for them.

    A message names a parameter as ``name = value``, ``name="value"``, or, if it could not be an
    English word, as ``name`` alone. English words count in ``name must`` and ``give name``.

    Examples
    --------
    >>> from ohmlearn.cli import main
    >>> in_options('correct it, or use on_bad="skip"', main.commands["info"])
    'correct it, or use --on-bad skip'
    >>> in_options("memory = '5MB' needs n_nodes", main.commands["label"])
    '--memory 5MB needs --n-nodes'
    >>> in_options("time=2026/edges.csv has no column 'max_edges'", main.commands["label"])
    "time=2026/edges.csv has no column 'max_edges'"
    """
    for pattern, word in WORDS.items():
        text = re.sub(pattern, word, text)
    for name, option in _options(command).items():
        text = re.sub(
            rf"{START}{name} ?= ?({VALUE})(?=[\s;,:)]|$)", partial(_with_value, option), text
        )
        word = f"{START}{name}{END}"
        if "_" not in name and name not in ALIASES:
            word = rf"(?:{BEFORE}){word}|{word}(?:{AFTER})"
        text = re.sub(word, option, text)
    return text


def _with_value(option: str, found: re.Match[str]) -> str:
    value = found[1].strip("'\"")
    return option if value in ("...", "True") else f"{option} {value}"


def _options(command: click.Command | None) -> dict[str, str]:
    """Return the option for each parameter; those of all commands of a group together."""
    commands = command.commands.values() if isinstance(command, click.Group) else [command]
    parameters = [parameter for one in commands if one is not None for parameter in one.params]
    options = {str(parameter.name): max(parameter.opts, key=len) for parameter in parameters}
    options = {name: option for name, option in options.items() if option.startswith("--")}
    aliases = {name: options[other] for name, other in ALIASES.items() if other in options}
    return options | aliases
