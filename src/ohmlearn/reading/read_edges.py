"""`read_edges`: which reader a source needs."""

from __future__ import annotations

import glob
import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, replace
from functools import partial
from importlib import import_module
from typing import Any, BinaryIO, Literal, cast

from ohmlearn.checks.edge_arrays import is_table, refuse_other_graph
from ohmlearn.graph.graph import graph_of
from ohmlearn.nodes import NodeTable
from ohmlearn.nodes.node_table import ids_or_numbers
from ohmlearn.reading.array_reader import ArraySource, BatchSource, IterableSource, columns_of_rows
from ohmlearn.reading.arrow_reader import ArrowFile, ArrowObject, open_delta
from ohmlearn.reading.byte_blocks import MAGIC
from ohmlearn.reading.csv_reader import TextSource
from ohmlearn.reading.file_edges import EdgeStream
from ohmlearn.reading.file_names import (
    check_one_format,
    find_files,
    find_format,
    format_of_bytes,
    is_log,
    is_pipe,
)
from ohmlearn.reading.graph_files import GraphFile, MatrixMarketSource, MetisSource
from ohmlearn.reading.json_reader import JsonLinesSource
from ohmlearn.reading.parquet_reader import ParquetFile
from ohmlearn.reading.read_options import ReadOptions
from ohmlearn.reading.source_errors import refuse_source
from ohmlearn.reading.table_reader import Source

READERS: dict[str, Callable[[str, ReadOptions], Source]] = {
    **{style: partial(TextSource, style=style) for style in ("csv", "tsv", "text")},
    "jsonl": JsonLinesSource,
    "parquet": ParquetFile,
    "arrow": ArrowFile,
    "matrix_market": MatrixMarketSource,
    "metis": MetisSource,
    "graph": GraphFile,
    "numpy": ArraySource,
}


