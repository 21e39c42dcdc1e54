"""The files of the page: everything in ``serve/page``, read once.

Addresses are looked up in this table and never become paths of files, so that no address leads
out of the folder.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent / "page"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


class PageFile(NamedTuple):
    """What is sent for one address."""

    content: bytes
    media_type: str


def _read(folder: Path) -> dict[str, PageFile]:
    files = sorted(file for file in folder.iterdir() if file.suffix in TYPES)
    return {
        "/" if file.name == "index.html" else f"/page/{file.name}": PageFile(
            file.read_bytes(), TYPES[file.suffix]
        )
        for file in files
        if not file.name.startswith(".")  # left by an editor
    }


PAGE = _read(FOLDER)
