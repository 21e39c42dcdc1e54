"""Models in files: everything that later answers depend on, as named arrays.

A file has the arrays of the sparsifier, so that `StreamingSparsifier.load` reads it, too, or all
edges if `epsilon` is None; the labels; the last answer; and a text in JSON with the parameters and
single values. Nothing in a file is trusted: whatever does not fit together raises ValueError.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np
import scipy.sparse
from numpy.typing import DTypeLike, NDArray
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from ohmlearn._arrays_file import read_arrays, write_arrays
from ohmlearn.checks.parameters import LARGEST, SMALLEST, check_n_jobs
from ohmlearn.checks.times import check_moment
from ohmlearn.estimators.all_edges import FAR, ISOLATED
from ohmlearn.estimators.calibration import check_shares
from ohmlearn.estimators.label_input import NodeLabels
from ohmlearn.estimators.label_job import Labelling
from ohmlearn.harmonic import HFSResult
from ohmlearn.harmonic.leave_one_out import LeftOut
from ohmlearn.nodes import NodeTable
from ohmlearn.sparsifier import StreamingSparsifier

__all__ = ["is_model", "load_model", "save_model"]

Model = TypeVar("Model", bound=Labelling)
Arrays = dict[str, Any]
# Errors of arrays and values that can be anything.
WRONG = (
    ValueError,
    ArithmeticError,
    TypeError,
    LookupError,
    AttributeError,
    RecursionError,
    MemoryError,
)
CLASSES = "biufUSMm"  # kinds of dtypes that a class can have in a file


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


# Attributes that are single values, with the test that one from a file must pass.
VALUES: dict[str, Callable[[Any], bool]] = {
    "n_iter_": lambda value: type(value) is int and value >= 1,
    "_is_settled": lambda value: type(value) is bool,
    "method_": lambda value: value in ("harmonic", "restart"),
    "method_losses_": lambda value: (
        set(value) == {"harmonic", "restart"} and all(map(_is_number, value.values()))
    ),
    "gamma_": lambda value: _is_number(value) and value > 0,
    "staleness_": lambda value: isinstance(value, int | float) and value >= 0,
    "_removed_weight": lambda value: _is_number(value) and value >= 0,
    "n_features_in_": lambda value: type(value) is int and value >= 1,
    "sources_": lambda value: all(isinstance(source, dict) for source in value),
}
# Attributes that are arrays: type and number of dimensions. None in place of a type: any class.
ARRAYS: dict[str, tuple[DTypeLike | None, int]] = {
    "classes_": (None, 1),
    "contradicting_": (np.int64, 1),
}
LABELS: dict[str, tuple[DTypeLike, int]] = {
    "nodes": (np.int64, 1),
    "values": (np.float64, 2),
    "weights": (np.float64, 1),
}
ANSWER: dict[str, tuple[DTypeLike, int]] = {
    "f": (np.float64, 2),
    "mu": (np.float64, 1),
    "reached": (np.bool_, 1),
    "component": (np.int32, 1),
    "residual": (np.float64, 1),
    "converged": (np.bool_, 1),
    "iterations": (np.int64, 1),
    "columns": (np.float64, 2),
}
LEFT_OUT: dict[str, tuple[DTypeLike, int]] = {
    "labels": (np.int64, 1),
    "f": (np.float64, 2),
    "means": (np.float64, 2),
}


def is_model(arrays: Mapping[str, Any]) -> bool:
    """Whether arrays from a file are those of a model, not only of a sparsifier."""
    return "model" in arrays


def save_model(model: Any, path: Any) -> None:
    """Write a model to a file, completely or not at all."""
    check_is_fitted(model, "_seed")
    write_arrays(path, _get_state(model))


def load_model(cls: type[Model], path: Any, arrays: Arrays | None = None) -> Model:
    """Return the model in a file of `save_model`; any other file raises ValueError.

    `arrays` are those of the file, if it has been read already.
    """
    arrays = read_arrays(path) if arrays is None else arrays
    if not is_model(arrays):
        raise ValueError(
            f"{path} holds no {cls.__name__}; if it holds a sparsifier, use "
            f"{cls.__name__}().update(StreamingSparsifier.load(path)) and relabel"
        )
    try:
        return _from_state(cls, arrays)
    except WRONG as error:
        raise ValueError(
            f"{path} holds no {cls.__name__} that can continue: {error}; restore it from a copy, "
            f"or fit the model again"
        ) from error


# Writing.


def _get_state(model: Any) -> Arrays:
    """Return a fitted model as named arrays."""
    state = vars(model)
    found: Arrays = {}
    if model.sparsifier_ is not None:
        found |= model.sparsifier_.get_state()
    else:
        found |= model._all_edges.get_state()
        found |= {} if model._nodes is None else model._nodes.get_state()
    for name in ARRAYS:
        if state.get(name) is not None:
            found[f"model_{name}"] = _check_classes(name, state[name])
    if "_labels" in state:
        found |= _with_prefix("labels", model._labels._asdict())
    answer = model._before if model._answer is None else model._answer
    if answer is not None:
        found |= _get_answer(answer)
    if "X_" in state:
        found |= _get_points(model.X_)
    if "feature_names_in_" in state:
        found["feature_names"] = np.array(model.feature_names_in_.tolist(), dtype=str)
    n_nodes = None if model._n_nodes is None else int(model._n_nodes)
    _check_n_nodes(n_nodes, model)
    about = {
        "class": type(model).__name__,
        "parameters": _get_parameters(model),
        "seed": model._seed,
        "n_nodes": n_nodes,
        "first": model._first,
        "moment": {name: check_moment(name, value) for name, value in model._moment.items()},
        "answers": model._answer is not None,
        "values": {name: state[name] for name in VALUES if name in state},
        "nothing": [name for name in ARRAYS if name in state and state[name] is None],
    }
    return found | {"model": np.array(json.dumps(about, default=np.generic.item))}


def _get_answer(answer: HFSResult) -> Arrays:
    found = _with_prefix("answer", {name: getattr(answer, name) for name in ANSWER})
    found["answer_passes"] = np.int64(answer.passes)
    found["answer_stepped_ahead"] = np.bool_(answer.stepped_ahead)
    if answer.error is not None:
        found["answer_error"] = answer.error
    if answer.left_out is not None:
        found |= _with_prefix("left_out", answer.left_out._asdict())
    return found


def _get_points(points: Any) -> Arrays:
    """Return points as one array, or those of a sparse matrix."""
    if not scipy.sparse.issparse(points):
        return {"points": points}
    return {
        "points": points.data,
        "points_columns": points.indices.astype(np.int32, copy=False),
        "points_offsets": points.indptr.astype(np.int64),
    }


def _with_prefix(prefix: str, arrays: Mapping[str, Any]) -> Arrays:
    return {f"{prefix}_{name}": array for name, array in arrays.items()}


def _check_classes(name: str, array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype.kind not in CLASSES:
        raise ValueError(
            f"{name} of dtype {array.dtype} cannot be saved; use classes that are strings or "
            f"integers"
        )
    return array


def _get_parameters(model: Any) -> dict[str, Any]:
    """Return the parameters as JSON has them; a generator is replaced by the seed from it."""
    parameters = model.get_params(deep=False)
    if hasattr(parameters["random_state"], "bit_generator") or hasattr(
        parameters["random_state"], "get_state"
    ):
        parameters["random_state"] = model._seed
    return {name: _encode(name, value) for name, value in parameters.items()}


def _encode(name: str, value: Any) -> Any:
    if isinstance(value, np.timedelta64) or hasattr(value, "total_seconds"):
        return float(np.timedelta64(value) / np.timedelta64(1, "s"))
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping) or type(value).__name__ == "Series":
        return {"items": [[_encode(name, key), _encode(name, one)] for key, one in value.items()]}
    if isinstance(value, Iterable) and not isinstance(value, bytes):
        return [_encode(name, one) for one in value]
    raise ValueError(
        f"{name} = {value!r} cannot be saved, because only numbers, texts, lists and dicts of them "
        f"can; "
        + (
            'compute the weights yourself, and use affinity="precomputed" or fit_edges'
            if name == "affinity"
            else "use one of these"
        )
    )


def _decode(value: Any) -> Any:
    return dict(value["items"]) if isinstance(value, dict) else value


# Reading.


def _from_state(cls: type[Model], arrays: Arrays) -> Model:
    """Return the model that continues from a state."""
    about = _read_about(arrays["model"])
    _require(
        about["class"] == cls.__name__,
        f"it is one of {about['class']!r:.80}; load it with that class",
    )
    parameters = {name: _decode(value) for name, value in about["parameters"].items()}
    model: Any = cls(**parameters)
    model._check_parameters()
    check_n_jobs(model.n_jobs)
    _require(type(about["seed"]) is int, "its seed is not an integer")
    model._start(None, seed=about["seed"])
    _read_edges(model, arrays)
    model._moment = _check_moments(about["moment"])
    first = about.get("first")
    model._first = None if first is None else check_moment("first", first)
    model._n_nodes = _check_n_nodes(about["n_nodes"], model)
    state = vars(model)
    state["_is_settled"] = False
    for name, value in about["values"].items():
        _require(name in VALUES and VALUES[name](value), f"its {name!r:.80} is impossible")
        state[name] = value
    _require("method_" in state or not model._is_settled, "its method is missing")
    for name, (dtype, ndim) in ARRAYS.items():
        if f"model_{name}" in arrays:
            state[name] = _take(arrays, f"model_{name}", dtype, ndim)
        elif name in about["nothing"]:
            state[name] = None
    if "labels_nodes" in arrays:
        _read_labels(model, arrays)
    if "answer_f" in arrays:
        _read_answer(model, arrays, bool(about["answers"]))
    _read_points(model, arrays)
    found: Model = model
    return found


def _read_about(text: Any) -> dict[str, Any]:
    text = np.asarray(text)
    _require(text.dtype.kind == "U" and text.ndim == 0, "its description is missing")
    about = json.loads(str(text))
    kinds = {"class": str, "parameters": dict, "values": dict, "nothing": list}
    names = {*kinds, "seed", "n_nodes", "moment", "answers"}
    _require(isinstance(about, dict) and names <= set(about), "its description is not complete")
    for name, kind in kinds.items():
        _require(isinstance(about[name], kind), f"its {name} are missing")
    found: dict[str, Any] = about
    return found


def _read_edges(model: Any, arrays: Arrays) -> None:
    """Set the sparsifier, or all edges, and the ids."""
    if model._all_edges is None or "edges_u" not in arrays:
        _require("parameters" in arrays, "its edges are missing")
        model.sparsifier_, model._all_edges = StreamingSparsifier.from_state(arrays), None
        model._nodes = model.sparsifier_.nodes
        return
    model._all_edges.set_state(arrays)
    if "node_ids" in arrays or "node_offsets" in arrays:
        model._nodes = NodeTable.from_state(arrays)


def _check_moments(moments: Any) -> dict[str, float]:
    _require(isinstance(moments, dict) and set(moments) <= {"at", "since"}, "its moment is wrong")
    return {name: check_moment(name, value) for name, value in moments.items()}


def _read_labels(model: Any, arrays: Arrays) -> None:
    labels = NodeLabels(**_take_all(arrays, "labels", LABELS))
    nodes, values, weights = labels
    n_labels, n_columns = values.shape
    _require(len(nodes) == len(weights) == n_labels > 0, "its labels are not equally many")
    _require(len(np.unique(nodes)) == n_labels and nodes.min() >= 0, "its labelled nodes are wrong")
    in_range = (weights >= SMALLEST) & (weights <= LARGEST)
    _require(in_range.all(), "weights of labels are wrong")
    known = _count_edge_nodes(model)
    if model._nodes is None:
        _check_size(int(nodes.max()) + 1, max(known, model._n_nodes or 0), FAR)
    else:
        _require(int(nodes.max()) < len(model._nodes), "a labelled node has no id")
    if is_classifier(model):
        _check_classes_of(model, labels)
    else:
        _require(n_columns == 1, "its values do not fit a regressor")
        _require(np.isfinite(values).all(), "its values must be finite")
    model._labels, model.labelled_ = labels, nodes


def _check_classes_of(model: Any, labels: NodeLabels) -> None:
    _require(set(ARRAYS) <= set(vars(model)), "its classes are missing")
    n_classes = labels.values.shape[1]
    _require(len(np.unique(model.classes_)) == n_classes, "its classes do not fit the labels")
    if model.class_prior is not None and not isinstance(model.class_prior, str):
        check_shares(model.class_prior, model.classes_)
    shares = labels.values
    right = np.all(shares >= 0) and np.allclose(shares.sum(axis=1), 1.0)
    _require(right, "shares of classes must be positive and sum to 1")
    _require(np.isin(model.contradicting_, labels.nodes).all(), "its contradictions are wrong")


def _read_answer(model: Any, arrays: Arrays, is_present: bool) -> None:
    """Set the last answer, which may be older than the last edges."""
    found = _take_all(arrays, "answer", ANSWER)
    n_nodes, n_columns = found["f"].shape
    columns, component, reached = found["columns"], found["component"], found["reached"]
    _require(
        len(reached) == len(component) == len(columns) == n_nodes > 0
        and len(found["mu"]) in (0, n_columns)
        and columns.shape[1] in (n_columns, n_columns + 1)
        and len(found["residual"]) == len(found["converged"]) == len(found["iterations"]),
        "the parts of its answer do not fit together",
    )
    _require(np.isfinite(found["f"]).all(), "its scores must be finite")
    _require(np.isfinite(columns).all(), "its answer must be finite")
    _require(
        component.min() >= 0 and component.max() < n_nodes and np.bincount(component).min() > 0,
        "components of its answer are wrong",
    )
    passes = _take(arrays, "answer_passes", np.int64, 0)
    found["passes"] = int(passes)
    found["stepped_ahead"] = bool(_take(arrays, "answer_stepped_ahead", np.bool_, 0))
    if "answer_error" in arrays:
        found["error"] = _take(arrays, "answer_error", np.float64, 1)
    if "left_out_f" in arrays:
        found["left_out"] = LeftOut(**_take_all(arrays, "left_out", LEFT_OUT))
    assert set(found) <= {field.name for field in fields(HFSResult)}
    answer = HFSResult(**found)
    model._before = answer
    if is_present:
        _check_present(model, answer)
        model._answer = answer


def _check_present(model: Any, answer: HFSResult) -> None:
    """Refuse an answer that cannot be the one of the labels and edges."""
    _require(hasattr(model, "_labels") and hasattr(model, "gamma_"), "its labels are missing")
    _require(hasattr(model, "method_"), "its method is missing")
    labels = model._labels
    n_known = max(_count_nodes(model), int(labels.nodes.max()) + 1)
    _require(len(answer.f) == n_known, f"its answer must have {n_known} nodes")
    _require(answer.f.shape[1] == labels.values.shape[1], "its answer does not fit the labels")
    sizes = np.bincount(answer.component)
    at = answer.component[labels.nodes]
    used = at[sizes[at] > 1] if np.any(sizes[at] > 1) else at  # as `split_by_edges`
    same = np.array_equal(answer.reached, np.isin(answer.component, used))
    _require(same, "the components of its answer do not fit the labels")
    if answer.left_out is not None:
        chosen, f, means = answer.left_out
        _require(
            f.shape == means.shape == (len(chosen), answer.f.shape[1])
            and len(chosen) > 0
            and int(chosen.min()) >= 0
            and int(chosen.max()) < len(used)
            and bool(np.isfinite(f).all() and np.isfinite(means).all()),
            "its leave-one-out scores do not fit the labels",
        )


def _read_points(model: Any, arrays: Arrays) -> None:
    """Set the points of `fit`, and the names of their features, if there are any."""
    width = getattr(model, "n_features_in_", None)
    if "points" in arrays:
        points = np.asarray(arrays["points"])
        n_known = _count_nodes(model)
        is_number = points.dtype in (np.uint8, np.float32, np.float64)
        _require(is_number and np.isfinite(points).all(), "points must be finite numbers")
        if "points_offsets" in arrays:
            points = _read_sparse(arrays, points, n_known, width)
        _require(points.shape == (n_known, width), f"points must have shape {(n_known, width)}")
        model.X_ = points
    if "feature_names" in arrays:
        names = np.asarray(arrays["feature_names"])
        _require(names.dtype.kind == "U" and names.shape == (width,), "names of features are wrong")
        model.feature_names_in_ = np.array(names.tolist(), dtype=object)


def _read_sparse(arrays: Arrays, data: NDArray[Any], n_rows: int, width: Any) -> Any:
    """Return the CSR matrix of points; its arrays may be anything."""
    columns = _take(arrays, "points_columns", np.int32, 1)
    offsets = _take(arrays, "points_offsets", np.int64, 1)
    _require(
        data.dtype in (np.float32, np.float64)
        and data.shape == columns.shape
        and len(offsets) == n_rows + 1
        and offsets[0] == 0
        and offsets[-1] == len(data)
        and bool((np.diff(offsets) >= 0).all())
        and (len(columns) == 0 or (columns.min() >= 0 and columns.max() < width)),
        "sparse points do not fit together",
    )
    return scipy.sparse.csr_array((data, columns, offsets), shape=(n_rows, width))


def _count_edge_nodes(model: Any) -> int:
    if model.sparsifier_ is not None:
        return int(model.sparsifier_.stats_["n_nodes"])
    return int(model._all_edges.n_nodes)


def _count_nodes(model: Any) -> int:
    return max(_count_edge_nodes(model), model._n_nodes or 0)


def _check_n_nodes(n_nodes: Any, model: Any) -> int | None:
    """Return the number of nodes that was given."""
    if n_nodes is not None:
        _require(type(n_nodes) is int and n_nodes >= 0, f"n_nodes = {n_nodes!r:.80} is impossible")
        _check_size(n_nodes, _count_edge_nodes(model), ISOLATED)
    checked: int | None = n_nodes
    return checked


def _check_size(n_nodes: float, n_known: int, room: int) -> None:
    """Refuse nodes far beyond those of the edges, for which there would be no memory."""
    _require(
        n_nodes <= 2 * n_known + room,
        f"{n_nodes} nodes are too many for edges between {n_known}; number the nodes 0, 1, 2, ...",
    )


def _take_all(
    arrays: Arrays, prefix: str, expected: Mapping[str, tuple[DTypeLike, int]]
) -> dict[str, Any]:
    return {name: _take(arrays, f"{prefix}_{name}", *kind) for name, kind in expected.items()}


def _take(arrays: Arrays, name: str, dtype: DTypeLike | None, ndim: int) -> NDArray[Any]:
    """Return an array of the right type and number of dimensions."""
    _require(name in arrays, f"{name} is missing")
    array: NDArray[Any] = np.asarray(arrays[name])
    fits = array.dtype.kind in CLASSES if dtype is None else array.dtype == np.dtype(dtype)
    _require(fits and array.ndim == ndim, f"{name} has dtype {array.dtype} and shape {array.shape}")
    return array


def _require(condition: Any, problem: str) -> None:
    if not condition:
        raise ValueError(problem)
