"""Compare sources of edges with the work they cannot avoid: pyarrow's readers, numpy's X @ X.T.

``python -m benchmarks.streams`` prints one JSON line per figure. Ours and the peer take turns in
one process with one thread; the best of the rounds counts.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import emit, peak_mib, reset_peak, run_child, timed

CASES = ("parquet", "parquet_strings", "csv", "csv_strings", "kernel", "knn")
Work = dict[str, Callable[[], Any]]


def main() -> None:
    """Run each case in a child."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=CASES)
    parser.add_argument("--edges", type=int, default=10_000_000, help="in files of random edges")
    parser.add_argument("--nodes", type=int, default=100_000, help="in files of random edges")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=600.0, help="CPU seconds for each child")
    parser.add_argument("--child", choices=CASES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        _child(options)
        return
    for case in options.cases:
        print(case, file=sys.stderr, flush=True)
        arguments = [f"--child={case}", f"--edges={options.edges}", f"--nodes={options.nodes}"]
        arguments.append(f"--rounds={options.rounds}")
        for figure in run_child("benchmarks.streams", arguments, options.limit):
            if "end" not in figure:
                emit({"bench": "streams", "case": case, "status": "ok", **figure})
            elif figure["end"] != "ok":
                emit({"bench": "streams", "case": case, "status": figure["end"], **figure})


def _child(options: argparse.Namespace) -> None:
    import pyarrow as pa

    pa.set_cpu_count(1)
    with tempfile.TemporaryDirectory() as folder:
        case = {
            "parquet": _parquet,
            "parquet_strings": _parquet_strings,
            "csv": _csv,
            "csv_strings": _csv_strings,
            "kernel": _kernel,
            "knn": _knn,
        }[options.child]
        facts, work, peer = case(options, Path(folder) / "edges")
        baseline = reset_peak()
        best: dict[str, float] = {}
        peaks: dict[str, float] = {}
        for _ in range(options.rounds):
            for name, run in work.items():
                reset_peak()
                _, cpu, _ = timed(run)
                best[name] = min(cpu, best.get(name, cpu))
                # Use the first round only: later ones reuse memory that allocators have kept.
                peaks.setdefault(name, peak_mib() - baseline)
    for name, cpu in best.items():
        figure = {**facts, "what": name, "cpu_s": cpu, "ns_per_edge": 1e9 * cpu / facts["edges"]}
        figure["rss_growth_mib"] = peaks[name]
        if peer is not None:
            figure |= {"peer": peer, "times_peer": cpu / best[peer]}
        emit(figure)


def _read(path: Path, **options: Any) -> None:
    from ohmlearn.reading import read_edges

    for _ in read_edges(path, **options):
        pass


def _sparsify(stream: Any, **parameters: Any) -> None:
    from ohmlearn import StreamingSparsifier

    sparsifier = StreamingSparsifier(random_state=0, **parameters)
    for u, v, w, _ in stream:
        sparsifier.update(u, v, w)


def _pyarrow_batches(path: Path) -> None:
    from pyarrow import parquet

    for _ in parquet.ParquetFile(path).iter_batches(
        1 << 17, columns=["src", "dst"], use_threads=False
    ):
        pass


def _parquet(options: argparse.Namespace, path: Path) -> tuple[dict[str, Any], Work, str]:
    """Write the graph of the Sparse-HFS experiment at k = 4500, with int64 ids."""
    import pyarrow as pa
    from pyarrow import parquet

    from ohmlearn import gallery
    from ohmlearn.points import knn_edges
    from ohmlearn.reading import read_edges

    path = path.with_suffix(".parquet")
    schema = pa.schema({"src": pa.int64(), "dst": pa.int64()})
    edges = 0
    with parquet.ParquetWriter(path, schema) as writer:
        for u, v, _ in knn_edges(gallery.paper_points(), n_neighbors=4500, weights="uniform"):
            columns = [pa.array(side.astype(np.int64)) for side in (u, v)]
            writer.write_table(pa.table(columns, schema=schema))
            edges += len(u)
    work: Work = {
        "read_edges": lambda: _read(path),
        "read_edges to sparsifier": lambda: _sparsify(read_edges(path), epsilon=0.9),
        "pyarrow iter_batches": lambda: _pyarrow_batches(path),
        "pyarrow read_table": lambda: parquet.read_table(path, use_threads=False),
    }
    return {"edges": edges, "nodes": 12_100}, work, "pyarrow read_table"


def _random_table(options: argparse.Namespace, strings: bool) -> Any:
    import pyarrow as pa

    rng = np.random.default_rng(0)
    ends = [pa.array(rng.integers(0, options.nodes, options.edges)) for _ in range(2)]
    if strings:
        names = pa.array([f"user-{i:08d}" for i in range(options.nodes)])
        ends = [names.take(end) for end in ends]
    return pa.table({"src": ends[0], "dst": ends[1]})


def _facts(options: argparse.Namespace) -> dict[str, Any]:
    return {"edges": options.edges, "nodes": options.nodes}


def _parquet_strings(options: argparse.Namespace, path: Path) -> tuple[dict[str, Any], Work, str]:
    from pyarrow import parquet

    path = path.with_suffix(".parquet")
    parquet.write_table(_random_table(options, strings=True), path)
    work: Work = {
        "read_edges": lambda: _read(path),
        "pyarrow read_table": lambda: parquet.read_table(path, use_threads=False),
    }
    return _facts(options), work, "pyarrow read_table"


def _csv(
    options: argparse.Namespace, path: Path, strings: bool = False
) -> tuple[dict[str, Any], Work, str]:
    from pyarrow import csv

    path = path.with_suffix(".csv")
    csv.write_csv(_random_table(options, strings), path)
    single = csv.ReadOptions(use_threads=False)
    work: Work = {
        "read_edges": lambda: _read(path),
        "pyarrow read_csv": lambda: csv.read_csv(path, read_options=single),
    }
    return _facts(options), work, "pyarrow read_csv"


def _csv_strings(options: argparse.Namespace, path: Path) -> tuple[dict[str, Any], Work, str]:
    return _csv(options, path, strings=True)


def _kernel(options: argparse.Namespace, path: Path) -> tuple[dict[str, Any], Work, str]:
    from ohmlearn import StreamingSparsifier
    from ohmlearn.points import kernel_edges

    x = np.random.default_rng(0).normal(size=(20_000, 20)).astype(np.float32)
    stream = kernel_edges(x)

    def multiply() -> None:
        for start in range(0, len(x), 500):
            _ = x[start : start + 500] @ x.T

    block = np.empty((500, len(x)), dtype=np.float32)

    def multiply_in_place() -> None:
        for start in range(0, len(x), 500):
            np.matmul(x[start : start + 500], x.T, out=block)

    def read() -> None:
        for _ in stream:
            pass

    work: Work = {
        "kernel_edges": read,
        "kernel_edges to sparsifier": lambda: StreamingSparsifier(
            n_nodes=len(x), epsilon=0.9, random_state=0
        ).update(stream),
        "X @ X.T": multiply,
        "X @ X.T, always into the same array": multiply_in_place,
    }
    return {"edges": stream.n_edges, "nodes": len(x), "features": 20}, work, "X @ X.T"


def _knn(options: argparse.Namespace, path: Path) -> tuple[dict[str, Any], Work, None]:
    from ohmlearn import gallery
    from ohmlearn.points import knn_edges

    points = gallery.paper_points()

    def read() -> int:
        return sum(len(batch.u) for batch in knn_edges(points, n_neighbors=4500, weights="uniform"))

    return {"edges": read(), "nodes": len(points), "features": 2}, {"knn_edges": read}, None


if __name__ == "__main__":
    main()
