"""Commands that run in this process, as tests of the command line call them, and their tables."""

import csv
import json
from typing import Any

from click.testing import CliRunner, Result

from ohmlearn.cli import main


def invoke(*args: object, **options: Any) -> Result:
    """Run a command; `options` are those of click's runner, such as `input`."""
    return CliRunner().invoke(main, [str(arg) for arg in args], **options)


def label(*args: object, **options: Any) -> Result:
    return invoke("label", *args, **options)


def succeed(*args: object, **options: Any) -> Result:
    """Run a command that must not fail."""
    result = invoke(*args, **options)
    assert result.exit_code == 0, result.output
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
