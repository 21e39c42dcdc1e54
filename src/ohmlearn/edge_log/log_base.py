"""The part of `EdgeLog` that opens, reads, locks and closes a log."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from ohmlearn._arrays_file import check_folder
from ohmlearn._display import Shown
from ohmlearn._sharing import Shared, in_turn, refuse_cut_off
from ohmlearn.edge_log.compaction import Compaction
from ohmlearn.edge_log.log_errors import LogError
from ohmlearn.edge_log.log_sparsifier import (
    SparsifierInStep,
    check_sparsifier_options,
)
from ohmlearn.edge_log.log_store import Store
from ohmlearn.edge_log.log_writer import Lock, journal_path
from ohmlearn.edge_log.manifest import Manifest, sync_folder
from ohmlearn.nodes import NodeTable
from ohmlearn.reading.file_names import is_log

__all__ = ["LogBase"]


class LogBase(Shown, Shared):
    """A log that is open; `EdgeLog` adds the operations."""

    rereadable = True

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        epsilon: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        **options: Any,
    ) -> None:
        self._share()
        self.folder = Path(folder)
        self._is_cut_off = False
        self._n_jobs = n_jobs
        if epsilon is not None:
            options["epsilon"] = epsilon
        given = options if random_state is None else {**options, "random_state": random_state}
        if not is_log(self.folder):
            self._make(check_sparsifier_options({"epsilon": 0.5, **given}))
            given = {}
        self._store = Store(self.folder)
        known = self._store.manifest.sparsifier
        for name, value in given.items():
            if known.get(name) != value:
                raise ValueError(
                    f"{self.folder} was made with {name} = {known.get(name)!r}, got {value!r}; "
                    f"leave it out, or make another log"
                )
        self._in_step: SparsifierInStep | None = None
        self._follows_later = False  # the sparsifier follows in another thread, see ohmlearn.serve
        self._compaction: Compaction | None = None

    def _make(self, options: dict[str, Any]) -> None:
        if self.folder.exists() and not self.folder.is_dir():
            raise LogError(f"{self.folder} is a file, but a log is a folder; give another name")
        check_folder(self.folder)
        self.folder.mkdir(exist_ok=True)
        others = [path.name for path in self.folder.iterdir() if path.name != "lock"]
        if others and others != ["journal-000001.log"]:
            raise LogError(
                f"{self.folder} is not a log and has other files, such as {min(others)}; give an "
                f"empty folder, or one that does not exist"
            )
        lock = Lock(self.folder)
        try:
            if not is_log(self.folder):  # another process may have been faster
                journal_path(self.folder, 1).touch()
                Manifest(sparsifier=options).write(self.folder)
                sync_folder(self.folder.absolute().parent)
        finally:
            lock.release()

    def _cut_off(self) -> None:
        self._is_cut_off = True

    @property
    def _open_store(self) -> Store:
        if self._is_cut_off:
            refuse_cut_off("log")
        return self._store

    def _facts(self) -> dict[str, Any]:
        facts = {"folder": str(self.folder), "edges": self.n_edges, "nodes": self.n_nodes}
        return facts | {"times": self.has_times}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def nodes(self) -> NodeTable:
        """The ids of the nodes, in the order in which they first appeared."""
        return self._open_store.nodes

    @property
    def n_nodes(self) -> int:
        """Number of nodes that ever had an edge."""
        return len(self.nodes)

    @property
    def n_edges(self) -> int:
        """Number of live edges."""
        return self._open_store.contents.n_edges

    @property
    def has_times(self) -> bool:
        """Whether the edges have times."""
        return bool(self._open_store.has_times)

    @property
    def sources(self) -> list[str]:
        """The folder, for messages."""
        return [str(self.folder)]

    # Reading.

    @in_turn
    def refresh(self) -> Self:
        """Read what other processes have written since the log was opened."""
        store = self._open_store
        if store.is_writing:
            store.start_writing()  # refuses a forked child
        else:
            before = store.manifest.journal, store.contents.n_operations
            store.refresh()
            if (store.manifest.journal, store.contents.n_operations) != before:
                self._in_step = None
        return self

    # Writing.

    def _writing(self) -> Store:
        """Return the store after this process has acquired the right to write."""
        store = self._open_store
        if not store.is_writing:
            before = store.manifest.journal, store.contents.n_operations
            store.start_writing()  # reads what others have written
            if (store.manifest.journal, store.contents.n_operations) != before:
                self._in_step = None
        return store

    @contextmanager
    def _operation(self, sync: bool) -> Iterator[Store]:
        """Do one operation; afterwards the sparsifier is in step again."""
        store = self._writing()
        try:
            with store.operation(sync):
                yield store
        except BaseException:
            self._drop_unusable()
            raise
        if self._in_step is not None and not self._follows_later:
            self._in_step.follow()

    def _drop_unusable(self) -> None:
        """Drop a sparsifier that has seen an operation that was undone, or is half-changed."""
        kept = self._in_step
        if kept is not None:
            with kept.lock:
                if not (kept.is_whole and kept.is_within(self._store.contents)):
                    self._in_step = None

    @in_turn
    def flush(self) -> None:
        """Make operations with ``sync=False`` durable."""
        try:
            self._open_store.flush()
        except BaseException:
            self._drop_unusable()
            raise

    def close(self) -> None:
        """Flush, save the sparsifier, and let others write. The log can be used again later."""
        try:
            self._wait_for_compaction()
        finally:
            with self._lock:
                try:
                    self.flush()
                    self._drop_unusable()
                    if self._in_step is not None and self._store.is_writing:
                        self._in_step.follow()
                        self._in_step.save()
                finally:
                    self._store.close()

    def _wait_for_compaction(self) -> None:
        """Wait without the lock, which a compaction in the background needs at its end."""
        compaction, self._compaction = self._compaction, None
        if compaction is not None:
            compaction.wait()

    @in_turn
    def info(self) -> dict[str, Any]:
        """Return figures about the log.

        Examples
        --------
        >>> import tempfile
        >>> from ohmlearn import EdgeLog
        >>> with tempfile.TemporaryDirectory() as folder, EdgeLog(folder) as log:
        ...     _ = log.append([1, 1, 2], [2, 3, 3])
        ...     _ = log.remove([1], [2])
        ...     info = log.info()
        >>> info["n_edges"], info["n_dead"], info["n_nodes"]
        (2, 1, 3)
        """
        store = self._open_store
        contents = store.contents
        return {
            "n_edges": contents.n_edges,
            "n_nodes": len(store.nodes),
            "n_dead": contents.n_removed,
            "n_operations": contents.n_operations,
            "n_segments": len(contents.segment_rows),
            "n_records": contents.n_records,
            "has_times": self.has_times,
            "id_kind": store.nodes.kind,
            "bytes": store.size(),
            "generation": store.manifest.generation,
            "sparsifier": dict(store.manifest.sparsifier),
        }
