"""Saved estimators continue bit for bit, and files that hold none are refused."""

import json
import math
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refuses import refuses
from sklearn.exceptions import NotFittedError

from ohmlearn import (
    EdgeLog,
    HFSClassifier,
    HFSRegressor,
    StreamingSparsifier,
    gallery,
    read_edges,
)
from ohmlearn._arrays_file import read_arrays, write_arrays

pytestmark = pytest.mark.filterwarnings("ignore:.*labels are few for:UserWarning")
N = 100
ANSWERS = (
    "transduction_",
    "scores_",
    "reached_",
    "residual_",
    "converged_",
    "label_distributions_",
    "accuracy_estimate_",
    "calibration_",
    "stability_",
    "uncertainty_",
    "labelled_",
    "contradicting_",
    "class_prior_",
    "classes_",
    "method_",
    "gamma_",
    "mean_",
    "n_iter_",
    "staleness_",
)


def edges(seed: int, n_edges: int = 5_000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    u, v = rng.integers(0, N, (2, n_edges))
    v = np.where(rng.random(n_edges) < 0.9, (v - v % 2) + u % 2, v)  # mostly of one parity
    return u, v, rng.lognormal(size=n_edges)


def stream(seed: int, kind: str, nodes: Any = None) -> Any:
    u, v, w = edges(seed)
    if kind == "numbers":
        return [(u, v, w)]
    if kind == "strings":
        u, v = (np.array([f"node {i}" for i in end], dtype=object) for end in (u, v))
    else:
        u, v = (end.astype(np.int64) * 10**12 for end in (u, v))
    return read_edges([(u, v, w)], nodes=nodes)


def named(y: dict[int, Any], kind: str) -> dict[Any, Any]:
    if kind == "numbers":
        return y
    return {f"node {i}" if kind == "strings" else i * 10**12: label for i, label in y.items()}


HARD = {i: "even" if i % 2 == 0 else "odd" for i in range(16)}
SOFT = HARD | {20: ["even", "odd", "even"], 21: {"even": 0.1, "odd": 0.9}, 23: "other"}
NUMBERS = {i: float(i % 2) for i in range(16)} | {40: [1.0, 2.0]}


def assert_equal(a: Any, b: Any, name: str) -> None:
    if isinstance(a, np.ndarray):
        assert a.dtype == b.dtype, name
        np.testing.assert_array_equal(a, b, err_msg=name)
    else:
        assert a == b, name


def assert_same(model: Any, other: Any) -> None:
    """All answers are equal, bit for bit."""
    for name in ANSWERS:
        assert hasattr(model, name) == hasattr(other, name), name
        if hasattr(model, name):
            assert_equal(getattr(model, name), getattr(other, name), name)
    assert model.suggest_labels(5) == other.suggest_labels(5)
    if isinstance(model, HFSClassifier):
        assert_equal(model.prediction_sets(0.2), other.prediction_sets(0.2), "prediction_sets")
    assert vars(model).keys() == vars(other).keys()  # a new attribute must be saved, too


def reload(model: Any, folder: Path) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.save(folder / "model.ohm")
        return type(model).load(folder / "model.ohm")


CASES = [
    (HFSClassifier, {"epsilon": 0.9}, SOFT),
    (HFSClassifier, {"epsilon": 0.9, "passes": 1, "normalization": None}, HARD),
    (HFSClassifier, {"max_edges": 2000, "method": "restart"}, SOFT),
    (HFSClassifier, {"epsilon": 0.9, "method": "auto", "class_prior": "labels"}, HARD),
    (HFSClassifier, {"epsilon": None, "class_prior": {"odd": 0.4, "even": 0.6}}, HARD),
    (HFSClassifier, {"epsilon": None, "calibration": None, "normalization": "cmn"}, SOFT),
    (HFSRegressor, {"epsilon": 0.9}, NUMBERS),
    (HFSRegressor, {"epsilon": None, "normalization": "stable", "passes": 1}, NUMBERS),
]


@pytest.mark.filterwarnings("ignore:1 node has contradicting labels")
@pytest.mark.parametrize("kind", ["numbers", "integers", "strings"])
@pytest.mark.parametrize(("cls", "parameters", "y"), CASES)
def test_a_loaded_model_continues_bit_for_bit(
    cls: Any, parameters: dict[str, Any], y: dict[int, Any], kind: str, tmp_path: Path
):
    def fit() -> Any:
        weights = named({3: 2.5, 5: 0.5}, kind)
        model = cls(**parameters, random_state=np.random.default_rng(7))
        return model.fit_edges(stream(0, kind), named(y, kind), sample_weight=weights)

    model, loaded = fit(), reload(fit(), tmp_path)
    assert loaded.get_params() == model.get_params() | {"random_state": model.kept_.seed}
    assert_same(model, loaded)
    both = model, loaded
    for one in both:
        one.update(stream(1, kind, one.nodes_), solve=False)
    loaded = reload(loaded, tmp_path)  # before the next answer: it starts from the last one
    both = model, loaded
    for one in both:
        one.solve()
    assert_same(*both)
    for one in both:
        one.relabel(named({**y, 50: y[0], 51: y[1]}, kind))
    assert_same(*both)
    for one in both:
        parts = [stream(seed, kind, one.nodes_) for seed in (0, 1)]
        one.refine([batch for part in parts for batch in part], passes=2)
    assert_same(model, reload(loaded, tmp_path))


@pytest.mark.parametrize("epsilon", [0.9, None])
@pytest.mark.parametrize(
    ("parameters", "when"),
    [
        ({"half_life": "20s"}, {}),
        ({"half_life": np.timedelta64(20, "s")}, {"at": "1970-01-01T00:02:00"}),
        ({"horizon": 60}, {}),
        ({"horizon": math.inf}, {"since": 30.0}),
    ],
)
def test_models_that_forget_continue_bit_for_bit(
    parameters: dict[str, Any], when: dict[str, Any], epsilon: float | None, tmp_path: Path
):
    def timed(start: float) -> Any:
        u, v, w = edges(int(start))
        return [(u, v, w, np.linspace(start, start + 50.0, len(u)))]

    def fit() -> HFSClassifier:
        model = HFSClassifier(**parameters, epsilon=epsilon, passes=1, random_state=2)
        return model.fit_edges(timed(0), HARD, **when)

    model, loaded = fit(), reload(fit(), tmp_path)
    assert_same(model, loaded)
    for one in (model, loaded):
        one.update(timed(50), **when)
    assert_same(model, reload(loaded, tmp_path))


def test_a_model_of_a_log_knows_how_stale_it_is(tmp_path: Path):
    pytest.importorskip("pyarrow")
    u, v, w = edges(0)
    with EdgeLog(tmp_path / "log") as log:
        log.append(u, v, w)
        assert log.sparsifier.n_edges_seen_ > 0
        log.remove(u[:60], v[:60])
        model = HFSClassifier(passes=1, random_state=0).fit_edges(log, HARD)
        assert model.staleness_ > 0
        loaded = reload(model, tmp_path)
        assert_same(model, loaded)
        for one in (model, loaded):
            one.relabel({**HARD, 30: "even"})
        assert_same(model, loaded)


def test_a_model_without_labels_is_saved(tmp_path: Path):
    model = HFSClassifier(random_state=3).update(stream(0, "strings"))
    loaded = reload(model, tmp_path)
    assert loaded.suggest_labels(4) == model.suggest_labels(4)
    for one in (model, loaded):
        one.relabel(named(HARD, "strings"))
    assert_same(model, loaded)


@pytest.mark.parametrize("affinity", ["knn", "rbf", "precomputed"])
@pytest.mark.parametrize("cls", [HFSClassifier, HFSRegressor])
def test_models_of_points_predict_the_same(cls: Any, affinity: str, tmp_path: Path):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) + np.repeat([[0.0], [4.0]], 30, axis=0)
    y = np.full(60, -1 if cls is HFSClassifier else np.nan)
    y[[0, 1, 2, 57, 58, 59]] = [0, 0, 0, 1, 1, 1]
    new = X[:7] + 0.1
    if affinity == "precomputed":
        X = np.exp(-((X[:, np.newaxis] - X) ** 2).sum(axis=2))
        np.fill_diagonal(X, 0.0)
        new = X[:7]
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])
    model = cls(affinity=affinity, random_state=1).fit(frame, y)
    loaded = reload(model, tmp_path)
    assert_same(model, loaded)
    new = pd.DataFrame(new, columns=frame.columns)
    assert_equal(model.predict(new), loaded.predict(new), "predict")
    assert loaded.feature_names_in_.tolist() == frame.columns.tolist()


