"""Models in files: everything that later answers depend on, as named arrays.

A file has the arrays of the sparsifier, so that `StreamingSparsifier.load` reads it, too, or all
edges if `epsilon` is None; the labels; the last answer; and a text in JSON with the parameters and
single values. Nothing in a file is trusted: whatever does not fit together raises ValueError.
"""

import json
import math
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import DTypeLike, NDArray

from ohmlearn._arrays_file import read_arrays, refuse_damaged, write_arrays
from ohmlearn.checks.parameters import LARGEST, SMALLEST, Constraints, check_n_jobs
from ohmlearn.checks.times import check_moment
from ohmlearn.errors import InputError, Param, Setting
from ohmlearn.estimators.calibration import check_proportions
from ohmlearn.estimators.kept_graph import ISOLATED, AllEdges, KeptGraph
from ohmlearn.estimators.label_input import NodeLabels
from ohmlearn.estimators.label_job import Labelling
from ohmlearn.estimators.problem import ClassProblem, HFSParameters, Problem
from ohmlearn.harmonic import HFSResult
from ohmlearn.harmonic.leave_one_out import LeftOut
from ohmlearn.nodes import NodeTable
from ohmlearn.reading.event_ids import MOST, recall
from ohmlearn.sparsifier import StreamingSparsifier

Arrays = dict[str, Any]
Expected = dict[str, tuple[DTypeLike, int]]
CLASSES = "biufUSMm"  # kinds of dtypes that a class can have in a file


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _is_source(entry: object) -> bool:
    """Whether a value can be an entry of the ledger of a state file."""
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        return False
    counts = [entry.get(name) for name in ("size", "n_edges")]
    return all(count is None or (type(count) is int and count >= 0) for count in counts)


# Single values, by names that stay, with the test that one from a file must pass.
VALUES: dict[str, Callable[[Any], bool]] = {
    "n_iter_": lambda value: type(value) is int and value >= 1,
    "_is_settled": lambda value: type(value) is bool,  # in older files
    "method_": lambda value: value in ("harmonic", "restart"),
    "method_losses_": lambda value: isinstance(value, dict),  # in older files
    "gamma_": lambda value: _is_number(value) and value > 0,
    "staleness_": lambda value: isinstance(value, int | float) and value >= 0,
    "_removed_weight": lambda value: _is_number(value) and value >= 0,
    "n_features_in_": lambda value: type(value) is int and value >= 1,
    "sources_": lambda value: all(map(_is_source, value)),
}
# Arrays of numbers, by dtype and dimensions.
INTEGERS, FLOATS, MATRIX, BOOLS = (np.int64, 1), (np.float64, 1), (np.float64, 2), (np.bool_, 1)
LABELS: Expected = {"nodes": INTEGERS, "values": MATRIX, "weights": FLOATS}
ANSWER: Expected = {
    "f": MATRIX, "mu": FLOATS, "reached": BOOLS, "component": (np.int32, 1), "residual": FLOATS,
    "converged": BOOLS, "iterations": INTEGERS, "columns": MATRIX,
}  # fmt: skip
LEFT_OUT: Expected = {"labels": INTEGERS, "f": MATRIX, "means": MATRIX}


# Writing.


def save_labelling(
    path: str | os.PathLike[str],
    name: str,
    found: Labelling,
    parameters: dict[str, Any],
    points: dict[str, Any],
) -> None:
    """Write a labelling to a file, completely or not at all.

    `name` is the class that can load it, with the parameters as they were given to it, and `points`
    are attributes of an estimator that was fitted to points.
    """
    kept, problem, answer = found.kept, found.problem, found.answer
    state: Arrays = kept.store.get_state()
    if kept.sparsifier is None and kept.nodes is not None:
        state |= kept.nodes.get_state()
    values: dict[str, Any] = {
        "n_iter_": 1 if answer is None else answer.n_iter,
        "staleness_": kept.staleness,
        "_removed_weight": kept.removed_weight,
    }
    if kept.sources:
        values["sources_"] = kept.sources
    if kept.events is not None:
        state["event_ids"] = kept.events.ids()
    if kept.written is not None:
        state["written_classes"], state["written_codes"] = kept.written
    if problem is not None:
        if len(problem.classes) > 0:
            if problem.classes.dtype.kind not in CLASSES:
                raise ValueError(
                    f"classes_ of dtype {problem.classes.dtype} cannot be saved; use classes that "
                    f"are strings or integers"
                )
            state["model_classes_"] = problem.classes
            state["model_contradicting_"] = problem.contradicting
        state |= _with_prefix("labels", problem.labels._asdict())
        values |= {"method_": problem.method, "gamma_": problem.gamma}
    if found.before is not None:
        state |= _get_answer(found.before)
    if "n_features_in_" in points:
        values["n_features_in_"] = points["n_features_in_"]
    state |= _get_points(points)
    n_nodes = None if kept.n_nodes is None else int(kept.n_nodes)
    _check_n_nodes(n_nodes, kept)
    about = {
        "class": name,
        "version": 2,  # answers combine harmonic functions with walks, and weights are sharper
        "parameters": _get_parameters(parameters, kept.seed),
        "seed": kept.seed,
        "n_nodes": n_nodes,
        "first": kept.cut,
        "moment": {one: check_moment(one, value) for one, value in kept.moment.items()},
        "answers": answer is not None,
        "waits": problem is not None and answer is None,  # for a call of solve
        "values": values,
    }
    if any(kept.headings):
        about["headings"] = kept.headings
    model = np.array(json.dumps(about, default=np.generic.item))
    write_arrays(path, state | {"model": model})


