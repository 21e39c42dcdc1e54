"""Read the committed figures, and format their numbers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.measure import ROOT, Figure

FOLDER = ROOT / "benchmarks" / "results"
SUITES = (
    "label_cost", "events", "labels", "advice", "trust", "scaling", "solver", "resistance",
    "sparsifier", "estimates", "hindsight", "streams", "forgetting", "edge_log", "neighbors",
    "smoothing", "features", "serve", "reasons",
)  # fmt: skip


class Results:
    """The figures of each suite; a suite without a file has no figures."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._lines = {name: _read(folder / f"{name}.jsonl") for name in SUITES}

    def figures(self, suite: str, **wanted: Any) -> list[Figure]:
        """Return all figures of a suite that have the wanted values."""
        return [
            line
            for line in self._lines[suite]
            if line["bench"] not in ("machine", "end")
            and all(line.get(key) == value for key, value in wanted.items())
        ]

    def one(self, suite: str, **wanted: Any) -> Figure:
        """Return the only figure that has the wanted values, or an empty one if there is none."""
        found = self.figures(suite, **wanted)
        if len(found) > 1:
            raise ValueError(f"{len(found)} figures of {suite} have {wanted}, one was expected")
        return found[0] if found else {}

    def machines(self) -> dict[str, Figure]:
        """Return the description of the machine of each suite."""
        return {
            name: line
            for name, lines in self._lines.items()
            for line in lines
            if line["bench"] == "machine"
        }

    def ends(self) -> dict[str, Figure]:
        """Return the last line of each suite, with the time it took."""
        return {
            name: line for name, lines in self._lines.items() for line in lines
            if line["bench"] == "end"
        }  # fmt: skip


def _read(path: Path) -> list[Figure]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def digits(value: float) -> str:
    """Format a number with two significant digits, or with all digits before the point.

    Examples
    --------
    >>> [digits(x) for x in (0.0123, 0.96, 2.34, 9.97, 46.2, 1234.5)]
    ['0.012', '0.96', '2.3', '10', '46', '1234']
    """
    if value == 0:
        return "0"
    if abs(value) >= 9.95:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 0.995 else f"{value:.2g}"


def seconds(value: float) -> str:
    """Format CPU seconds.

    Examples
    --------
    >>> seconds(0.0042), seconds(1.63)
    ('4.2 ms', '1.6 s')
    """
    return f"{digits(1000 * value)} ms" if value < 0.0995 else f"{digits(value)} s"


def memory(mib: float) -> str:
    """Format an amount of memory.

    Examples
    --------
    >>> memory(159.4), memory(2724.6)
    ('159 MiB', '2.7 GiB')
    """
    return f"{mib:.0f} MiB" if mib < 1000 else f"{mib / 1024:.1f} GiB"


def percent(share: float) -> str:
    """Format a share as a percentage; only a share of exactly 1 becomes 100%.

    Examples
    --------
    >>> percent(0.981), percent(0.9999), percent(1.0)
    ('98.1%', '>99.9%', '100%')
    """
    if share == 1.0:
        return "100%"
    return ">99.9%" if share > 0.9995 else f"{100 * share:.1f}%"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format a Markdown table.

    Examples
    --------
    >>> print(table(["a", "b"], [["1", "2"]]))
    | a | b |
    |---|---|
    | 1 | 2 |
    """
    lines = ["| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def count(number: float) -> str:
    """Format a large round number with a word for its size.

    Examples
    --------
    >>> count(10**7), count(10**9)
    ('10 million', '1 billion')
    """
    for size, name in ((1e9, "billion"), (1e6, "million")):
        if number >= size:
            return f"{number / size:g} {name}"
    return f"{number:,.0f}"


def ending(figure: Figure) -> str:
    """Return the reason why there is no figure."""
    if not figure:
        return "not run"
    if "MemoryError" in figure.get("note", "") or "out of memory" in figure.get("note", ""):
        return "out of memory"
    if figure["status"] == "unfinished":
        return f"– ({figure['note']})"
    return str(figure["status"])
