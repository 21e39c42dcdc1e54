"""Which columns of a source hold the two ends of a row, and its weight."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import NamedTuple

from ohmlearn.streams.errors import refuse_source, shorten
from ohmlearn.streams.options import Column, ReadOptions

__all__ = ["Columns", "choose_columns"]


class Columns(NamedTuple):
    """The columns that a source uses, by position, and their names."""

    u: int
    v: int
    w: int | None
    names: Sequence[str] | None  # of all columns, if they have any
    guessed: bool

    def name(self, at: int | None) -> str | None:
        """Return the name of a column, or its position."""
        return None if at is None else f"{self.names[at]!r}" if self.names else f"column {at}"

    def __str__(self) -> str:
        how = " (guessed)" if self.guessed else ""
        weights = f"weights = {self.name(self.w)}" if self.w is not None else "no weights"
        return f"u = {self.name(self.u)}, v = {self.name(self.v)}, {weights}{how}"


def choose_columns(
    source: str, options: ReadOptions, names: Sequence[str] | None, n_columns: int
) -> Columns:
    """Return the columns that the options name, else those with usual names, else the first two.

    Examples
    --------
    >>> print(choose_columns("e.csv", ReadOptions(), ["id", "src", "dst", "weight"], 4))
    u = 'src', v = 'dst', weights = 'weight' (guessed)
    >>> print(choose_columns("e.txt", ReadOptions(weight_col=2), None, 3))
    u = column 0, v = column 1, weights = column 2 (guessed)
    """

    def find(column: Column) -> int:
        if isinstance(column, str):
            if names is None:
                refuse_source(source, f"has no names of columns, so there is no column {column!r}")
            if column not in names:
                found = ", ".join(shorten(name) for name in names[:20])
                refuse_source(source, f"has no column {column!r}, only {found}")
            return names.index(column)
        if not 0 <= column < n_columns:
            refuse_source(source, f"has no column {column}, only {n_columns} of them")
        return column

    rows = options.rows
    if n_columns < 2:
        refuse_source(source, f"{rows.one} needs two columns, got {n_columns}")
    lower = [name.strip().lower() for name in names or ()]
    usual = next((pair for pair in rows.ends if pair[0] in lower and pair[1] in lower), None)
    guess = [lower.index(name) for name in usual] if usual else [0, 1]
    u = guess[0] if options.source_col is None else find(options.source_col)
    v = guess[1] if options.target_col is None else find(options.target_col)
    if options.weight_col is None:
        # A column that the options name as an end is not a column of weights.
        ends_named = (options.source_col, options.target_col)
        named = {at for at, option in zip((u, v), ends_named, strict=True) if option is not None}
        found = (lower.index(name) for name in rows.weights if name in lower)
        w = next((at for at in found if at not in named), None)
    else:
        w = find(options.weight_col)
    guessed = options.source_col is None or options.target_col is None
    name_them = f"name them with {' and '.join(rows.options)}"
    if guessed and usual is None and len({*lower} - {*rows.weights}) > 2:
        ends = " and ".join(shorten((names or lower)[at]) for at in (u, v))
        warnings.warn(
            f"{source}: column names are not recognised; using columns {ends}, in the order of "
            f"the file, for {rows.one}; {name_them}",
            UserWarning,
            stacklevel=2,
        )
    if u == v or w in (u, v):
        refuse_source(
            source,
            f"{rows.one} needs different columns, got {u} and {v}"
            + (f", and {w} for the weights" if w is not None else "")
            + f"; {name_them}"
            + (f" and {rows.weight_option}" if rows.weights else ""),
        )
    return Columns(u, v, w, names, guessed)