def _get_answer(answer: HFSResult) -> Arrays:
    found = _with_prefix("answer", {name: getattr(answer, name) for name in ANSWER})
    found["answer_passes"] = np.int64(answer.passes)
    found["answer_stepped_ahead"] = np.bool_(answer.stepped_ahead)
    if answer.error is not None:
        found["answer_error"] = answer.error
    if answer.left_out is not None:
        found |= _with_prefix("left_out", answer.left_out._asdict())
    return found


def _get_points(points: dict[str, Any]) -> Arrays:
    """Return points as one array, or those of a sparse matrix, and the names of features."""
    X: Any = points.get("X_")
    found: Arrays = {}
    if "feature_names_in_" in points:
        found["feature_names"] = np.array(points["feature_names_in_"].tolist(), dtype=str)
    if scipy.sparse.issparse(X):
        columns, offsets = X.indices.astype(np.int32), X.indptr.astype(np.int64)
        found |= {"points": X.data, "points_columns": columns, "points_offsets": offsets}
    elif X is not None:
        found["points"] = X
    return found


def _with_prefix(prefix: str, arrays: Mapping[str, Any]) -> Arrays:
    return {f"{prefix}_{name}": array for name, array in arrays.items()}


def _get_parameters(parameters: dict[str, Any], seed: int) -> dict[str, Any]:
    """Return the parameters as JSON has them; a generator is replaced by the seed from it."""
    random = parameters["random_state"]
    if hasattr(random, "bit_generator") or hasattr(random, "get_state"):
        parameters = parameters | {"random_state": seed}
    return {name: _encode(name, value) for name, value in parameters.items()}


def _encode(name: str, value: Any) -> object:
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
    remedy = "use one of these"
    if name == "affinity":
        remedy = (
            f"compute the weights yourself, and use {Setting(name, 'precomputed')} or fit_edges"
        )
    raise InputError(
        f"{Param(name, value)} cannot be saved, because only numbers, texts, lists and dicts of "
        f"them can",
        remedy=remedy,
    )


# Reading.


def load_labelling(
    path: str | os.PathLike[str],
    name: str,
    kind: type[Problem],
    narrower: Constraints,
    arrays: Arrays | None = None,
) -> tuple[Labelling, dict[str, Any], dict[str, Any]]:
    """Return the labelling, parameters and points of a file; one of another kind is refused.

    `arrays` are those of the file, if it has been read already.
    """
    arrays = read_arrays(path) if arrays is None else arrays
    if "model" not in arrays:
        raise ValueError(
            f"{path} holds no {name}; if it holds a sparsifier, use "
            f"{name}().update(StreamingSparsifier.load(path)) and relabel"
        )
    with refuse_damaged(path, name, "fit the model again"):
        return _from_state(name, kind, narrower, arrays)