@pytest.mark.parametrize(
    "classes", [[1, 2], ["a", "bé"], [True, False], [2.0, 3.0], [np.uint8(1), np.uint8(200)]]
)
def test_classes_of_any_type_come_back(classes: list[Any], tmp_path: Path):
    y = np.array([classes[0], classes[1], *classes])
    model = HFSClassifier().fit_edges(gallery.path(4), y)
    loaded = reload(model, tmp_path)
    assert_equal(model.classes_, loaded.classes_, "classes_")
    assert_equal(model.transduction_, loaded.transduction_, "transduction_")


@pytest.mark.filterwarnings("ignore:2 of 5 nodes are in components without a label")
def test_numbers_of_numpy_are_saved(tmp_path: Path):
    model = HFSClassifier(n_neighbors=np.int64(4), tol=np.float32(1e-3), random_state=np.int64(1))
    model.fit_edges(([0, 1], [1, 2]), {0: "a", 2: "b"}, n_nodes=np.int64(5))
    loaded = reload(model, tmp_path)
    assert loaded.get_params() == model.get_params()
    assert_equal(model.scores_, loaded.scores_, "scores_")


def test_what_cannot_be_saved_is_named(tmp_path: Path):
    path = tmp_path / "model.ohm"
    X, y = np.random.default_rng(0).normal(size=(20, 2)), [0, 1] * 10
    model = HFSClassifier(affinity=lambda A, B: np.abs(A @ B.T)).fit(X, y)
    with pytest.raises(ValueError, match=r"affinity = <function .* cannot be saved.*precomputed"):
        model.save(path)
    with pytest.raises(NotFittedError):
        HFSClassifier().save(path)
    model = HFSClassifier().fit_edges(gallery.path(3), {0: 2**70, 2: 1})
    with pytest.raises(ValueError, match="classes_ of dtype object cannot be saved"):
        model.save(path)
    assert not path.exists()


