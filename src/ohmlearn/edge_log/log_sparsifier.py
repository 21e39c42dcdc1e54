"""The sparsifier of a log, kept in step with its edges.

A sampled row cannot be subtracted from a sparsifier H: the weight of what was dropped is not known,
and what was dropped may now be a bridge. So H keeps removed edges. The removed edges that H has
seen, D, are sparsified on their own, in the same way as H: exactly as long as they are few, and
always in bounded memory. The staleness of H is the largest x'L_D x / x'L_H x: the fraction of the
energy of H, in the worst direction, that is no longer there. It takes a few solves on H and no pass
over the edges. When it passes MAX_STALENESS, H is built again from the live edges, with coins that
do not depend on those before, because removals may have been chosen by looking at H.

If all edges of a cut are removed, the ratio of its indicator vector is about 1. So H has always
been built again before a removal has changed the components of the graph.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ohmlearn._arrays_file import read_arrays, write_arrays
from ohmlearn._warnings import warn
from ohmlearn.checks.parameters import check_seed
from ohmlearn.edge_log.journal import Contents, Entries, Kind, find_limits
from ohmlearn.edge_log.live_edges import LiveEdges
from ohmlearn.edge_log.log_store import Lock, Store
from ohmlearn.edge_log.manifest import LogError
from ohmlearn.edge_log.records import EdgeColumns, read_rows
from ohmlearn.sparsifier import StreamingSparsifier
from ohmlearn.sparsifier.sampling_error import largest_ratio

if TYPE_CHECKING:
    from ohmlearn.edge_log.edge_log import EdgeLog

MAX_STALENESS = 0.3
# The sparsifier of removed edges is at least this accurate, so that a staleness near 1, where a
# part of the graph has been cut off, is never taken for one below MAX_STALENESS.
REMOVED_EPSILON = 0.3
SAVED = "sparsifier.ohm"
TIMELESS = ("n_jobs", "verbose")  # parameters that are not stored


def check_sparsifier_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return parameters of a sparsifier for the manifest, with a seed."""
    stored = {name: value for name, value in options.items() if name not in TIMELESS}
    seed = check_seed(stored.pop("random_state", None))
    StreamingSparsifier(**stored, random_state=seed)  # refuses bad parameters
    return {**stored, "random_state": seed}


class KeptSparsifier(NamedTuple):
    """The sparsifier that a log keeps, for those who label the edges of the log."""

    sparsifier: StreamingSparsifier  # a copy
    staleness: float
    removed_weight: float  # of edges that it has seen and that were removed since


class Step(NamedTuple):
    """Operations that a sparsifier has not taken in yet, and the log before and after them."""

    operations: list[Entries]
    seen: LiveEdges | Contents | None  # what the sparsifier has taken in so far
    live: LiveEdges


