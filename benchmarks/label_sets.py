"""Real data sets with labels, as graphs: kNN graphs of points, and graphs with their own edges.

`load_all` reduces graphs to their largest component, because some peers support only connected
graphs. `load_whole` yields them as users have them: with all components, and points connected as
`HFSClassifier` does by default.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ohmlearn import Graph, HFSClassifier, knn_edges

POINTS = {  # name: how the features are scaled
    "fashion_mnist_test": "as they are",
    "letter": "as they are",
    "shuttle": "standardised",
    "magic_gamma": "standardised",
    "satimage": "as they are",
    "ssl_digit1": "as they are",
    "ssl_coil": "as they are",
    "ssl_coil2": "as they are",
    "ssl_bci": "as they are",
    "ssl_g241c": "as they are",
    "ssl_text": "unit length",
    "isolet_1560": "as they are",
    "cora_features": "unit length",
}
DENSE = 50  # with more neighbours, only these sets
DENSE_SETS = ("digits", "fashion_mnist_test", "letter", "shuttle", "satimage", "ssl_text")
GRAPHS = ("cora", "pubmed", "facebook_pages", "email_eu_core", "wordnet30")
STREAMS = ("dblp_temporal", "school_primary")
FULL_SETS = {  # sets used with all points: the files of the set, and the number of neighbours
    "letter k=10": (("letter",), 10),
    "shuttle k=10": (("shuttle",), 10),
    "fashion_mnist_train_a k=10": (("fashion_mnist_train_a",), 10),
}


@dataclass
class LabelledGraph:
    """A graph, the classes 0, 1, ... of its nodes, and published sets of labels."""

    name: str
    graph: Graph
    y: np.ndarray
    splits: dict[str, list[np.ndarray]] = field(default_factory=dict)
    before: Graph | None = None  # with the weights that were the default in 0.1, if they differ


def load_points(
    folder: Path, name: str, k: int, limit: int, weights: str = "uniform"
) -> LabelledGraph:
    """Return the union kNN graph of at most `limit` points."""
    X, y, splits = read_points(folder, name, limit)
    graph = _graph_of(knn_edges(X, n_neighbors=k, weights=weights), len(y))
    return _largest_component(f"{name} k={k}", graph, y, splits)


def read_points(
    folder: Path, name: str, limit: int | None = None
) -> tuple[np.ndarray, np.ndarray, dict[str, list[np.ndarray]]]:
    """Read features, classes and published sets of labels; at most `limit` points."""
    X, y, splits = _read_all_points(folder, name)
    if limit is None or len(y) <= limit:
        return X, y, splits
    chosen = np.sort(np.random.default_rng(0).choice(len(y), limit, replace=False))
    return X[chosen], y[chosen], splits


def _read_all_points(
    folder: Path, name: str
) -> tuple[np.ndarray, np.ndarray, dict[str, list[np.ndarray]]]:
    if name == "digits":  # part of scikit-learn, so one set is available on every machine
        from sklearn.datasets import load_digits

        X, y = load_digits(return_X_y=True)
        return X.astype(np.float32), y.astype(np.int64), {}
    with np.load(folder / f"{name}.npz") as file:
        arrays = {key: file[key] for key in file.files}
    y = arrays["y"].astype(np.int64)
    if "X" in arrays:
        X = arrays["X"].astype(np.float32)
    else:
        X = np.zeros(arrays["X_shape"], dtype=np.float32)
        rows = np.repeat(np.arange(len(y)), np.diff(arrays["X_indptr"]))
        X[rows, arrays["X_indices"]] = arrays["X_data"]
    if POINTS.get(name) == "standardised":
        X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
    elif POINTS.get(name) == "unit length":
        X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)
    splits = {key: list(arrays[key]) for key in arrays if key.startswith("labeled")}
    return X, y, splits


def load_graph(folder: Path, name: str) -> LabelledGraph:
    """Return the largest component of a graph with its own edges."""
    return _largest_component(name, *read_graph(folder, name))


def read_graph(folder: Path, name: str) -> tuple[Graph, np.ndarray, dict[str, list[np.ndarray]]]:
    """Read edges, classes and published sets of labels; weights of repeated edges are summed."""
    import pyarrow.parquet as pq

    kind = "stream" if name in STREAMS else "edges"
    edges = pq.read_table(folder / f"{name}_{kind}.parquet")
    labels = pq.read_table(folder / f"{name}_labels.parquet")
    ends = [edges[c].to_numpy() for c in "uv"]
    nodes, label = labels["node"].to_numpy(), labels["label"].to_numpy()
    n_nodes = int(max(*(e.max() for e in ends), nodes.max())) + 1
    y = np.full(n_nodes, -1)
    y[nodes] = label
    splits = {}
    if "split" in labels.column_names:
        splits["published"] = [nodes[np.array(labels["split"].to_pylist()) == "train"]]
    weights = edges["w"].to_numpy() if "w" in edges.column_names else None
    return Graph.from_edges(*ends, weights, n_nodes=n_nodes), y, splits


def load_all(
    folder: Path, neighbors: list[int], limit: int, only: list[str] | None = None
) -> Iterator[LabelledGraph | str]:
    """Yield all sets, or the name of a missing one; points once per number of neighbours."""
    beginnings = tuple(only) if only else ("",)
    for name in ("digits", *POINTS):
        for k in neighbors if name.startswith(beginnings) else []:
            if k > DENSE and name not in DENSE_SETS:
                continue
            here = name == "digits" or (folder / f"{name}.npz").exists()
            yield load_points(folder, name, k, limit) if here else f"{name} k={k}"
    for name in (*GRAPHS, *STREAMS):
        if name.startswith(beginnings):
            here = (folder / f"{name}_labels.parquet").exists()
            yield load_graph(folder, name) if here else name


def load_whole(
    folder: Path, limit: int, only: list[str] | None = None
) -> Iterator[LabelledGraph | str]:
    """Yield all sets with all components, or the name of a missing one."""
    beginnings = tuple(only) if only else ("",)
    default = HFSClassifier()
    for name in ("digits", *POINTS):
        if not name.startswith(beginnings):
            continue
        if name != "digits" and not (folder / f"{name}.npz").exists():
            yield name
            continue
        X, y, _ = read_points(folder, name, limit)
        now, before = (
            Graph.from_batches(
                knn_edges(X, n_neighbors=default.n_neighbors, weights=default.weights, gamma=gamma),
                n_nodes=len(y),
            )
            for gamma in (8.0, 1.0)
        )
        yield LabelledGraph(name, now, _number_classes(y), before=before)
    for name in (*GRAPHS, *STREAMS):
        if not name.startswith(beginnings):
            continue
        if not (folder / f"{name}_labels.parquet").exists():
            yield name
            continue
        graph, y, _ = read_graph(folder, name)
        yield LabelledGraph(name, graph, _number_classes(y))


def load_full(folder: Path, name: str) -> LabelledGraph | str:
    """Return a set with all its points, or its name if one of its files is missing."""
    files, k = FULL_SETS[name]
    if not all((folder / f"{file}.npz").exists() for file in files):
        return f"{name}, all points"
    parts = [read_points(folder, file) for file in files]
    X, y = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    graph = _graph_of(knn_edges(X, n_neighbors=k, weights="uniform"), len(y))
    return _largest_component(f"{name}, all points", graph, y, {})


def _graph_of(stream: Any, n_nodes: int) -> Graph:
    return Graph.from_batches(list(stream), n_nodes=n_nodes)


def _largest_component(
    name: str, graph: Graph, y: np.ndarray, splits: dict[str, list[np.ndarray]]
) -> LabelledGraph:
    component = graph.components()[1]
    kept = component == np.argmax(np.bincount(component))
    number = np.cumsum(kept) - 1
    u, v, w = graph.edges()
    inside = kept[u]
    part = Graph.from_edges(
        number[u[inside]], number[v[inside]], w[inside], n_nodes=int(kept.sum())
    )
    moved = {key: [number[s[kept[s]]] for s in sets] for key, sets in splits.items()}
    return LabelledGraph(name, part, _number_classes(y[kept]), moved)


def _number_classes(y: np.ndarray) -> np.ndarray:
    """Return the classes that are there as 0, 1, ...; nodes without a class keep -1."""
    known = y >= 0
    numbered = y.copy()
    numbered[known] = np.unique(y[known], return_inverse=True)[1]
    return numbered
