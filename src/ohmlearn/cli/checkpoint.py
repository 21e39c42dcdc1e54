"""Checkpoints of ``label``: a sparsifier in a file, and which edges it has seen."""

import hashlib
import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ohmlearn._storage import read_arrays, write_arrays
from ohmlearn.cli.messages import tell
from ohmlearn.sparsifier import StreamingSparsifier
from ohmlearn.streams import EdgeBatch, TimedBatch

if TYPE_CHECKING:
    from ohmlearn.streams import EdgeStream

__all__ = ["Checkpoint"]

PARAMETERS = ("epsilon", "max_edges", "memory", "n_nodes")
BLOCK, N_BLOCKS = 1 << 16, 16  # of a file, to notice an edit at once
Batch = EdgeBatch | TimedBatch


class Checkpoint:
    """A sparsifier that is saved now and then while it reads a stream, and resumed.

    A resumed run reads the stream from its beginning and skips what the sparsifier has seen. The
    file holds how the edges were read (options, columns, sizes and samples of the files), which is
    compared before the reading, and a digest of all edges seen, which is compared when the reading
    has come so far. So a sparsifier never mixes two graphs.

    Attributes
    ----------
    sparsifier : StreamingSparsifier
        The one from the file if there is a file, else the one given.
    n_resumed : int
        Edges that the one from the file has seen.
    """

    def __init__(
        self, path: str, sparsifier: StreamingSparsifier, stream: "EdgeStream", **options: Any
    ) -> None:
        self.path = path
        self.sparsifier = sparsifier
        self.n_resumed = 0
        self._stream = stream
        self._files = [_describe_file(name) for name in stream.sources]
        self._every = options["checkpoint_every"]
        self._saved_at = time.perf_counter()
        self._digest = EdgeDigest()
        self._batch: Batch | None = None  # that the sparsifier is reading, not in the digest
        self._expected: str | None = None  # the digest of the edges that the file has seen
        if os.path.exists(path):
            self._load()

    def _load(self) -> None:
        saved, arrays = StreamingSparsifier.load(self.path), read_arrays(self.path)
        for name in PARAMETERS:
            before, now = getattr(saved.options, name), getattr(self.sparsifier.options, name)
            self._compare(f"{name} =", before, now)
        self._compare("random_state =", saved.seed, self.sparsifier.seed)
        if "reading" not in arrays:
            raise ValueError(
                f"{self.path} does not say which edges it has seen, so it cannot be resumed; name "
                f"another checkpoint"
            )
        reading = json.loads(str(arrays["reading"]))
        self._check_reading(reading)
        saved = saved.with_threads(self.sparsifier.options.n_jobs)
        saved.nodes = None  # the stream numbers its nodes again, in the same way: see _check_digest
        self.sparsifier, self._expected = saved, reading["digest"]
        self.n_resumed = _position(saved)

    def _check_reading(self, before: dict[str, Any]) -> None:
        """Refuse other options, columns or files than those of the saved run."""
        now = self._reading()
        for name, value in now["options"].items():
            self._compare(f"--{name.replace('_', '-')}", before["options"].get(name), value)
        names = [[file["name"] for file in reading["files"]] for reading in (before, now)]
        self._compare("the files", *(", ".join(each) for each in names))
        for old, new in zip(before["files"], now["files"], strict=True):
            self._compare(f"{new['name']} of", _bytes(old["size"]), _bytes(new["size"]))
            if old["sample"] != new["sample"]:
                self._refuse(f"{new['name']} has changed since {self.path} was saved")
        if None not in (before["columns"], now["columns"]):  # those of a pipe are not known yet
            self._compare("the columns", before["columns"], now["columns"])

    def _compare(self, what: str, before: Any, now: Any) -> None:
        if before != now:
            self._refuse(f"{self.path} was saved with {what} {before}, but this command has {now}")

    def _refuse(self, problem: str) -> None:
        raise ValueError(
            f"{problem}; use the same command, or remove the checkpoint to start over, or name "
            f"another one"
        )

    def unseen(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """Yield what the sparsifier has not seen; save it now and then, and in the end.

        The caller must pass each batch to the sparsifier before requesting the next.
        """
        for batch in batches:
            n_seen = min(len(batch.u), self.n_resumed - self._digest.n_edges)
            if n_seen > 0:
                self._digest.add(_rows(batch, 0, n_seen))
                if self._digest.n_edges == self.n_resumed:
                    self._check_digest()
                batch = _rows(batch, n_seen, len(batch.u))
            if len(batch.u) > 0:
                self._batch = batch
                yield batch
                self._digest.add(batch)
                self._batch = None
                if time.perf_counter() - self._saved_at > self._every:
                    self.save()
        if self._digest.n_edges < self.n_resumed:
            self._refuse(
                f"{self.path} has seen {self.n_resumed} edges, but there are only "
                f"{self._digest.n_edges}"
            )
        self.save()

    def _check_digest(self) -> None:
        if self._digest.hex() != self._expected:
            self._refuse(
                f"{self.path} has seen other edges: the first {self.n_resumed:,} differ from those "
                f"that it was saved after"
            )
        self._expected = None

    def save(self) -> None:
        """Write the file, also in the middle of a batch."""
        if self._expected is not None:
            return  # interrupted on the way to where the file is
        digest = self._digest.copy()
        if self._batch is not None:
            digest.add(_rows(self._batch, 0, _position(self.sparsifier) - digest.n_edges))
        reading = self._reading() | {"digest": digest.hex()}
        state = self.sparsifier.get_state() | {"reading": np.array(json.dumps(reading))}
        write_arrays(self.path, state)
        self._saved_at = time.perf_counter()

    def _reading(self) -> dict[str, Any]:
        """Return what a later run is compared with before it reads."""
        return {
            "options": asdict(self._stream.options),
            "columns": self._stream.columns,
            "files": self._files,
        }

    def remove(self) -> None:
        """Delete the file: the work is done."""
        Path(self.path).unlink(missing_ok=True)

    def print_start(self) -> None:
        """Print where the reading continues."""
        if self.n_resumed:
            tell(f"Continuing from {self.path}, after {self.n_resumed:,} edges")


class EdgeDigest:
    """A hash of edges, which does not depend on the batches they come in.

    Examples
    --------
    >>> import numpy as np
    >>> u, v = np.arange(4, dtype=np.int32), np.ones(4, dtype=np.int32)
    >>> whole, parts = EdgeDigest(), EdgeDigest()
    >>> whole.add(EdgeBatch(u, v))
    >>> parts.add(EdgeBatch(u[:1], v[:1]))
    >>> parts.add(EdgeBatch(u[1:], v[1:], np.ones(3)))
    >>> whole.hex() == parts.hex(), whole.n_edges
    (True, 4)
    """

    def __init__(self) -> None:
        # One attribute: Ctrl-C between two assignments must not leave half a batch.
        self._state = 0, tuple(hashlib.blake2b(digest_size=16) for _ in "uvwt")

    @property
    def n_edges(self) -> int:
        """Number of edges so far."""
        return self._state[0]

    def add(self, batch: Batch) -> None:
        """Take in a batch."""
        n_edges, columns = self.copy()._state
        w = np.ones(len(batch.u)) if batch.w is None else batch.w
        t = batch.t if isinstance(batch, TimedBatch) else np.empty(0)
        for column, values in zip(columns, (batch.u, batch.v, w, t), strict=True):
            dtype = "<f8" if values is w or values is t else "<i8"
            column.update(np.ascontiguousarray(values, dtype=dtype).data)
        self._state = n_edges + len(batch.u), columns

    def copy(self) -> "EdgeDigest":
        """Return one that can be given other edges from here on."""
        other = EdgeDigest()
        n_edges, columns = self._state
        other._state = n_edges, tuple(column.copy() for column in columns)
        return other

    def hex(self) -> str:
        """Return the digest of all edges so far."""
        return "".join(column.hexdigest() for column in self._state[1])


def _position(sparsifier: StreamingSparsifier) -> int:
    """Return how many rows of the stream a sparsifier has taken in, dropped ones included."""
    stats = sparsifier.stats_
    names = ("n_edges_seen", "n_self_loops_dropped", "n_zero_weights_dropped")
    return sum(int(stats[name]) for name in names)


def _rows(batch: Batch, start: int, stop: int) -> Batch:
    parts: Any = (None if part is None else part[start:stop] for part in batch)
    return type(batch)(*parts)


def _describe_file(name: str) -> dict[str, Any]:
    """Return name, size and a digest of some blocks, of all if the file is small."""
    file = Path(name)
    if not file.is_file():
        return {"name": name, "size": None, "sample": None}
    size = file.stat().st_size
    digest = hashlib.blake2b(digest_size=16)
    with file.open("rb") as content:
        for at in range(N_BLOCKS):
            content.seek(max(0, size - BLOCK) * at // (N_BLOCKS - 1))
            digest.update(content.read(BLOCK))
    return {"name": file.name, "size": size, "sample": digest.hexdigest()}


def _bytes(size: int | None) -> str:
    return "unknown size" if size is None else f"{size:,} bytes"
