"""Features and a dense graph of shared visual words: all edges against a sparsifier of them.

``python -m benchmarks.feature_dense`` takes 30,000 images of fashion-MNIST. Nine parts of each
image are quantised to words. Two images are joined by an edge for each word they share, unless more
than 2% of all images have it. The edges are made in batches and are never all in memory, except for
the exact answer. `GraphFeatureClassifier` gets all edges, or the stream, of which it keeps a
sparsifier with at most 5% of the different edges and the exact degrees. For comparison, logistic
regression on smoothed features is also fitted with the degrees of the sparsifier, and with 2% of
the edges. Features are means of pixels: of the rows of an image, of rows and columns, or of 49
blocks. Each line has the accuracies of all draws, so that differences can be taken draw by draw.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.feature_methods import linear_model
from benchmarks.features import FIRST_SEED, draw, read
from benchmarks.measure import Figure, emit, peak_mib, reset_peak, run_child, timed
from benchmarks.results import memory, seconds, table

FILES = ("fashion_mnist_test", "fashion_mnist_train_a")
SIDE, STEP, WORDS = 14, 7, 256  # parts of 14 x 14 pixels, 7 pixels apart; words for each part
COMMON = 0.02  # words of a larger share of the images are left out
BATCH = 1 << 20
SHARES = (0.05, 0.02)  # of the different edges
KINDS = ("exact degrees", "own degrees")
FEATURES = ("rows", "profiles", "blocks")
PER_CLASS = (5, 20)


def read_images(folder: Path, n_images: int) -> tuple[np.ndarray, np.ndarray]:
    """Return images with values between 0 and 1, and their classes."""
    parts = []
    for name in FILES:
        with np.load(folder / f"{name}.npz") as file:
            parts.append((file["X"], file["y"]))
    X, y = (np.concatenate(arrays)[:n_images] for arrays in zip(*parts, strict=True))
    return X.reshape(-1, 28, 28).astype(np.float32) / 255, y.astype(np.int64)


def find_words(images: np.ndarray) -> np.ndarray:
    """Return the word of each part of each image; words of different parts have other numbers."""
    from sklearn.cluster import MiniBatchKMeans

    words: list[np.ndarray] = []
    for top in range(0, 28 - SIDE + 1, STEP):
        for left in range(0, 28 - SIDE + 1, STEP):
            part = images[:, top : top + SIDE, left : left + SIDE].reshape(len(images), -1)
            model = MiniBatchKMeans(WORDS, n_init=1, random_state=0, batch_size=4096, max_iter=20)
            words.append(model.fit_predict(part) + len(words) * WORDS)
    return np.stack(words, axis=1)


class SharedWords:
    """The stream of edges: all pairs of images of each word, in a random order of the words."""

    def __init__(self, words: np.ndarray) -> None:
        self.n_nodes = len(words)
        order = np.argsort(words.ravel(), kind="stable")
        self._images = (order // words.shape[1]).astype(np.int32)
        self._starts = np.searchsorted(words.ravel()[order], np.arange(words.max() + 2))
        sizes = np.diff(self._starts)
        kept = np.flatnonzero((sizes > 1) & (sizes <= COMMON * len(words)))
        self._kept = np.random.default_rng(0).permutation(kept)

    def groups(self) -> Iterator[np.ndarray]:
        """Yield the images of each word."""
        for word in self._kept:
            yield self._images[self._starts[word] : self._starts[word + 1]]

    def __iter__(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        waiting: list[tuple[np.ndarray, np.ndarray]] = []
        size = 0
        for images in self.groups():
            first, second = np.triu_indices(len(images), 1)
            waiting.append((images[first], images[second]))
            size += len(first)
            if size >= BATCH:
                yield _joined(waiting)
                waiting, size = [], 0
        if waiting:
            yield _joined(waiting)

    def homophily(self, y: np.ndarray) -> tuple[float, float]:
        """Return the share of edges within a class, and that of random pairs."""
        same = total = 0.0
        for images in self.groups():
            sizes = np.bincount(y[images]).astype(float)
            same += float((sizes * (sizes - 1)).sum())
            total += len(images) * (len(images) - 1.0)
        return same / total, float(((np.bincount(y) / len(y)) ** 2).sum())


def _joined(batches: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    u, v = zip(*batches, strict=True)
    return np.concatenate(u), np.concatenate(v)


def make_features(images: np.ndarray, name: str) -> np.ndarray:
    """Return means of pixels."""
    if name == "rows":
        return images.mean(axis=2)
    if name == "profiles":
        return np.hstack([images.mean(axis=2), images.mean(axis=1)])
    return images.reshape(-1, 7, 4, 7, 4).mean(axis=(2, 4)).reshape(-1, 49)


def measure(options: argparse.Namespace) -> None:
    """Print the figures of one way to keep the edges."""
    from ohmlearn import Graph, StreamingSparsifier
    from ohmlearn.edges.wrapped import DegreeCounting
    from ohmlearn.reading.as_edges import as_edges

    warnings.simplefilter("ignore")
    with np.load(options.path) as file:
        y, words = file["y"], file["words"]
        features = {name: file[name].astype(np.float64) for name in options.features}
    stream = SharedWords(words)
    baseline = reset_peak()

    def build() -> tuple[Any, np.ndarray]:
        if options.child == "all":
            graph = Graph.from_batches(stream, n_nodes=len(y))
            return graph, graph.degrees
        counted = DegreeCounting(as_edges(stream))
        sparsifier = StreamingSparsifier(
            n_nodes=len(y), max_edges=options.max_edges, random_state=options.seed
        )
        graph = sparsifier.update(counted).snapshot()
        return graph, graph.degrees if options.child == "own degrees" else counted.degrees

    if options.part == "estimator" and options.child == "exact degrees":
        graph: Any = stream  # the estimator reads it and counts the degrees itself
        emit({"edges": 0})
    else:
        (graph, degrees), cpu, wall = timed(build)
        emit({"edges": graph.n_edges, "build_cpu_s": round(cpu, 3), "build_wall_s": round(wall, 3)})
    for name, X in features.items():
        if options.part == "estimator":
            figures = _fit_estimator(graph, X, y, options)
        else:
            figures = _fit_all(graph, degrees, X, y, options)
        for figure in figures:
            peak = {"memory_mib": round(peak_mib() - baseline, 1), "process_mib": peak_mib()}
            emit({"features": name, **figure, **peak})


def _fit_all(
    graph: Any, degrees: np.ndarray, X: np.ndarray, y: np.ndarray, options: argparse.Namespace
) -> Iterator[Figure]:
    """Yield the accuracies of all draws; the smoothed features serve all draws."""
    from ohmlearn.features import smooth

    smoothed, cpu, _ = timed(lambda: smooth(graph, X, 9.0, degrees=degrees, random_state=0))
    for per_class in options.per_class:
        found: dict[str, list[float]] = {"features alone": [], "smoothed": []}
        for seed in range(options.first_seed, options.first_seed + options.draws):
            given = draw(y, per_class, seed)
            known, test = given >= 0, given < 0

            def rate(classes: np.ndarray, test: np.ndarray = test) -> float:
                return round(float(np.mean(classes[test] == y[test])), 5)

            base = linear_model(X, sparse=False).fit(X[known], y[known])
            found["features alone"].append(rate(base.predict(X)))
            model = linear_model(smoothed, sparse=False).fit(smoothed[known], y[known])
            found["smoothed"].append(rate(model.predict(smoothed)))
        for step, accuracies in found.items():
            yield {
                "labels": per_class,
                "step": step,
                "accuracy": round(float(np.mean(accuracies)), 4),
                "accuracies": accuracies,
                "draws": len(accuracies),
                "cpu_s": round(cpu, 3),
            }


def _fit_estimator(
    graph: Any, X: np.ndarray, y: np.ndarray, options: argparse.Namespace
) -> Iterator[Figure]:
    """Yield the accuracies of `GraphFeatureClassifier`; each draw has another sparsifier."""
    from ohmlearn import GraphFeatureClassifier

    for per_class in options.per_class:
        accuracies, times = [], []
        for seed in range(options.first_seed, options.first_seed + options.estimator_draws):
            given = draw(y, per_class, seed)
            model = GraphFeatureClassifier(
                graph=graph, max_edges=options.max_edges, random_state=seed
            )
            answers, cpu, _ = timed(lambda m=model, given=given: m.fit(X, given).transduction_)
            test = given < 0
            accuracies.append(round(float(np.mean(answers[test] == y[test])), 5))
            times.append(cpu)
        if accuracies:
            yield {
                "labels": per_class,
                "step": "GraphFeatureClassifier",
                "accuracy": round(float(np.mean(accuracies)), 4),
                "accuracies": accuracies,
                "draws": len(accuracies),
                "cpu_s": round(float(np.median(times)), 3),
                "edges": model.graph_.n_edges,
            }


def show(path: Path) -> None:
    """Print accuracies, and differences to all edges with their standard errors."""
    figures = [f for f in read(path) if "accuracies" in f]
    full = {_key(f): f for f in figures if f["kept"] == "all"}
    rows = []
    for f in figures:
        cells = [f["kept"], f"{100 * f['share']:.1f}%", f["features"], str(f["labels"]), f["step"]]
        gap = "–"
        if _key(f) in full:
            gaps = 100 * (np.array(f["accuracies"]) - full[_key(f)]["accuracies"])
            error = gaps.std(ddof=1) / np.sqrt(len(gaps)) if len(gaps) > 1 else float("nan")
            gap = f"{gaps.mean():+.2f} ± {error:.2f}"
        times = seconds(f["cpu_s"])  # of the whole fit for the estimator
        rows.append([*cells, f"{f['accuracy']:.4f}", gap, times, memory(f["memory_mib"])])
    header = ["edges kept", "share", "features", "labels a class", "step", "accuracy"]
    print(table([*header, "points against all edges", "CPU time", "memory"], rows))


def _key(figure: Figure) -> tuple[Any, ...]:
    return figure["features"], figure["labels"], figure["step"]


def main() -> None:
    """Run the benchmark, or show its figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    default = Path(os.environ.get("OHMLEARN_DATA", "../shared/data"))
    parser.add_argument("--data", type=Path, default=default, help="folder with the data sets")
    parser.add_argument("--images", type=int, default=30_000)
    parser.add_argument("--draws", type=int, default=10, help="of the steps")
    parser.add_argument("--estimator-draws", type=int, default=3, help="of the whole estimator")
    parser.add_argument("--features", nargs="+", choices=FEATURES, default=list(FEATURES))
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--seed", type=int, default=0, help="seed of the sparsifier")
    parser.add_argument("--per-class", type=int, nargs="+", default=list(PER_CLASS))
    parser.add_argument("--limit", type=float, default=900.0, help="CPU seconds for each child")
    parser.add_argument("--table", type=Path, help="show figures from this file instead")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--path", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--part", choices=("steps", "estimator"), help=argparse.SUPPRESS)
    parser.add_argument("--max-edges", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.table:
        return show(options.table)
    if options.child:
        return measure(options)
    if not all((options.data / f"{name}.npz").exists() for name in FILES):
        return emit({"bench": "feature_dense", "status": "no data"})
    images, y = read_images(options.data, options.images)
    words = find_words(images)
    homophily, chance = SharedWords(words).homophily(y)
    head: Figure = {"bench": "feature_dense", "nodes": len(y), "seed": options.seed}
    head |= {"first_seed": options.first_seed}
    head |= {"homophily": round(homophily, 3), "chance": round(chance, 3)}
    print(f"homophily {homophily:.3f}, by chance {chance:.3f}", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "images.npz"
        np.savez(path, y=y, words=words, **{f: make_features(images, f) for f in FEATURES})
        n_edges = _run("all", None, 0, path, head, options)
        if not n_edges:
            return None
        for share in SHARES:
            for kept in KINDS:
                _run(kept, share, n_edges, path, head, options)
        if options.estimator_draws:  # last: on all edges it takes longest
            for kept, part in ((KINDS[0], SHARES[0]), ("all", None)):
                _run(kept, part, n_edges, path, head, options, "estimator")
    return None


def _run(
    kept: str, share: float | None, n_edges: int, path: Path, head: Figure,
    options: argparse.Namespace, part: str = "steps",
) -> int:  # fmt: skip
    """Run a child and print its figures; return the number of edges it kept."""
    arguments = ["--child", kept, "--path", str(path), "--draws", str(options.draws)]
    arguments += ["--first-seed", str(options.first_seed), "--seed", str(options.seed)]
    arguments += ["--estimator-draws", str(options.estimator_draws)]
    arguments += ["--features", *options.features, "--part", part]
    arguments += ["--per-class", *(str(count) for count in options.per_class)]
    if share is not None:
        arguments += ["--max-edges", str(int(share * n_edges))]
    built: Figure = {}
    for figure in run_child("benchmarks.feature_dense", arguments, options.limit):
        if "accuracies" in figure:
            line = {**head, "kept": kept, "asked": share, **built, "status": "ok", **figure}
            emit({**line, "share": line["edges"] / (n_edges or line["edges"])})
        elif "edges" in figure:
            built = figure
        elif figure["end"] != "ok":
            emit({**head, "kept": kept, "asked": share, "status": figure["end"],
                  "note": figure["note"]})  # fmt: skip
    return int(built.get("edges", 0))


if __name__ == "__main__":
    main()