def _from_state(
    name: str, kind: type[Problem], narrower: Constraints, arrays: Arrays
) -> tuple[Labelling, dict[str, Any], dict[str, Any]]:
    """Return the labelling that continues from a state, parameters, and attributes of points."""
    about = json.loads(str(arrays["model"]))
    found, values = about["class"], about["values"]
    _require(found == name, f"it is one of {found!r:.80}; load it with that class")
    parameters = {
        one: dict(value["items"]) if isinstance(value, dict) else value
        for one, value in about["parameters"].items()
    }
    if parameters.get("neighbors") == "auto":  # in older files; points are not searched again
        parameters["neighbors"] = "exact"
    if "version" not in about:  # an older file, whose answers and weights of edges were other ones
        if "class_prior" in parameters:
            parameters["method"] = values.get("method_", "harmonic")
        if parameters.get("affinity") == "knn":
            parameters["kernel_gamma"] = 1.0
    p = HFSParameters.check(name, parameters, **narrower)
    check_n_jobs(p.n_jobs)
    for one, value in values.items():
        _require(one in VALUES and VALUES[one](value), f"its {one!r:.80} is impossible")
    kept = _read_kept(p, arrays, about)
    problem = answer = before = None
    if "labels_nodes" in arrays:
        problem = _read_problem(kind, kept, p, arrays, values)
    if "answer_f" in arrays:
        before = _read_result(arrays)
        if about["answers"]:
            if problem is None or "gamma_" not in values:
                raise ValueError("its labels are missing")
            _require(_belongs_to(problem, before), "its answer does not fit the labels")
            answer = problem.answer(before, values.get("n_iter_"))
    labelling = Labelling(p, kept, problem, answer, before)
    if problem is not None and answer is None and not about.get("waits"):
        labelling = labelling.solve()  # earlier versions solved when asked
    return labelling, parameters, _read_points(arrays, values, kept)


def _read_kept(p: HFSParameters, arrays: Arrays, about: dict[str, Any]) -> KeptGraph:
    """Return the sparsifier, or all edges, with what belongs to it."""
    kept = KeptGraph.start(p, seed=about["seed"])
    if isinstance(kept.store, AllEdges) and "edges_u" in arrays:
        kept.store.set_state(arrays)
        if "node_ids" in arrays or "node_offsets" in arrays:
            kept.store.nodes = NodeTable.from_state(arrays)
    else:
        kept.store = StreamingSparsifier.from_state(arrays)
    first, values = about.get("first"), about["values"]
    moment = {name: check_moment(name, value) for name, value in about["moment"].items()}
    _require(moment.keys() <= {"at", "since"}, "its moment is wrong")
    kept.moment = moment
    kept.cut = None if first is None else check_moment("first", first)
    kept.n_nodes = _check_n_nodes(about["n_nodes"], kept)
    kept.staleness = values.get("staleness_", 0.0)
    kept.removed_weight = values.get("_removed_weight", 0.0)
    kept.sources = values.get("sources_", [])
    node, label = about.get("headings", (None, None))
    _require(all(isinstance(one, str | None) for one in (node, label)), "its headings are wrong")
    kept.headings = node, label
    if "event_ids" in arrays:
        ids = _take(arrays, "event_ids", np.uint64, 1)
        _require(len(ids) <= MOST and ids.all(), "its ids of events are wrong")
        kept.events = recall(ids)
    if "written_codes" in arrays:
        codes = _take(arrays, "written_codes", np.int32, 1)
        classes = _take(arrays, "written_classes", None, 1)
        _require(np.all((codes >= -1) & (codes < len(classes))), "its last labels are wrong")
        kept.written = classes, codes
    return kept


def _read_problem(
    kind: type[Problem], kept: KeptGraph, p: HFSParameters, arrays: Arrays, values: dict[str, Any]
) -> Problem:
    labels = NodeLabels(**_take_all(arrays, "labels", LABELS))
    nodes, proportions, weights = labels
    known: dict[str, Any] = {}
    right = np.isfinite(proportions).all()
    if kind is ClassProblem:
        known["classes"] = classes = _take(arrays, "model_classes_", None, 1)
        known["contradicting"] = _take(arrays, "model_contradicting_", np.int64, 1)
        if p.knows_proportions:
            check_proportions(p.class_prior, classes)
        right &= len(np.unique(classes)) == proportions.shape[1]
        right &= np.all(proportions >= 0) and np.allclose(proportions.sum(axis=1), 1.0)
        right &= np.isin(known["contradicting"], nodes).all()
    else:
        right &= proportions.shape[1] == 1
    _require(
        right
        and len(np.unique(nodes)) == len(nodes) == len(weights) == len(proportions) > 0
        and nodes.min() >= 0
        and (kept.nodes is None or nodes.max() < len(kept.nodes))
        and np.all((weights >= SMALLEST) & (weights <= LARGEST)),
        "the parts of its labels do not fit together",
    )
    return kind.pose(labels, kept, p, **known)


