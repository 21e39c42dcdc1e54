"""Edges from files, pipes and objects, with the user's node ids numbered as they come."""

from __future__ import annotations

import glob
import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, Literal, cast

from ohmlearn.nodes import NodeTable
from ohmlearn.streams.arrays import ArraySource, BatchSource
from ohmlearn.streams.arrow import ArrowFile, ArrowObject, ArrowPipe, ParquetFile
from ohmlearn.streams.batch import EdgeBatch
from ohmlearn.streams.bytes import starts_with
from ohmlearn.streams.errors import check_source_options, refuse_source
from ohmlearn.streams.iterables import IterableSource
from ohmlearn.streams.matrix_market import MatrixMarketSource
from ohmlearn.streams.source import Columns, Request, Source
from ohmlearn.streams.text import TextSource
from ohmlearn.validation.parameters import check_option

__all__ = [
    "FORMATS",
    "READERS",
    "EdgeStream",
    "find_files",
    "find_format",
    "make_request",
    "read_edges",
]

FORMATS = ("csv", "tsv", "text", "parquet", "arrow", "matrix_market", "numpy")
COMPRESSED = (".gz", ".zst", ".bz2", ".xz")
ENDINGS = {
    ".csv": "csv",
    ".tsv": "tsv",
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
READERS: dict[str, Callable[[str, Request], Source]] = {
    "csv": lambda name, request: TextSource(name, request, "csv"),
    "tsv": lambda name, request: TextSource(name, request, "tsv"),
    "text": lambda name, request: TextSource(name, request, "text"),
    "parquet": ParquetFile,
    "arrow": ArrowFile,
    "matrix_market": MatrixMarketSource,
    "numpy": ArraySource,
}


class EdgeStream:
    """Edges of one or more sources; see `read_edges`.

    Attributes
    ----------
    nodes : NodeTable
        The user's ids; node i of the batches is the i-th of them.
    rereadable : bool
        Whether ``iter()`` begins anew each time.
    columns : str or None
        Which columns are taken, and whether they were guessed; None if not known yet.
    sources : list of str
    n_nodes : int or None
        Nodes of all edges, once they have been read to the end.
    n_edges : int or None
        Rows, where that is known beforehand or from a complete reading.
    n_read, fraction : int, float or None
        Edges of the present reading so far, and about the share that they are.
    n_bad : int
        Rows left out in the latest reading, with ``on_bad="skip"``.
    first_bad : str or None
        Where the first of them is, and what is wrong with it.

    Examples
    --------
    >>> from ohmlearn import read_edges
    >>> stream = read_edges([(["ann"], ["bob"]), (["bob"], ["cy"])])  # batches of edges
    >>> stream.n_nodes is None, sum(len(batch.u) for batch in stream), stream.n_nodes
    (True, 2, 3)
    >>> stream.nodes.ids().tolist()
    ['ann', 'bob', 'cy']
    """

    def __init__(self, sources: list[Source], nodes: NodeTable, verbose: int) -> None:
        self._sources = sources
        self._verbose = verbose
        self._started = False
        self._complete: int | None = None  # edges of a complete reading
        self._at: tuple[int, Source] | None = None
        self.nodes = nodes
        self.rereadable = all(source.rereadable for source in sources)
        self.sources = [source.name for source in sources]
        self.n_bad = 0
        self.first_bad: str | None = None
        self.n_read = 0
        for source in sources:
            source.inspect()
        if sources[0].columns is not None:
            self._tell(sources[0])

    @property
    def columns(self) -> str | None:
        """Which columns are taken, and whether they were guessed; None if not known yet."""
        columns: Columns | None = self._sources[0].columns
        return None if columns is None else str(columns)

    @property
    def n_nodes(self) -> int | None:
        """Number of nodes, known once the stream has been read to its end."""
        return None if self._complete is None else len(self.nodes)

    @property
    def n_edges(self) -> int | None:
        """Number of edges where it is known, from the sources or from a complete reading."""
        if self._complete is not None:
            return self._complete
        counts = [source.n_edges for source in self._sources]
        return None if None in counts else sum(count or 0 for count in counts)

    @property
    def fraction(self) -> float | None:
        """Share of the present reading that is done, about; None if it cannot be known."""
        if self._at is None:
            return 0.0
        at, source = self._at
        part = source.fraction
        return None if part is None else (at + part) / len(self._sources)

    def __iter__(self) -> Iterator[EdgeBatch]:
        if self._started and not self.rereadable:
            once = next(source.name for source in self._sources if not source.rereadable)
            refuse_source(
                once, "can be read only once; write it to a file to read it again (certify, passes)"
            )
        self._started = True
        self.n_bad, self.first_bad, self.n_read = 0, None, 0
        for at, source in enumerate(self._sources):
            self._at = at, source
            unknown = source.columns is None
            for raw in source.batches(self.nodes.kind):
                if unknown and at == 0:
                    unknown = False
                    self._tell(source)
                self.n_bad += raw.n_bad
                self.first_bad = self.first_bad or raw.first_bad
                try:
                    u, v = self.nodes.add_edges(raw.u, raw.v)
                except TypeError as error:  # integers after strings, or the other way round
                    refuse_source(source.name, f'{error}, or use id_type="string"')
                self.n_read += len(u)
                yield EdgeBatch(u, v, raw.w)
        self._complete = self.n_read
        self._at = len(self._sources), self._sources[-1]
        self._sources[-1].fraction = 0.0
        if self.n_bad and self._verbose:
            print(f"{self.n_bad} bad rows left out; {self.first_bad}", file=sys.stderr)

    def _tell(self, source: Source) -> None:
        if self._verbose:
            print(f"{source.name}: {source.columns}", file=sys.stderr)


def read_edges(
    source: Any,
    source_col: str | int | None = None,
    target_col: str | int | None = None,
    weight_col: str | int | None = None,
    *,
    format: str | None = None,
    id_type: Literal["int64", "string"] | None = None,
    on_bad: Literal["raise", "skip"] = "raise",
    header: bool | None = None,
    delimiter: str | None = None,
    comment: str | None = None,
    nodes: NodeTable | None = None,
    verbose: int = 0,
) -> EdgeStream:
    """Read edges, one a row, from nearly anything, batch after batch.

    Parameters
    ----------
    source : path, pattern, list of these, "-", table, arrays or iterable
        Files: CSV, TSV and blank-separated text (also with gzip, zstd, bz2 or xz), Parquet, Arrow
        IPC or Feather, MatrixMarket, numpy's .npy and .npz with columns or a scipy matrix. A
        pattern like ``"part-*.csv"`` stands for all files it fits, a folder for all in it, by name.
        Lines of text end with \\n, \\r\\n or \\r; fields in double quotes may hold line ends.
        "-" is the standard input, with text or an Arrow IPC stream. Also any object with
        ``__arrow_c_stream__`` (pyarrow, pandas, polars, duckdb), arrays (u, v) or (u, v, w), an
        iterable of such, or a function that returns one.
    source_col, target_col, weight_col : str or int, optional
        Names or positions of columns. By default the ends are columns with a usual pair of names (u
        and v, src and dst, source and target, from and to, ...), else the first two; weights are a
        column called w, weight or weights, else all 1.
    format : {"csv", "tsv", "text", "parquet", "arrow", "matrix_market", "numpy"}, optional
        By default told from the name and the first bytes. "text" has comments after # or %, columns
        divided by blanks, and no header.
    id_type : {"int64", "string"}, optional
        Of node ids in text; integers by default where the beginning of the text has only such.
    on_bad : {"raise", "skip"}
        Rows with a missing id or a bad weight end the reading, or are left out and counted.
    header, delimiter, comment : bool, str, str, optional
        Of text; guessed by default. A blank as delimiter stands for any number of blanks and tabs.
    nodes : NodeTable, optional
        Table to number the nodes in; a new one by default.
    verbose : int
        1 prints the columns taken, and bad rows, to stderr.

    Returns
    -------
    EdgeStream
        A stream of `EdgeBatch`. Its attribute `nodes` has the ids.

    Raises
    ------
    SourceError
        A ValueError that names file and row (counted from 1 in text, header and comments included;
        from 0 elsewhere).

    Examples
    --------
    >>> import tempfile
    >>> from ohmlearn import read_edges
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write("src,dst,weight\\nann,bob,2\\nbob,cy,0.5\\n")
    ...     file.flush()
    ...     stream = read_edges(file.name)
    ...     print(stream.columns)
    ...     for u, v, w in stream:
    ...         print(u, v, w, stream.nodes.ids())
    u = 'src', v = 'dst', weights = 'weight' (guessed)
    [0 1] [1 2] [2.  0.5] ['ann' 'bob' 'cy']
    """
    if format is not None:
        check_option("format", format, FORMATS)
    request = make_request(
        source_col, target_col, weight_col, id_type, on_bad, header, delimiter, comment
    )
    sources = list(find_sources(source, request, format))
    return EdgeStream(sources, NodeTable() if nodes is None else nodes, verbose)


def make_request(
    source_col: str | int | None = None,
    target_col: str | int | None = None,
    weight_col: str | int | None = None,
    id_type: str | None = None,
    on_bad: str = "raise",
    header: bool | None = None,
    delimiter: str | None = None,
    comment: str | None = None,
) -> Request:
    """Check what was asked of all sources of a stream."""
    check_option("on_bad", on_bad, ("raise", "skip"))
    check_source_options(source_col, target_col, weight_col, delimiter, comment)
    if id_type is not None:
        check_option("id_type", id_type, ("int64", "string"))
    kind = cast(Literal["int64", "string"] | None, id_type)
    return Request(
        source_col, target_col, weight_col, kind, on_bad == "skip", header, delimiter, comment
    )


def find_sources(source: Any, request: Request, kind: str | None) -> Iterator[Source]:
    """Say how each part of a source is to be read."""
    if isinstance(source, str | os.PathLike):
        name = os.fspath(source)
        if name == "-":
            yield open_pipe(sys.stdin.buffer, request, kind)
        else:
            for path in find_files(str(name)):
                yield READERS[kind or find_format(path)](path, request)
    elif hasattr(source, "__arrow_c_stream__"):
        yield ArrowObject(source, request)
    elif is_arrays(source):
        yield BatchSource("the arrays", request, (*source, None)[:3])
    elif isinstance(source, list | tuple) and all(
        isinstance(part, str | os.PathLike) for part in source
    ):
        if not source:
            raise ValueError("an empty list of files has no edges")
        for part in source:
            yield from find_sources(part, request, kind)
    elif isinstance(source, Iterable) or callable(source):
        yield IterableSource(source, request)
    else:
        remedy = "; call collect() on it first" if hasattr(source, "collect") else ""
        raise TypeError(
            f"edges come from files, arrays, tables with __arrow_c_stream__ or iterables of "
            f"batches, not from {type(source).__name__}{remedy}"
        )


def is_arrays(source: Any) -> bool:
    """Tell (u, v) or (u, v, w) from other tuples."""
    if not isinstance(source, tuple) or len(source) not in (2, 3):
        return False
    return all(hasattr(part, "dtype") or part is None for part in source) and source[0] is not None


def find_files(pattern: str) -> list[str]:
    """Return the files that a path, a folder or a pattern stands for, sorted by name."""
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
    if os.path.exists(pattern) or not glob.has_magic(pattern):
        if not os.path.exists(pattern):
            raise FileNotFoundError(f"there is no file {pattern}")
        return [pattern]
    matches = sorted(path for path in glob.glob(pattern, recursive=True) if os.path.isfile(path))
    if not matches:
        raise FileNotFoundError(f"no file fits {pattern}")
    return matches


def find_format(path: str) -> str:
    """Tell the format of a file by its name, else by its first bytes, else take it for text."""
    base = path.lower()
    for ending in COMPRESSED:
        base = base.removesuffix(ending)
    ending = os.path.splitext(base)[1]
    if ending in ENDINGS:
        return ENDINGS[ending]
    first = starts_with(path, 16)
    return next((kind for magic, kind in MAGIC.items() if first.startswith(magic)), "text")


def open_pipe(pipe: BinaryIO, request: Request, kind: str | None) -> Source:
    """Tell what comes through a pipe by its first bytes; text is taken for CSV."""
    name = "standard input"
    buffered: Any = pipe if hasattr(pipe, "peek") else io.BufferedReader(cast(Any, pipe))
    first = buffered.peek(8)[:8]
    if kind is None:
        kind = next((kind for magic, kind in MAGIC.items() if first.startswith(magic)), "csv")
    if first.startswith(b"ARROW1"):
        refuse_source(name, "an Arrow IPC file cannot come through a pipe; send an IPC stream")
    if kind == "arrow":
        return ArrowPipe(name, request, buffered)
    if kind not in ("csv", "tsv", "text"):
        refuse_source(name, f"{kind} cannot be read from a pipe; give the file by name")
    return TextSource(name, request, kind, buffered)
