"""Writes the output of a command, and checks that it overwrites no input or other output."""

import glob
import os
from contextlib import nullcontext
from itertools import combinations
from pathlib import Path
from typing import Any

from ohmlearn.cli.messages import status_line
from ohmlearn.cli.options import Options


def write_output(options: Options, columns: dict[str, Any]) -> None:
    """Write a table to the file that -o names, or print it."""
    from ohmlearn._phases import phase
    from ohmlearn.reading.source_errors import show_name
    from ohmlearn.report.write_table import write_table

    path, csv_safe = options["output"], options["csv_safe"]
    # A progress line would be mixed with a table on the same terminal.
    with nullcontext() if path == "-" else phase(f"writing {show_name(path)}"):
        line = status_line()
        write_table(path, columns, csv_safe, None if line is None else line.write)


def check_table(options: Options, *inputs: str | None) -> None:
    """Refuse a table that -o cannot write, or that would overwrite an input."""
    from ohmlearn.report.write_table import check_table_path

    check_table_path(options["output"], options["csv_safe"])
    check_outputs({"-o": options["output"]}, *options["edges"], *inputs)


def check_outputs(outputs: dict[str, str | None], *inputs: str | None) -> None:
    """Refuse outputs that would overwrite an input or each other, or cannot be written.

    `outputs` are paths by option, None if it was not given; `inputs` are files, folders, patterns,
    or "-" for the standard input.
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
        if not path:
            raise ValueError(f"{option} is empty; name a file")
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
