"""Checkpoints of ``label``: a sparsifier in a file, and which edges it has seen."""

import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ohmlearn._arrays_file import read_arrays, write_arrays
from ohmlearn.cli.messages import tell
from ohmlearn.cli.state_sources import EdgeDigest, describe_file, some_rows
from ohmlearn.edges import Batch
from ohmlearn.reading.file_edges import Place
from ohmlearn.sparsifier import StreamingSparsifier

if TYPE_CHECKING:
    from ohmlearn.reading import EdgeStream

__all__ = ["Checkpoint"]

PARAMETERS = ("epsilon", "max_edges", "memory", "half_life", "horizon")
WORTH = 30.0  # saving takes at most one part in so many of the time


class Checkpoint:
    """A sparsifier that is saved now and then while it reads a stream, and resumed.

    The file holds the sparsifier, the ids of the nodes, how the edges were read (options, columns;
    size, time and samples of the files), and where in the sources the latest batch began. A resumed
    run starts there: what was read before is skipped, without decoding it where the format allows.
    A pipe is read from its beginning, and a digest of all edges is compared where the sparsifier
    continues. So a sparsifier never mixes two graphs.

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
        self._files = [describe_file(name) for name in stream.sources]
        self._every = options["checkpoint_every"]
        self._next = time.perf_counter() + self._every
        self._is_complete = False
        self._digest = None if stream.rereadable else EdgeDigest()
        self._batch: Batch | None = None  # that the sparsifier is reading, not in the digest
        self._expected: str | None = None  # the digest of the edges that the file has seen
        if os.path.exists(path):
            self._load()

    def _load(self) -> None:
        arrays = read_arrays(self.path)
        try:
            saved = StreamingSparsifier.from_state(arrays)
        except (ValueError, ArithmeticError, TypeError) as error:
            self._refuse(f"{self.path} holds no sparsifier that can continue: {error}")
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
        if saved.options.n_jobs != self.sparsifier.options.n_jobs:
            saved = saved.copy(n_jobs=self.sparsifier.options.n_jobs)
        if saved.nodes is not None:
            self._stream.nodes = saved.nodes
        self.sparsifier, self._expected = saved, reading["digest"]
        self.n_resumed = _position(saved)
        if self._digest is None:
            self._stream.start_at(Place(*reading["place"]))

    def _check_reading(self, before: dict[str, Any]) -> None:
        """Refuse other options, columns or files than those of the saved run."""
        now = self._reading()
        for name, value in now["options"].items():
            self._compare(f"--{name.replace('_', '-')}", before["options"].get(name), value)
        names = [[file["name"] for file in reading["files"]] for reading in (before, now)]
        self._compare("the files", *(", ".join(each) for each in names))
        for old, new in zip(before["files"], now["files"], strict=True):
            self._compare(f"{new['name']} of", _bytes(old["size"]), _bytes(new["size"]))
            if (old["sample"], old["changed"]) != (new["sample"], new["changed"]):
                self._refuse(f"{new['name']} has changed since {self.path} was saved")
        if None not in (before["columns"], now["columns"]):  # those of a pipe are not known yet
            self._compare("the columns", before["columns"], now["columns"])

    def _compare(self, what: str, before: Any, now: Any) -> None:
        if before != now:
            self._refuse(f"{self.path} was saved with {what} {before}, but this command has {now}")

    def _refuse(self, problem: str) -> NoReturn:
        raise ValueError(
            f"{problem}; use the same command, or remove the checkpoint to start over, or name "
            f"another one"
        )

    def unseen(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """Yield what the sparsifier has not seen; save it now and then, and in the end.

        The caller must pass each batch to the sparsifier before requesting the next.
        """
        for batch in batches:
            n_seen = min(len(batch.u), self.n_resumed - self._stream.place.n_read)
            if n_seen > 0:
                self._check_digest(some_rows(batch, 0, n_seen))
                batch = some_rows(batch, n_seen, len(batch.u))
            if len(batch.u) > 0:
                self._batch = batch
                yield batch
                if self._digest is not None:
                    self._digest.add(batch)
                self._batch = None
                if time.perf_counter() > self._next:
                    self.save()
        n_read = self._stream.n_read
        if n_read < self.n_resumed:
            self._refuse(
                f"{self.path} has seen {self.n_resumed} edges, but there are only {n_read}"
            )
        self.save()
        self._is_complete = True  # later, ids of labels are added to those of the edges

    def _check_digest(self, seen: Batch) -> None:
        """Compare the edges of a pipe with those that were seen before."""
        if self._digest is None:
            return
        self._digest.add(seen)
        if self._digest.n_edges < self.n_resumed:
            return
        if self._digest.hex() != self._expected:
            self._refuse(
                f"{self.path} has seen other edges: the first {self.n_resumed:,} differ from those "
                f"that it was saved after"
            )
        self._expected = None

    def save(self) -> None:
        """Write the file, also in the middle of a batch, unless it has all edges already."""
        if self._expected is not None or self._is_complete:
            return
        start = time.perf_counter()
        reading = self._reading() | {"place": self._stream.place, "digest": self._hash()}
        state = self.sparsifier.get_state() | {"reading": np.array(json.dumps(reading))}
        write_arrays(self.path, state)
        end = time.perf_counter()
        self._next = end + max(self._every, WORTH * (end - start))

    def _hash(self) -> str | None:
        """Return the digest of the edges of a pipe that the sparsifier has seen."""
        if self._digest is None:
            return None
        digest = self._digest.copy()
        if self._batch is not None:
            n_seen = _position(self.sparsifier) - digest.n_edges
            digest.add(some_rows(self._batch, 0, n_seen))
        return digest.hex()

    def _reading(self) -> dict[str, Any]:
        """Return what a later run is compared with before it reads."""
        return {
            "options": json.loads(json.dumps(asdict(self._stream.options))),  # lists, not tuples
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


def _position(sparsifier: StreamingSparsifier) -> int:
    """Return how many rows of the stream a sparsifier has taken in, dropped ones included."""
    stats = sparsifier.stats_
    names = ("n_edges_seen", "n_self_loops_dropped", "n_zero_weights_dropped")
    return sum(int(stats[name]) for name in names)


def _bytes(size: int | None) -> str:
    return "unknown size" if size is None else f"{size:,} bytes"
