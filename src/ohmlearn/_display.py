"""How objects show themselves: in one line, and as a table in notebooks."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

CUT = 200  # characters of a value
STYLE = "text-align: left"
# Of pictures.
INK = "#1b2a38"  # dark enough for a PNG on white; replaced by currentColor in a page
# Distinguishable on white and on black, and by most colour-blind readers.
COLOURS = ("#3987c9", "#e0793a", "#3d9b73", "#9a6fd0", "#8b9199")


class Shown:
    """Base class of objects with facts to show. Showing them reads no edge and never fails."""

    def _title(self) -> str:
        """Return what the object is."""
        return type(self).__name__

    def _facts(self) -> dict[str, Any]:
        """Return what is worth knowing, by name; None and False are left out."""
        raise NotImplementedError

    def _known(self) -> tuple[str, dict[str, Any]]:
        """Return title and facts, also of an object that cannot be used."""
        title, facts = type(self).__name__, {}
        try:
            title, facts = self._title(), self._facts()
        except Exception as error:  # cut off by a fork, or half made
            facts = {"not usable:": str(error) or type(error).__name__}
        return title, {
            name: value for name, value in facts.items() if value is not None and value is not False
        }

    def __repr__(self) -> str:
        title, facts = self._known()
        words = ", ".join(_in_words(name, value) for name, value in facts.items())
        return f"<{title}: {words}>" if words else f"<{title}>"

    def _repr_html_(self) -> str:
        title, facts = self._known()
        rows = "".join(f"<tr>{_cells('th', [x])}{_cells('td', [facts[x]])}</tr>" for x in facts)
        return f'<table><caption style="{STYLE}">{escape(title)}</caption>{rows}</table>'


class HasColumns(Protocol):
    """Whatever is a table."""

    def _columns(self) -> dict[str, Any]:
        """Return equally long arrays, which may be masked, by name."""


class Tabular:
    """Base class of objects that are a table to pandas, and through Arrow to DuckDB and others."""

    def to_frame(self: HasColumns) -> pd.DataFrame:
        """Return a data frame of pandas."""
        frame: pd.DataFrame = import_module("pandas").DataFrame(self._columns())
        return frame

    def to_arrow(self: HasColumns) -> pa.Table:
        """Return a table of pyarrow; columns of numbers are not copied."""
        pa = import_module("pyarrow")
        return pa.table({name: pa.array(each) for name, each in self._columns().items()})

    def _repr_html_(self: HasColumns) -> str:
        columns = self._columns()
        rows = (_cells("td", row) for row in zip(*columns.values(), strict=True))
        return f"<table><tr>{'</tr><tr>'.join([_cells('th', columns), *rows])}</tr></table>"

    def __arrow_c_stream__(self: HasColumns, requested_schema: object = None) -> object:
        return Tabular.to_arrow(self).__arrow_c_stream__(requested_schema)


def _cells(kind: str, values: Iterable[Any]) -> str:
    return "".join(f'<{kind} style="{STYLE}">{escape(_as_text(x))}</{kind}>' for x in values)


def _in_words(name: str, value: Any) -> str:
    if value is True:
        return name
    if isinstance(value, int):
        noun, *more = name.split(" ", 1)
        if value == 1:
            noun = noun.removesuffix("es" if noun == "passes" else "s")
        return " ".join([f"{value:,} {noun}", *more])
    return f"{name} {_as_text(value)}"


def _as_text(value: Any) -> str:
    if value is True:
        return "yes"
    if isinstance(value, int):
        return f"{value:,}"
    text = f"{value:.3g}" if isinstance(value, float) else " ".join(str(value).split())
    return text if len(text) <= CUT else text[: CUT - 3] + "..."