def read_edges(
    source: object,
    *,
    source_col: str | int | None = None,
    target_col: str | int | None = None,
    weight_col: str | int | Literal[False] | None = None,
    format: str | None = None,
    id_type: Literal["int64", "string"] | None = None,
    on_bad: Literal["raise", "skip"] = "raise",
    header: bool | None = None,
    delimiter: str | None = None,
    comment: str | None = None,
    time: str | int | bool | None = None,
    latest: object = None,
    event_id_col: str | int | None = None,
    bipartite: bool | tuple[str, str] | None = None,
    where: str | None = None,
    filesystem: object = None,
    nodes: NodeTable | None = None,
    verbose: int = 0,
) -> EdgeStream:
    """Read edges, one per row, from files, tables, arrays or iterables, in batches.

    Parameters
    ----------
    source : path, pattern, list of these, "-", table, arrays, list of edges or iterable
        Files: CSV, TSV, blank-separated text and JSON lines (also compressed with gzip, zstd, bz2
        or xz), Parquet, Arrow IPC or Feather, MatrixMarket, METIS, GML and GraphML (with networkx),
        numpy's .npy and .npz with columns or a scipy matrix. A pattern like ``"part-*.csv"`` means
        all files that it matches, or the files in the folders that it matches; a folder means all
        files in it, sorted by name. Names of folders such as ``day=2026-01-31`` are columns for
        `time`, `weight_col` and `where`. The folder of an `EdgeLog` means its live edges, that of a
        table of Delta the rows it has. Addresses such as ``s3://bucket/edges/``, ``gs://``,
        ``abfs://`` and ``https://`` are read from there. Lines of text end with \\n, \\r\\n or
        \\r; fields in double quotes may hold line ends. "-" is the standard input, with text or an
        Arrow IPC stream; it and named pipes can be read once.
        Objects: tables, data frames and queries of pyarrow, pandas, polars and DuckDB, also
        pyarrow's datasets, polars' lazy frames and tables of Delta and Iceberg, which are read in
        batches, and any other object with ``__arrow_c_stream__``; arrays (u, v), (u, v, w) or
        (u, v, w, t), an iterable of these, or a function that returns one; a list of edges,
        ``[("ann", "bob"), ("bob", "cy", 2.0)]``.
    source_col, target_col, weight_col : str or int, optional
        Names or positions of columns. By default the ends are columns with a usual pair of names (u
        and v, src and dst, user_id and item_id, ...), or the two that are left without times,
        weights and fractions; without names, the first two. If that is not clear, an error asks for
        names. Weights are a column called w, weight or weights; without names, the column of
        numbers after the ends, unless it may be a time, which an error asks about. Else they are
        all 1, and a warning names a column of amounts that is not read. ``weight_col=False``
        ignores weights. ``"amount:log"`` is log(1 + amount), ``"amount:sqrt"`` its square root, and
        ``"amount:cap=0.99"`` the amount, but at most the 0.99 quantile of those of the first
        100,000 edges.
    format : {"csv", "tsv", "text", "jsonl", "parquet", "arrow", "matrix_market", "metis", \
"graph", "numpy"}, optional
        By default found from the name and the first bytes. "text" has comment lines that start with
        # or %, columns separated by blanks, and no header.
    id_type : {"int64", "string"}, optional
        Type of node ids in text. By default they are integers if all ids in the first rows are.
    on_bad : {"raise", "skip"}
        Whether a row with a missing id, a bad weight or a bad time raises an error, or is left out
        and counted.
    header, delimiter, comment : bool, str, str, optional
        Of text; guessed by default. A blank as delimiter means any number of blanks and tabs.
    time : str or int, or True, optional
        Name or position of the column of times; True guesses a column with a usual name (timestamp,
        time, date, ts, t, created_at, ...). By default times are not read. Numbers stay as they
        are. Dates, also as text such as 2026-03-31, 2026-03-31 12:30 or 2026-03-31T12:30:00+02:00,
        become seconds since 1970; without a time zone they are in UTC. Times that are missing or
        not finite are bad.
    latest : number or date, optional
        Later times are bad. By default dates later than tomorrow are, and numbers that are Unix
        times in s, ms, us or ns: those whose median in the first batch lies between 2001 and
        tomorrow. Other numbers have no limit.
    event_id_col : str or int, optional
        Name or position of a column of event ids, integers or strings. A row whose event was read
        before is left out and counted in `n_repeated`, so that overlapping extracts count once. The
        last 8,388,608 different ids are remembered as hashes, in at most 192 MiB; a new event is
        left out with probability less than 5e-13. A `StateFile` keeps the ids from call to call.
    bipartite : bool or (str, str), optional
        Whether the two ends are two kinds of nodes, such as users and items, and the names of the
        kinds. Then ids are strings that start with the kind, as in "user:17" and "item:17", so
        that ids of the two kinds may overlap. True takes the names from the columns ("user_id"
        becomes "user"), else "left" and "right". By default all nodes are of one kind; a warning
        says so if an id is in both of two columns whose names differ, such as user_id and item_id.
    where : str, optional
        Read only rows that fulfil a condition, such as ``"amount > 10 and kind in ('a', 'b')"``.
        Conditions compare a column with a number, a text or a date in single quotes, true or false,
        by =, !=, <, <=, >, >= or in (...); ``is null`` and ``is not null``; ``and``, ``or``,
        ``not`` and parentheses. A column with an unusual name is in double quotes. A missing value
        fulfils no comparison. Parts of Parquet files that cannot have such rows are not read.
    filesystem : file system of pyarrow or fsspec, optional
        Where the paths are. By default on this machine, or where their addresses say.
    nodes : NodeTable, optional
        The table that numbers the nodes; a new one by default.
    verbose : int
        1 prints to stderr which columns are used and how many rows are bad.

    Returns
    -------
    EdgeStream
        A stream of `Batch`. Its attribute `nodes` has the ids.

    Raises
    ------
    SourceError
        A ValueError that names source and row (counted from 1 in files, in text with header and
        comments; from 0 in objects).

    Examples
    --------
    >>> import tempfile
    >>> from ohmlearn import read_edges
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write("src,dst,weight\\nann,bob,2\\nbob,cy,0.5\\n")
    ...     file.flush()
    ...     stream = read_edges(file.name)
    ...     print(stream.columns)
    ...     for u, v, w, t in stream:
    ...         print(u, v, w, stream.nodes.ids())
    u = 'src', v = 'dst', weights = 'weight' (guessed)
    [0 1] [1 2] [2.  0.5] ['ann' 'bob' 'cy']

    User 1 and item 1 are two nodes:

    >>> import numpy as np
    >>> stream = read_edges((np.array([1, 2]), np.array([1, 1])), bipartite=("user", "item"))
    >>> [batch.u.tolist() for batch in stream], stream.nodes.ids().tolist()
    ([[0, 2]], ['user:1', 'item:1', 'user:2'])

    With times:

    >>> days = np.array(["1970-01-02", "1970-01-03"], "M8[D]")
    >>> stream = read_edges((np.array([0, 1]), np.array([1, 2]), None, days), time=True)
    >>> [batch.t.tolist() for batch in stream], stream.time_unit
    ([[86400.0, 172800.0]], 'date')
    """
    given = locals()
    options = ReadOptions(**{field.name: given[field.name] for field in fields(ReadOptions)})
    return open_stream(source, options, nodes=nodes, verbose=verbose, warns=True)


