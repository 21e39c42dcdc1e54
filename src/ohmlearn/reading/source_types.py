"""Which kinds of nodes the sources of a stream have, and whether they agree."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ohmlearn._warnings import warn
from ohmlearn.errors import OhmWarning, Setting
from ohmlearn.nodes import NodeTable
from ohmlearn.reading.column_choice import ColumnChoice, kinds_of_headings
from ohmlearn.reading.read_options import ReadOptions
from ohmlearn.reading.source_errors import refuse_source
from ohmlearn.reading.table_reader import Source

ONE_KIND = Setting("bipartite", False)
SAY_KINDS = (
    f"say which kinds there are, for example {Setting('bipartite', ('user', 'item'))}, or "
    f"{ONE_KIND}"
)
ASK_EDGES = 1 << 20  # edges in which ids that two columns share are looked for


def say_kinds(nodes: NodeTable) -> str:
    """Return what to do about kinds that do not fit those of a table."""
    if len(nodes.kinds) != 2:
        return SAY_KINDS
    return f"if they are the same, use {Setting('bipartite', nodes.kinds)}"


class SourceKinds:
    """The kinds of nodes in the sources of a stream.

    A source whose columns have no names has the kinds of those before it, because the parts of a
    large file may have names in the first part only.
    """

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._before: tuple[str, str] | None = None
        self._asked = False
        self._n_looked = 0
        self._seen = np.zeros(0, dtype=bool), np.zeros(0, dtype=bool)  # which nodes are in u, in v

    def check(self, source: Source) -> tuple[str, str] | None:
        """Return the kinds of a source."""
        columns = source.columns
        if columns is None or source.node_kinds:
            return None
        if columns.names is None and self._before is not None:
            return self._before
        self._before = columns.kinds
        return columns.kinds

    def take(self, source: Source, nodes: NodeTable) -> tuple[str, str] | None:
        """Return the kinds of a source that is read, and compare them with those of a table."""
        if source.node_kinds:
            nodes.add_kinds(source.node_kinds)
            return None
        kinds = self.check(source)
        named = isinstance(self._options.bipartite, tuple)
        if kinds and nodes.kinds and not named and not set(kinds) <= set(nodes.kinds):
            refuse_source(
                source.name,
                f"has the kinds {' and '.join(kinds)}, but the nodes so far are of the kinds "
                f"{' and '.join(nodes.kinds)}; {say_kinds(nodes)}",
            )
        return kinds

    def ask(
        self, source: Source, u: NDArray[np.int32], v: NDArray[np.int32], nodes: NodeTable
    ) -> None:
        """Warn if two columns share ids, and their names do not say whether these are two kinds."""
        columns: ColumnChoice | None = source.columns
        if columns is None or not columns.ask_kinds or self._asked or self._n_looked > ASK_EDGES:
            return
        self._n_looked += len(u)
        for side, ends in zip(self._seen, (u, v), strict=True):
            side.resize(len(nodes), refcheck=False)  # adds False
            side[ends] = True
        shared = np.flatnonzero(self._seen[0] & self._seen[1])
        if len(shared) == 0:
            return
        self._asked = True
        example = nodes.ids(shared[:1]).tolist()[0]
        assert columns.names is not None
        kinds = kinds_of_headings(columns.names[columns.u], columns.names[columns.v])
        warn(
            f"{source.name}: {example} is in both columns, {columns.name(columns.u)} and "
            f"{columns.name(columns.v)}, and is read as one node; if these are different things, "
            f"use {Setting('bipartite', kinds)}, if not, {ONE_KIND}",
            OhmWarning,
        )
