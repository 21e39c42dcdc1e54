"""The sparsifier of a log, kept in step with its edges.

A sampled row cannot be subtracted from a sparsifier H: the weight of what was dropped is not known,
and what was dropped may now be a bridge. So H keeps removed edges. The removed edges that H has
seen, D, are sparsified on their own, in the same way as H: exactly as long as they are few, and
always in bounded memory. The staleness of H is the largest x'L_D x / x'L_H x: the share of the
energy of H, in the worst direction, that is no longer there. It takes a few solves on H and no pass
over the edges. When it passes MAX_STALENESS, H is built again from the live edges, with coins that
do not depend on those before, because removals may have been chosen by looking at H.

If all edges of a cut are removed, the ratio of its indicator vector is about 1. So H has always
been built again before a removal has changed the components of the graph.
"""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ohmlearn._arrays_file import read_arrays, write_arrays
from ohmlearn.checks.parameters import check_seed
from ohmlearn.edge_log.journal import Entries, Kind
from ohmlearn.edge_log.live_edges import LiveEdges
from ohmlearn.edge_log.log_contents import Contents, find_limits
from ohmlearn.edge_log.log_errors import LogError
from ohmlearn.edge_log.log_store import Store
from ohmlearn.edge_log.log_writer import Lock
from ohmlearn.edge_log.record_loading import read_rows
from ohmlearn.edge_log.records import Columns
from ohmlearn.edges import Batch
from ohmlearn.sparsifier import StreamingSparsifier
from ohmlearn.sparsifier.sampling_error import largest_ratio

__all__ = [
    "MAX_STALENESS",
    "KeptSparsifier",
    "SparsifierInStep",
    "Step",
    "check_sparsifier_options",
]

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
    """Operations that a sparsifier has not taken in yet, and the log as it is after them."""

    operations: list[Entries]
    live: LiveEdges
    n_operations: int
    n_records: int
    expiries: list[tuple[int, float]]


def has_saved_sparsifier(store: Store) -> bool:
    """Whether a sparsifier of the log has been saved."""
    return (store.folder / SAVED).exists()


