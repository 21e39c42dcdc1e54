"""Streams of events between string ids, from a Parquet file to the labels of all nodes.

``python -m benchmarks.events`` prints one JSON line per stream and method. The streams are the
authors of dblp as they are, the contacts of a school, and a dense stream that is made from the
first: half of its events repeat one of the real pairs, the others take the areas of a real pair and
join two authors of these areas, drawn by how active they are. Reading, numbering the ids and
building the graph count for all methods. Accuracy is the mean over draws of labels, of the
nodes without a given label, with its standard error; the cost is that of the first draw. Each
method runs in its own child process.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.graphs import DATA
from benchmarks.label_methods import METHODS, Edges, Labels, to_matrix, warm_up
from benchmarks.label_sets import STREAMS
from benchmarks.machine import version
from benchmarks.measure import Figure, emit, peak_mib, run_child, timed
from benchmarks.trust import draw_labels

PER_CLASS = 5
MEMORY_GIB = 8.0
STEPS = 100  # of scikit-network's Propagation
MADE = "made from dblp_temporal"
PASSES = {"ohmlearn": 3, "ohmlearn, one pass": 1}


def propagation(matrix: Any, y: Labels, seed: int) -> Labels:
    """Label propagation from scikit-network; without a limit it may never end."""
    from sknetwork.classification import Propagation

    return np.asarray(Propagation(n_iter=STEPS).fit_predict(matrix, labels=y))


def page_rank(matrix: Any, y: Labels, seed: int) -> Labels:
    """The PageRank classifier from scikit-network."""
    from sknetwork.classification import PageRankClassifier

    return np.asarray(PageRankClassifier().fit_predict(matrix, labels=y))


def plain_loop(matrix: Any, y: Labels, seed: int, steps: int = 30) -> Labels:
    """Means of the neighbours, again and again, as people write it with scipy."""
    import scipy.sparse as sp

    walk = sp.diags(1.0 / np.maximum(np.asarray(matrix.sum(axis=1)).ravel(), 1e-12)) @ matrix
    given = np.flatnonzero(y >= 0)
    shares = np.zeros((len(y), int(y.max()) + 1))
    for _ in range(steps):
        shares[given] = np.eye(shares.shape[1])[y[given]]
        shares = walk @ shares
    return np.asarray(shares.argmax(axis=1))


def dense_spreading(matrix: Any, y: Labels, seed: int) -> Labels:
    """LabelSpreading from scikit-learn with a dense kernel matrix, as its documentation says."""
    from sklearn.semi_supervised import LabelSpreading

    model = LabelSpreading(kernel=lambda a, b: matrix.toarray())
    return np.asarray(model.fit(np.zeros((len(y), 1)), y).transduction_)


# Package, and the method on a stored matrix; ours reads the stream.
WAYS: dict[str, tuple[str, Callable[[Any, Labels, int], Labels] | None]] = {
    **dict.fromkeys(PASSES, ("ohmlearn", None)),
    "plain loop, 30 steps": ("scipy", plain_loop),
    "scikit-network Propagation": ("scikit-network", propagation),
    "scikit-network PageRankClassifier": ("scikit-network", page_rank),
    "scikit-network DiffusionClassifier": ("scikit-network", METHODS["Diffusion"].label),
    "scikit-learn LabelSpreading, sparse matrix": (
        "scikit-learn", METHODS["LabelSpreading"].label,
    ),
    "scikit-learn LabelSpreading, dense matrix": ("scikit-learn", dense_spreading),
    "graphlearning Poisson": ("graphlearning", METHODS["Poisson"].label),
}  # fmt: skip
WARM = {"scikit-network": "Diffusion", "scikit-learn": "LabelSpreading", "ohmlearn": "3 passes",
        "graphlearning": "Poisson"}  # fmt: skip


def read_real(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the ends of the events of a real stream, and the classes of the nodes."""
    from pyarrow import parquet

    events = parquet.read_table(folder / f"{name}_stream.parquet")
    labels = parquet.read_table(folder / f"{name}_labels.parquet")
    u, v = (events[c].to_numpy() for c in "uv")
    y = np.full(1 + max(u.max(), v.max(), labels["node"].to_numpy().max()), -1)
    y[labels["node"].to_numpy()] = labels["label"].to_numpy()
    return u, v, y


