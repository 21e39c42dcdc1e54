"""Edges from Parquet files: only the columns and row groups that are needed are read."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from ohmlearn.checks.parameters import require_extra
from ohmlearn.reading.arrow_reader import ROWS, ArrowSource, Found
from ohmlearn.reading.column_choice import ColumnChoice
from ohmlearn.reading.read_options import ReadOptions
from ohmlearn.reading.remote import RemoteFile, fetch_ahead, open_remote
from ohmlearn.reading.source_errors import reading
from ohmlearn.reading.table_reader import RawBatch

# Row groups with fewer rows are read together: opening the file for each would take longer. One of
# 2**20 rows, as pyarrow writes them, is read on its own.
ROWS_TOGETHER = 1 << 18
BUFFER = 1 << 20  # bytes of a column that are read at a time; without it, a whole row group is
GAP = 1 << 16  # bytes of a remote file that are fetched rather than asked around
# Bytes that a value takes if it is a code in a dictionary. A text would take 4 more than its own.
CODE_BYTES = 2.5


class Part(NamedTuple):
    """Row groups that are read one after the other."""

    groups: list[int]
    row: int  # number of their first row in the file
    end: int  # and of the row after their last one


class Plan(NamedTuple):
    """What is read of a file."""

    columns: ColumnChoice
    wanted: list[str]
    parts: list[Part]
    rows: range  # of the source, by their numbers in the file
    metadata: Any

    def find(self, batch: Any, row: int) -> Found:
        """Return a batch as `ArrowSource._read` yields it."""
        end = row + batch.num_rows - self.rows.start
        return Found(self.columns, batch, row, min(1.0, end / max(1, len(self.rows))))


class ParquetFile(ArrowSource):
    """A Parquet file, or some of its row groups.

    Row groups whose statistics show that no row fulfils the condition of ``where`` are not read.
    """

    format = "Parquet"
    reads_files = True

    def __init__(self, name: str, options: ReadOptions, row_groups: range | None = None) -> None:
        super().__init__(name, options)
        self._row_groups = row_groups
        self._metadata: Any = None  # of a remote file, which is fetched once
        self._known: RemoteFile | None = None  # what its server has said

    def inspect(self) -> None:
        """Read the footer."""
        with self.open_file() as file:
            self._plan(file)

    def sizes(self) -> list[int]:
        """Return the numbers of rows in the row groups."""
        with self.open_file() as file, self.open_parquet(file) as parquet:
            return [parquet.metadata.row_group(at).num_rows for at in self._groups(parquet)]

    def _groups(self, parquet: Any) -> range:
        every = range(parquet.metadata.num_row_groups)
        return every if self._row_groups is None else self._row_groups

    @contextmanager
    def open_file(self) -> Iterator[str | RemoteFile]:
        """Yield the name of a file on this machine; open a remote one."""
        if self.is_remote:
            # The footer is fetched once, so this must stay the file that it belongs to.
            place = (self.name, self.options.filesystem, self._known)
            with open_remote(*place, in_parts=True) as self._known:
                yield self._known
        else:
            yield self.name

    @contextmanager
    def open_parquet(self, file: str | RemoteFile, **how: Any) -> Iterator[Any]:
        """Open the file in pyarrow."""
        parquet = require_extra("pyarrow.parquet", "files")
        given = file if isinstance(file, str) else file.native
        with (
            reading(self.name, self.format),
            parquet.ParquetFile(given, **{"metadata": self._metadata, **how}) as opened,
        ):
            yield opened

    def _plan(self, file: str | RemoteFile) -> Plan:
        """Choose columns and row groups."""
        with self.open_parquet(file) as parquet:
            metadata, schema = parquet.metadata, parquet.schema_arrow
            groups = self._groups(parquet)
        self._metadata = metadata if self.is_remote else None
        columns, wanted = self._project(self._choose(schema))
        useful = set(groups)
        if self.condition is not None:
            expression = self.condition.as_expression(schema)
            if self.condition.excludes_all():
                useful = set()
            elif expression is not None:
                useful &= self._find_useful(file, schema, expression)
        parts: list[Part] = []
        row = start = sum(metadata.row_group(at).num_rows for at in range(groups.start))
        for group in groups:
            end = row + metadata.row_group(group).num_rows
            last = parts[-1] if parts else Part([], -1, -1)
            if last.end == row and end - last.row <= ROWS_TOGETHER and group in useful:
                parts[-1] = Part([*last.groups, group], last.row, end)
            elif group in useful and end > row:
                parts.append(Part([group], row, end))
            row = end
        self.n_edges = row - start if self.condition is None else None
        return Plan(columns, wanted, parts, range(start, row), metadata)

    def _find_useful(self, file: str | RemoteFile, schema: Any, expression: Any) -> set[int]:
        """Return the row groups that may have rows that count, by their statistics."""
        dataset = require_extra("pyarrow.dataset", "files")
        pa = require_extra("pyarrow", "files")
        with pa.OSFile(file) if isinstance(file, str) else nullcontext(file.native) as source:
            fragment = dataset.ParquetFileFormat().make_fragment(source)
            found = fragment.subset(expression, schema=schema).row_groups
            return {group.id for group in found}

    def _read(self) -> Iterator[Found]:
        with self.open_file() as file:
            plan = self._plan(file)
            if isinstance(file, str):
                parts: Iterator[Any] = (self._read_part(file, plan, part) for part in plan.parts)
            else:  # the next part is fetched while one is used
                tasks = (partial(self._fetch_part, file, plan, part) for part in plan.parts)
                parts = fetch_ahead(tasks, 1)
            yield from chain.from_iterable(parts)

    def _read_part(self, file: str, plan: Plan, part: Part) -> Iterator[Found]:
        """Read row groups of a file on this machine, a little at a time."""
        # With pre_buffer, pyarrow would keep all that it has read until the file is closed.
        how = {"pre_buffer": False, "buffer_size": BUFFER, "metadata": plan.metadata}
        row = part.row
        with self.open_parquet(
            file, **how, read_dictionary=self._find_coded(plan, part)
        ) as parquet:
            for batch in parquet.iter_batches(ROWS, part.groups, plan.wanted, use_threads=False):
                # pyarrow returns the columns in the order of the file
                yield plan.find(batch.select(plan.wanted), row)
                row += batch.num_rows

    def _fetch_part(self, file: RemoteFile, plan: Plan, part: Part) -> list[Found]:
        """Fetch row groups of a remote file, all columns that are needed at the same time."""
        if not file.is_native:
            file.fetch(_find_ranges(plan, part))
        how = {"pre_buffer": file.is_native, "read_dictionary": self._find_coded(plan, part)}
        with self.open_parquet(file, **how) as parquet:
            table = parquet.read_row_groups(part.groups, plan.wanted, use_threads=False)
        found, row = [], part.row
        for batch in table.select(plan.wanted).to_batches(ROWS):
            found.append(plan.find(batch, row))
            row += batch.num_rows
        return found

    def pieces(self, kind: str | None, n_jobs: int) -> Iterator[Iterator[RawBatch]]:
        """Yield row groups, each of which a thread may read, or several small ones."""
        if n_jobs == 1 or self.is_remote:
            yield from super().pieces(kind, n_jobs)
            return
        plan = self._plan(self.name)
        for part in plan.parts:
            yield self._convert(self._read_part(self.name, plan, part), kind)

    def _find_coded(self, plan: Plan, part: Part) -> list[str]:
        """Return the columns of ids whose values are codes in dictionaries of strings.

        A column that does not stay so, because its dictionary became too large, is not among them:
        pyarrow would make codes of the other strings, which takes longer than looking them up.
        """
        found: list[str] = []
        schema = plan.metadata.schema
        paths = [schema.column(at).path for at in range(len(schema))]
        for name in plan.wanted[:2] if self.keeps_codes else ():
            at = paths.index(name) if name in paths else -1
            if at < 0 or schema.column(at).physical_type != "BYTE_ARRAY":
                continue
            chunks = [plan.metadata.row_group(group).column(at) for group in part.groups]
            n_bytes = sum(each.total_uncompressed_size - _dictionary_size(each) for each in chunks)
            n_values = sum(chunk.num_values for chunk in chunks)
            if all(x.has_dictionary_page for x in chunks) and n_bytes < CODE_BYTES * n_values:
                found.append(name)
        return found


def _find_ranges(plan: Plan, part: Part) -> list[tuple[int, int]]:
    """Return which bytes of a file have the columns that are needed of some row groups."""
    ranges: list[tuple[int, int]] = []
    for group in map(plan.metadata.row_group, part.groups):
        for column in map(group.column, range(group.num_columns)):
            if column.path_in_schema.partition(".")[0] not in plan.wanted:
                continue
            start = min(column.dictionary_page_offset or math.inf, column.data_page_offset)
            end = start + column.total_compressed_size
            if ranges and 0 <= start - ranges[-1][1] <= GAP:
                start = ranges.pop()[0]
            ranges.append((start, end))
    return ranges


def _dictionary_size(chunk: Any) -> int:
    """Return the bytes of the dictionary of a column of a row group, as they are in the file."""
    start = chunk.dictionary_page_offset
    return chunk.data_page_offset - start if start and start < chunk.data_page_offset else 0
