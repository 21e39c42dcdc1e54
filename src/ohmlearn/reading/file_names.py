"""Which files a path means, and which format each of them has."""

from __future__ import annotations

import glob
import os
import re
import stat
from collections.abc import Iterable
from fnmatch import fnmatchcase
from itertools import takewhile
from pathlib import PurePosixPath
from urllib.parse import unquote

from ohmlearn.reading.remote import is_remote, list_remote, open_remote
from ohmlearn.reading.source_errors import refuse_source, show_name

LOG_MANIFEST = "ohmlearn-log.json"  # a folder with this file is a log, see `EdgeLog`
COMPRESSED = (".gz", ".zst", ".bz2", ".xz")
FORMATS: dict[str, tuple[str, ...]] = {  # and the endings of their files
    "csv": (".csv",),
    "tsv": (".tsv",),
    "text": (),
    "jsonl": (".jsonl", ".ndjson", ".json"),
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".arrows", ".ipc", ".feather"),
    "matrix_market": (".mtx",),
    "metis": (".graph", ".metis"),
    "graph": (".gml", ".graphml"),
    "numpy": (".npy", ".npz"),
}
FORMAT_OF = {ending: kind for kind, endings in FORMATS.items() for ending in endings}
SHEET = "a spreadsheet cannot be read; save it as CSV, or give pandas.read_excel(path) in Python"
OTHER = "this format cannot be read; write the edges to CSV, for example with networkx"
REFUSED = dict.fromkeys((".xlsx", ".xls", ".ods"), SHEET) | dict.fromkeys(
    (
        ".gexf", ".net", ".pajek", ".dot", ".graphmlz", ".gpickle", ".lgl", ".adjlist", ".g6",
        ".s6", ".dimacs",
    ), OTHER,
)  # fmt: skip
MAGIC = {
    b"PAR1": "parquet", b"ARROW1": "arrow", b"\xff\xff\xff\xff": "arrow",
    b"\x93NUMPY": "numpy", b"PK\x03\x04": "numpy", b"%%MatrixMarket": "matrix_market",
    b"<?xml": "graph",
}  # fmt: skip
JSON = re.compile(rb'(\xef\xbb\xbf)?\s*(\[\s*)?\{\s*("|$)')
HIDDEN = ("_", ".")  # names of files and folders that other programs use for themselves
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


def find_files(pattern: str, filesystem: object = None) -> list[str]:
    """Return the files that a path, a folder or a pattern means, sorted by name.

    A pattern that fits folders only means the files in them.
    """
    if filesystem is not None or is_remote(pattern):
        return list_remote(pattern, filesystem, _choose)
    if os.path.isdir(pattern):
        found = _files_in(pattern)
        if not found:
            raise FileNotFoundError(f"{pattern} is a folder without files")
        return found
    if os.path.exists(pattern):
        return [pattern]
    if not glob.has_magic(pattern):
        raise FileNotFoundError(f"there is no file {pattern}")
    matches = [path for path in glob.glob(pattern, recursive=True) if not _is_hidden(path, pattern)]
    files = [path for path in matches if os.path.isfile(path)]
    if not files:
        folders = [path for path in matches if os.path.isdir(path)]
        files = [file for folder in folders for file in _files_in(folder)]
    if not files:
        problem = "only folders without files fit" if matches else "no file fits"
        raise FileNotFoundError(f"{problem} {pattern}")
    return sorted(set(files))


def _files_in(folder: str) -> list[str]:
    """Return the files in a folder and those below it, without hidden ones, sorted by name."""
    found: list[str] = []
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(HIDDEN)]
        found += [os.path.join(place, name) for name in names if not name.startswith(HIDDEN)]
    return sorted(found)


def _choose(paths: Iterable[str], base: str, pattern: str | None) -> list[str]:
    """Return those of the paths below a remote folder that are meant, sorted by name."""

    paths = sorted(path for path in paths if not _is_hidden(path, pattern or base))
    if pattern is None:
        return paths
    files = [] if pattern.endswith("/") else [p for p in paths if fits_pattern(p, pattern)]
    if files:
        return files
    pattern = pattern.rstrip("/")
    return [
        path
        for path in paths
        if any(fits_pattern(str(folder), pattern) for folder in PurePosixPath(path).parents)
    ]