def test_files_of_something_else_are_refused(tmp_path: Path):
    path = tmp_path / "model.ohm"
    HFSRegressor().fit_edges(gallery.path(4), {0: 0.0, 3: 1.0}).save(path)
    with pytest.raises(ValueError, match=r"model.ohm holds no HFSClassifier.* 'HFSRegressor'"):
        HFSClassifier.load(path)
    assert StreamingSparsifier.load(path).n_edges_seen_ == 3  # a model has a sparsifier
    StreamingSparsifier().update([0], [1]).save(path)
    with pytest.raises(ValueError, match=r"holds no HFSClassifier; if it holds a sparsifier"):
        HFSClassifier.load(path)
    path.write_bytes(b"something")
    with pytest.raises(ValueError, match="was not saved by ohmlearn"):
        HFSClassifier.load(path)


def change(path: Path, **changes: Any) -> None:
    """Write other arrays, or other entries of the description, with a right checksum."""
    arrays = read_arrays(path)
    about = json.loads(str(arrays["model"]))
    for name, value in changes.items():
        if callable(value):
            arrays[name] = value(arrays[name])
        else:
            about[name] = value
    write_arrays(path, arrays | {"model": np.array(json.dumps(about))})


def outside(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array[-1] = 2**30
    return array


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels_nodes": outside}, "its answer does not fit|memory is needed"),
        ({"labels_nodes": lambda x: x - 1}, "parts of its labels"),
        ({"labels_weights": lambda x: -x}, "parts of its labels"),
        ({"labels_values": lambda x: 2 * x}, "parts of its labels"),
        ({"labels_values": lambda x: x[:, :1]}, "parts of its labels"),
        ({"answer_f": lambda x: x[:-1]}, "parts of its answer"),
        ({"answer_f": lambda x: x * np.nan}, "parts of its answer"),
        ({"answer_component": lambda x: x + 1}, "parts of its answer"),
        ({"answer_component": outside}, "parts of its answer"),
        ({"answer_reached": lambda x: ~x}, "its answer does not fit the labels"),
        ({"left_out_labels": outside}, "its answer does not fit the labels"),
        ({"model_classes_": lambda x: x[[0, 0]]}, "parts of its labels"),
        ({"model_classes_": lambda x: np.zeros(len(x), complex)}, "model_classes_ has dtype"),
        ({"seed": "1"}, "random_state"),
        ({"seed": -1}, "random_state"),
        ({"n_nodes": 2**40}, "too many for edges between"),
        ({"parameters": {"epsilon": 7}}, "epsilon"),
        ({"parameters": {"epsilo": 0.5}}, "epsilo"),
        ({"values": {"n_iter_": 0}}, "n_iter_"),
        ({"values": {"__class__": 0}}, "__class__"),
        ({"values": {}}, "its labels are missing"),
    ],
)
def test_arrays_that_do_not_fit_together_are_refused(
    changes: dict[str, Any], message: str, tmp_path: Path
):
    path = tmp_path / "model.ohm"
    model = HFSClassifier(epsilon=0.9, random_state=0).fit_edges(stream(0, "numbers"), HARD)
    assert model.n_iter_ > 1  # there are leave-one-out scores of the full graph
    model.save(path)
    change(path, **changes)
    with pytest.raises(ValueError, match=f"{re.escape(str(path))} holds no .*({message})"):
        HFSClassifier.load(path)


