"""Edges from Parquet files: only the columns and row groups that are needed are read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

from ohmlearn.checks.parameters import require_extra
from ohmlearn.reading.arrow_reader import ROWS, ArrowSource
from ohmlearn.reading.column_choice import ColumnChoice
from ohmlearn.reading.read_options import ReadOptions
from ohmlearn.reading.remote import open_remote
from ohmlearn.reading.source_errors import reading
from ohmlearn.reading.table_reader import RawBatch

__all__ = ["ParquetFile"]

# Row groups with fewer rows are read together: opening the file for each would take longer. One of
# 2**20 rows, as pyarrow writes them, is read on its own.
ROWS_TOGETHER = 1 << 18
BUFFER = 1 << 20  # bytes of a column that are read at a time; without it, a whole row group is
# Bytes that a value takes if it is a code in a dictionary. A text would take 4 more than its own.
CODE_BYTES = 2.5


class Part(NamedTuple):
    """Row groups that are read one after the other."""

    groups: list[int]
    row: int  # number of their first row, among those of the source
    end: int  # and of the row after their last one


class Plan(NamedTuple):
    """What is read of a file."""

    columns: ColumnChoice
    wanted: list[str]
    parts: list[Part]
    n_rows: int
    before: int  # rows in row groups before those of the source
    metadata: Any


class ParquetFile(ArrowSource):
    """A Parquet file, or some of its row groups.

    Row groups whose statistics show that no row fulfils the condition of ``where`` are not read.
    """

    format = "Parquet"
    reads_files = True

    def __init__(self, name: str, options: ReadOptions, row_groups: range | None = None) -> None:
        super().__init__(name, options)
        self._row_groups = row_groups
        self._metadata: Any = None

    def inspect(self) -> None:
        """Read the footer."""
        with self._open() as file:
            self._choose(file.schema_arrow)
            if self.is_remote:
                self._metadata = file.metadata  # fetched once
            if self._rows is not None:
                self._rows.as_expression(file.schema_arrow)  # refuses types that do not fit
            else:
                self.n_edges = sum(self._sizes(file))

    def sizes(self) -> list[int]:
        """Return the numbers of rows in the row groups."""
        with self._open() as file:
            return self._sizes(file)

    def _sizes(self, file: Any) -> list[int]:
        """Return the numbers of rows in the row groups."""
        every = range(file.metadata.num_row_groups)
        groups = every if self._row_groups is None else self._row_groups
        return [file.metadata.row_group(at).num_rows for at in groups]

    @contextmanager
    def _open(self, remote: Any = None, plan: Plan | None = None) -> Iterator[Any]:
        """Open the file; a remote one may be open already."""
        parquet = require_extra("pyarrow.parquet", "files")
        with ExitStack() as stack:
            with reading(self.name, self.format):
                opened: Any = self.name
                if self.is_remote:
                    opened = remote or stack.enter_context(self._open_remote())
                # With pre_buffer, pyarrow keeps all that it has read until the file is closed.
                how = {"pre_buffer": False, "metadata": self._metadata}
                if plan is not None:
                    how = {"metadata": plan.metadata, "read_dictionary": self._find_coded(plan)}
                    how |= {"pre_buffer": False, "buffer_size": 0 if remote else BUFFER}
                file = stack.enter_context(parquet.ParquetFile(opened, **how))
            yield file

    @contextmanager
    def _open_remote(self) -> Iterator[Any]:
        with self.take_ahead() or open_remote(self.name, self.options.filesystem) as remote:
            if not remote.seekable():
                raise ValueError(
                    "the server does not send parts of a file, which this format needs; download "
                    "it first"
                )
            remote.will_need([])  # until it is known which columns are
            yield remote

    def _read(self) -> Iterator[tuple[ColumnChoice, Any, int]]:
        with ExitStack() as stack:
            remote = stack.enter_context(self._open_remote()) if self.is_remote else None
            with self._open(remote) as file:
                plan = self._plan(file)
            if remote is not None:
                remote.will_need(_find_ranges(plan))
            for columns, batch, row in self._read_parts(plan, remote):
                self.fraction = _fraction(plan, row + batch.num_rows)
                yield columns, batch, row

    def _plan(self, file: Any) -> Plan:
        """Choose columns and row groups."""
        columns, wanted = self._project(self._choose(file.schema_arrow))
        parts = [] if self._excludes_all() else list(self._find_parts(file))
        n_rows = sum(self._sizes(file))
        if not self._excludes_all():
            self.n_edges = n_rows if self._rows is None else None
        return Plan(columns, wanted, parts, n_rows, self._n_rows_before(file), file.metadata)

    def _read_parts(
        self, plan: Plan, remote: Any = None
    ) -> Iterator[tuple[ColumnChoice, Any, int]]:
        if not plan.parts:
            return
        with self._open(remote, plan) as file:
            for part in _join(plan.parts):
                row = plan.before + part.row
                for batch in file.iter_batches(ROWS, part.groups, plan.wanted, use_threads=False):
                    # pyarrow returns the columns in the order of the file
                    yield plan.columns, batch.select(plan.wanted), row
                    row += batch.num_rows

    def pieces(self, kind: str | None, n_jobs: int) -> Iterator[Iterator[RawBatch]]:
        """Yield row groups, each of which a thread may read, or several small ones."""
        if n_jobs == 1 or self.is_remote:
            yield from super().pieces(kind, n_jobs)
            return
        with self._open() as file:
            plan = self._plan(file)
        for part in _join(plan.parts, ROWS_TOGETHER):
            yield self._read_piece(plan._replace(parts=[part]), kind)

    def _read_piece(self, plan: Plan, kind: str | None) -> Iterator[RawBatch]:
        """Read a part of the file, without a change to this object."""
        end = 0

        def note(found: tuple[ColumnChoice, Any, int]) -> tuple[ColumnChoice, Any, int]:
            nonlocal end
            end = found[2] + found[1].num_rows
            return found

        for raw in self._convert(map(note, self._read_parts(plan)), kind):
            yield raw._replace(fraction=_fraction(plan, end))

    def _n_rows_before(self, file: Any) -> int:
        """Return the number of rows before the row groups, for messages."""
        first = 0 if self._row_groups is None else self._row_groups.start
        return sum(file.metadata.row_group(at).num_rows for at in range(first))

    def _find_coded(self, plan: Plan) -> list[str]:
        """Return the columns of ids whose values are codes in dictionaries of strings.

        A column that does not stay so, because its dictionary became too large, is not among them:
        pyarrow would make codes of the other strings, which takes longer than looking them up.
        """
        found: list[str] = []
        schema = plan.metadata.schema
        for name in plan.wanted[:2] if self.keeps_codes else ():
            paths = [schema.column(at).path for at in range(len(schema))]
            at = paths.index(name) if name in paths else -1
            if at < 0 or schema.column(at).physical_type != "BYTE_ARRAY":
                continue
            groups = (group for part in plan.parts for group in part.groups)
            chunks = [plan.metadata.row_group(group).column(at) for group in groups]
            n_bytes = sum(
                chunk.total_uncompressed_size - _dictionary_size(chunk) for chunk in chunks
            )
            n_values = sum(chunk.num_values for chunk in chunks)
            if (
                all(chunk.has_dictionary_page for chunk in chunks)
                and n_bytes < CODE_BYTES * n_values
            ):
                found.append(name)
        return found

    def _find_parts(self, file: Any) -> Iterator[Part]:
        """Yield the row groups to read."""
        start = 0 if self._row_groups is None else self._row_groups.start
        useful = self._find_useful(file)
        row = 0
        for group, size in enumerate(self._sizes(file), start):
            if size > 0 and (useful is None or group in useful):
                yield Part([group], row, row + size)
            row += size

    def _find_useful(self, file: Any) -> set[int] | None:
        """Return the row groups that may have rows that count, by their statistics."""
        expression = None if self._rows is None else self._rows.as_expression(file.schema_arrow)
        if expression is None:
            return None
        dataset = require_extra("pyarrow.dataset", "files")
        with ExitStack() as stack:
            pa = require_extra("pyarrow", "files")
            if self.is_remote:
                source = pa.PythonFile(stack.enter_context(self._open_remote()), mode="r")
            else:
                source = stack.enter_context(pa.OSFile(self.name))
            fragment = dataset.ParquetFileFormat().make_fragment(source)
            found = fragment.subset(expression, schema=file.schema_arrow).row_groups
            return {group.id for group in found}


def _fraction(plan: Plan, row: int) -> float:
    """Return which share of the source has been read before a row."""
    return min(1.0, (row - plan.before) / max(1, plan.n_rows))


def _dictionary_size(chunk: Any) -> int:
    """Return the bytes of the dictionary of a column of a row group, as they are in the file."""
    start = chunk.dictionary_page_offset
    return chunk.data_page_offset - start if start and start < chunk.data_page_offset else 0


def _join(parts: Iterable[Part], most: float = math.inf) -> Iterator[Part]:
    """Yield parts in order; those that follow each other become one of at most so many rows."""
    last: Part | None = None
    for part in parts:
        if last is None:
            last = part
        elif part.row == last.end and part.end - last.row <= most:
            last = last._replace(groups=last.groups + part.groups, end=part.end)
        else:
            yield last
            last = part
    if last is not None:
        yield last


def _find_ranges(plan: Plan) -> Iterator[tuple[int, int]]:
    """Yield which bytes of a file are needed for some columns of some row groups."""
    for group in (group for part in plan.parts for group in part.groups):
        row_group = plan.metadata.row_group(group)
        for at in range(row_group.num_columns):
            column = row_group.column(at)
            if column.path_in_schema.split(".")[0] in plan.wanted:
                start = column.data_page_offset
                if column.has_dictionary_page and column.dictionary_page_offset:
                    start = min(start, column.dictionary_page_offset)
                yield start, start + column.total_compressed_size
