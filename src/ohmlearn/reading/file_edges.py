"""The stream that `read_edges` returns."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import closing
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ohmlearn import _core
from ohmlearn._display import Shown
from ohmlearn._warnings import warn
from ohmlearn.edges.protocol import Batch, Edges
from ohmlearn.errors import OhmWarning, Param, Setting, render, text_of
from ohmlearn.nodes import NodeTable
from ohmlearn.nodes.node_ids import CodedIds, Ids, Strings, decode_ids, take, with_kind
from ohmlearn.nodes.node_table import KnownEnds, add_ends, look_up, number_ends
from ohmlearn.reading.column_choice import ColumnChoice, kinds_of_headings
from ohmlearn.reading.event_ids import recall
from ohmlearn.reading.parallel import Piece, prepare_all
from ohmlearn.reading.read_options import ReadOptions, ScaledColumn
from ohmlearn.reading.source_errors import refuse_source
from ohmlearn.reading.table_reader import RawBatch, Source, inspect_all

LOOK = 1000  # ids that `first_ids` returns, at most
SCALE_SAMPLE = 100_000  # edges whose weights decide where `cap` is
ONE_KIND = Setting("bipartite", False)
SAY_KINDS = (
    f"say which kinds there are, for example {Setting('bipartite', ('user', 'item'))}, or "
    f"{ONE_KIND}"
)
ASK_EDGES = 1 << 20  # first edges in which an id that is in both columns leads to a warning


class EdgeStream(Edges, Shown):
    """Edges of one or more sources; see `read_edges`.

    Attributes
    ----------
    nodes : NodeTable
        The user's ids; node i of the batches is the i-th of them.
    options : ReadOptions
        How the sources are read.
    rereadable : bool
        Whether ``iter()`` starts from the beginning each time.
    columns : str or None
        Which columns are used, and whether they were guessed; None if not known yet.
    kinds : tuple of str
        The node types, such as ("user", "item"), if there are two; ids start with them.
    sources : list of str
        Names of the sources.
    versions : list of dict
        Name and version of each source that is a table of Delta or Iceberg.
    n_nodes : int or None
        Number of nodes, known once all edges have been read.
    n_edges : int or None
        Number of rows, if the sources say it or all of them have been read.
    n_read, fraction : int, float or None
        Edges read so far in the current pass, and about which fraction of all edges they are.
    n_bad : int
        Rows left out in the latest reading, with ``on_bad="skip"``.
    n_repeated : int
        Rows left out in the latest reading, because their events were read before.
    first_bad : str or None
        Where the first of them is, and what is wrong with it.
    source : int
        Number of the source that the latest batch is from.
    has_times : bool
        Whether batches have times.
    times : TimeRule or None
        Which times are accepted.
    time_unit : {"date", "s", "ms", "us", "ns"} or None
        What the times are: dates, Unix times, or, if None, other numbers. Dates are seconds since
        1970 in the batches.

    Examples
    --------
    >>> from ohmlearn import read_edges
    >>> stream = read_edges([(["ann"], ["bob"]), (["bob"], ["cy"])])  # batches of edges
    >>> stream.n_nodes is None, sum(len(batch.u) for batch in stream), stream.n_nodes
    (True, 2, 3)
    >>> stream.nodes.ids().tolist()
    ['ann', 'bob', 'cy']
    """

    nodes: NodeTable
    knows_unit = True

    def __init__(
        self,
        sources: list[Source],
        *,
        nodes: NodeTable | None = None,
        verbose: int = 0,
        needs_edges: bool = False,
        warns: bool = False,
    ) -> None:
        self._sources = sources
        self._needs_edges = needs_edges  # whether ``where`` must let an edge pass
        self._verbose, self._warns = verbose, warns
        self._started = False
        self.nodes = NodeTable() if nodes is None else nodes
        self.options: ReadOptions = sources[0].options
        self.rereadable = all(source.rereadable for source in sources)
        self.sources = [source.name for source in sources]
        self.versions = [source.version for source in sources]
        self.fraction = 0.0
        self.source = 0
        self.skipped: AbstractSet[int] = set()  # numbers of sources that a pass leaves out
        self.on_source_end: Callable[[int], None] | None = None  # called before the next is read
        self.recent: _core.RecentIds | None = None  # events before a pass, which continues with it
        self.has_times = self.options.time is not None
        self.times = sources[0].times
        if self.times is not None:
            self.times.live = not self.rereadable
        self._kinds = SourceKinds(self.options)
        how = self.options.weight
        self._scale = WeightScale(how, sources) if how is not None and how.function else None
        for source in sources:
            source.times = self.times
            source.keeps_codes = True
        inspect_all(sources)
        if sources[0].columns is not None:
            self._note_columns(sources[0])
        counts = [source.n_edges for source in sources]
        if self.options.event_id_col is not None:
            counts = [None]
        self.n_edges = None if None in counts else sum(count or 0 for count in counts)

    def _facts(self) -> dict[str, Any]:
        first, *others = self.sources
        return {
            "source": f"{first} and {len(others)} more" if others else first,
            "columns": self.columns,
            "edges": self.n_edges,
            "nodes": self.n_nodes,
            "bad rows left out": self.n_bad or None,
            "repeated events left out": self.n_repeated or None,
            "times": self.times.unit if self.times is not None else None,
            "readable once": not self.rereadable,
        }

    @property
    def kinds(self) -> tuple[str, ...]:
        """The node types, if there are two, as far as they are known."""
        columns = self._sources[0].columns
        return self.nodes.kinds or (columns.kinds if columns and columns.kinds else ())

    @property
    def time_unit(self) -> str | None:
        """What the times are: "date", a unit of Unix times, or None for other numbers.

        Streams that can be read again are read until their first times; others must have been.
        """
        if self.times is None:
            return None
        if not self.times.is_known and self.rereadable:
            every = chain.from_iterable(one.batches(self.nodes.kind) for one in self._sources)
            any(self.times.is_known for _ in every)  # reads no further
        return self.times.unit

    @property
    def id_type(self) -> str | None:
        """What the ids are, "int64" or "string", before the edges are read.

        Streams that can be read again are read until their first edges. For others it is None.

        Examples
        --------
        >>> from ohmlearn import read_edges
        >>> read_edges([(["ann"], ["bob"])]).id_type
        'string'
        """
        if self.nodes.kind is not None or not self.rereadable:
            return self.nodes.kind
        ids = self._look_at_ids()
        if ids is not None and not isinstance(ids, Strings) and not self.kinds:
            return "int64"
        return None if ids is None else "string"  # kinds are in front of integers

    def first_ids(self) -> list[Any]:
        """Return ids of some nodes before the edges are read; see `id_type`.

        Examples
        --------
        >>> from ohmlearn import read_edges
        >>> read_edges([([1, 2], [1, 1])], bipartite=("user", "item")).first_ids()
        ['user:1', 'user:2']
        """
        ids = self._look_at_ids() if self.rereadable else None
        if ids is None:
            return []
        ids = take(ids, np.arange(min(ids.size, LOOK)))
        if len(self.kinds) == 2:
            ids = with_kind(ids, self.kinds[0])
        return list(decode_ids(ids).tolist())

    def _look_at_ids(self) -> Ids | None:
        """Return the ids of one end of the first edges."""
        found = (source.look_at_ids() for source in self._sources)
        return next((ids for ids in found if ids is not None), None)

    def batches(self, n_jobs: int = 1) -> Iterator[Batch]:
        """Yield the batches; with more than one job, threads read the next ones meanwhile.

        Edges, numbers of nodes and errors do not depend on the number of threads, but batches may
        end elsewhere. Only files are read ahead. The threads end with the iteration, also if it is
        closed before its end.

        Parameters
        ----------
        n_jobs : int
            Number of threads, at least 1. With 1, the caller reads each batch when it asks for it,
            unless files are on other machines, which at least 2 threads read.

        Examples
        --------
        >>> from ohmlearn import read_edges
        >>> stream = read_edges([([1], [2]), ([2], [3])])
        >>> [batch.u.tolist() for batch in stream.batches(2)]
        [[0], [1]]
        """
        chosen = [at for at in range(len(self._sources)) if at not in self.skipped]
        once = next((self.sources[at] for at in chosen if not self._sources[at].rereadable), None)
        if self._started and once is not None:
            refuse_source(
                once, "can be read only once; write it to a file to read it again (certify, passes)"
            )
        self._started = True
        self.source = self.n_read = self.n_bad = self.n_repeated = 0
        recent = None
        if self.options.event_id_col is not None:
            recent = self.recent or recall()
        self.first_bad, self.fraction = None, 0.0
        unknown = self._sources[0].columns is None
        if any(source.is_remote for source in self._sources):
            n_jobs = max(n_jobs, 2)  # so that the next files are opened while one is read
        with (
            closing(self._open_pieces(chosen, n_jobs)) as pieces,
            closing(prepare_all(pieces, n_jobs, self._is_settled)) as batches,
        ):
            unfinished = deque(chosen)
            # Threads read ahead and look up known ids. The rest is done here, in the order of the
            # stream: new ids get the next numbers, and events that were read before are left out.
            for at, source, raw, known in batches:
                self._end_sources(unfinished, at)
                if unknown and at == 0:
                    unknown = False
                    self._note_columns(source)
                self.n_bad += raw.n_bad
                self.first_bad = self.first_bad or (raw.first_bad and render(raw.first_bad))
                if recent is not None:
                    if raw.event is None:
                        refuse_source(source.name, "this format has no ids of events")
                    n_rows = len(raw.event)
                    raw = raw.rows(np.flatnonzero(recent.take(raw.event)))
                    self.n_repeated += n_rows - raw.u.size
                u, v = self._number(source, raw.u, raw.v, known)
                self.n_read += len(u)
                self.source, part = at, raw.fraction
                self.fraction = None if part is None else (at + part) / len(self._sources)
                yield Batch(u, v, raw.w, raw.t)
            self._end_sources(unfinished)
        self.n_nodes = len(self.nodes)
        if not self.skipped:
            self.n_edges = self.n_read
        if self._needs_edges and self.options.where is not None and chosen and self.n_read == 0:
            every = self.sources[0] if len(self.sources) == 1 else f"{len(self.sources)} files"
            refuse_source(every, f"no row fulfils {Param('where', self.options.where)}")
        self.fraction = 1.0
        if self.n_bad and self._verbose:
            print(f"{self.n_bad} bad rows left out; {self.first_bad}", file=sys.stderr)

    def _end_sources(self, unfinished: deque[int], present: int | None = None) -> None:
        """Report the sources before the present one, or all: their edges have been yielded."""
        while unfinished and unfinished[0] != present:
            at = unfinished.popleft()
            if self.on_source_end is not None:
                self.on_source_end(at)

    def _open_pieces(self, chosen: list[int], n_jobs: int) -> Generator[Piece]:
        """Yield the pieces of all sources that are read."""
        for at in chosen:
            source = self._sources[at]
            find = partial(self._look_up, kinds=self._kinds.check(source))
            for batches in source.pieces(self.nodes.kind, n_jobs):
                if self._scale is not None:
                    batches = self._scale.scale(batches)
                yield Piece(at, source, batches, find)

    def _is_settled(self) -> bool:
        """Whether the first edges have decided what ids and times are."""
        return self.nodes.kind is not None and (self.times is None or self.times.is_known)

    def _look_up(
        self, raw: RawBatch, to: Any, kinds: tuple[str, str] | None
    ) -> tuple[RawBatch, KnownEnds | None]:
        """Return the numbers of known nodes, and the batch without the ids that they replace."""
        if raw.event is not None:  # rows that repeat an event are no nodes, and not known yet
            return raw, None
        known = look_up(self.nodes, raw.u, raw.v, kinds, to)
        if known is not None:
            none = np.empty(0, np.int64)
            raw = raw._replace(u=none, v=none)
        return raw, known

    def _number(
        self, source: Source, u: Ids | CodedIds, v: Ids | CodedIds, known: KnownEnds | None
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the numbers of the ends of edges."""
        kinds = self._kinds.take(source, self.nodes)
        try:
            if known is None:
                a, b = add_ends(self.nodes, u, v, kinds)
            else:
                a, b = number_ends(self.nodes, known, kinds)
        except TypeError as error:  # integers after strings, or the other way round
            refuse_source(source.name, f"{text_of(error)}, or use {Setting('id_type', 'string')}")
        except ValueError as error:
            refuse_source(source.name, f"{text_of(error)}; {say_kinds(self.nodes)}")
        self._kinds.warn_if_shared(source, a, b, self.nodes)
        return a, b

    def _note_columns(self, source: Source) -> None:
        self.columns = str(source.columns)
        if self._verbose:
            print(f"{source.name}: {source.columns}", file=sys.stderr)
        if self._warns and source.columns is not None and source.columns.unread:
            name = source.columns.unread[0]  # the command line prints which columns it uses
            warn(
                f"{source.name}: no column is read as weights, though {name!r} has numbers; give "
                f"read_edges {Setting('weight_col', name)} if these are the weights, "
                f"{Setting('weight_col', False)} if there are none",
                OhmWarning,
            )