def test_a_file_without_a_newer_parameter_is_read(tmp_path: Path):
    path = tmp_path / "model.ohm"
    HFSClassifier(tol=1e-3).fit_edges(gallery.path(4), {0: 0, 3: 1}).save(path)
    parameters = json.loads(str(read_arrays(path)["model"]))["parameters"]
    change(path, parameters={"tol": parameters["tol"]})
    assert HFSClassifier.load(path).get_params() == HFSClassifier(tol=1e-3).get_params()


# Sparsifiers in classifiers.


def test_a_saved_sparsifier_goes_into_a_classifier(tmp_path: Path):
    path = tmp_path / "h.ohm"
    first, y = stream(0, "strings"), named(HARD, "strings")
    kept = StreamingSparsifier(epsilon=0.8, random_state=5).update(first)
    kept.save(path)
    want = HFSClassifier(epsilon=0.8, passes=1, random_state=5).fit_edges(stream(0, "strings"), y)

    model = HFSClassifier(random_state=5).update(StreamingSparsifier.load(path)).relabel(y)
    assert_equal(model.scores_, want.scores_, "scores_")
    fitted = HFSClassifier(random_state=5).fit_edges(StreamingSparsifier.load(path), y)
    assert_equal(fitted.scores_, want.scores_, "scores_")
    assert fitted.n_iter_ == 1
    for one in (model, want):
        one.update(stream(1, "strings", one.nodes_))
    assert_equal(model.scores_, want.scores_, "scores_")


def test_a_sparsifier_is_merged_with_edges_before(tmp_path: Path):
    one = StreamingSparsifier(epsilon=0.9, random_state=1).update(stream(0, "numbers"))
    other = StreamingSparsifier(epsilon=0.9, random_state=2).update(stream(1, "numbers"))
    model = HFSClassifier(epsilon=0.9, random_state=1).update(stream(0, "numbers"))
    assert model.update(other).relabel(HARD).graph_ == one.merge(other).snapshot()
    with refuses(parameter="epsilon", value="None"):
        HFSClassifier(epsilon=None).update(other)
