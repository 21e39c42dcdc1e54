"""What ``label`` says about each node, in one place for the table, the summary and the page."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ohmlearn.nodes import NodeTable

RANK_CELLS = 1 << 20  # probabilities that are ranked at a time


class Column(Protocol):
    """Whatever has rows, such as an array."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the entries."""

    def __len__(self) -> int:
        """Return the number of rows."""

    def __getitem__(self, rows: slice, /) -> Any:
        """Return an array of some of the rows."""


class Coded:
    """A column in which each row is one of a few values, or null.

    Takes 4 or 8 bytes for each row, however long the values are: the position of the value of each
    row, or -1 for null.
    """

    def __init__(self, values: NDArray[Any], codes: NDArray[Any]) -> None:
        self.values, self.codes = values, codes

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values."""
        return self.values.dtype

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        codes = self.codes[rows]
        return np.ma.masked_array(self.values[codes], codes < 0)


class AnswerTable:
    """The answers of a classifier.

    A node of which nothing is known has no label here: no label reaches it, and it has no features
    that were used. The estimator gives it the class prior, as scikit-learn's interface wants a
    class for every node. Nodes whose label is less likely than `min_confidence` have none, either.
    """

    def __init__(self, answer: Any, min_confidence: float | None = None) -> None:
        labels = answer.problem.labels
        self.classes: NDArray[Any] = answer.problem.classes
        self.reached: NDArray[np.bool_] = answer.reached  # connected to a label
        self.answered: NDArray[np.bool_] = answer.answered  # or from features, or labelled
        self._probabilities: NDArray[np.float64] = answer.probabilities
        self._first = answer.codes(0)
        self.codes = np.where(self.answered, self._first, -1)  # positions in `classes`
        self.abstained: NDArray[np.bool_] | None = None  # without a label by `min_confidence`
        if min_confidence is not None:
            self.abstained = (self._probabilities.max(axis=1) < min_confidence) | ~self.answered
            self.codes[self.abstained] = -1
        prior = answer.class_prior
        likeliest = np.flatnonzero(prior == prior.max())
        self.prior_code = int(likeliest[0]) if len(likeliest) == 1 else -1  # if there is only one
        answers = self.codes[labels.nodes]
        given = labels.values[np.arange(len(answers)), answers]
        # Labelled nodes whose answer is none of the labels given to them.
        self.n_relabelled = int(np.count_nonzero((answers >= 0) & (given == 0.0)))

    def count(self) -> dict[str, int]:
        """Return the number of nodes of each class; nodes without a label are not counted."""
        counts = np.bincount(self.codes[self.codes >= 0], minlength=len(self.classes))
        names = map(str, self.classes.tolist())
        return dict(zip(names, counts.tolist(), strict=True))

    def columns(self, ids: Any, top: int | None = None) -> dict[str, Column]:
        """Return the columns of the table, which has a row for each node.

        With `top`, so many of the likeliest classes are named in each row, instead of a column of
        probabilities for each class.
        """
        columns: dict[str, Column] = {"node": ids, "label": Coded(self.classes, self.codes)}
        if top is None:
            unknown = None if self.answered.all() else ~self.answered
            for at, name in enumerate(self.classes.tolist()):
                p = self._probabilities[:, at]
                known = p if unknown is None else np.ma.masked_array(p, unknown)
                columns[f"probability_{name}"] = known
        else:
            columns |= self._top_columns(top)
        columns["reached"] = self.reached
        prior = np.where(self.answered, -1, self.prior_code)
        columns["prior_label"] = Coded(self.classes, prior)
        return columns if self.abstained is None else columns | {"abstained": self.abstained}

    def _top_columns(self, top: int) -> dict[str, Column]:
        """Return the `top` likeliest classes and their probabilities, without impossible ones."""
        n = len(self.codes)
        codes = np.full((top, n), -1, dtype=np.int32)
        probabilities = np.full((top, n), np.nan)
        size = max(1, RANK_CELLS // len(self.classes))
        for start in range(0, n, size):
            block = np.array(self._probabilities[start : start + size])
            stop, rows = start + len(block), np.arange(len(block))
            for rank in range(min(top, len(self.classes))):
                # Several probabilities may round to the same number, so the label is not looked up.
                at = np.argmax(block, axis=1) if rank > 0 else self._first[start:stop]
                probability = block[rows, at]
                block[rows, at] = -1.0
                known = self.answered[start:stop] & ((probability > 0) | (rank == 0))
                codes[rank, start:stop] = np.where(known, at, -1)
                probabilities[rank, start:stop] = np.where(known, probability, np.nan)
        if self.abstained is not None:
            codes[:, self.abstained] = -1
        columns: dict[str, Column] = {}
        for rank in range(top):
            ending = f"_{rank + 1}" if rank > 0 else ""
            columns[f"label{ending}"] = Coded(self.classes, codes[rank])
            columns[f"probability{ending}"] = np.ma.masked_invalid(probabilities[rank], copy=False)
        return columns


def answer_columns(answer: Any, nodes: NodeTable) -> dict[str, Any]:
    """Return the table of an answer: of classes as above, of numbers with a value for each node."""
    ids = nodes.ids()[: len(answer.reached)]
    if not hasattr(answer, "probabilities"):
        return {"node": ids, "value": answer.labels, "reached": answer.reached}
    return {name: each[:] for name, each in AnswerTable(answer).columns(ids).items()}
