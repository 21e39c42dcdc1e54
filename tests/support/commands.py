"""Commands that run in this process, as tests of the command line call them, and their tables."""

import csv
import json
from typing import Any

from click.testing import CliRunner, Result

from ohmlearn.cli import main


def invoke(command: str, *args: object, **options: Any) -> Result:
    """Run a command, words with blanks between them, with more arguments.

    `options` are those of click's runner, such as `input`.
    """
    return CliRunner().invoke(main, [*command.split(" "), *map(str, args)], **options)


def label(*args: object, **options: Any) -> Result:
    return invoke("label", *args, **options)


def succeed(*args: object, said: str = "", **options: Any) -> Result:
    """Run a command that must not fail, and print what is `said`."""
    result = invoke(*args, **options)
    assert result.exit_code == 0, result.output
    assert said in result.stderr
    return result


def refuse(*args: object, said: str = "", **options: Any) -> Result:
    """Run a command that must refuse its input; its last line says why."""
    result = invoke(*args, **options)
    assert result.exit_code == 2, result.output
    assert result.stderr.splitlines()[-1].startswith("Error: ")
    assert said in result.stderr
    return result


def summary_of(result: Result) -> dict[str, Any]:
    """Return the last line of --json."""
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stderr.splitlines()[-1])
    return found


def read_rows(path: object = "out.csv") -> dict[str, dict[str, str]]:
    """Return the rows of a table by the id of their node."""
    with open(str(path), newline="", encoding="utf-8") as file:
        return {row["node"]: row for row in csv.DictReader(file)}
