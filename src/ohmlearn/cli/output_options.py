"""Output options, and a check that no output overwrites an input or another output."""

import glob
import os
from collections.abc import Callable
from contextlib import nullcontext
from itertools import combinations
from pathlib import Path
from typing import Any

import click

from ohmlearn.cli.messages import status_line

__all__ = ["check_outputs", "output_options", "write_output"]

OPTIONS = (
    click.option(
        "-o",
        "--output",
        default="-",
        help="Parquet, CSV, TSV, JSON lines or Arrow by its ending, also at an address such as "
        "s3://bucket/labels.csv; - prints CSV.",
    ),
    click.option(
        "--csv-safe",
        is_flag=True,
        help="Write ' before names that a spreadsheet would take for a formula, such as =1+1.",
    ),
)


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add where and how a table is written."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def write_output(path: str, columns: dict[str, Any], csv_safe: bool) -> None:
    """Write a table to a file, or print it."""
    from ohmlearn._phases import phase
    from ohmlearn.reading.source_errors import show_name
    from ohmlearn.report.write_table import write_table

    # A progress line would be mixed with a table on the same terminal.
    with nullcontext() if path == "-" else phase(f"writing {show_name(path)}"):
        line = status_line()
        write_table(path, columns, csv_safe, None if line is None else line.write)


def check_outputs(outputs: dict[str, str | None], *inputs: str | None) -> None:
    """Refuse outputs that would overwrite an input or each other, or cannot be written.

    Parameters
    ----------
    outputs : dict
        Path by option; None if the option was not given.
    *inputs : str or None
        Files, folders and patterns, as `find_files` takes them; "-" is the standard input.
    """
    from ohmlearn._arrays_file import check_folder, check_writable
    from ohmlearn.reading.remote import check_remote_output, is_remote
    from ohmlearn.reading.source_errors import show_name

    paths = {
        option: path
        for option, path in outputs.items()
        if path is not None and (option, path) != ("-o", "-")
    }
    for option, path in paths.items():
        if is_remote(path) and option != "-o":
            raise ValueError(
                f"{option} {show_name(path)} must be on this machine; name a file here"
            )
        if os.path.isdir(path):
            raise ValueError(f"{option} {path} is a folder; name a file in it")
    for (option, path), (other, other_path) in combinations(paths.items(), 2):
        if _is_same(path, other_path):
            raise ValueError(
                f"{option} {show_name(path)} and {other} {show_name(other_path)} are the same "
                f"file; name another one"
            )
    for option, path in paths.items():
        for name in inputs:
            overwritten = None if name in (None, "-") else _find_overwritten(path, str(name))
            if overwritten is not None:
                raise ValueError(
                    f"{option} {show_name(path)} would overwrite what is read: {overwritten}; name "
                    f"another file"
                )
    for option, path in paths.items():
        if is_remote(path):
            check_remote_output(path)
        else:
            check_folder(path, option)
            check_writable(path, option)


def _find_overwritten(output: str, name: str) -> str | None:
    """Return the input file that the output would overwrite, or None.

    An output in an input folder, or one that fits an input pattern, is described as well, because
    the next run would read it.
    """
    from ohmlearn.reading.file_names import find_files, fits_pattern
    from ohmlearn.reading.remote import is_remote
    from ohmlearn.reading.source_errors import show_name

    if is_remote(name) or is_remote(output):
        here, there = (show_name(address).rstrip("/") for address in (output, name))
        if here.startswith(there + "/"):
            return f"it is in the folder {there}"
        return there if here == there or fits_pattern(here, there) else None
    here, there = os.path.realpath(output), os.path.realpath(name)
    if os.path.isdir(name):
        if Path(here).is_relative_to(there):
            return f"it is in the folder {name}"
    elif glob.has_magic(name) and not os.path.exists(name) and fits_pattern(here, there):
        return f"it fits the pattern {name}"
    try:
        files = find_files(name)
    except FileNotFoundError:  # the reader says so better
        return None
    return next((file for file in files if _is_same(output, file)), None)


def _is_same(path: str, other: str) -> bool:
    """Whether two names are the same file, also by symbolic or hard links."""
    if os.path.exists(path) and os.path.exists(other):
        return os.path.samefile(path, other)
    return os.path.realpath(path) == os.path.realpath(other)