def _is_hidden(path: str, pattern: str) -> bool:
    """Whether a file or a folder on its path is hidden, and the pattern does not ask for it."""
    marks = PurePosixPath(pattern).parts
    n_fixed = sum(1 for _ in takewhile(lambda mark: not glob.has_magic(mark), marks))
    asked = {mark[0] for mark in marks[n_fixed:]}
    parts = PurePosixPath(path).parts[n_fixed:]
    return any(part.startswith(HIDDEN) and part[0] not in asked for part in parts)


def check_one_format(folder: str, files: list[str], format: str | None, filesystem: object) -> None:
    """Refuse a folder with files of different formats: some of them hardly are edges."""
    if format is not None:
        return
    found: dict[str, list[str]] = {}
    for path in files:
        found.setdefault(find_format(path, filesystem), []).append(path)
    if len(found) > 1:
        most = sorted(found.items(), key=lambda each: -len(each[1]))
        parts = [f"{len(paths)} {kind} (such as {show_name(paths[0])})" for kind, paths in most]
        ending = os.path.splitext(most[0][1][0].partition("?")[0])[1]
        raise ValueError(
            f"{show_name(folder)} has files of different formats: {' and '.join(parts)}; choose "
            f"some with a pattern, such as {os.path.join(show_name(folder), '**', '*' + ending)}"
        )


def find_folder_columns(path: str) -> dict[str, str | None]:
    """Return the columns that names of folders have, as Hive writes them."""
    columns: dict[str, str | None] = {}
    for part in os.fspath(path).replace(os.sep, "/").split("/")[:-1]:
        name, mark, value = part.partition("=")
        if mark and name:
            columns[unquote(name)] = None if value == NO_VALUE else unquote(value)
    return columns


def is_log(path: str | os.PathLike[str]) -> bool:
    """Whether a path is the folder of a log of edges."""
    return os.path.isfile(os.path.join(path, LOG_MANIFEST))


def find_format(path: str, filesystem: object = None) -> str:
    """Return the format of a file by its name, else by its first bytes, else "text"."""
    base = path.partition("?")[0] if is_remote(path) else path
    base = base.lower()
    for ending in COMPRESSED:
        base = base.removesuffix(ending)
    ending = os.path.splitext(base)[1]
    if ending in REFUSED:
        refuse_source(path, REFUSED[ending])
    if ending in FORMAT_OF:
        return FORMAT_OF[ending]
    if filesystem is None and is_pipe(path):
        return "csv"  # whatever is read from it is lost
    return format_of_bytes(read_start(path, 16, filesystem)) or "text"


def is_pipe(path: str) -> bool:
    """Whether a path is a named pipe or a device, which can be opened and read only once."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)


def format_of_bytes(first: bytes) -> str | None:
    """Return the format that the first bytes of a file or pipe show, if any."""
    if JSON.match(first):
        return "jsonl"
    return next((kind for magic, kind in MAGIC.items() if first.startswith(magic)), None)


def read_start(path: str, count: int, filesystem: object = None) -> bytes:
    """Return the first bytes of a file."""
    if filesystem is not None or is_remote(path):
        with open_remote(path, filesystem) as remote:
            return remote.read_at(0, count)
    with open(path, "rb") as file:
        return file.read(count)


def find_size(path: str, filesystem: object = None) -> int:
    """Return the number of bytes of a file; 0 if a server does not say it."""
    if filesystem is not None or is_remote(path):
        with open_remote(path, filesystem) as remote:
            return remote.size or 0
    return os.path.getsize(path)


def fits_pattern(path: str, pattern: str) -> bool:
    """Tell whether a path, which need not exist, fits a pattern of ``glob``."""
    parts, marks = PurePosixPath(path).parts, PurePosixPath(pattern).parts

    def fits(part: int, mark: int) -> bool:
        if mark == len(marks):
            return part == len(parts)
        if marks[mark] == "**":  # any number of folders
            return any(fits(later, mark + 1) for later in range(part, len(parts) + 1))
        return (
            part < len(parts) and fnmatchcase(parts[part], marks[mark]) and fits(part + 1, mark + 1)
        )

    return fits(0, 0)