class SparsifierInStep:
    """The sparsifier of a log, the edges removed from it, and how far it has read the log."""

    sparsifier: StreamingSparsifier  # H; it has seen all live edges, and those of `removed`
    removed: StreamingSparsifier  # of edges that H has seen and that were removed since
    generation: int  # how often H has been built again

    def __init__(self, store: Store, n_jobs: int | None = None) -> None:
        self._store, self._n_jobs = store, n_jobs
        # Held by a thread that uses or changes the attributes above, if there are several threads.
        # A thread that needs the lock of the log, too, takes that one first.
        self.lock = threading.RLock()
        self._path = store.folder / SAVED
        self._staleness: float | None = None
        self._has_changed = False
        self.is_whole = True  # not while H changes, nor if an error has left it half-changed
        self._least = 0.0  # at which a removal has stopped adding to `removed`
        self.live = store.live()  # what H stands for, after all operations that it knows
        store.take_operations()
        step = self._load()
        if step is None:
            self._begin(store.manifest.generation)
            step = Step([], None, self.live)
        self.apply(step)

    # H follows the log.

    def follow(self) -> None:
        """Take in the operations since the last call; needs the lock of the log."""
        with self.lock:
            if self.has_new:
                self.apply(self.take())

    @property
    def has_new(self) -> bool:
        """Whether there are operations since the last call; needs the lock of the log."""
        return bool(self._store.operations)

    def take(self) -> Step:
        """Return the operations since the last call; needs the lock of the log.

        If there are some, H is not whole until `apply` has taken them in.
        """
        self.is_whole = self.is_whole and not self.has_new
        return Step(self._store.take_operations(), self.live, self._store.live())

    def apply(self, step: Step) -> None:
        """Take in operations: removed edges that H has seen first, then new live edges.

        Edges that were appended and removed since H has seen the log are never seen. Needs `lock`,
        but not that of the log.
        """
        live, seen = step.live, step.seen
        n_seen, expiries = (0, []) if seen is None else (seen.n_records, list(seen.expiries))
        seen_rows = live.rows_before(n_seen)
        for entry in itertools.chain(*step.operations):
            if entry["kind"] == Kind.REMOVE:
                segment, rows = int(entry["segment"]), read_rows(self._store.folder, entry)
                rows = np.sort(rows[rows < seen_rows.get(segment, 0)])
                self._take_out(live.gather(segment, rows))
            elif entry["kind"] == Kind.EXPIRE:
                limit = float(entry["low"])
                self._take_out(live.expired(limit, find_limits(n_seen, expiries)))
                expiries.append((n_seen, limit))
        for part in live.parts(n_seen):
            self._has_changed = True
            self.sparsifier.add(part.columns, part.record, is_checked=True)
        self.live = live
        self.is_whole = True

    def _take_out(self, parts: Iterator[EdgeColumns]) -> None:
        """Add edges to the removed ones, unless these are so many that H is built again anyway."""
        for columns in parts:
            if self._least > MAX_STALENESS:
                return
            self._staleness, self._has_changed = None, True
            self.removed.add(columns, is_checked=True)
            self._least = self._fraction_removed()

    @property
    def is_usable(self) -> bool:
        """Whether H is whole, and has seen nothing that is not in the log."""
        return self.is_whole and self.n_operations <= self._store.contents.n_operations

    @property
    def n_operations(self) -> int:
        """Number of operations of the log that H has taken in."""
        return self.live.n_operations

    def renumber(self) -> None:
        """Note the new numbers of records after a compaction; H has seen all of the log."""
        with self.lock:
            self.live = self.take().live

    def copy(self, n_jobs: int | None) -> KeptSparsifier:
        """Return a copy of H, which the log does not change."""
        copy = self.sparsifier.copy(n_jobs=n_jobs)
        copy.nodes = self._store.nodes
        return KeptSparsifier(copy, self.staleness(), self.removed_weight())

    def _begin(self, generation: int) -> None:
        """Start with new sparsifiers."""
        self.generation = generation
        options = dict(self._store.manifest.sparsifier)
        seed = options.pop("random_state")
        numbers = np.random.SeedSequence(seed, spawn_key=(generation,)).generate_state(2, np.uint64)
        own, other = int(numbers[0] >> 1), int(numbers[1] >> 1)
        own = seed if generation == 0 else own
        self.sparsifier = StreamingSparsifier(**options, random_state=own, n_jobs=self._n_jobs)
        options["epsilon"] = min(REMOVED_EPSILON, options["epsilon"])
        self.removed = StreamingSparsifier(**options, random_state=other, n_jobs=self._n_jobs)
        self.sparsifier.nodes = self._store.nodes
        self._staleness = self._least = 0.0
        self._has_changed = True

    # How stale it is.

    def _fraction_removed(self) -> float:
        """Return the fraction of removed edges in the weight of H, a lower bound of the staleness.

        It is the quotient of the means of x'L_D x and x'L_H x over random signs x.
        """
        weight = self.sparsifier.weight_seen_
        if weight == 0.0 or self.sparsifier.options.horizon is not None:  # most edges may be old
            return 0.0
        return self.removed_weight() / weight

    def removed_weight(self) -> float:
        """Return the weight of the removed edges, with a half-life at the latest time of H."""
        half_life, late = self.sparsifier.options.decay, 0.0
        if half_life < math.inf and self.removed.latest_ is not None:
            late = (self.sparsifier.latest_ or 0.0) - self.removed.latest_
        return float(self.removed.weight_seen_ * 2.0 ** -(late / half_life))

    def staleness(self) -> float:
        """Return about the largest x'L_D x / x'L_H x; a lower bound if much was removed."""
        if self._staleness is None:
            is_known = self._least > MAX_STALENESS
            self._staleness = self._least if is_known else self._measure()
        return self._staleness

    def _measure(self) -> float:
        if self.removed.weight_seen_ == 0.0:  # with a horizon, there may not even be an edge yet
            return 0.0
        h, view = self.sparsifier.snapshot(), self.sparsifier.view()
        when = {} if view is None else {"at": view.at, "since": view.since}
        u, v, w = self.removed.snapshot(**when).edges()
        if len(u) == 0:
            return 0.0
        component = h.components()[1]
        if (component[u] != component[v]).any():  # H has lost an edge, because of a small budget
            return float("inf")
        return largest_ratio(h, (u, v, w), self.sparsifier.seed, self.sparsifier.options.threads)

    def begin_rebuild(self) -> Step:
        """Choose new coins, and return the edges of which `apply` builds H again, in one pass.

        Needs `lock` and the lock of the log.
        """
        generation = max(self.generation, self._store.manifest.generation) + 1
        if self._store.is_writing:
            self._store.write_manifest(generation=generation)
        self.is_whole = False
        self._begin(generation)
        return self.take()._replace(operations=[], seen=None)

    # On disk.

    def save(self) -> None:
        """Write H and the removed edges to the folder."""
        if not self._has_changed or not self.is_whole:
            return
        arrays = {
            "generation": np.array(self.generation),
            "n_operations": np.array(self.n_operations),
            "least_staleness": np.array(self._least),
        }
        for prefix, sparsifier in (("h_", self.sparsifier), ("d_", self.removed)):
            for name, array in sparsifier.get_state().items():
                if not name.startswith("node_"):  # ids are in the log
                    arrays[prefix + name] = array
        write_arrays(self._path, arrays)
        self._has_changed = False

    def save_if_free(self) -> None:
        """Save H if this process may write to the folder now, and if all that H has seen is there.

        Operations that wait for a flush may still be lost; others would then have their numbers.
        """
        if self._store.is_writing:
            if not self._store.writer.pending:
                self.save()
        elif self._has_changed:
            try:
                lock = Lock(self._store.folder)
            except (OSError, LogError):  # a read-only folder, or another writer
                return
            with closing(lock):
                self.save()

    def _load(self) -> Step | None:
        """Load the saved sparsifier if it fits the log; return what it has not taken in yet."""
        if not self._path.exists():
            return None
        store = self._store
        try:
            arrays = read_arrays(self._path)
            found = [
                StreamingSparsifier.from_state(
                    {k.removeprefix(x): v for k, v in arrays.items() if k.startswith(x)}
                )
                for x in ("h_", "d_")
            ]
            n_operations = int(arrays["n_operations"])
            self.generation = int(arrays["generation"])
            self._least = float(arrays["least_staleness"])
        except (ValueError, KeyError, TypeError, ArithmeticError) as error:
            warn(f"the sparsifier of the log is made again, because {error}")
            return None
        manifest = store.manifest
        if not manifest.n_operations <= n_operations <= store.contents.n_operations:
            return None  # another process has compacted the log, or the file is from another log
        self.sparsifier, self.removed = (one.copy(n_jobs=self._n_jobs) for one in found)
        self.sparsifier.nodes = store.nodes
        entries = store.journal_entries()
        ends = np.flatnonzero(entries["is_last"][manifest.n_head :]) + 1  # of operations
        first = manifest.n_head + int(np.append(0, ends)[n_operations - manifest.n_operations])
        return Step([entries[first:]], Contents.from_entries(entries[:first]), self.live)


