"""Which columns of a source hold the two ends of a row, its weight and its time."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import NamedTuple, NoReturn

from ohmlearn.streams.errors import refuse_source, shorten
from ohmlearn.streams.options import TIMES, Column, ReadOptions

__all__ = ["Columns", "choose_columns"]


class Columns(NamedTuple):
    """The columns that a source uses, by position, and their names."""

    u: int
    v: int
    w: int | None
    names: Sequence[str] | None  # of all columns, if they have any
    guessed: bool
    t: int | None = None

    def name(self, at: int | None) -> str | None:
        """Return the name of a column, or its position."""
        return None if at is None else f"{self.names[at]!r}" if self.names else f"column {at}"

    def __str__(self) -> str:
        how = " (guessed)" if self.guessed else ""
        weights = f"weights = {self.name(self.w)}" if self.w is not None else "no weights"
        times = f", times = {self.name(self.t)}" if self.t is not None else ""
        return f"u = {self.name(self.u)}, v = {self.name(self.v)}, {weights}{times}{how}"

    @property
    def used(self) -> list[int]:
        """Positions of the columns that are read: ends, weight, time."""
        return [at for at in (self.u, self.v, self.w, self.t) if at is not None]


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
    >>> print(choose_columns("e.csv", ReadOptions(time=True), ["ts", "a", "b"], 3))
    u = 'a', v = 'b', no weights, times = 'ts' (guessed)
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
    others_named = (options.source_col, options.target_col, options.weight_col)
    taken = {find(column) for column in others_named if column is not None}
    t = None
    if options.time is True:
        found = (lower.index(name) for name in TIMES if name in lower)
        t = next((at for at in found if at not in taken), None)
        if t is None:
            _refuse_guess(source, names, n_columns)
    elif options.time is not None:
        t = find(options.time)
    if t is not None and lower:
        lower[t] = ""  # it is neither an end nor a weight
    usual = next((pair for pair in rows.ends if pair[0] in lower and pair[1] in lower), None)
    others = [at for at in range(n_columns) if at != t]
    if len(others) < 2:
        refuse_source(source, f"{rows.one} needs two columns and one of times, got {n_columns}")
    guess = [lower.index(name) for name in usual] if usual else others[:2]
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
    guessed = options.source_col is None or options.target_col is None or options.time is True
    name_them = f"name them with {' and '.join(rows.options)}"
    unnamed = options.source_col is None or options.target_col is None
    if unnamed and usual is None and len({*lower} - {*rows.weights, ""}) > 2:
        ends = " and ".join(shorten((names or lower)[at]) for at in (u, v))
        warnings.warn(
            f"{source}: column names are not recognised; using columns {ends}, in the order of "
            f"the file, for {rows.one}; {name_them}",
            UserWarning,
            stacklevel=2,
        )
    if u == v or w in (u, v) or (t is not None and t in (u, v, w)):
        refuse_source(
            source,
            f"{rows.one} needs different columns, got {u} and {v}"
            + (f", and {w} for the weights" if w is not None else "")
            + (f", and {t} for the times" if t is not None else "")
            + f"; {name_them}"
            + (f" and {rows.weight_option}" if rows.weights else ""),
        )
    return Columns(u, v, w, names, guessed, t)


def _refuse_guess(source: str, names: Sequence[str] | None, n_columns: int) -> NoReturn:
    if names is None:
        problem = (
            f"has no names of columns, so the column of times cannot be guessed; give its "
            f"position, for example time={n_columns - 1}"
        )
    else:
        found = ", ".join(shorten(name) for name in names[:20])
        problem = (
            f"no column has a usual name of times, such as {TIMES[0]!r}; the columns are {found}; "
            f'if one has the times, name it, for example time="{names[-1]}"'
        )
    refuse_source(source, problem)
