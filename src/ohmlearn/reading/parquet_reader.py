"""Edges from Parquet files: only the columns and row groups that are needed are read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from ohmlearn.checks.parameters import require_extra
from ohmlearn.reading.arrow_reader import ROWS, ArrowSource
from ohmlearn.reading.column_choice import ColumnChoice
from ohmlearn.reading.read_options import ReadOptions
from ohmlearn.reading.remote import fetch_ahead, open_remote_parts
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
    row: int  # number of their first row in the file
    end: int  # and of the row after their last one


class Plan(NamedTuple):
    """What is read of a file."""

    columns: ColumnChoice
    wanted: list[str]
    parts: list[Part]
    rows: range  # of the source, by their numbers in the file
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
        self._metadata: Any = None  # of a remote file, which is fetched once

    def inspect(self) -> None:
        """Read the footer."""
        with self._open() as file:
            self._plan(file)

    def sizes(self) -> list[int]:
        """Return the numbers of rows in the row groups."""
        with self._open() as file, self._parquet(file) as parquet:
            return [parquet.metadata.row_group(at).num_rows for at in self._groups(parquet)]

    def _groups(self, parquet: Any) -> range:
        every = range(parquet.metadata.num_row_groups)
        return every if self._row_groups is None else self._row_groups

    @contextmanager
    def _open(self) -> Iterator[Any]:
        """Yield the name of a file on this machine; open a remote one."""
        if self.is_remote:
            with open_remote_parts(self.name, self.options.filesystem) as file:
                yield file
        else:
            yield self.name

    @contextmanager
    def _parquet(self, file: Any, **how: Any) -> Iterator[Any]:
        parquet = require_extra("pyarrow.parquet", "files")
        with (
            reading(self.name, self.format),
            parquet.ParquetFile(file, **{"metadata": self._metadata, **how}) as opened,
        ):
            yield opened

    def _plan(self, file: Any) -> Plan:
        """Choose columns and row groups."""
        with self._parquet(file) as parquet:
            metadata, schema = parquet.metadata, parquet.schema_arrow
            groups = self._groups(parquet)
        self._metadata = metadata if self.is_remote else None
        columns, wanted = self._project(self._choose(schema))
        useful = set(groups)
        if self._rows is not None:
            useful = set() if self._rows.excludes_all() else self._find_useful(file, schema, useful)
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
        self.n_edges = row - start if self._rows is None else None
        return Plan(columns, wanted, parts, range(start, row), metadata)

    def _find_useful(self, file: Any, schema: Any, groups: set[int]) -> set[int]:
        """Return the row groups that may have rows that count, by their statistics."""
        expression = self._rows.as_expression(schema)
        if expression is None:
            return groups
        dataset = require_extra("pyarrow.dataset", "files")
        pa = require_extra("pyarrow", "files")
        with pa.OSFile(file) if isinstance(file, str) else nullcontext(file) as source:
            fragment = dataset.ParquetFileFormat().make_fragment(source)
            found = fragment.subset(expression, schema=schema).row_groups
            return groups & {group.id for group in found}

    def _read(self) -> Iterator[tuple[ColumnChoice, Any, int]]:
        with self._open() as file:
            plan = self._plan(file)
            if self.is_remote:  # the next part is fetched while one is used
                tasks = (partial(self._fetch_part, file, plan, part) for part in plan.parts)
                parts: Iterator[Any] = fetch_ahead(tasks, 1)
            else:
                parts = (self._read_part(file, plan, part) for part in plan.parts)
            for columns, batch, row in chain.from_iterable(parts):
                self.fraction = _fraction(plan, row + batch.num_rows)
                yield columns, batch, row

    def _read_part(
        self, file: Any, plan: Plan, part: Part
    ) -> Iterator[tuple[ColumnChoice, Any, int]]:
        """Read row groups of a file on this machine, a little at a time."""
        # With pre_buffer, pyarrow would keep all that it has read until the file is closed.
        how = {"pre_buffer": False, "buffer_size": BUFFER, "metadata": plan.metadata}
        row = part.row
        with self._parquet(file, **how, read_dictionary=self._find_coded(plan, part)) as parquet:
            for batch in parquet.iter_batches(ROWS, part.groups, plan.wanted, use_threads=False):
                # pyarrow returns the columns in the order of the file
                yield plan.columns, batch.select(plan.wanted), row
                row += batch.num_rows

    def _fetch_part(self, file: Any, plan: Plan, part: Part) -> list[tuple[ColumnChoice, Any, int]]:
        """Fetch row groups of a remote file, all columns that are needed at the same time."""
        how = {"pre_buffer": True, "read_dictionary": self._find_coded(plan, part)}
        with self._parquet(file, **how) as parquet:
            table = parquet.read_row_groups(part.groups, plan.wanted, use_threads=False)
        found, row = [], part.row
        for batch in table.select(plan.wanted).to_batches(ROWS):
            found.append((plan.columns, batch, row))
            row += batch.num_rows
        return found

    def pieces(self, kind: str | None, n_jobs: int) -> Iterator[Iterator[RawBatch]]:
        """Yield row groups, each of which a thread may read, or several small ones."""
        if n_jobs == 1 or self.is_remote:
            yield from super().pieces(kind, n_jobs)
            return
        plan = self._plan(self.name)
        for part in plan.parts:
            yield self._read_piece(plan, part, kind)

    def _read_piece(self, plan: Plan, part: Part, kind: str | None) -> Iterator[RawBatch]:
        """Read a part of the file, without a change to this object."""
        end = part.row

        def note(found: tuple[ColumnChoice, Any, int]) -> tuple[ColumnChoice, Any, int]:
            nonlocal end
            end = found[2] + found[1].num_rows
            return found

        for raw in self._convert(map(note, self._read_part(self.name, plan, part)), kind):
            yield raw._replace(fraction=_fraction(plan, end))

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


def _fraction(plan: Plan, row: int) -> float:
    """Return which fraction of the source has been read before a row."""
    return min(1.0, (row - plan.rows.start) / max(1, len(plan.rows)))


def _dictionary_size(chunk: Any) -> int:
    """Return the bytes of the dictionary of a column of a row group, as they are in the file."""
    start = chunk.dictionary_page_offset
    return chunk.data_page_offset - start if start and start < chunk.data_page_offset else 0