def say_kinds(nodes: NodeTable) -> str:
    """Return what to do about kinds that do not fit those of a table."""
    if len(nodes.kinds) != 2:
        return SAY_KINDS
    return f"if they are the same, use {Setting('bipartite', nodes.kinds)}"


class SourceKinds:
    """The node types in the sources of a stream.

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

    def warn_if_shared(
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


class WeightScale:
    """The function of a stream's weights.

    `cap` is a quantile of the weights of the first 100,000 edges, or of all if there are fewer, so
    it depends neither on batches nor on threads. Other edges are not needed to know it.
    """

    def __init__(self, how: ScaledColumn, sources: list[Source]) -> None:
        self._how, self._sources = how, sources
        self._cap: float | None = None

    def scale(self, batches: Iterator[RawBatch]) -> Iterator[RawBatch]:
        """Yield batches with the function of their weights."""
        if self._how.function == "cap" and self._cap is None:
            batches = self._find_cap(batches)
        for raw in batches:
            yield raw if raw.w is None else raw._replace(w=self._apply(raw.w))

    def _apply(self, w: NDArray[np.float32] | NDArray[np.float64]) -> NDArray[np.float64]:
        x: NDArray[np.float64] = w.astype(np.float64, copy=False)
        if self._how.function == "cap":
            return np.minimum(x, np.float64(self._cap or 0.0))
        return np.log1p(x) if self._how.function == "log" else np.sqrt(x)

    def _find_cap(self, batches: Iterator[RawBatch]) -> Iterator[RawBatch]:
        """Find the quantile in the first edges, and return all batches."""
        seen: list[RawBatch] = []
        name = self._sources[0].name
        if all(source.rereadable for source in self._sources):
            every: Iterable[RawBatch] = chain.from_iterable(
                source.batches(None) for source in self._sources
            )
        elif len(self._sources) == 1:
            every, batches = batches, chain(seen, batches)
        else:
            refuse_source(name, "a quantile needs files, or a single pipe; write the edges to one")
        n_left = SCALE_SAMPLE
        for raw in every:
            seen.append(raw)
            n_left -= 0 if raw.w is None else len(raw.w)
            if n_left <= 0:
                break
        weights = [np.zeros(0), *(raw.w for raw in seen if raw.w is not None)]
        first: NDArray[np.float64] = np.concatenate(weights)[:SCALE_SAMPLE].astype(np.float64)
        if len(first) > 0:
            self._cap = float(np.quantile(first, self._how.quantile, method="inverted_cdf"))
        if self._cap == 0.0:
            why = f"the {self._how.quantile:g} quantile of the weights of the first edges is 0"
            refuse_source(name, f"{why}; use a larger one, or log")
        return batches
