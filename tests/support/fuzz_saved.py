"""Change saved sparsifiers and models, correct their checksums: each is refused or can be used.

The suite runs a few; fuzz_driver.py says how to run more.
"""

import functools
import hashlib
import io
import json
import tempfile
import warnings
from dataclasses import asdict
from pathlib import Path

import fuzz_driver
import numpy as np
from fuzz_readers import damage

from ohmlearn import HFSClassifier, HFSRegressor, StreamingSparsifier, read_edges
from ohmlearn._arrays_file import MAGIC, VERSION, read_arrays

NODES = 60
KINDS = [
    {"epsilon": 0.9},
    {"epsilon": 0.9, "n_nodes": NODES},
    {"max_edges": 300},
    {"memory": 80_000, "n_nodes": NODES},
    {"epsilon": 0.9, "scheme": "online", "n_jobs": 2},
    {"epsilon": 0.9, "scheme": "paper", "n_nodes": NODES},
    {"max_edges": 300, "half_life": 50.0},
    {"epsilon": 0.9, "horizon": "100min"},
]
NUMBERS = [0, 1, -1, 2, 3, 59, 60, 61, 2**31 - 1, 2**31, 2**59, 2**63 - 1, -(2**63)]
FLOATS = [0.0, -0.0, -1.0, 0.5, 1.0, 5e-324, 1e-300, 1e-30, 1e27, 1e39, 1e300]
FLOATS += [np.inf, -np.inf, np.nan]
VALUES = [
    None, True, False, 0, -1, 1, 60, 61, 2**31, 2**62, 2**64, 10**400, 0.5, -0.5, 1e-200, 1e300, "",
    "paper", "online", "theory", "1 cup", "9" * 400 + "TB", "1GB", [], {}, [[1]],
    float("nan"), float("inf"), "x" * 10_000,
]  # fmt: skip


