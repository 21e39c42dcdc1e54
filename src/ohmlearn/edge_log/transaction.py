"""Operations of a log that become durable together, and what a removal has done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ohmlearn.edge_log.manifest import LogError

if TYPE_CHECKING:
    from ohmlearn.edge_log.edge_log import EdgeLog

Given = ArrayLike | None
Missing = Literal["warn", "raise", "ignore"]


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
