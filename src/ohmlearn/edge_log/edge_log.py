"""`EdgeLog`: edges on disk that can be appended and removed."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ohmlearn import _core
from ohmlearn._display import Shown
from ohmlearn._sharing import Shared, in_turn, refuse_cut_off
from ohmlearn._warnings import warn
from ohmlearn.checks.edge_arrays import (
    MAX_NODES,
    EdgeNames,
    check_same_length,
    check_weights,
    raise_edge_fault,
)
from ohmlearn.checks.parameters import check_option
from ohmlearn.checks.times import check_moment, check_times
from ohmlearn.edge_log.compaction import Compaction, choose_segments
from ohmlearn.edge_log.journal import Rows
from ohmlearn.edge_log.live_edges import LiveEdges, Pairs, find_edges, find_nodes
from ohmlearn.edge_log.log_sparsifier import (
    MAX_STALENESS,
    SAVED,
    KeptSparsifier,
    LogFollower,
    SparsifierInStep,
    check_sparsifier_options,
)
from ohmlearn.edge_log.log_store import Store, make_log
from ohmlearn.edge_log.manifest import LogError
from ohmlearn.edge_log.records import EdgeColumns
from ohmlearn.edges import Batch
from ohmlearn.edges.in_memory import NamedEdges
from ohmlearn.errors import InputError, InPython, OhmWarning, Param
from ohmlearn.graph import Graph
from ohmlearn.nodes import NodeTable
from ohmlearn.nodes.node_ids import as_ids
from ohmlearn.reading.as_edges import as_named_edges
from ohmlearn.reading.file_names import is_log
from ohmlearn.sparsifier import StreamingSparsifier
from ohmlearn.sparsifier.sparsifier_options import SparsifierOptions
from ohmlearn.sparsifier.sparsifier_times import check_arrivals

Given = ArrayLike | None
Missing = Literal["warn", "raise", "ignore"]


def _of_store(path: str, doc: str) -> Any:
    """Return a property of a log that is one of its store."""
    get = attrgetter(path)
    return property(lambda log: get(log._open_store), doc=doc)


class EdgeLog(Shown, Shared):
    """Edges in a folder on disk, to which edges are appended and from which they are removed.

    An operation is on disk when the call returns: after a crash or a loss of power, all operations
    that have returned are there, and no others. Edges that are removed are only marked, until
    `compact` rewrites the files. One process at a time may write; any number may read. A log is a
    stream of its live edges: `fit_edges`, `refine`, `certify` and `read_edges` accept it, or its
    folder.

    A log keeps a sparsifier in step with its edges; see `snapshot` and `staleness`. A `follower`
    does so in another thread.

    Parameters
    ----------
    folder : path
        It is made if it does not exist.
    epsilon, random_state, n_jobs, **options
        Parameters of the sparsifier, as for `StreamingSparsifier`; epsilon is 0.5 by default. They
        are stored when the log is made, and need not be given again.

    Attributes
    ----------
    folder : Path
    nodes : NodeTable
        The ids of the nodes, in the order in which they first appeared.
    n_edges, n_dead, n_nodes : int
        Number of live edges, of dead ones that are still on disk, and of nodes that ever had one.
    n_operations, n_durable : int
        Number of operations ever, with those that wait for a flush and without them.
    n_updates : int
        Edges that were appended, removed or have expired; grows while this process writes.
    has_times : bool
        Whether the edges have times.
    parameters : dict
        Parameters of the sparsifier, with its seed.
    is_writing, is_compacting : bool
        Whether this process may write, and whether a compaction is at work in the background.

    Examples
    --------
    >>> import tempfile
    >>> from ohmlearn import EdgeLog
    >>> folder = tempfile.TemporaryDirectory()
    >>> with EdgeLog(folder.name, random_state=0) as log:
    ...     _ = log.append(["ann", "bob", "cy"], ["bob", "cy", "ann"], [1.0, 2.0, 0.5])
    ...     log.remove(["cy"], ["bob"]).n_removed
    1
    >>> [batch.w.tolist() for batch in EdgeLog(folder.name)]
    [[1.0, 0.5]]
    >>> folder.cleanup()
    """

    rereadable = True

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        epsilon: float | None = None,
        random_state: object = None,
        n_jobs: int | None = None,
        **options: Any,
    ) -> None:
        self._make_lock()
        self.folder = Path(folder)
        self.sources = [str(folder)]  # for messages
        self._is_cut_off = False
        self._n_jobs = n_jobs
        if epsilon is not None:
            options["epsilon"] = epsilon
        given = options if random_state is None else {**options, "random_state": random_state}
        if not is_log(self.folder):
            make_log(self.folder, check_sparsifier_options({"epsilon": 0.5, **given}))
            given = {}
        self._store = Store(self.folder)
        known = self._store.manifest.sparsifier
        for name, value in given.items():
            if known.get(name) != value:
                raise InputError(
                    f"{self.folder} was made with {Param(name, known.get(name))}, got {value!r}; "
                    f"leave it out, or make another log"
                )
        self._in_step: SparsifierInStep | None = None
        self._has_follower = False  # then operations do not change the sparsifier
        self._compaction: Future[None] | None = None

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

    nodes: NodeTable = _of_store("nodes", "The ids of the nodes, in order of first appearance.")
    n_edges: int = _of_store("contents.n_edges", "Number of live edges.")
    n_dead: int = _of_store("contents.n_removed", "Number of dead edges that are still on disk.")
    n_records: int = _of_store("contents.n_records", "Number of parts that were appended.")
    n_operations: int = _of_store("contents.n_operations", "Number of operations, flushed or not.")
    n_durable: int = _of_store("n_durable", "Number of operations that are on disk.")
    n_updates: int = _of_store("n_updates", "Edges that were appended, removed or have expired.")

    @property
    def n_nodes(self) -> int:
        """Number of nodes that ever had an edge."""
        return len(self.nodes)

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of the sparsifier, with its seed."""
        return dict(self._open_store.manifest.sparsifier)

    @cached_property
    def sparsifier_options(self) -> SparsifierOptions:
        """The parameters that concern times, in numbers."""
        stored = self.parameters
        return SparsifierOptions(half_life=stored.get("half_life"), horizon=stored.get("horizon"))

    @property
    def is_writing(self) -> bool:
        """Whether this process may write."""
        return self._store.is_writing

    @property
    def has_times(self) -> bool:
        """Whether the edges have times."""
        return bool(self._open_store.has_times)

    def __iter__(self) -> Iterator[Batch]:
        return self.live_edges().batches()

    @property
    def time_unit(self) -> str | None:
        """The unit of the times if they look like Unix times; dates are stored in seconds."""
        return self.live_edges().time_unit

    @in_turn
    def live_edges(self) -> LiveEdges:
        """Return the present live edges as a stream that later operations do not change."""
        live = self._open_store.live()
        live.keeper = self._keep_for
        return live

    @in_turn
    def refresh(self) -> Self:
        """Read what other processes have written since the log was opened."""
        store = self._open_store
        self._read(store.start_writing if store.is_writing else store.refresh)
        return self

    def _read(self, read: Callable[[], None]) -> None:
        """Read what others have written; then the sparsifier that was loaded has not seen it."""
        store = self._store
        before = store.manifest.journal, store.contents.n_operations
        read()
        if (store.manifest.journal, store.contents.n_operations) != before:
            self._in_step = None

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
        return {
            "n_edges": self.n_edges, "n_nodes": self.n_nodes, "n_dead": self.n_dead,
            "n_operations": self.n_operations, "n_segments": len(store.contents.segment_rows),
            "n_records": self.n_records, "has_times": self.has_times, "id_kind": self.nodes.kind,
            "bytes": store.size(), "generation": store.manifest.generation,
            "sparsifier": self.parameters,
        }  # fmt: skip

    # Changes.

    @in_turn
    def append(
        self, u: Any, v: Given = None, w: Given = None, t: Given = None, *, sync: bool = True
    ) -> int:
        """Append edges, completely or not at all; return how many.

        Parameters
        ----------
        u : array-like of int or str, or a stream
            Ids of one end of each edge. Without `v`, a stream: what `read_edges` returns, a Graph,
            or an iterable of batches (u, v), (u, v, w) or (u, v, w, t). A stream is appended
            completely or not at all, too.
        v : array-like of int or str, optional
            Ids of the other ends.
        w : array-like of float, optional
            Weights; 1 by default.
        t : array-like of numbers or dates, optional
            Times. Either all edges of a log have one or none has.
        sync : bool
            False returns before the edges are on disk, which saves time when there are many small
            batches. They are on disk after the next `flush`, or the next operation with
            ``sync=True``. If the process dies before that, they are lost.

        Examples
        --------
        >>> import tempfile
        >>> from ohmlearn import EdgeLog
        >>> with tempfile.TemporaryDirectory() as folder, EdgeLog(folder) as log:
        ...     log.append([([7, 8], [8, 9]), ([9], [7])])
        3
        """
        edges = as_named_edges(u) if v is None else NamedEdges([(u, v, w, t)])
        translation = np.empty(0, np.int32)
        n_appended = 0
        with self._operation(sync) as store:
            if isinstance(edges, NamedEdges):
                edges.nodes = store.nodes
            source = edges.nodes
            for a, b, weights, times in edges:
                if source is None:
                    a, b = store.nodes.add_edges(a, b)
                elif source is not store.nodes:
                    if len(source) > len(translation):
                        more = store.nodes.merge(source, len(translation))
                        translation = np.concatenate([translation, more])
                    a, b = translation[a], translation[b]
                columns = EdgeColumns(a, b, weights, times)
                self._check(columns)
                store.add_edges(columns)
                n_appended += len(columns.u)
        return n_appended

    def _check(self, columns: EdgeColumns) -> None:
        """Refuse edges whose weights or times do not fit."""
        u, v, w, times = columns
        known = self._store.has_times
        if len(u) > 0 and known is not None and known != (times is not None):
            has, remedy = ("have times", "give t") if known else ("have no times", "leave out t")
            raise ValueError(
                f"the edges in {self.folder} {has}, so new ones must be alike; {remedy}"
            )
        options = self.sparsifier_options
        # With a follower, whoever appends has compared the times with the clock.
        if times is not None and options.has_times and not self._has_follower:
            latest = float(self._store.contents.records["high"].max(initial=-math.inf))
            check_arrivals(times, latest, options)
        smallest = options.smallest_weight
        fault = _core.find_fault(MAX_NODES, 1, u, v, w, smallest)
        if fault is not None:
            raise_edge_fault(fault, MAX_NODES, EdgeNames(), smallest)

    @in_turn
    def remove(
        self,
        u: ArrayLike,
        v: ArrayLike,
        w: Given = None,
        t: Given = None,
        *,
        missing: Missing = "warn",
        sync: bool = True,
    ) -> Removal:
        """Remove the live edges between pairs of nodes, in either direction.

        Parameters
        ----------
        u, v : array-like of int or str
            Ids of the ends. All parallel edges of a pair are removed.
        w, t : array-like, optional
            If given, only edges with exactly this weight or time are removed.
        missing : {"warn", "raise", "ignore"}
            What to do if no live edge matches a pair. "raise" removes nothing then.
        sync : bool
            As for `append`.

        Examples
        --------
        >>> import tempfile
        >>> from ohmlearn import EdgeLog
        >>> with tempfile.TemporaryDirectory() as folder, EdgeLog(folder) as log:
        ...     _ = log.append([1, 1, 2], [2, 2, 3], [1.0, 5.0, 1.0])
        ...     log.remove([2, 3], [1, 4], missing="ignore")
        Removal(n_removed=2, missing=array([1]))
        """
        a, b = self._find(u, "u"), self._find(v, "v")
        weights = None if w is None else check_weights(w, "w")
        times = None if t is None else check_times(t)
        check_same_length(u=a, v=b, w=weights, t=times)
        if times is not None and self._store.has_times is False:
            raise InputError(f"the edges in {self.folder} have no times; leave out {Param('t')}")
        pairs = Pairs(a, b, weights, times)
        found = find_edges(self._store.live(), pairs.match)
        return self._remove(found, pairs.is_found, "edges between pairs", missing, sync)

    @in_turn
    def remove_nodes(
        self, ids: ArrayLike, *, missing: Missing = "warn", sync: bool = True
    ) -> Removal:
        """Remove all live edges of some nodes; the nodes keep their numbers.

        Parameters
        ----------
        ids : array-like of int or str
        missing, sync
            As for `remove`; a node without live edges is missing.
        """
        nodes = self._find(ids, "ids")
        is_found = np.zeros(len(nodes), bool)
        found = find_nodes(self._store.live(), nodes, is_found)
        return self._remove(found, is_found, "nodes", missing, sync)

    def _find(self, ids: Any, name: str) -> NDArray[np.int32]:
        """Return numbers of nodes, after the right to write has been acquired."""
        store = self._writing()
        found = store.nodes.find(as_ids(ids, name), missing="mask")
        return found.filled(-1)  # which no edge has

    def _remove(
        self,
        rows: dict[int, list[Rows]],
        is_found: NDArray[np.bool_],
        what: str,
        missing: Missing,
        sync: bool,
    ) -> Removal:
        check_option("missing", missing, ("warn", "raise", "ignore"))
        n_removed = sum(len(part) for parts in rows.values() for part in parts)
        absent = np.flatnonzero(~is_found)
        if len(absent) > 0 and missing != "ignore":
            message = (
                f"{len(absent)} of {len(is_found)} {what} match no live edge of {self.folder}, "
                f"the first is {InPython(f'at position {absent[0]}', f'number {absent[0] + 1}')}"
            )
            if missing == "raise":
                raise LogError(f"{message}; nothing was removed")
            warn(message, OhmWarning)
        if rows:
            with self._operation(sync) as store:
                store.add_removal(rows)
        return Removal(n_removed, absent)

    @in_turn
    def expire(self, before: Any, *, sync: bool = True) -> Removal:
        """Remove all live edges with an earlier time.

        Edges that are appended later are kept, whatever their time.

        Parameters
        ----------
        before : number or date
        sync : bool
            As for `append`.

        Examples
        --------
        >>> import tempfile
        >>> from ohmlearn import EdgeLog
        >>> with tempfile.TemporaryDirectory() as folder, EdgeLog(folder) as log:
        ...     _ = log.append([1, 1], [2, 3], t=[10.0, 20.0])
        ...     log.expire(15).n_removed
        1
        """
        limit = check_moment("before", before)
        store = self._writing()
        if store.has_times is False:
            raise ValueError(f"the edges in {self.folder} have no times, so they cannot expire")
        n_expired = sum(len(columns.u) for columns in store.live().expired(limit))
        if n_expired:
            with self._operation(sync):
                store.add_expiry(limit, n_expired)
        return Removal(n_expired, np.empty(0, np.int64))

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Do several operations, which are flushed together at the end; see `Transaction`.

        An error inside, or of the flush, undoes them all. Other threads wait meanwhile.
        """
        with self._lock:
            self.open_for_writing()
            self.flush()  # so that an error undoes nothing else
            changes = Transaction(self)
            try:
                yield changes
                changes.check()
                self.flush()
            except BaseException:
                with suppress(OSError):  # the next operation then reads the folder again
                    self._store.drop_pending()
                self._drop_unusable()
                raise
            finally:
                changes.is_over = True

    @in_turn
    def open_for_writing(self) -> None:
        """Acquire the right to write now, not with the first operation.

        Raises
        ------
        LogError
            If another process has it.
        """
        self._writing()

    def _writing(self) -> Store:
        """Return the store after this process has acquired the right to write."""
        store = self._open_store
        self._read(store.start_writing)  # refuses a forked child
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
        if not self._has_follower:
            self._follow()

    def _follow(self) -> None:
        """Bring the sparsifier in step, if it is loaded and usable."""
        self._drop_unusable()
        if self._in_step is not None:
            self._in_step.follow()

    def _drop_unusable(self) -> None:
        """Drop a sparsifier that has seen an operation that was undone, or is half-changed."""
        kept = self._in_step
        if kept is not None:
            with kept.lock:
                if not kept.is_usable:
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
            self.wait_for_compaction()
        finally:
            with self._lock:
                try:
                    self.flush()
                    self._follow()
                    if self._in_step is not None and self._store.is_writing:
                        self._in_step.save()
                finally:
                    self._store.close()

    # Compaction.

    def compact(self, *, background: bool = False) -> None:
        """Flush; rewrite the files without dead edges, and put small records together.

        Readers are not disturbed. A crash leaves the log as it was, or compacted.

        Parameters
        ----------
        background : bool
            Return at once, and compact in another thread while edges are appended and removed.
            `close` waits for it and raises its error, if there was one.
        """
        self.wait_for_compaction()
        with self._lock:
            store = self._writing()
            self.flush()
            if not choose_segments(store.contents):
                return
            if self._in_step is not None or (self.folder / SAVED).exists():
                self._kept().save()  # it can follow only from this point on
            compaction = Compaction(store, self._follow, self._after_switch)
            if background:
                self._compaction = compaction.run_in_background(self._lock)
            else:
                compaction.run(self._lock)

    def _after_switch(self) -> None:
        if self._in_step is not None:
            self._in_step.renumber()

    @property
    def is_compacting(self) -> bool:
        """Whether a compaction is at work in the background."""
        return self._compaction is not None and not self._compaction.done()

    def wait_for_compaction(self) -> None:
        """Wait for a compaction in the background; raise its error, if there was one."""
        compaction, self._compaction = self._compaction, None  # it needs the lock at its end
        if compaction is not None:
            compaction.result()

    # The sparsifier.

    def follower(self) -> LogFollower:
        """Return the sparsifier for a thread that keeps it in step.

        From now on, operations do not change it, so that they take no longer than the disk needs.
        """
        self._has_follower = True
        return LogFollower(self)

    def _loaded(self) -> SparsifierInStep:
        """Return the sparsifier; it is loaded again if an error has spoilt it."""
        store = self._open_store
        self._drop_unusable()
        if self._in_step is None:
            self._in_step = SparsifierInStep(store, self._n_jobs)
        return self._in_step

    def _kept(self) -> SparsifierInStep:
        """Return the sparsifier, in step with the log."""
        kept = self._loaded()
        kept.follow()
        return kept

    def _kept_fresh(self) -> SparsifierInStep:
        """Return the sparsifier, in step with the log; it is built again if it is too stale."""
        kept = self._kept()
        if kept.staleness() > MAX_STALENESS:
            with kept.lock:
                kept.apply(kept.begin_rebuild())
        return kept

    @in_turn
    def _keep_for(self, n_operations: int, n_jobs: int | None) -> KeptSparsifier | None:
        """Return a copy of the sparsifier, unless the log has changed since some operations."""
        if self.n_operations != n_operations:
            return None
        kept = self._kept_fresh()
        kept.save_if_free()
        return kept.copy(n_jobs)

    @in_turn
    def staleness(self) -> float:
        """Return how far removals have taken the sparsifier from the live edges; 0 if not at all.

        It is about the largest x'L_D x / x'L_H x over all x, where H is the sparsifier and D are
        the edges that were removed since it was built. It needs a few solves on H, and no pass.
        """
        return self._kept().staleness()

    @property
    @in_turn
    def sparsifier(self) -> StreamingSparsifier:
        """The sparsifier, in step with the log; it is built again if it is too stale.

        That is the case if its staleness is above 0.3. It then takes one pass over the live edges,
        and uses random numbers that do not depend on those before.
        """
        return self._kept_fresh().sparsifier

    @in_turn
    def snapshot(self) -> Graph:
        """Return the sparsifier as a graph; see `sparsifier`.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> from ohmlearn import EdgeLog, certify
        >>> u, v = np.triu_indices(200, 1)
        >>> with tempfile.TemporaryDirectory() as folder, EdgeLog(folder, random_state=0) as log:
        ...     _ = log.append(u, v)
        ...     _ = log.remove_nodes([7])
        ...     certify(log, log.snapshot(), random_state=0).epsilon < 0.5
        True
        """
        return self.sparsifier.snapshot()


@dataclass(frozen=True)
class Removal:
    """What a removal has done.

    Attributes
    ----------
    n_removed : int
        Number of live edges that were removed.
    missing : ndarray of int
        Positions of the requests that no live edge matched.

    Examples
    --------
    >>> import tempfile
    >>> from ohmlearn import EdgeLog
    >>> with tempfile.TemporaryDirectory() as folder, EdgeLog(folder) as log:
    ...     _ = log.append(["ann", "bob"], ["bob", "cy"])
    ...     found = log.remove_nodes(["ann", "eve"], missing="ignore")
    >>> found.n_removed, found.missing
    (1, array([1]))
    """

    n_removed: int
    missing: NDArray[np.int64]


class Transaction:
    """Operations that become durable together; see `EdgeLog.transaction`.

    An operation that fails is undone, and raises; the others stay.

    Attributes
    ----------
    n_operations : int
        Number of the last operation. It is the same after a crash, if the operation is durable.
    is_lost : bool
        Whether an operation failed that could not be undone alone, so that all are gone.

    Examples
    --------
    >>> import tempfile
    >>> from ohmlearn import EdgeLog
    >>> with tempfile.TemporaryDirectory() as folder, EdgeLog(folder) as log:
    ...     with log.transaction() as changes:
    ...         _ = changes.append([1, 2], [2, 3])
    ...         _ = changes.remove([1], [2])
    ...     log.n_edges, log.n_durable
    (1, 2)
    """

    def __init__(self, log: EdgeLog) -> None:
        self._log = log
        self.is_lost = self.is_over = False

    @property
    def n_operations(self) -> int:
        """Number of the last operation."""
        return self._log.n_operations

    def append(self, u: Any, v: Given = None, w: Given = None, t: Given = None) -> int:
        """Append edges, as `EdgeLog.append`."""
        with self._one():
            return self._log.append(u, v, w, t, sync=False)

    def remove(
        self,
        u: ArrayLike,
        v: ArrayLike,
        w: Given = None,
        t: Given = None,
        *,
        missing: Missing = "warn",
    ) -> Removal:
        """Remove live edges, as `EdgeLog.remove`."""
        with self._one():
            return self._log.remove(u, v, w, t, missing=missing, sync=False)

    def expire(self, before: Any) -> Removal:
        """Remove all live edges with an earlier time, as `EdgeLog.expire`."""
        with self._one():
            return self._log.expire(before, sync=False)

    def check(self) -> None:
        """Raise an error if the operations are gone, or the transaction is over."""
        if self.is_over:
            raise LogError(
                f"{self._log.folder}: this transaction is over; start another one with "
                f"log.transaction()"
            )
        if self.is_lost:
            raise LogError(
                f"{self._log.folder}: an operation failed and could not be undone alone, so all "
                f"operations of its transaction were undone; repeat them"
            )

    @contextmanager
    def _one(self) -> Iterator[None]:
        self.check()
        try:
            yield
        except BaseException:
            self.is_lost = not self._log.is_writing
            raise