def edges(n_edges: int, seed: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    u, v = rng.integers(0, NODES, (2, n_edges), dtype=np.int32)
    w = rng.lognormal(size=n_edges)
    return u, v, w, np.arange(n_edges) + rng.uniform(0.0, 100.0, n_edges)


@functools.cache
def saved() -> list[dict[str, np.ndarray]]:
    """Arrays of valid files: new sparsifiers, some that kept all edges, some that resampled."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for kind in KINDS:
            for n_edges in (0, 200, 12_000):
                file = Path(folder) / "good.ohm"
                StreamingSparsifier(**kind, random_state=1).update(*edges(n_edges, 0)).save(file)
                found.append(read_arrays(file))
    return found


@functools.cache
def saved_models() -> list[dict[str, np.ndarray]]:
    """Arrays of valid files: with ids and without, with all edges, refined, without labels."""
    found = []
    classes = {i: "ab"[i % 2] for i in range(8)} | {9: ["a", "b"]}
    numbers = {i: float(i) for i in range(8)}
    ids = read_edges([edges(3000, 3)])
    X = np.random.default_rng(0).normal(size=(NODES, 2))
    y = [i % 2 for i in range(10)] + [-1] * (NODES - 10)
    timed = [(*edges(3000, 0)[:3], np.arange(3000.0))]
    some = {"random_state": 1}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for model in (
            HFSClassifier(epsilon=0.9, **some).fit_edges([edges(3000, 0)], classes),
            HFSClassifier(epsilon=0.9, **some).fit_edges(ids, classes).update(ids),
            HFSClassifier(epsilon=None, class_prior="labels", **some).fit_edges(ids, classes),
            HFSClassifier(method="auto", **some).fit(X, y),
            HFSClassifier(epsilon=0.9, **some).update([edges(3000, 0)]),
            HFSRegressor(epsilon=0.9, **some).fit_edges([edges(3000, 0)], numbers),
            HFSRegressor(epsilon=None, **some).fit_edges([edges(200, 0)], numbers),
            HFSClassifier(half_life=500, passes=1, **some).fit_edges(timed, classes, at=3500),
            HFSClassifier(horizon=2000, epsilon=None, **some).fit_edges(timed, classes),
        ):
            file = Path(folder) / "good.ohm"
            model.save(file)
            found.append(read_arrays(file))
    return found


def change_array(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return an array with another entry, type or shape."""
    kind = int(rng.integers(0, 9))
    if array.ndim == 0 and rng.random() < 0.75:  # other types and shapes are always refused
        kind = int(rng.choice([0, 6]))
    if array.dtype.kind in "UMc" or (kind < 6 and array.size == 0):
        kind = 8
    result = array.copy()
    at = tuple(int(rng.integers(0, max(1, size))) for size in array.shape)
    if kind < 4:
        odd = FLOATS if array.dtype.kind == "f" else NUMBERS
        with np.errstate(all="ignore"):
            result[at] = np.array(odd[int(rng.integers(0, len(odd)))]).astype(array.dtype)
    elif kind == 4:  # a few bits
        data = result.reshape(-1).view(np.uint8)
        data[int(rng.integers(0, data.size))] ^= 1 << int(rng.integers(0, 8))
    elif kind == 5:
        result[at] = result.reshape(-1)[int(rng.integers(0, result.size))]
    elif kind == 6 and array.ndim == 0:  # a number close to the right one
        near = (-1, 1) if array.dtype.kind in "iu" else (-1e-3 * result, 1e-3 * result)
        with np.errstate(all="ignore"):
            result = (result + near[int(rng.integers(0, 2))]).astype(array.dtype).reshape(())
    elif kind == 6:
        cut = int(rng.integers(0, array.size + 1))
        ends = (result.reshape(-1)[:cut], np.tile(result.reshape(-1), 2), result.reshape(-1)[::-1])
        result = ends[int(rng.integers(0, 3))]
    elif kind == 7:
        types = (">i4", "<i8", "<f8", "<f4", "u1", "<U3", "?", "<c16", "M8[s]")
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = array.astype(np.float64).astype(types[int(rng.integers(0, len(types)))])
    else:
        shapes = ((array.size,), (1, array.size), (array.size, 1), (1, 1, array.size))
        result = result.reshape(shapes[int(rng.integers(0, len(shapes)))])
    return result


def change_parameters(text: str, rng: np.random.Generator) -> str:
    parameters = found = json.loads(text)
    inside = [value for value in found.values() if isinstance(value, dict) and value]
    if inside and rng.random() < 0.8:  # those of a model are in groups
        parameters = inside[int(rng.integers(0, len(inside)))]
    name = list(parameters)[int(rng.integers(0, len(parameters)))]
    kind = int(rng.integers(0, 6))
    if kind < 3:
        parameters[name] = VALUES[int(rng.integers(0, len(VALUES)))]
    elif kind == 3:
        del parameters[name]
    elif kind == 4:
        parameters["more"] = 1
    else:
        texts = ("", "null", "[" * 100_000, text[:-3], '"' + text, "[1]", text.replace('"', "'"))
        return texts[int(rng.integers(0, len(texts)))]
    return json.dumps(found)


def change_file(seed: int, files: list[dict[str, np.ndarray]]) -> bytes:
    """Return a changed file with a correct checksum."""
    rng = np.random.default_rng(seed)
    arrays = dict(files[int(rng.integers(0, len(files)))])
    way = rng.choice(["bytes", "parameters", "arrays"], p=[0.15, 0.2, 0.65])
    texts = [name for name in ("parameters", "model", "about") if name in arrays]
    if way == "parameters" and texts:
        name = texts[int(rng.integers(0, len(texts)))] if len(texts) > 1 else texts[0]
        arrays[name] = np.array(change_parameters(str(arrays[name]), rng))
    elif way != "bytes":
        for _ in range(int(rng.integers(1, 4))):
            name = list(arrays)[int(rng.integers(0, len(arrays)))]
            if rng.random() < 0.04:
                del arrays[name]
            else:
                arrays[name] = change_array(np.asarray(arrays[name]), rng)
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **arrays)
    content = file.getvalue()
    if way == "bytes":
        content = damage(content, rng)
    return MAGIC + VERSION.to_bytes(4, "little") + hashlib.sha256(content).digest() + content


