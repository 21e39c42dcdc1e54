"""A model in a file that takes in each source of edges once.

The file has a ledger of its sources, so the same call again continues an interrupted one, or does
nothing:
    1. Describe each source: its size, and samples of its content.
    2. Skip those that the ledger has; read the others, in order.
    3. At the end of each, add it to the ledger. Save, if that costs little.
    4. Solve, and save.
A sparsifier that is saved and loaded continues bit for bit, so interruptions change no answer.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ohmlearn._arrays_file import HEAD, read_arrays
from ohmlearn._warnings import warn
from ohmlearn.edges import Batch
from ohmlearn.edges.protocol import one_pass
from ohmlearn.edges.wrapped import WrappedEdges
from ohmlearn.errors import InputError, OhmWarning, Param, Place, SourceError
from ohmlearn.estimators.answer import ClassAnswer
from ohmlearn.estimators.kept_graph import KeptGraph
from ohmlearn.estimators.label_job import Labelling
from ohmlearn.estimators.model_file import load_labelling, save_labelling
from ohmlearn.estimators.problem import ClassProblem, Problem
from ohmlearn.nodes import NodeTable
from ohmlearn.reading.event_ids import recall
from ohmlearn.reading.file_edges import EdgeStream
from ohmlearn.reading.remote import describe_remote, is_remote
from ohmlearn.sparsifier import StreamingSparsifier

if TYPE_CHECKING:
    from ohmlearn.estimators.hfs_classifier import HFSClassifier

NAME = "HFSClassifier"  # which can load the file, too
WORTH = 30.0  # saving takes at most one part in so many of the time
FIRST = 1.0  # seconds before the first save, whose cost is not known
FEW = 20  # edges; fewer may be the same in two files by coincidence
BLOCK, N_BLOCKS = 1 << 16, 16  # of a file, to recognise its content without reading all of it
TYPES = ("<i4", "<i4", "<f8", "<f8")  # of columns u, v, w, t
Source = dict[str, Any]
Taken = TypeVar("Taken")


class StateFile:
    """A classifier in a file that takes in each source of edges once.

    A source is a file, or a pipe that has been read to its end. The same call again reads only
    the sources that the file does not have yet. While edges are read, the file is saved after a
    source if saving takes less than 1/30 of the time since the last save. So an interrupted call
    loses the source that it was reading, and those since the last save; the next call reads them
    again, and its answers are the same, bit for bit, as if there had been no interruption.

    Parameters
    ----------
    path : str or path
        The file; ``HFSClassifier.load`` reads it, too, and ``ohmlearn label --state`` continues it.
    **parameters
        Those of `HFSClassifier`. If the file exists, they must be those that it was made with.
        Edges are read once; `HFSClassifier.refine` improves the answers by more passes.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from ohmlearn import StateFile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     days = [Path(folder, "monday.csv"), Path(folder, "tuesday.csv")]
    ...     for day, edge in zip(days, ("ann,bob", "bob,cy")):
    ...         _ = day.write_text(f"src,dst\\n{edge}\\n")
    ...     state = Path(folder, "m.ohm")
    ...     model = StateFile(state, random_state=0).update(days[0], {"ann": "x", "bob": "y"})
    ...     model = StateFile(state).update(days)  # only Tuesday is new
    >>> model.kept_.n_edges_seen, model.transduction_.tolist()
    (2, ['x', 'y', 'y'])
    """

    def __init__(self, path: str | os.PathLike[str], **parameters: Any) -> None:
        self.path = os.fspath(path)
        self._parameters = parameters
        self._points: dict[str, Any] = {}  # of an estimator that was fitted to points
        self._head = _read_head(self.path)
        self._saved, self._cost = time.perf_counter(), FIRST / WORTH

    @property
    def exists(self) -> bool:
        """Whether there was a file when this object was made, or has been saved since."""
        return self._head is not None

    def update(self, source: object, y: object = None, **reading: Any) -> HFSClassifier:
        """Take in the edges of new sources, and return the classifier with its answers.

        Parameters
        ----------
        source, **reading
            Those of `read_edges`.
        y : dict {node: label}, Series or table, optional
            All labels, as for `HFSClassifier.relabel`; by default those of the file.
        """
        from ohmlearn.estimators.hfs_classifier import HFSClassifier
        from ohmlearn.estimators.label_input import pair_by_node
        from ohmlearn.reading.read_edges import read_edges

        model = HFSClassifier(**self._parameters)

        def start(sparsifier: StreamingSparsifier | None = None) -> Labelling:
            p = model._parameters()
            return Labelling(p, KeptGraph.start(p, sparsifier=sparsifier))

        load = partial(self.load, start, start)
        found = load()
        for name in self._parameters:
            asked, own = getattr(model, name), getattr(found.parameters, name)
            if asked != own and name not in ("n_jobs", "verbose"):
                raise InputError(
                    f"{Param(name, asked)} differs from {own!r}, with which {self.path} was made",
                    remedy="leave it out, or name another file",
                )
        stream = read_edges(source, nodes=found.kept.nodes, **reading)
        rows = problem = None
        if y is not None:  # checked before the edges are read
            y, weights = pair_by_node(y, None, by_index=True)
            rows = ClassProblem.read(found.parameters, y, None, stream.nodes, weights)

        def take(found: Labelling, new: Recorded) -> tuple[Labelling, Recorded]:
            found.kept.take(new)
            return found, new

        found, new = self.read_new(found, load, stream, take)
        if rows is not None:
            problem = ClassProblem.make(rows, found.kept, found.parameters)
        has_labels = problem is not None or found.problem is not None
        is_solved = not new.has_new and has_answer(found, problem)
        if has_labels and not is_solved:
            found = found.solve(problem)
        if new.has_new or (has_labels and not is_solved):
            self.save(found)
        return HFSClassifier._from_file(found, vars(found.parameters), self._points)

    def load(
        self,
        continue_with: Callable[[StreamingSparsifier], Labelling],
        start: Callable[[], Labelling] | None = None,
    ) -> Labelling:
        """Return the model in the file, that of the sparsifier in it, or a new one."""
        began = time.perf_counter()
        arrays = read_arrays(self.path) if self.exists else None
        if arrays is None:
            assert start is not None
            found = start()
        elif "reading" in arrays:
            raise InputError(
                f"{self.path} is a checkpoint that an earlier version of ohmlearn has written in "
                f"the middle of a file",
                remedy="finish with the version that wrote it, or start over with another file",
            )
        elif "model" in arrays:
            found, _, self._points = load_labelling(self.path, NAME, ClassProblem, {}, arrays)
        else:
            found = continue_with(StreamingSparsifier.load(self.path))
        if found.kept.sparsifier is None:
            raise InputError(
                f"{self.path}: a model that keeps all edges ({Param('epsilon', None)}) cannot "
                f"continue in a state file",
                remedy="use update and save of HFSClassifier",
            )
        self._cost = max(self._cost, time.perf_counter() - began)  # about that of saving
        return found

    def read_new(
        self,
        found: Labelling,
        load: Callable[[], Labelling],
        stream: EdgeStream,
        take: Callable[[Labelling, Recorded], Taken],
    ) -> Taken:
        """Return what `take` makes of the model and the new sources of a stream.

        Edges that the model has under another name or in another format are recognised when they
        have been read. Then the model is loaded again, and continues without them.
        """
        skipped: dict[int, str] = {}  # sources with known edges, and how that is said
        pipes: set[int] = set()  # that have been read, and cannot be read again
        while True:
            stream.nodes = NodeTable() if found.kept.nodes is None else found.kept.nodes
            new = Recorded(stream, self, found, skipped, pipes)
            try:
                return take(found, new)
            except SameEdges as error:
                skipped[error.number] = str(error)
                found = load()

    def save(self, found: Labelling) -> None:
        """Replace the file, unless another run has done so meanwhile."""
        if _read_head(self.path) != self._head:
            raise InputError(
                f"{self.path} was written by another run meanwhile, so it stays as it is",
                remedy="run this command again",
            )
        began, answer = time.perf_counter(), found.answer
        if isinstance(answer, ClassAnswer):
            codes = np.where(answer.answered, answer.codes(0), -1).astype(np.int32)
            found.kept.written = answer.problem.classes, codes
        save_labelling(self.path, NAME, found, vars(found.parameters), self._points)
        self._head, self._saved = _read_head(self.path), time.perf_counter()
        self._cost = self._saved - began

    def save_edges(self, found: Labelling, *, only_if_cheap: bool = True) -> None:
        """Save edges without an answer, if that takes little of the time since the last save."""
        is_cheap = time.perf_counter() - self._saved >= WORTH * self._cost
        if is_cheap or not only_if_cheap:
            self.save(found._replace(answer=None))


def has_answer(found: Labelling, problem: Problem | None) -> bool:
    """Whether a model has the answer of a problem on its edges already; None: of its own problem.

    Then it is not solved again: a solve that starts from an answer changes its last bits.
    """
    own = found.problem
    if found.answer is None or own is None or problem is None:
        return found.answer is not None
    pairs = zip((*problem.labels, problem.classes), (*own.labels, own.classes), strict=True)
    return problem.parameters == own.parameters and all(np.array_equal(*pair) for pair in pairs)


def _read_head(path: str) -> bytes | None:
    """Return the first bytes of a file, which have its checksum; None if there is no file."""
    if not os.path.exists(path):
        return None
    with Path(path).open("rb") as file:
        return file.read(HEAD)


# The ledger: which sources were read, and how they are recognised.


class SameEdges(Exception):
    """A source turned out to have the edges of one that the ledger has."""

    def __init__(self, number: int, note: str) -> None:
        super().__init__(note)
        self.number = number


class Recorded(WrappedEdges):
    """The sources of a stream that a state file does not have.

    A pass records them, so there is only one; passes after it can read all sources.
    """

    def __init__(
        self,
        inner: EdgeStream,
        state: StateFile,
        found: Labelling,
        skipped: dict[int, str],
        pipes: set[int],
    ) -> None:
        super().__init__(inner)
        self.inner: EdgeStream = inner
        self.reads_all, self._was_read = False, False  # whether passes are of all sources
        self._state, self._found, self._ledger = state, found, found.kept.sources
        self._has_nodes, self._is_joined = len(inner.nodes) > 0, True
        self._again: list[Source] = []  # entries of the ledger that these sources have
        self._copies = set(skipped)  # sources with the edges of another one
        self._skipped, self._pipes, self._entries = {*skipped, *pipes}, pipes, []
        self._by_content = {(x.get("size"), x.get("sample")): x for x in self._ledger}
        self._by_status = {(x.get("path"), x.get("changed")): x for x in self._ledger}
        self._by_digest = {x.get("digest"): x for x in self._ledger}
        self.notes = list(skipped.values())  # which sources are skipped, and why
        for at, path in enumerate(inner.sources):
            source = describe_source(path, self._by_status) | {"where": inner.options.where}
            source |= inner.versions[at]
            self._entries.append(source)
            if at not in skipped and source["size"] is not None and self._is_known(at, source):
                self._skipped.add(at)
        self.n_skipped = len(self._skipped - pipes)
        self.has_new = self.n_skipped < len(self._entries)
        self._warn_of_other_rows()

    @property
    def rereadable(self) -> bool:  # type: ignore[override]
        """Whether there can be more than one pass: new sources are new only once."""
        return self.reads_all and self.inner.rereadable

    def has_all_of(self, sparsifier: StreamingSparsifier) -> bool:
        """Whether the sparsifier has seen no edges but those of these sources."""
        stats = sparsifier.stats_
        names = ("n_edges_seen", "n_self_loops_dropped", "n_zero_weights_dropped")
        n_seen = sum(int(stats[name]) for name in names)
        return n_seen == sum(source.get("n_edges") or 0 for source in self._again)

    def batches(self, n_jobs: int = 1) -> Iterator[Batch]:
        """Yield the batches of new sources, or of all sources."""
        self.inner.skipped = set(self._copies if self.reads_all else self._skipped)
        if self.reads_all:
            yield from self.inner.batches(n_jobs)
            return
        if self._was_read:
            self.again("a second pass")
        self._was_read = True
        self.inner.on_source_end = self._record
        kept = self._found.kept
        if self.inner.options.event_id_col is not None:
            kept.events = kept.events or recall()
        self.inner.recent = kept.events
        self._start_source()
        try:
            with one_pass(self.inner, n_jobs) as batches:
                for batch in batches:
                    self._digest.add(batch)
                    if not self._is_joined and len(batch.u) > 0:
                        least = min(int(batch.u.min()), int(batch.v.min()))
                        self._is_joined = least < self._n_nodes
                    yield batch
        finally:
            self.inner.skipped, self.inner.on_source_end = set(), None
            self.inner.recent = None

    def _start_source(self) -> None:
        self._digest, self._n_nodes = EdgeDigest(), len(self.inner.nodes)
        self._is_joined = not self._has_nodes

    def _record(self, at: int) -> None:
        """Add a source to the ledger when it has been read."""
        source, digest = self._entries[at], self._digest
        source |= {"n_edges": digest.n_edges, "digest": digest.hex()}
        other = self._by_digest.setdefault(source["digest"], source)
        if other is not source and digest.n_edges >= (FEW if source["size"] else 1):
            raise SameEdges(at, self._explain(source, other, "edges"))
        if digest.n_edges > 0 and not self._is_joined:
            self._warn_apart(source["name"])
        self._ledger.append(source)
        self._again.append(source)
        self._skipped.add(at)
        self._start_source()
        # A pipe cannot be read again, if the model is loaded again because of a later source.
        is_pipe = source["size"] is None and at + 1 < len(self._entries)
        self._state.save_edges(self._found, only_if_cheap=not is_pipe)
        if is_pipe:
            self._pipes.add(at)

    def _is_known(self, at: int, source: Source) -> bool:
        """Whether the ledger, or an earlier source, has the same content; refuse part of it."""
        path, place = self._state.path, Place(source["name"])
        other = self._by_content.setdefault((source["size"], source["sample"]), source)
        if other is not source and (source["size"] > 0 or other.get("path") == source["path"]):
            before, now = other.get("where"), source["where"]
            if before != now:
                raise SourceError(
                    f"{path} has it {_with(before)} already, and now it is read {_with(now)}",
                    remedy="read it as before, or give files with only the new edges",
                    place=place,
                )
            if "n_edges" not in other or any(other is one for one in self._again):
                self._copies.add(at)
            else:
                self._again.append(other)
            self.notes.append(self._explain(source, other, "content"))
            return True
        if self.inner.options.event_id_col is not None:
            return False
        for other in self._ledger:
            same = "path" if source.get("version") else "name"
            if other.get(same) == source[same] and (growth := _growth(source, other)):
                raise SourceError(
                    f"it has grown since {path} has read it, {growth}, and its first edges would "
                    f"count twice",
                    remedy=f"give only the new edges, or a column of event ids with "
                    f"{Param('event_id_col')}",
                    place=place,
                )
            if other.get("path") == source["path"]:
                warn(
                    f"{path} has read another {source['name']} before; edges that are in both "
                    f"count twice, so give only new edges, or a column of event ids with "
                    f"{Param('event_id_col')}",
                    OhmWarning,
                )
        return False

    def _explain(self, source: Source, other: Source, what: str) -> str:
        is_same = other["name"] == source["name"]
        has = "it already" if is_same else f"the same {what} already as {other['name']}"
        return f"{source['name']} is skipped: {self._state.path} has {has}"

    def _warn_apart(self, name: str) -> None:
        """Warn of a source without a node of the others: ids may be written in another way."""
        nodes, n_before = self.inner.nodes, self._n_nodes
        here, there = nodes.ids(np.array([n_before, 0])).tolist()
        warn(
            f"{name}: none of its {len(nodes) - n_before:,} nodes is among the {n_before:,} of "
            f"{self._state.path}, so labels of those do not reach them; if they are the same nodes "
            f"with other ids ({here!r} here, {there!r} there), write them as in the state, or "
            f"start another one",
            OhmWarning,
        )

    def _warn_of_other_rows(self) -> None:
        """Warn if other rows of a table would count than in an earlier run."""
        if not (self._ledger and self.has_new):
            return
        events, knows = Param("event_id_col"), self._found.kept.events is not None
        if knows != (self.inner.options.event_id_col is not None):
            how, this = ("with", "without") if knows else ("without", "with")
            warn(
                f"{self._state.path} has read edges {how} {events} before, but these are read "
                f"{this} it; events that are in both count twice",
                OhmWarning,
            )
        before, now = self._ledger[-1].get("where"), self.inner.options.where
        if before != now:
            warn(
                f"{self._state.path} has read edges {_with(before)} before, but these are read "
                f"{_with(now)}; edges chosen in different ways count together",
                OhmWarning,
            )


def _with(where: str | None) -> str:
    return f"without {Param('where')}" if where is None else f"with {Param('where', where)}"


class EdgeDigest:
    """Checksums of the columns of edges, which do not depend on the batches they come in.

    They are fast, and find mistakes; someone who wants to mislead could make other edges with the
    same checksums.

    Examples
    --------
    >>> u, v = np.arange(4, dtype=np.int32), np.ones(4, dtype=np.int32)
    >>> whole, parts = EdgeDigest(), EdgeDigest()
    >>> whole.add((u, v, np.ones(4)))
    >>> parts.add((u[:1], v[:1], np.ones(1)))
    >>> parts.add((u[1:], v[1:], np.ones(3)))
    >>> whole.hex() == parts.hex(), whole.n_edges
    (True, 4)
    """

    def __init__(self) -> None:
        self.n_edges, self._sums = 0, [0] * len(TYPES)

    def add(self, batch: tuple[Any, ...]) -> None:
        """Take in a batch: nodes as numbers, weights, which may be None, and times."""
        for at, values in enumerate(batch):
            if values is not None:
                content = np.ascontiguousarray(values, dtype=TYPES[at]).data
                self._sums[at] = zlib.crc32(content, self._sums[at])
        self.n_edges += len(batch[0])

    def hex(self) -> str:
        """Return the digest of all edges so far."""
        return "".join(f"{number:08x}" for number in (self.n_edges, *self._sums))


def describe_source(path: str, known: Mapping[tuple[Any, Any], Source]) -> Source:
    """Return name, path, size, time of the last change, and a digest of some blocks of a file.

    A small file is in the digest as a whole; of a remote file, only its ends. A pipe has a name
    only. A file that has not changed since it was read, according to the sources `known` by path
    and time, is not read for that.
    """
    if is_remote(path):
        found = describe_remote(path)
        digest = hashlib.blake2b(b"".join(found["ends"]), digest_size=16).hexdigest()
        path = re.sub("//[^/@]*@", "//", path.partition("?")[0])  # without passwords
        about = {key: found[key] for key in ("size", "changed")}
        return {"name": path.rpartition("/")[2], "path": path, **about, "sample": digest}
    if not os.path.isfile(path):
        return {"name": path, "path": path, "size": None, "changed": None, "sample": None}
    status = os.stat(path)
    about = {"size": status.st_size, "changed": status.st_mtime_ns}
    other = known.get((path, status.st_mtime_ns), {})
    is_same = other.get("size") == status.st_size
    sample = other.get("sample") if is_same else _sample(path, status.st_size)
    return {"name": Path(path).name, "path": path, **about, "sample": sample}


def _sample(path: str, size: int) -> str:
    """Return a digest of some blocks of the first bytes of a file."""
    digest = hashlib.blake2b(digest_size=16)
    with open(path, "rb") as content:
        for at in range(N_BLOCKS):
            start = max(0, size - BLOCK) * at // (N_BLOCKS - 1)
            content.seek(start)
            digest.update(content.read(min(BLOCK, size - start)))
    return digest.hexdigest()


def _growth(source: Source, other: Source) -> str:
    """Return how a table or a file on this machine has grown, if another one is its beginning."""
    before, now = other.get("version"), source.get("version")
    if before and now:  # of a table
        return f"from {before} to {now}"
    before, now = other.get("size"), source["size"]
    if not before or before >= now or not os.path.isfile(source["path"]):
        return ""
    is_start = _sample(source["path"], before) == other.get("sample")
    return f"from {before:,} to {now:,} bytes" if is_start else ""