def open_stream(
    source: object,
    options: ReadOptions,
    *,
    nodes: NodeTable | None = None,
    verbose: int = 0,
    warns: bool = False,
) -> EdgeStream:
    """Return the stream of a source, as `read_edges` does, which also `warns` of lost weights."""
    if isinstance(source, str | os.PathLike) and is_log(source) and nodes is None:
        if options.where is not None:
            refuse_source(str(source), "where cannot be used with a log")
        if options.weight is not None and options.weight.function:
            refuse_source(str(source), "weights of a log are as they were added to it")
        stream: EdgeStream = _edge_log().open_log(source)
        return stream
    sources = list(find_sources(source, options))
    return EdgeStream(sources, nodes=nodes, verbose=verbose, needs_edges=True, warns=warns)


def find_sources(source: object, options: ReadOptions) -> Iterator[Source]:
    """Yield the reader of each part of a source."""
    if isinstance(source, str | os.PathLike):
        name = os.fspath(source)
        if name == "-":
            if sys.stdin is None:
                refuse_source("standard input", "is closed; send data to it, or give a file")
            yield open_pipe(sys.stdin.buffer, options)
        elif options.filesystem is None and is_pipe(name):
            kind = options.format or (find_format(name) if os.path.splitext(name)[1] else None)
            how = options if kind is None else replace(options, format=kind)
            yield open_pipe(open(name, "rb"), how, str(name))  # noqa: SIM115
        elif is_log(name):
            yield _edge_log().LogSource(str(name), options)
        elif (table := open_delta(name)) is not None:
            yield ArrowObject(table, options)
        else:
            files, filesystem = find_files(str(name), options.filesystem), options.filesystem
            if files != [name] and not glob.has_magic(str(name)):
                check_one_format(str(name), files, options.format, filesystem)
            for path in files:
                found = READERS[options.format or find_format(path, filesystem)](path, options)
                found.group = None if files == [name] else str(name)
                yield found
    elif (graph := graph_of(source)) is not None:
        (u, v, w), ids = graph.edges(), ids_or_numbers(graph.nodes, graph.n_nodes).ids()
        yield BatchSource("the graph", options, (ids[u], ids[v], w, None))
    elif is_table(source):
        yield ArrowObject(source, options)
    elif (
        isinstance(source, tuple)
        and len(source) in (2, 3, 4)
        and all(hasattr(part, "dtype") or part is None for part in source)
        and source[0] is not None
    ):
        yield BatchSource("the arrays", options, (*source, None, None)[:4])
    elif isinstance(source, list | tuple) and all(
        isinstance(part, str | os.PathLike) for part in source
    ):
        if not source:
            raise ValueError("an empty list of files has no edges")
        for part in source:
            yield from find_sources(part, options)
    elif (columns := columns_of_rows(source)) is not None:
        yield BatchSource("the list", options, columns)
    else:
        if not isinstance(source, Iterable) and not callable(source):
            refuse_other_graph(source, "a file, arrays, a table, a graph or batches of edges are")
        yield IterableSource(source, options)


def _edge_log() -> Any:
    """Return the module that reads logs, which is built on top of this package."""
    return import_module("ohmlearn.edge_log.live_edges")


def open_pipe(pipe: BinaryIO, options: ReadOptions, name: str = "standard input") -> Source:
    """Return the reader of a pipe, found from its first bytes.

    Text is read as CSV, unless its first line has blanks and no other delimiter.
    """
    buffered: Any = pipe if hasattr(pipe, "peek") else io.BufferedReader(cast(Any, pipe))
    first = buffered.peek(8)
    line, newline, _ = first.partition(b"\n")
    is_plain = newline and not first.startswith(tuple(MAGIC))
    is_text = is_plain and b" " in line.strip() and not any(mark in line for mark in b",;\t|")
    kind = options.format or format_of_bytes(first) or ("text" if is_text else "csv")
    if first.startswith(b"ARROW1"):
        refuse_source(name, "an Arrow IPC file cannot come through a pipe; send an IPC stream")
    if kind == "arrow":
        return ArrowFile(name, options, buffered)
    if kind == "jsonl":
        return JsonLinesSource(name, options, buffered)
    if kind not in ("csv", "tsv", "text"):
        refuse_source(name, f"{kind} cannot be read from a pipe; give the file by name")
    return TextSource(name, options, kind, buffered)
