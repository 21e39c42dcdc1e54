"""What identifies a source of edges: its size and samples of its content, or all of its edges."""

import hashlib
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from ohmlearn.reading.remote import describe_remote, is_remote

__all__ = ["EdgeDigest", "describe_file"]

BLOCK, N_BLOCKS = 1 << 16, 16  # of a file, to notice an edit at once
TYPES = ("<i4", "<i4", "<f8", "<f8")  # of columns u, v, w, t


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
        # One attribute: Ctrl-C between two assignments must not leave half a batch.
        self._state: tuple[int, ...] = (0, 0, 0, 0, 0)

    @property
    def n_edges(self) -> int:
        """Number of edges so far."""
        return self._state[0]

    def add(self, batch: tuple[Any, ...]) -> None:
        """Take in a batch: nodes as numbers, weights, which may be None, and times."""
        n_edges, *sums = self._state
        for at, values in enumerate(batch):
            if values is not None:
                sums[at] = zlib.crc32(np.ascontiguousarray(values, dtype=TYPES[at]).data, sums[at])
        self._state = (n_edges + len(batch[0]), *sums)

    def hex(self) -> str:
        """Return the digest of all edges so far."""
        return "".join(f"{number:08x}" for number in self._state)


def describe_file(name: str) -> dict[str, Any]:
    """Return name, size, time of the last change, and a digest of some blocks.

    A small file is in the digest as a whole; of a remote file, only its ends. A pipe has a name
    only.
    """
    if is_remote(name):
        found = describe_remote(name)
        digest = hashlib.blake2b(b"".join(found["ends"]), digest_size=16)
        base = name.partition("?")[0].rpartition("/")[2]
        about = {key: found[key] for key in ("size", "changed")}
        return {"name": base, **about, "sample": digest.hexdigest()}
    file = Path(name)
    if not file.is_file():
        return {"name": name, "size": None, "changed": None, "sample": None}
    status = file.stat()
    digest = hashlib.blake2b(digest_size=16)
    with file.open("rb") as content:
        for at in range(N_BLOCKS):
            content.seek(max(0, status.st_size - BLOCK) * at // (N_BLOCKS - 1))
            digest.update(content.read(BLOCK))
    return {
        "name": file.name,
        "size": status.st_size,
        "changed": status.st_mtime_ns,
        "sample": digest.hexdigest(),
    }