class LogSnapshot(NamedTuple):
    """The sparsifier after an operation of a log, and the edges that it stands for.

    Examples
    --------
    >>> import tempfile
    >>> from ohmlearn import EdgeLog
    >>> with tempfile.TemporaryDirectory() as folder, EdgeLog(folder) as log:
    ...     follower = log.follower()
    ...     _ = log.append([1, 2], [2, 3])
    ...     _ = follower.catch_up()
    ...     before = follower.snapshot()
    ...     _ = log.append([3], [4])
    ...     before.live.n_edges, before.kept.sparsifier.n_edges_seen_, follower.lag
    (2, 2, 1)
    """

    kept: KeptSparsifier  # a copy
    live: LiveEdges
    operation: int
    latest: float  # time of an edge; -inf if there was none
    version: int  # of the sparsifier, which is also built again without a new operation


class LogFollower:
    """The sparsifier of a log for a thread that keeps it in step; `EdgeLog.follower` returns it.

    The log is locked only while the thread looks up what is new. So edges can be appended while it
    samples, and the sparsifier has never seen an edge that could still be lost. Other threads may
    read the attributes and call `snapshot` at any time. Nobody else may ask the log for its
    sparsifier.

    Attributes
    ----------
    operation, n_updates : int
        The last operation of the log that the sparsifier has seen, and `EdgeLog.n_updates` then.
    version : int
        Counts the changes of the sparsifier.
    latest : float
        The latest time of an edge; -inf if there was none.
    n_rows, n_resamples : int
        Of the sparsifier.

    Examples
    --------
    >>> import tempfile
    >>> from ohmlearn import EdgeLog
    >>> with tempfile.TemporaryDirectory() as folder, EdgeLog(folder) as log:
    ...     follower = log.follower()
    ...     _ = log.append([1, 2], [2, 3])
    ...     follower.lag, follower.catch_up(), follower.lag
    (2, True, 0)
    """

    def __init__(self, log: EdgeLog) -> None:
        self._log = log
        self._known: SparsifierInStep | None = None
        self._is_stale = False  # perhaps, and it has not been built again yet
        # Noted here, because the sparsifier is locked for as long as it samples.
        self.operation = self.n_updates = self.version = self.n_rows = self.n_resamples = 0
        self.latest = -math.inf

    @property
    def lag(self) -> int:
        """Number of edges and removals of edges that are not sampled yet."""
        return max(0, self._log.n_updates - self.n_updates)

    def load(self) -> None:
        """Load the sparsifier, and read the edges that have come since it was saved."""
        with self._log._lock:
            self._load()

    def catch_up(self) -> bool:
        """Take in what is new, and build the sparsifier again if removals have made it too stale.

        Returns
        -------
        has_changed : bool
            Whether there was something new.
        """
        with ExitStack() as held:
            with self._log._lock:
                self._log.flush()
                kept = self._load()
                held.enter_context(kept.lock)
                step = kept.take() if kept.has_new else None
                # Compaction may have made the sparsifier take in operations, too.
                if step is None and not self._is_stale and kept.n_operations == self.operation:
                    return False
            if step is not None:
                kept.apply(step)
            self._is_stale = kept.staleness() > MAX_STALENESS
            self._note(kept)
        if self._is_stale:
            with ExitStack() as held:
                with self._log._lock:
                    held.enter_context(kept.lock)
                    step = kept.begin_rebuild()
                kept.apply(step)
                self._is_stale = False
                self._note(kept)
        return True

    def snapshot(self) -> LogSnapshot | None:
        """Return a copy of the sparsifier as it is now; None if there is none at present."""
        kept = self._log._in_step
        if kept is None:
            return None
        with kept.lock:
            if not kept.is_whole:
                return None
            copy = kept.copy(self._log._n_jobs)
            return LogSnapshot(copy, kept.live, kept.n_operations, self.latest, self.version)

    def save(self) -> None:
        """Write the sparsifier to the folder."""
        kept = self._log._in_step
        if kept is not None:
            with kept.lock:
                kept.save()

    def _load(self) -> SparsifierInStep:
        """Return the sparsifier of the log; needs the lock of the log."""
        kept = self._log._loaded()
        if kept is not self._known:
            self._known = kept
            self._is_stale = True  # perhaps: edges may have been removed since it was saved
            self._note(kept)
        return kept

    def _note(self, kept: SparsifierInStep) -> None:
        self.operation, self.n_updates = kept.n_operations, kept.live.n_updates
        self.version += 1
        self.latest = max(self.latest, kept.live.latest())
        self.n_rows, self.n_resamples = kept.sparsifier.n_rows_, kept.sparsifier.n_resamples_