class SparsifierInStep:
    """The sparsifier of a log, the edges removed from it, and how far it has read the log.

    Parameters
    ----------
    store : Store
    n_jobs : int, optional

    Attributes
    ----------
    sparsifier : StreamingSparsifier
        H. It has seen all live edges, and those of `removed`.
    removed : StreamingSparsifier
        Of edges that H has seen and that were removed since.
    generation : int
        How often H has been built again.
    lock : RLock
        Held by a thread that uses or changes the attributes above, if there are several threads. A
        thread that needs the lock of the log, too, takes that one first.
    live : LiveEdges
        The live edges that H stands for, when it has taken in all operations it knows.
    is_whole : bool
        False while H changes, and for ever if an error has left it half-changed.
    """

    def __init__(self, store: Store, n_jobs: int | None = None) -> None:
        self._store, self._n_jobs = store, n_jobs
        self.lock = threading.RLock()
        self._path = store.folder / SAVED
        self._staleness: float | None = None
        self._has_changed = False
        self.is_whole = True
        self._least = 0.0  # at which a removal has stopped adding to `removed`
        if not self._load():
            self._begin(store.manifest.generation)
            self._n_operations = self._n_records = 0
            self._expiries: list[tuple[int, float]] = []
            self._feed(store.live(), 0)
        store.take_operations()
        self.arrive()

    # H follows the log.

    def follow(self) -> None:
        """Take in the operations since the last call; needs the lock of the log."""
        with self.lock:
            if self._store.operations:
                self.apply(self.take())

    def take(self) -> Step:
        """Return the operations since the last call; needs the lock of the log.

        If there are some, H is not whole until `apply` has taken them in.
        """
        contents = self._store.contents
        self.is_whole = self.is_whole and not self._store.operations
        return Step(
            self._store.take_operations(),
            self._store.live(),
            contents.n_operations,
            contents.n_records,
            list(contents.expiries),
        )

    def apply(self, step: Step) -> None:
        """Take in operations; needs `lock`, but not that of the log."""
        if step.operations:
            self._apply(np.concatenate(step.operations), step.live)
        self._arrive(step)
        self.is_whole = True

    def _apply(self, entries: Entries, live: LiveEdges) -> None:
        """Take in operations: removed edges that H has seen first, then new live edges.

        Edges that were appended and removed since the last call are never seen.
        """
        n_seen = self._n_records
        seen_rows = live.rows_before(n_seen)
        expiries = list(self._expiries)
        for entry in (entries[at : at + 1] for at in range(len(entries))):
            if entry["kind"][0] == Kind.REMOVE:
                segment = int(entry["segment"][0])
                rows = read_rows(self._store.folder, entry)
                rows = np.sort(rows[rows < seen_rows.get(segment, 0)])
                self._take_out(live.gather(segment, rows))
            elif entry["kind"][0] == Kind.EXPIRE:
                limit = float(entry["low"][0])
                limits = find_limits(n_seen, expiries)
                self._take_out(live.expired(n_seen, limits, limit))
                expiries.append((n_seen, limit))
        self._feed(live, n_seen)

    def _feed(self, live: LiveEdges, first: int) -> None:
        for part in live.parts(first):
            self._has_changed = True
            self.sparsifier.add(Batch(*part.columns), part.record, is_checked=True)

    def _take_out(self, parts: Iterator[Columns]) -> None:
        """Add edges to the removed ones, unless these are so many that H is built again anyway."""
        for columns in parts:
            if self._least > MAX_STALENESS:
                return
            self._staleness, self._has_changed = None, True
            self.removed.add(Batch(*columns), is_checked=True)
            self._least = self._share_removed()

    def is_within(self, contents: Contents) -> bool:
        """Whether H has seen nothing that is not in the log."""
        return self._n_operations <= contents.n_operations

    def arrive(self) -> None:
        """Note that H has seen all of the log as it is now; also called after compaction."""
        with self.lock:
            self._arrive(self.take())

    def _arrive(self, step: Step) -> None:
        self.live = step.live
        self._n_operations, self._n_records = step.n_operations, step.n_records
        self._expiries = step.expiries

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

    def _share_removed(self) -> float:
        """Return the share of removed edges in the weight of H, a lower bound of the staleness.

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
        h, view = self.sparsifier.snapshot(), self.sparsifier.view()
        when = {} if view is None else {"at": view.at, "since": view.since}
        u, v, w = self.removed.snapshot(**when).edges()
        if len(u) == 0:
            return 0.0
        component = h.components()[1]
        if (component[u] != component[v]).any():  # H has lost an edge, because of a small budget
            return float("inf")
        return largest_ratio(h, (u, v, w), self.sparsifier.seed, self.sparsifier.options.threads)

    def rebuild(self) -> None:
        """Build H again from the live edges, in one pass, with new coins.

        Needs the lock of the log. It has two parts: `prepare_rebuild`, and `build`, which takes
        long and does not need that lock.
        """
        with self.lock:
            self.build(self.prepare_rebuild())

    def prepare_rebuild(self) -> Step:
        """Choose new coins, and return the edges of which to build H."""
        generation = max(self.generation, self._store.manifest.generation) + 1
        if self._store.is_writing:
            self._store.write_manifest(generation=generation)
        self.is_whole = False
        self._begin(generation)
        return self.take()

    def build(self, step: Step) -> None:
        """Take in all live edges."""
        self._feed(step.live, 0)
        self._arrive(step)
        self.is_whole = True

    # On disk.

    @property
    def n_operations(self) -> int:
        """Number of operations of the log that H has taken in."""
        return self._n_operations

    def save(self) -> None:
        """Write H and the removed edges to the folder."""
        if not self._has_changed or not self.is_whole:
            return
        arrays = {
            "generation": np.array(self.generation),
            "n_operations": np.array(self._n_operations),
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
            try:
                self.save()
            finally:
                lock.release()

    def _load(self) -> bool:
        """Continue with the saved sparsifier if it fits the log; return whether it does."""
        if not self._path.exists():
            return False
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
            warnings.warn(
                f"the sparsifier of the log is made again, because {error}",
                UserWarning,
                stacklevel=2,
            )
            return False
        manifest = store.manifest
        if not manifest.n_operations <= n_operations <= store.contents.n_operations:
            return False  # another process has compacted the log, or the file is from another log
        self.sparsifier, self.removed = (one.copy(n_jobs=self._n_jobs) for one in found)
        self.sparsifier.nodes = store.nodes
        entries = store.journal_entries()
        first = _first_after(entries, manifest.n_head, n_operations - manifest.n_operations)
        seen = entries[:first]
        self._n_records = int(np.count_nonzero(seen["kind"] == Kind.EDGES))
        self._n_operations = n_operations
        self._expiries = []
        n_records = 0
        for kind, low in zip(seen["kind"], seen["low"], strict=True):
            n_records += int(kind == Kind.EDGES)
            if kind == Kind.EXPIRE:
                self._expiries.append((n_records, float(low)))
        self._apply(entries[first:], store.live())
        return True


def _first_after(entries: Entries, n_head: int, n_operations: int) -> int:
    """Return the number of the first entry after some operations that follow the head."""
    if n_operations == 0:
        return n_head
    return n_head + int(np.flatnonzero(entries["is_last"][n_head:])[n_operations - 1]) + 1
