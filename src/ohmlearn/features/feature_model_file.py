"""Models with features in files: graph, features and labels as named arrays.

Answers are not stored. They are computed again from the rest, which gives the same bits. Nothing is
pickled, and nothing in a file is trusted: whatever does not fit together raises ValueError.
"""

import json
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ohmlearn._arrays_file import read_arrays, write_arrays
from ohmlearn.errors import InputError, Param
from ohmlearn.estimators.label_input import NodeLabels
from ohmlearn.features.known_graph import KnownGraph
from ohmlearn.graph import Graph
from ohmlearn.graph.graph import with_nodes
from ohmlearn.nodes import NodeTable
from ohmlearn.sparsifier import StreamingSparsifier

__all__ = ["SavedModel", "load_model", "save_model"]


class SavedModel(NamedTuple):
    """What a file holds."""

    known: KnownGraph
    features: Any  # one row for each node
    missing: NDArray[np.bool_]
    labels: NodeLabels
    classes: NDArray[Any] | None
    about: dict[str, Any]  # parameters and single values, as JSON has them


def save_model(path: Any, name: str, estimator: Any, model: SavedModel) -> None:
    """Write a model of the class `name`, completely or not at all."""
    known, about = model.known, model.about
    if known.sparsifier is not None:
        state: dict[str, Any] = known.sparsifier.get_state()
    else:
        state = dict(zip(("edges_u", "edges_v", "edges_w"), known.graph.edges(), strict=True))
        state |= {} if known.nodes is None else known.nodes.get_state()
    X = model.features
    if scipy.sparse.issparse(X):
        X = scipy.sparse.csr_array(X)
        state |= {"features": X.data, "features_columns": X.indices, "features_offsets": X.indptr}
    else:
        state["features"] = X
    state |= {"degrees": known.degrees, "missing": model.missing}
    state |= {f"labels_{one}": array for one, array in model.labels._asdict().items()}
    if model.classes is not None:
        if model.classes.dtype.kind not in "biuU":
            raise InputError(
                f"classes of dtype {model.classes.dtype} cannot be saved",
                remedy="use classes that are strings or integers",
            )
        state["classes"] = model.classes
    shape = [int(size) for size in X.shape]
    about = about | {"class": name, "shape": shape, "estimator": repr(estimator)}
    try:
        text = json.dumps(about, default=np.generic.item)
    except TypeError as error:
        raise InputError(
            f"a parameter of {name} cannot be saved: {error}",
            remedy="use numbers, texts, lists and dicts of texts",
        ) from error
    write_arrays(path, state | {"feature_model": np.array(text)})


def load_model(path: Any, name: str, estimator: Any) -> SavedModel:
    """Return what `save_model` wrote; any other file raises ValueError."""
    arrays = read_arrays(path)
    if "feature_model" not in arrays:
        raise InputError(f"{path} holds no {name}", remedy="fit the model and save it again")
    try:
        model = _read(arrays)
    except (ValueError, ArithmeticError, TypeError, LookupError, AttributeError) as error:
        raise InputError(
            f"{path} holds no {name} that can continue: {error}",
            remedy="restore it from a copy, or fit the model again",
        ) from error
    if model.about["class"] != name:
        raise InputError(f"{path} holds a {model.about['class']}", remedy="load it with that class")
    if repr(estimator) != model.about["estimator"]:
        raise InputError(
            f"{path} was saved with the estimator {model.about['estimator']}, got "
            f"{Param('estimator', estimator)}; estimators are not in files",
            remedy="give load the same one",
        )
    return model


def _read(arrays: dict[str, Any]) -> SavedModel:
    about = json.loads(str(arrays["feature_model"]))
    n_nodes, n_columns = about["shape"]
    sparsifier = nodes = None
    if "parameters" in arrays:
        sparsifier = StreamingSparsifier.from_state(arrays)
        graph, nodes = sparsifier.snapshot(), sparsifier.nodes
    else:
        ends = (arrays[one] for one in ("edges_u", "edges_v", "edges_w"))
        graph = Graph.from_edges(*ends, n_nodes=n_nodes)
        if "node_ids" in arrays or "node_offsets" in arrays:
            nodes = NodeTable.from_state(arrays)
    graph = with_nodes(graph, n_nodes)
    graph.nodes = nodes
    X: Any = arrays["features"]
    if "features_offsets" in arrays:
        parts = (X, arrays["features_columns"], arrays["features_offsets"])
        X = scipy.sparse.csr_array(parts, shape=(n_nodes, n_columns))
        X.check_format(full_check=True)
    labels = NodeLabels(*(arrays[f"labels_{one}"] for one in ("nodes", "values", "weights")))
    degrees, missing = arrays["degrees"], arrays["missing"]
    n_labels, classes = len(labels.nodes), arrays.get("classes")
    values = X.data if scipy.sparse.issparse(X) else X
    fits = (
        X.shape == (n_nodes, n_columns)
        and graph.n_nodes == n_nodes == len(degrees) == len(missing)
        and missing.dtype == bool
        and labels.values.shape == (n_labels, 1 if classes is None else len(classes))
        and labels.weights.shape == (n_labels,)
        and 0 < n_labels == len(np.unique(labels.nodes))
        and 0 <= labels.nodes.min() <= labels.nodes.max() < n_nodes
        and all(np.isfinite(each).all() for each in (values, degrees, *labels[1:]))
        and labels.weights.min() > 0.0
    )
    if not fits:
        raise ValueError("its parts do not fit together")
    known = KnownGraph(graph, degrees, nodes, sparsifier)
    return SavedModel(known, X, missing, labels, classes, about)
