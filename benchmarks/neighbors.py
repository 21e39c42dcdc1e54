"""Exact nearest neighbours beside scikit-learn's ``kneighbors_graph``.

``python -m benchmarks.neighbors`` prints one JSON line per set of points, dtype, number of threads
and package: CPU and wall seconds, and the memory that the search adds. Each runs in its own child,
and those to be compared run one after the other. The points are images of 784 pixels
(fashion_mnist_train_a of the data folder, or images made of strokes if it is missing), and clusters
in 20 dimensions.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import ROOT, emit, peak_mib, reset_peak, run_child, timed

DATA = Path(os.environ.get("OHMLEARN_DATA", ROOT.parent / "shared" / "data"))
NEIGHBORS = 10
SETS = {"images": ("uint8", "float32"), "clusters": ("float32",)}
SIZES = {"images": (20_000, 784), "clusters": (100_000, 20)}
PACKAGES = ("ohmlearn", "scikit-learn")


def make_points(name: str, n: int, dtype: str) -> NDArray[Any]:
    """Return the points of a set."""
    rng = np.random.default_rng(0)
    if name == "clusters":
        centres = rng.normal(size=(50, 20))
        return (centres[rng.integers(0, 50, n)] + rng.normal(size=(n, 20))).astype(dtype)
    path = DATA / "fashion_mnist_train_a.npz"
    images = np.load(path)["X"] if path.exists() else make_images(n, rng)
    found: NDArray[Any] = images.reshape(len(images), -1)[:n].astype(dtype)
    return found


def make_images(n: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Return images of 28 x 28 bytes: strokes of ten shapes, moved a little.

    Examples
    --------
    >>> make_images(3, np.random.default_rng(0)).shape
    (3, 784)
    """
    strokes = rng.uniform(4, 24, size=(10, 12, 2))
    rows, columns = np.mgrid[:28, :28]
    images = np.empty((n, 784), dtype=np.uint8)
    for i in range(n):
        moved = strokes[i % 10] + rng.normal(size=(12, 2))
        squares = (rows[..., None] - moved[:, 0]) ** 2 + (columns[..., None] - moved[:, 1]) ** 2
        images[i] = (255 * np.exp(-squares / 4).max(axis=-1)).ravel()
    return images


def find_ours(X: NDArray[Any], threads: int) -> None:
    """Find neighbours with ohmlearn."""
    from ohmlearn import knn_edges

    knn_edges(X, n_neighbors=NEIGHBORS, weights="gaussian", n_jobs=threads).find_neighbors()


def find_peers(X: NDArray[Any], threads: int) -> None:
    """Find neighbours with scikit-learn."""
    from sklearn.neighbors import kneighbors_graph

    kneighbors_graph(X, NEIGHBORS, mode="distance", n_jobs=threads)


def measure(name: str, n: int, dtype: str, package: str, threads: int) -> None:
    """Print the figure of one child."""
    work: Callable[[Any, int], None] = find_ours if package == "ohmlearn" else find_peers
    X = make_points(name, n, dtype)
    work(X[:500], threads)  # imports, and pages of code
    before = reset_peak()
    _, cpu, wall = timed(lambda: work(X, threads))
    growth = peak_mib() - before
    emit(
        {
            "cpu_s": round(cpu, 2),
            "wall_s": round(wall, 2),
            "rss_growth_mib": round(growth),
            "points_mib": round(X.nbytes / 2**20),
        }
    )


def main() -> None:
    """Measure all sets, or one in this process."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--share", type=float, default=1.0, help="share of the points")
    parser.add_argument("--limit", type=float, default=1200.0, help="CPU seconds of a child")
    parser.add_argument("--child", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        name, n, dtype, package, threads = options.child
        measure(name, int(n), dtype, package, int(threads))
        return
    for name in options.sets:
        n = round(SIZES[name][0] * options.share)
        for dtype in SETS[name]:
            for threads in options.threads:
                for package in PACKAGES:
                    case = [name, str(n), dtype, package, str(threads)]
                    figure: dict[str, Any] = {
                        "bench": "neighbors", "set": name, "points": n, "features": SIZES[name][1],
                        "dtype": dtype, "neighbors": NEIGHBORS, "threads": threads,
                        "package": package,
                    }  # fmt: skip
                    found = list(
                        run_child(
                            "benchmarks.neighbors", ["--child", *case], options.limit, threads
                        )
                    )
                    end = found.pop()
                    emit({**figure, **(found[0] if found else {}), "status": end["end"],
                          "note": end["note"]})  # fmt: skip


if __name__ == "__main__":
    main()