def make_events(
    u: np.ndarray, v: np.ndarray, y: np.ndarray, n_events: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return many events that repeat real pairs, or join nodes of the classes of a real pair."""
    rng = np.random.default_rng(0)
    chosen = rng.integers(0, len(u), n_events)
    ends = [u[chosen], v[chosen]]
    new = rng.random(n_events) < 0.5
    active = np.concatenate([u, v])  # a node is as often here as it is active
    active = active[np.argsort(y[active], kind="stable")]
    starts = np.searchsorted(y[active], np.arange(-1, y.max() + 2))
    for end in ends:
        first, last = (starts[y[end[new]] + 1 + at] for at in (0, 1))
        end[new] = active[rng.integers(first, last)]
    apart = ends[0] != ends[1]
    return ends[0][apart], ends[1][apart]


def write_events(path: Path, u: np.ndarray, v: np.ndarray, n_nodes: int) -> None:
    """Write events between string ids."""
    import pyarrow as pa
    from pyarrow import parquet

    names = pa.array([f"author-{at:06d}" for at in range(n_nodes)])
    columns = [pa.DictionaryArray.from_arrays(pa.array(x), names).cast(pa.string()) for x in (u, v)]
    parquet.write_table(pa.table(columns, ["source", "target"]), path)


def read_stored(path: Path) -> tuple[Any, np.ndarray]:
    """Return the symmetric matrix of a file, and the number in the name of each of its nodes."""
    import pyarrow as pa
    from pyarrow import parquet

    columns = ["source", "target"]
    table = parquet.read_table(path, read_dictionary=columns)
    both = pa.chunked_array([part for name in columns for part in table[name].chunks])
    chunks = both.unify_dictionaries().chunks
    ends = np.concatenate([chunk.indices.to_numpy() for chunk in chunks])
    names = chunks[0].dictionary
    u, v = np.split(ends, 2)
    matrix = to_matrix(Edges(u, v, np.ones(len(u)), len(names)))
    return matrix, _numbers(names.to_pylist())


def _numbers(names: list[str]) -> np.ndarray:
    return np.array([int(name.rpartition("-")[2]) for name in names])


def label(path: Path, name: str, y: np.ndarray, n_draws: int) -> Iterator[Figure]:
    """Read and label a stream with one method; yield the figures after each draw of labels."""
    label_stored = WAYS[name][1]
    stored: list[Any] = []
    figure: Figure = {}

    def ours(chosen: np.ndarray, seed: int) -> tuple[np.ndarray, Labels]:
        from ohmlearn import HFSClassifier, read_edges

        known = {f"author-{at:06d}": int(y[at]) for at in chosen}
        model = HFSClassifier(passes=PASSES[name], random_state=seed, n_jobs=1)
        model.fit_edges(read_edges(path), known)
        figure["kept"] = model.graph_.n_edges
        return _numbers(list(model.nodes_.ids())), model.transduction_

    def theirs(chosen: np.ndarray, seed: int) -> tuple[np.ndarray, Labels]:
        if not stored:
            stored.extend(read_stored(path))
        matrix, at = stored
        figure["pairs"] = matrix.nnz // 2
        given = np.full(len(y), -1)
        given[chosen] = y[chosen]
        assert label_stored is not None
        return at, label_stored(matrix, given[at], seed)

    accuracies = []
    for seed in range(n_draws):
        chosen = draw_labels(y, PER_CLASS, "stratified", seed)
        (at, found), cpu, wall = timed(partial(theirs if label_stored else ours, chosen, seed))
        if not seed:
            figure |= {"cpu_s": cpu, "wall_s": wall, "rss_peak_mib": peak_mib()}
        answer = np.full(len(y), -2)
        answer[at] = found
        rest = np.setdiff1d(at, chosen)
        rest = rest[y[rest] >= 0]
        accuracies.append(float(np.mean(answer[rest] == y[rest])))
        error = np.std(accuracies, ddof=1) / np.sqrt(len(accuracies)) if seed else 0.0
        means = {"accuracy": float(np.mean(accuracies)), "accuracy_se": float(error)}
        yield {**figure, **means, "draws": len(accuracies)}


def main() -> None:
    """Run all methods on all streams, or one of them in this process."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA, help="folder with the data sets")
    parser.add_argument("--streams", nargs="+", choices=[*STREAMS, MADE], default=[*STREAMS, MADE])
    parser.add_argument("--events", type=float, default=2e7, help="of the stream that is made")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--made-draws", type=int, default=5, help="for the stream that is made")
    parser.add_argument("--methods", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--limit", type=float, default=40.0, help="CPU seconds for each child")
    parser.add_argument("--child", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        warnings.simplefilter("ignore")  # some peers do not converge
        if warm := WARM.get(WAYS[options.child][0]):
            warm_up(warm)
        y = np.load(options.folder / "classes.npy")
        for figure in label(options.folder / "events.parquet", options.child, y, options.draws):
            emit(figure)
        return
    for name in options.streams:
        source = STREAMS[0] if name == MADE else name
        if not (options.data / f"{source}_stream.parquet").exists():
            emit({"bench": "events", "stream": name, "status": "no data"})
            continue
        with tempfile.TemporaryDirectory(prefix="ohmlearn-events-") as folder:
            u, v, y = read_real(options.data, source)
            if name == MADE:
                u, v = make_events(u, v, y, int(options.events))
            write_events(Path(folder) / "events.parquet", u, v, len(y))
            np.save(Path(folder) / "classes.npy", y)
            facts = {"nodes": len(np.union1d(u, v)), "events": len(u)}
            facts["same_class"] = round(float(np.mean(y[u] == y[v])), 3)
            _run(name, Path(folder), facts, options)


def _run(name: str, folder: Path, facts: Figure, options: argparse.Namespace) -> None:
    draws = options.made_draws if name == MADE else options.draws
    for method in options.methods:
        print(f"{name}: {method}", file=sys.stderr, flush=True)
        package = WAYS[method][0]
        figure: Figure = {"bench": "events", "stream": name, **facts, "method": method}
        figure |= {"labels": PER_CLASS, "package": package, "version": version(package)}
        if figure["version"] is None:
            emit({**figure, "status": "missing"})
            continue
        arguments = ["--child", method, "--folder", str(folder), "--draws", str(draws)]
        for part in run_child("benchmarks.events", arguments, options.limit, memory_gib=MEMORY_GIB):
            figure |= part
        figure["status"] = figure.pop("end")
        emit(figure)


if __name__ == "__main__":
    main()
