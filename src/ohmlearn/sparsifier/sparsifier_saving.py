"""Sparsifiers as files, as arrays with names, and as pickles."""

import os
from abc import abstractmethod
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from ohmlearn._arrays_file import read_arrays, write_arrays
from ohmlearn._display import Shown
from ohmlearn._sharing import Shared, in_turn
from ohmlearn.errors import InputError, text_of
from ohmlearn.nodes import NodeTable
from ohmlearn.sparsifier.sparsifier_options import SparsifierOptions

__all__ = ["SavedSparsifier"]


class SavedSparsifier(Shown, Shared):
    """The part of a sparsifier that writes and reads its state."""

    options: SparsifierOptions
    seed: int
    nodes: NodeTable | None
    _core: Any

    @abstractmethod
    def _start(self, options: SparsifierOptions, seed: int, sampler: Any) -> None:
        """Set all attributes."""

    @staticmethod
    @abstractmethod
    def _make_sampler(
        options: SparsifierOptions, seed: int, state: dict[str, Any] | None = None
    ) -> Any:
        """Return a sampler that continues from a state, or a new one."""

    @abstractmethod
    def _sampler(self) -> Any:
        """Return the sampler, unless a fork has left it half-changed."""

    def __repr__(self) -> str:
        title, facts = self._known()
        return title if facts.get("edges seen") == 0 else super().__repr__()

    def _title(self) -> str:
        return f"StreamingSparsifier({self.options.describe()})"

    def _facts(self) -> dict[str, Any]:
        if not self._lock.acquire(blocking=False):  # another thread updates it
            return {"at work": True}
        try:
            sampler = self._sampler()
            n_seen = sampler.position - sampler.n_self_loops - sampler.n_zero_weights
            return {"edges seen": n_seen, "rows": sampler.n_rows, "nodes": sampler.n_nodes}
        finally:
            self._lock.release()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the sparsifier to a file with a checksum, completely or not at all.

        Parameters
        ----------
        path : str or path
            Name of the file; an existing file is replaced.

        Examples
        --------
        >>> import tempfile
        >>> from ohmlearn import StreamingSparsifier
        >>> sparsifier = StreamingSparsifier(random_state=0).update([0, 1], [1, 2])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     sparsifier.save(f"{folder}/h.ohm")
        ...     StreamingSparsifier.load(f"{folder}/h.ohm").n_edges_seen_
        2
        """
        write_arrays(path, self.get_state())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a saved sparsifier, which continues bit for bit as if it had never stopped.

        Parameters
        ----------
        path : str or path
            A file written by `save`; see there for an example.

        Raises
        ------
        ValueError
            Names the file and what is wrong with it. It is safe to load any file.
        """
        arrays = read_arrays(path)
        try:
            return cls.from_state(arrays)
        except (ValueError, ArithmeticError, TypeError) as error:  # numbers may have any size
            raise InputError(
                f"{path} holds no sparsifier that can continue: {text_of(error)}; restore it from "
                f"a copy, or sparsify the edges again"
            ) from error

    @in_turn
    def get_state(self) -> dict[str, NDArray[Any]]:
        """Return everything that `from_state` needs, as arrays with names.

        Examples
        --------
        >>> from ohmlearn import StreamingSparsifier
        >>> state = StreamingSparsifier(random_state=0).update([0, 1], [1, 2]).get_state()
        >>> StreamingSparsifier.from_state(state).n_edges_seen_
        2
        """
        state = self._sampler().get_state()
        ids = {} if self.nodes is None else self.nodes.get_state()
        return {"parameters": np.array(self.options.to_json(self.seed)), **state, **ids}

    @classmethod
    def from_state(cls, state: dict[str, NDArray[Any]]) -> Self:
        """Return a sparsifier that continues from a state; other arrays are ignored.

        Raises
        ------
        ValueError
            Says what in the state no sparsifier can have.
        """
        options, seed = SparsifierOptions.from_json(state.get("parameters"))
        found = cls.__new__(cls)
        found._start(options, seed, cls._make_sampler(options, seed, state))
        options.check_room(found._core.n_nodes)
        if "node_ids" in state or "node_offsets" in state:
            found.nodes = NodeTable.from_state(state)
        return found

    @in_turn
    def copy(self, *, n_jobs: int | Literal["same"] | None = "same") -> Self:
        """Return an independent sparsifier with the same state.

        Both continue alike. They share the table of nodes, which only ever grows.

        Parameters
        ----------
        n_jobs : int, None or "same"
            Number of threads of the copy; the results do not depend on it.

        Examples
        --------
        >>> from ohmlearn import StreamingSparsifier
        >>> first = StreamingSparsifier(random_state=0).update([0, 1], [1, 2])
        >>> second = first.copy().update([2], [3])
        >>> first.n_edges_seen_, second.n_edges_seen_
        (2, 3)
        """
        options = self.options if n_jobs == "same" else replace(self.options, n_jobs=n_jobs)
        found = type(self).__new__(type(self))
        found._start(options, self.seed, self._sampler().copy(options.threads))
        found.nodes = self.nodes
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_state, (self.get_state(),)
