"""The table of ``ohmlearn label``, made in Python."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from ohmlearn.estimators import HFSClassifier
from ohmlearn.reading import read_edges
from ohmlearn.reading.label_table import read_labels
from ohmlearn.report.write_table import write_table


def write_python_labels(path: Path, edges: Path, labels: Path, **parameters: Any) -> HFSClassifier:
    """Write the result of `HFSClassifier.fit_edges` as the command does; return the model."""
    stream = read_edges(edges)
    model = HFSClassifier(**parameters).fit_edges(stream, dict(read_labels(str(labels))))
    columns: dict[str, Any] = {"node": stream.nodes.ids(), "label": model.transduction_}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* labels are few for")
        shares = model.label_distributions_
    for at, name in enumerate(model.classes_):
        columns[f"probability_{name}"] = shares[:, at]
    assert model.reached_.all()  # so that no label is empty
    columns["reached"] = model.reached_
    columns["prior_label"] = np.ma.masked_all(len(shares), model.classes_.dtype)
    write_table(str(path), columns)
    return model
