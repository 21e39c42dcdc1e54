"""Append to a log of edges, remove one in a hundred, and read it beside a plain Parquet file.

``python -m benchmarks.edge_log`` prints one JSON line per figure. Appends are timed by the clock
until they are on disk; their CPU time does not count the waiting for the disk. Reading the log and
the Parquet file take turns in one process with one thread; the best of the rounds counts, except
for the first reading of the log, which compares checksums.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.measure import emit, peak_mib, reset_peak

BATCH = 1_000_000
CASES = {"pairs": (False, False), "weights": (True, False), "times": (True, True)}


def main() -> None:
    """Run each case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--edges", type=float, default=1e8)
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--small", type=int, default=1000, help="durable appends of one edge")
    parser.add_argument("--folder", help="where the files go; by default a temporary folder")
    options = parser.parse_args()
    import pyarrow as pa

    pa.set_cpu_count(1)
    for case in options.cases:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            run(case, Path(folder), options)


def make_batches(case: str, n_edges: int, n_nodes: int) -> Iterator[tuple[Any, ...]]:
    """Yield batches (u, v, w, t) with ids of the user, which are not the numbers of the nodes."""
    has_weights, has_times = CASES[case]
    for start in range(0, n_edges, BATCH):
        rng = np.random.default_rng(start)
        size = min(BATCH, n_edges - start)
        u, v = 7 * rng.integers(0, n_nodes, (2, size))
        w = rng.random(size, dtype=np.float32) if has_weights else None
        yield u, v, w, np.arange(start, start + size, dtype=float) if has_times else None


def run(case: str, folder: Path, options: argparse.Namespace) -> None:
    """Measure one case."""
    from ohmlearn import EdgeLog

    n_edges = int(options.edges)
    facts = {"bench": "edge_log", "case": case, "edges": n_edges, "nodes": options.nodes}
    log = EdgeLog(folder / "log", random_state=0)

    def report(what: str, spent: Spent, count: int = n_edges, **more: Any) -> None:
        rates = {
            "million_per_s": count / spent.wall / 1e6,
            "million_per_cpu_s": count / spent.cpu / 1e6,
        }
        emit({**facts, "what": what, "wall_s": spent.wall, "cpu_s": spent.cpu, **rates, **more})

    reset_peak()
    spent = Spent(0.0, 0.0)
    for batch in make_batches(case, n_edges, options.nodes):
        one = timed(lambda batch=batch: log.append(*batch))
        spent = Spent(spent.wall + one.wall, spent.cpu + one.cpu)
    report("append", spent, bytes=log.info()["bytes"], batch=BATCH, peak_mib=peak_mib())

    u, v, _, _ = next(make_batches(case, n_edges, options.nodes))
    rng = np.random.default_rng(1)
    chosen = [_choose(batch, rng) for batch in make_batches(case, n_edges, options.nodes)]
    pairs = [np.concatenate(column) for column in zip(*chosen, strict=True)]
    reset_peak()
    spent = timed(lambda: log.remove(*pairs))
    n_removed = n_edges - log.n_edges
    report("remove", spent, requests=len(pairs[0]), removed=n_removed, peak_mib=peak_mib())

    log.close()
    path = folder / "edges.parquet"
    write_parquet(EdgeLog(folder / "log"), path)
    live = EdgeLog(folder / "log").live_edges()
    columns = [name for name, wanted in zip("uvwt", (True, True, *CASES[case]), strict=True)
               if wanted]  # fmt: skip
    work: dict[str, Callable[[], int]] = {
        "read the log": lambda: count_log(live),
        "read Parquet": lambda: count_parquet(path, columns),
    }
    assert work["read Parquet"]() == n_edges - n_removed
    reset_peak()
    first = timed(work["read the log"])
    best: dict[str, Spent] = {}
    for _ in range(options.rounds):
        for name, job in work.items():
            best[name] = min(timed(job), best.get(name, NEVER), key=lambda spent: spent.cpu)
    n_live, peer, again = n_edges - n_removed, best["read Parquet"], best["read the log"]
    report("read Parquet", peer, n_live, bytes=os.path.getsize(path))
    report("read the log", again, n_live, times_parquet=peer.cpu / again.cpu)
    ratio = peer.cpu / first.cpu
    report("read the log first", first, n_live, times_parquet=ratio, peak_mib=peak_mib())

    with EdgeLog(folder / "log") as log:
        report("compact", timed(log.compact), n_live)
        if CASES[case][1]:
            report("expire half", timed(lambda: log.expire(n_edges / 2)))

        def append_small() -> None:
            for at in range(options.small):
                log.append(u[at : at + 1], v[at : at + 1], *_extra(case))

        spent = timed(append_small)
        report("append one edge", spent, options.small, per_s=options.small / spent.wall)


def _choose(batch: tuple[Any, ...], rng: np.random.Generator) -> tuple[Any, Any]:
    mask = rng.random(len(batch[0])) < 0.01
    return batch[0][mask], batch[1][mask]


def _extra(case: str) -> tuple[Any, Any]:
    has_weights, has_times = CASES[case]
    w = np.ones(1, np.float32) if has_weights else None
    return w, np.full(1, 1e9) if has_times else None


class Spent(NamedTuple):
    """Seconds by the clock, and of CPU time."""

    wall: float
    cpu: float


NEVER = Spent(np.inf, np.inf)


def timed(job: Callable[[], Any]) -> Spent:
    """Return what a job takes."""
    wall, cpu = time.perf_counter(), time.process_time()
    job()
    return Spent(time.perf_counter() - wall, time.process_time() - cpu)


def write_parquet(live: Any, path: Path) -> None:
    """Write live edges, numbered, as pyarrow writes Parquet by default."""
    import pyarrow as pa
    from pyarrow import parquet

    writer = None
    for batch in live:
        columns = dict(zip("uvwt", batch, strict=False))
        table = pa.table({name: column for name, column in columns.items() if column is not None})
        if writer is None:
            writer = parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def count_log(live: Any) -> int:
    """Read all live edges."""
    return sum(len(batch.u) for batch in live)


def count_parquet(path: Path, columns: list[str]) -> int:
    """Read all rows of a Parquet file into arrays."""
    from pyarrow import parquet

    count = 0
    with parquet.ParquetFile(path) as file:
        for batch in file.iter_batches(3 << 15, columns=columns, use_threads=False):
            for column in batch.columns:
                column.to_numpy()
            count += batch.num_rows
    return count


if __name__ == "__main__":
    main()