def _read_result(arrays: Arrays) -> HFSResult:
    """Return the last result, which may be older than the last edges."""
    found = _take_all(arrays, "answer", ANSWER)
    n_nodes, n_columns = found["f"].shape
    columns, component, reached = found["columns"], found["component"], found["reached"]
    _require(
        len(reached) == len(component) == len(columns) == n_nodes > 0
        and len(found["mu"]) in (0, n_columns)
        and columns.shape[1] in (n_columns, n_columns + 1)
        and len(found["residual"]) == len(found["converged"]) == len(found["iterations"])
        and np.isfinite(found["f"]).all()
        and np.isfinite(columns).all()
        and 0 <= component.min() <= component.max() < n_nodes
        and np.bincount(component).min() > 0,
        "the parts of its answer do not fit together",
    )
    found["passes"] = int(_take(arrays, "answer_passes", np.int64, 0))
    found["stepped_ahead"] = bool(_take(arrays, "answer_stepped_ahead", np.bool_, 0))
    if "answer_error" in arrays:
        found["error"] = _take(arrays, "answer_error", np.float64, 1)
    if "left_out_f" in arrays:
        found["left_out"] = LeftOut(**_take_all(arrays, "left_out", LEFT_OUT))
    return HFSResult(**found)


def _belongs_to(problem: Problem, answer: HFSResult) -> bool:
    """Whether an answer can be the one of the labels and edges."""
    labels, shape = problem.labels, (problem.n_nodes, problem.labels.values.shape[1])
    if answer.f.shape != shape:
        return False
    sizes = np.bincount(answer.component)
    at = answer.component[labels.nodes]
    used = at[sizes[at] > 1] if np.any(sizes[at] > 1) else at  # as `split_by_edges`
    fits = np.array_equal(answer.reached, np.isin(answer.component, used))
    if answer.left_out is not None:
        chosen, f, means = answer.left_out
        fits &= f.shape == means.shape == (len(chosen), shape[1])
        fits &= 0 <= int(chosen.min()) <= int(chosen.max()) < len(used)
        fits &= bool(np.isfinite(f).all() and np.isfinite(means).all())
    return fits


def _read_points(arrays: Arrays, values: dict[str, Any], kept: KeptGraph) -> dict[str, Any]:
    """Return the points of `fit`, and the names of their features, if there are any."""
    width = values.get("n_features_in_")
    found: dict[str, Any] = {} if width is None else {"n_features_in_": width}
    if "points" in arrays:
        points = data = np.asarray(arrays["points"])
        shape = max(_count_edge_nodes(kept), kept.n_nodes or 0), width
        fits = data.dtype in (np.uint8, np.float32, np.float64) and np.isfinite(data).all()
        if "points_offsets" in arrays:
            columns = _take(arrays, "points_columns", np.int32, 1)
            offsets = _take(arrays, "points_offsets", np.int64, 1)
            points = scipy.sparse.csr_array((data, columns, offsets), shape=shape)
            points.check_format(full_check=True)
            fits = fits and data.dtype != np.uint8 and points.nnz == len(data)
        _require(fits and points.shape == shape, f"points must be finite numbers of shape {shape}")
        found["X_"] = points
    if "feature_names" in arrays:
        names = np.asarray(arrays["feature_names"])
        _require(names.dtype.kind == "U" and names.shape == (width,), "names of features are wrong")
        found["feature_names_in_"] = np.array(names.tolist(), dtype=object)
    return found


def _count_edge_nodes(kept: KeptGraph) -> int:
    if isinstance(kept.store, AllEdges):
        return kept.store.n_nodes
    return int(kept.store.stats_["n_nodes"])


def _check_n_nodes(n_nodes: int | None, kept: KeptGraph) -> int | None:
    """Return the number of nodes that was given; there must be memory for them."""
    if n_nodes is not None:
        n_known = _count_edge_nodes(kept)
        _require(type(n_nodes) is int and n_nodes >= 0, f"n_nodes = {n_nodes!r:.80} is impossible")
        _require(
            n_nodes <= 2 * n_known + ISOLATED,
            f"{n_nodes} nodes are too many for edges between {n_known}; number the nodes 0, 1, ...",
        )
    return n_nodes


def _take_all(arrays: Arrays, prefix: str, expected: Expected) -> Arrays:
    return {name: _take(arrays, f"{prefix}_{name}", *kind) for name, kind in expected.items()}


def _take(arrays: Arrays, name: str, dtype: DTypeLike | None, ndim: int) -> NDArray[Any]:
    """Return an array of the right type and number of dimensions."""
    array: NDArray[Any] = np.asarray(arrays[name])
    fits = array.dtype.kind in CLASSES if dtype is None else array.dtype == np.dtype(dtype)
    _require(fits and array.ndim == ndim, f"{name} has dtype {array.dtype} and shape {array.shape}")
    return array


def _require(condition: object, problem: str) -> None:
    if not condition:
        raise ValueError(problem)
