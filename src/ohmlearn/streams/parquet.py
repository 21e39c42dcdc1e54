"""Edges from Parquet files: only the columns and row groups that are needed are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from ohmlearn.streams.arrow import ROWS, ArrowSource
from ohmlearn.streams.columns import Columns
from ohmlearn.streams.errors import reading
from ohmlearn.streams.options import ReadOptions
from ohmlearn.streams.remote import is_remote, open_remote
from ohmlearn.streams.source import RawBatch
from ohmlearn.validation.parameters import require_extra

__all__ = ["ParquetFile"]


class ParquetFile(ArrowSource):
    """A Parquet file, or some of its row groups.

    Row groups whose statistics show that no row fulfils the condition of ``where`` are not read.
    """

    format = "Parquet"

    def __init__(self, name: str, options: ReadOptions, row_groups: range | None = None) -> None:
        super().__init__(name, options)
        self._row_groups = row_groups
        self._n_skipped = 0  # rows before those that are read
        self._metadata: Any = None

    def inspect(self) -> None:
        """Read the footer."""
        with self._open() as file:
            self._choose(file.schema_arrow)
            if self._is_remote():
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
    def _open(self, remote: Any = None) -> Iterator[Any]:
        """Open the file; a remote one may be open already."""
        parquet = require_extra("pyarrow.parquet", "files")
        with ExitStack() as stack:
            with reading(self.name, self.format):
                source: Any = self.name
                if self._is_remote():
                    source = remote or stack.enter_context(self._open_remote())
                # With pre_buffer, pyarrow keeps all that it has read until the file is closed.
                how = {"pre_buffer": False, "metadata": self._metadata}
                file = stack.enter_context(parquet.ParquetFile(source, **how))
            yield file

    def _is_remote(self) -> bool:
        return self.options.filesystem is not None or is_remote(self.name)

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

    def _read(self) -> Iterator[tuple[Columns, Any, int]]:
        with ExitStack() as stack:
            remote = stack.enter_context(self._open_remote()) if self._is_remote() else None
            file = stack.enter_context(self._open(remote))
            columns, wanted = self._project(self._choose(file.schema_arrow))
            if self._excludes_all():
                return
            parts = list(self._find_parts(file))
            n_rows = sum(self._sizes(file))
            self.n_edges = n_rows if self._rows is None else None
            if remote is not None:
                remote.will_need(_find_ranges(file, [part[0] for part in parts], wanted))
            before = self._n_rows_before(file)
            for groups, row, skipped in parts:
                for batch in file.iter_batches(ROWS, groups, wanted, use_threads=False):
                    batch = batch.select(wanted)  # pyarrow returns them in the order of the file
                    rest = batch.slice(min(skipped, batch.num_rows))
                    skipped -= batch.num_rows - rest.num_rows
                    row += batch.num_rows
                    if rest.num_rows > 0:
                        self.position = row
                        self.fraction = min(1.0, row / max(1, n_rows))
                        yield columns, rest, before + row - rest.num_rows

    def batches_from(self, kind: str | None, position: int) -> Iterator[RawBatch]:
        """Read from a row on; the row groups before it are not decoded."""
        self.position = self._n_skipped = position
        try:
            yield from self.batches(kind)
        finally:
            self._n_skipped = 0

    def _n_rows_before(self, file: Any) -> int:
        """Return the number of rows before the row groups, for messages."""
        first = 0 if self._row_groups is None else self._row_groups.start
        return sum(file.metadata.row_group(at).num_rows for at in range(first))

    def _find_parts(self, file: Any) -> Iterator[tuple[list[int] | None, int, int]]:
        """Yield row groups to read, how many rows are before them, and how many rows to skip."""
        sizes, skipped = self._sizes(file), self._n_skipped
        if self._rows is None and skipped == 0:
            yield (None if self._row_groups is None else list(self._row_groups)), 0, 0
            return
        start = 0 if self._row_groups is None else self._row_groups.start
        useful = self._find_useful(file)
        row = 0
        for group, size in enumerate(sizes, start):
            if size > max(0, skipped - row) and (useful is None or group in useful):
                yield [group], row, max(0, skipped - row)
            row += size

    def _find_useful(self, file: Any) -> set[int] | None:
        """Return the row groups that may have rows that count, by their statistics."""
        expression = None if self._rows is None else self._rows.as_expression(file.schema_arrow)
        if expression is None:
            return None
        dataset = require_extra("pyarrow.dataset", "files")
        with ExitStack() as stack:
            pa = require_extra("pyarrow", "files")
            if self._is_remote():
                source = pa.PythonFile(stack.enter_context(self._open_remote()), mode="r")
            else:
                source = stack.enter_context(pa.OSFile(self.name))
            fragment = dataset.ParquetFileFormat().make_fragment(source)
            found = fragment.subset(expression, schema=file.schema_arrow).row_groups
            return {group.id for group in found}


def _find_ranges(
    file: Any, parts: Sequence[list[int] | None], wanted: list[str]
) -> Iterator[tuple[int, int]]:
    """Yield which bytes of a file are needed for some columns of some row groups."""
    every = list(range(file.metadata.num_row_groups))
    for group in (group for part in parts for group in (every if part is None else part)):
        row_group = file.metadata.row_group(group)
        for at in range(row_group.num_columns):
            column = row_group.column(at)
            if column.path_in_schema.split(".")[0] in wanted:
                start = column.data_page_offset
                if column.has_dictionary_page and column.dictionary_page_offset:
                    start = min(start, column.dictionary_page_offset)
                yield start, start + column.total_compressed_size