def run(seed: int, folder: str) -> str:
    """Load a changed file and use it; return "refused" or "used"."""
    path = Path(folder) / "changed.ohm"
    path.write_bytes(change_file(seed, saved()))
    try:
        loaded = StreamingSparsifier.load(path)
    except ValueError as error:
        if not str(error).startswith(f"{path} "):
            raise AssertionError(f"seed {seed}: the file is not named in {error}") from error
        return "refused"
    other = StreamingSparsifier(**asdict(loaded.options), random_state=2)
    u, v, w, t = edges(3000, seed)
    n = NODES if loaded.options.n_nodes is None else loaded.options.n_nodes
    inside = (u < n) & (v < n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # solves with extreme weights may not converge
        loaded.snapshot()
        loaded.stats_  # noqa: B018
        loaded.update(u[inside], v[inside], w[inside], t[inside])
        loaded.snapshot()
        other.update(u[inside], v[inside], w[inside], t[inside])
        try:
            other.merge(loaded)
            loaded.merge(other).snapshot()
        except ValueError as error:
            if "more than 2**60 edges" not in str(error):
                raise
    loaded.save(path)
    StreamingSparsifier.load(path)
    return "used"


def run_model(seed: int, folder: str) -> str:
    """Load a changed file of a model and use it; return "refused" or "used"."""
    path = Path(folder) / "changed.ohm"
    path.write_bytes(change_file(seed, saved_models()))
    try:
        loaded = HFSClassifier.load(path)
    except ValueError as error:
        if not str(error).startswith(f"{path} "):
            raise AssertionError(f"seed {seed}: the file is not named in {error}") from error
        if "HFSRegressor" not in str(error):
            return "refused"
        try:
            loaded = HFSRegressor.load(path)
        except ValueError:
            return "refused"
    try:
        use(loaded, seed, path)
    except (ValueError, MemoryError) as error:  # possible numbers for which there is no answer
        if str(error).startswith(f"{path} "):
            raise AssertionError(f"seed {seed}: what was saved is refused: {error}") from error
        return "refused"
    return "used"


def use(loaded: HFSClassifier | HFSRegressor, seed: int, path: Path) -> None:
    """Ask for answers, give edges and labels, save and load."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        ask(loaded)
        if loaded.nodes_ is None or loaded.nodes_.kind == "int64":
            batch = (*edges(500, seed)[:3], np.linspace(2500.0, 3500.0, 500))
            stream = [batch] if loaded.nodes_ is None else read_edges([batch], nodes=loaded.nodes_)
            loaded.update(stream)
            ask(loaded)
        labels = {0: 1.0, 1: 2.0}
        loaded.relabel(labels if loaded.nodes_ is None else {loaded.nodes_.ids()[0]: 1.0})
        ask(loaded)
        loaded.save(path)
        ask(type(loaded).load(path))


def ask(model: HFSClassifier | HFSRegressor) -> None:
    """Ask for answers."""
    model.suggest_labels(2)
    if hasattr(model, "problem_"):
        model.transduction_  # noqa: B018
        if isinstance(model, HFSClassifier):
            model.label_distributions_, model.stability_  # noqa: B018
            model.prediction_sets(0.3)
        if hasattr(model, "X_"):
            model.predict(model.X_[:2])


RUNS = {"sparsifiers": run, "models": run_model}


if __name__ == "__main__":
    fuzz_driver.main(RUNS, lambda kind, seed, folder: RUNS[kind](seed, folder))
