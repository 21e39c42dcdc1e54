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

import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ohmlearn._arrays_file import HEAD, read_arrays
from ohmlearn.errors import InputError, Param
from ohmlearn.estimators.kept_graph import KeptGraph
from ohmlearn.estimators.label_job import Labelling
from ohmlearn.estimators.model_file import is_model, load_labelling, save_labelling
from ohmlearn.estimators.problem import ClassProblem, HFSParameters
from ohmlearn.estimators.source_ledger import Recorded, SameEdges
from ohmlearn.nodes import NodeTable
from ohmlearn.reading.file_edges import EdgeStream
from ohmlearn.sparsifier import StreamingSparsifier

if TYPE_CHECKING:
    from ohmlearn.estimators.hfs_classifier import HFSClassifier

__all__ = ["StateFile", "has_answer"]

NAME = "HFSClassifier"  # which can load the file, too
WORTH = 30.0  # saving takes at most one part in so many of the time
FIRST = 1.0  # seconds before the first save, whose cost is not known


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

    def update(self, source: object, y: Any = None, **reading: Any) -> HFSClassifier:
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
        found, new = self.read_new(found, load, stream, lambda one, edges: one.kept.take(edges))
        if rows is not None:
            problem = ClassProblem.make(rows, found.kept, found.parameters, found.before)
        has_labels = problem is not None or found.problem is not None
        is_solved = not new.has_new and has_answer(found, problem)
        if has_labels and not is_solved:
            found = found.solve(problem)
        if new.has_new or (has_labels and not is_solved):
            self.save(found)
        own = {name: getattr(found.parameters, name) for name in HFSParameters.names()}
        return HFSClassifier._from_file(found, own, self._points)

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
        elif is_model(arrays):
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
        take: Callable[[Labelling, Recorded], None],
    ) -> tuple[Labelling, Recorded]:
        """Give the new sources of a stream to `take`; return the model with them.

        Edges that the model has under another name or in another format are recognised when they
        have been read. Then the model is loaded again, and continues without them.
        """
        skipped: dict[int, str] = {}  # sources with known edges, and how that is said
        pipes: set[int] = set()  # that have been read, and cannot be read again
        while True:
            stream.nodes = NodeTable() if found.kept.nodes is None else found.kept.nodes
            new = Recorded(stream, self, found, skipped, pipes)
            try:
                take(found, new)
                return found, new
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
        began = time.perf_counter()
        parameters = {name: getattr(found.parameters, name) for name in HFSParameters.names()}
        save_labelling(self.path, NAME, found, parameters, self._points)
        self._head, self._saved = _read_head(self.path), time.perf_counter()
        self._cost = self._saved - began

    def save_edges(self, found: Labelling, *, only_if_cheap: bool = True) -> None:
        """Save edges without an answer, if that takes little of the time since the last save."""
        is_cheap = time.perf_counter() - self._saved >= WORTH * self._cost
        if is_cheap or not only_if_cheap:
            self.save(found._replace(answer=None))


def has_answer(found: Labelling, problem: Any) -> bool:
    """Whether a model has the answer of a problem on its edges already; None: of its own problem.

    Then it is not solved again: a solve that starts from an answer changes its last bits.
    """
    own = found.problem
    if found.answer is None or problem is None:
        return found.answer is not None
    pairs = zip((*problem.labels, problem.classes), (*own.labels, own.classes), strict=True)
    return problem.parameters == own.parameters and all(np.array_equal(*pair) for pair in pairs)


def _read_head(path: str) -> bytes | None:
    """Return the first bytes of a file, which have its checksum; None if there is no file."""
    if not os.path.exists(path):
        return None
    with Path(path).open("rb") as file:
        return file.read(HEAD)
