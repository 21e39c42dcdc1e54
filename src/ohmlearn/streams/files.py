"""Which files a path means, and which format each of them has."""

from __future__ import annotations

import glob
import os

__all__ = ["LOG_MANIFEST", "find_files", "find_format", "format_of_bytes", "is_log", "read_start"]

LOG_MANIFEST = "ohmlearn-log.json"  # a folder with this file is a log, see `EdgeLog`
COMPRESSED = (".gz", ".zst", ".bz2", ".xz")
ENDINGS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".ipc": "arrow",
    ".feather": "arrow",
    ".mtx": "matrix_market",
    ".npy": "numpy",
    ".npz": "numpy",
}
MAGIC = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"\xff\xff\xff\xff": "arrow",
    b"\x93NUMPY": "numpy",
    b"PK\x03\x04": "numpy",
    b"%%MatrixMarket": "matrix_market",
}


def find_files(pattern: str) -> list[str]:
    """Return the files that a path, a folder or a pattern means, sorted by name."""
    if os.path.isdir(pattern):
        found = [
            os.path.join(folder, name)
            for folder, _, names in os.walk(pattern)
            for name in names
            if not name.startswith(("_", "."))
        ]
        if not found:
            raise FileNotFoundError(f"{pattern} is a folder without files")
        return sorted(found)
    if os.path.exists(pattern):
        return [pattern]
    if not glob.has_magic(pattern):
        raise FileNotFoundError(f"there is no file {pattern}")
    matches = sorted(path for path in glob.glob(pattern, recursive=True) if os.path.isfile(path))
    if not matches:
        raise FileNotFoundError(f"no file fits {pattern}")
    return matches


def is_log(path: str | os.PathLike[str]) -> bool:
    """Whether a path is the folder of a log of edges."""
    return os.path.isfile(os.path.join(path, LOG_MANIFEST))


def find_format(path: str) -> str:
    """Return the format of a file by its name, else by its first bytes, else "text"."""
    base = path.lower()
    for ending in COMPRESSED:
        base = base.removesuffix(ending)
    ending = os.path.splitext(base)[1]
    return ENDINGS.get(ending) or format_of_bytes(read_start(path, 16)) or "text"


def format_of_bytes(first: bytes) -> str | None:
    """Return the format that the first bytes of a file or pipe show, if any."""
    return next((kind for magic, kind in MAGIC.items() if first.startswith(magic)), None)


def read_start(path: str, count: int) -> bytes:
    """Return the first bytes of a file."""
    with open(path, "rb") as file:
        return file.read(count)
