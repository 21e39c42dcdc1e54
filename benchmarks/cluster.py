"""Compare a cluster of local worker processes with one process, on random edges in Parquet files.

``python -m benchmarks.cluster`` prints one JSON line per figure. One process with one thread reads
the files and keeps a sparsifier. Then Dask workers of one thread each do the same; with ``--spark``
also Spark on as many cores, once from the names of the files and once from a DataFrame. They take
turns, and the best round of each counts. ``--edges 1e9 --nodes 1e5 --partition-edges 5e8`` is the
full size; ``--edges 1e8 --partition-edges 5e7`` a smaller one. Run nothing else at the
same time; ``load`` is the load average of the machine. ``--leaf`` measures how the CPU time of one
partition is spent, if it starts from nothing and if it continues its neighbour. ``--quality``
measures epsilon instead, on the small graphs of `families`.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import dask
import numpy as np
from distributed import Client, LocalCluster

from benchmarks.families import FAMILIES, Ruler
from benchmarks.measure import Figure, emit, peak_mib, reset_peak
from ohmlearn import Graph, StreamingSparsifier, certify, read_edges
from ohmlearn.cluster.dask_tree import SETTINGS
from ohmlearn.dask import ClusterEdges, sparsify

ROW_GROUP = 1 << 20


def main() -> None:
    """Measure throughput and traffic, or quality."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edges", type=float, default=1e8)
    parser.add_argument("--nodes", type=float, nargs="+", default=[1e4, 1e5])
    parser.add_argument("--ids", choices=["int64", "string"], default="int64")
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--partition-edges", type=float, nargs="+", default=[5e7, 1.25e7])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--epsilon", type=float, default=0.9)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="keeps the files; default: a temporary one")
    parser.add_argument("--spark", action="store_true", help="Spark, too; needs Java")
    parser.add_argument("--leaf", action="store_true", help="one partition instead of a cluster")
    parser.add_argument("--quality", action="store_true")
    parser.add_argument("--seeds", type=int, default=20)
    options = parser.parse_args()
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[variable] = "1"
    if options.leaf:
        _measure_leaf(options)
        return
    with (
        dask.config.set(SETTINGS),
        LocalCluster(
            n_workers=options.workers, threads_per_worker=1, dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster) as client,
    ):
        if options.quality:
            _measure_quality(options, client)
            return
        for nodes in options.nodes:
            with tempfile.TemporaryDirectory() as temporary:
                files = _make_files(options.folder or Path(temporary), options, int(nodes))
                _measure_speed(options, client, files, int(nodes))


def _make_files(folder: Path, options: argparse.Namespace, nodes: int) -> list[Path]:
    """Return the files of edges, which are written only if the folder does not have them."""
    own = folder.absolute() / f"{options.ids}_{nodes}_{int(options.edges)}_{options.files}"
    if not own.exists():
        part = own.with_suffix(".part")  # an interrupted run leaves no folder that looks whole
        part.mkdir(parents=True, exist_ok=True)
        _write_files(part, options, nodes)
        part.replace(own)
    return sorted(own.iterdir())


def _write_files(folder: Path, options: argparse.Namespace, nodes: int) -> None:
    """Write random edges with pyarrow's defaults."""
    import pyarrow as pa
    from pyarrow import parquet

    print(f"writing {options.edges:g} edges among {nodes} nodes", file=sys.stderr, flush=True)
    names = None
    if options.ids == "string":
        names = pa.array([f"user-{i:08d}" for i in range(nodes)])
    for number in range(options.files):
        generator = np.random.default_rng(number)
        left = int(options.edges) // options.files
        kind = pa.int64() if options.ids == "int64" else pa.string()
        schema = pa.schema([("u", kind), ("v", kind)])
        with parquet.ParquetWriter(folder / f"part-{number}.parquet", schema) as writer:
            while left > 0:
                ends = generator.integers(0, nodes, (2, min(left, ROW_GROUP)))
                columns = [pa.array(end) if names is None else names.take(end) for end in ends]
                writer.write_table(pa.table(columns, schema=schema))
                left -= ends.shape[1]


def _measure_speed(
    options: argparse.Namespace, client: Client, files: list[Path], nodes: int
) -> None:
    facts = {
        "bench": "cluster",
        "case": "speed",
        "edges": int(options.edges),
        "nodes": nodes,
        "ids": options.ids,
        "epsilon": options.epsilon,
    }
    ways: dict[str, list[Figure]] = {}
    for _ in range(options.rounds):
        ways.setdefault("one process", []).append(_one_process(files, options.epsilon))
        for size in options.partition_edges:
            figure = _on_cluster(client, files, options.epsilon, int(size))
            way = f"{options.workers} workers, {figure['partitions']} partitions"
            ways.setdefault(way, []).append(figure)
            for source in ("files", "DataFrame") if options.spark else ():
                figure = _in_spark(options, files, source, int(size))
                way = f"Spark, {source}, {figure['partitions']} partitions"
                ways.setdefault(way, []).append(figure)
    best = {way: min(found, key=lambda f: f["wall_s"]) for way, found in ways.items()}
    for way, figure in best.items():
        ratio = best["one process"]["wall_s"] / figure["wall_s"]
        emit(
            {**facts, "way": way, **figure, "times_one_process": ratio, "load": os.getloadavg()[0]}
        )


def _one_process(files: list[Path], epsilon: float) -> Figure:
    reset_peak()
    cpu, wall = time.process_time(), time.perf_counter()
    sparsifier = StreamingSparsifier(epsilon=epsilon, random_state=0)
    sparsifier.update(read_edges(files))
    return {
        "wall_s": time.perf_counter() - wall,
        "cpu_s": time.process_time() - cpu,
        "peak_mib": peak_mib(),
        "rows": sparsifier.n_rows_,
    }


def _on_cluster(client: Client, files: list[Path], epsilon: float, partition_edges: int) -> Figure:
    client.run(reset_peak)
    cpu, moved = client.run(time.process_time), client.run(_bytes_sent)
    leaves = 0.0

    def note(stage: str, done: int, total: int) -> None:
        nonlocal leaves
        leaves = time.perf_counter() - wall

    here, wall = time.process_time(), time.perf_counter()
    edges = ClusterEdges(files, client=client, partition_edges=partition_edges, progress=note)
    found = edges.sparsify(epsilon=epsilon, random_state=0)
    seconds = time.perf_counter() - wall
    here = time.process_time() - here
    after = client.run(time.process_time)
    sent = client.run(_bytes_sent)
    cpus = [after[worker] - cpu[worker] for worker in after]
    return {
        "partitions": edges.n_partitions,
        "wall_s": seconds,
        "cpu_s": sum(cpus),
        "busiest_worker_cpu_s": max(cpus),
        "until_last_partition_s": leaves,
        "merging_s": seconds - leaves,
        "scheduler_and_client_cpu_s": here,
        "bytes_by_level": list(edges.traffic),
        "bytes_sent_by_workers": sum(sent[w] - moved[w] for w in sent),
        "peak_mib": max(client.run(peak_mib).values()),
        "rows": found.n_rows_,
    }


def _in_spark(
    options: argparse.Namespace, files: list[Path], source: str, partition_edges: int
) -> Figure:
    from pyspark.sql import SparkSession

    from ohmlearn.spark import SparkEdges

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session = (
        SparkSession.builder.master(f"local[{options.workers}]")
        .config("spark.driver.memory", "3g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.files.openCostInBytes", "0")  # partitions of equal size
        .getOrCreate()
    )
    size = sum(path.stat().st_size for path in files) / options.edges * partition_edges
    session.conf.set("spark.sql.files.maxPartitionBytes", f"{int(1.1 * size)}b")
    given: Any = files
    if source == "DataFrame":
        given = session.read.parquet(*map(str, files))
    wall = time.perf_counter()
    edges = SparkEdges(given, spark=session, partition_edges=partition_edges)
    found = edges.sparsify(epsilon=options.epsilon, random_state=0)
    return {
        "partitions": edges.n_partitions,
        "wall_s": time.perf_counter() - wall,
        "bytes_by_level": list(edges.traffic),
        "rows": found.n_rows_,
    }


def _bytes_sent(dask_worker: Any) -> int:
    return int(dask_worker.transfer_outgoing_bytes_total)


def _measure_leaf(options: argparse.Namespace) -> None:
    """Print the CPU seconds of two neighbouring partitions, the second with and without a start."""
    nodes, half = int(options.nodes[0]), options.files // 2
    with tempfile.TemporaryDirectory() as temporary:
        files = _make_files(options.folder or Path(temporary), options, nodes)
        first, second = files[:half], files[half:]
        neighbour = StreamingSparsifier(epsilon=options.epsilon, random_state=0)
        stream = read_edges(first)
        neighbour.update(stream)
        for start in (None, neighbour):
            leaf = start or StreamingSparsifier(epsilon=options.epsilon, random_state=1)
            nodes_so_far = None if start is None else stream.nodes
            emit(
                {
                    "bench": "cluster",
                    "case": "leaf",
                    "edges": int(options.edges) // 2,
                    "nodes": nodes,
                    "epsilon": options.epsilon,
                    "start": "nothing" if start is None else "neighbour",
                    **_spend(leaf, read_edges(second, nodes=nodes_so_far)),
                }
            )


def _spend(leaf: StreamingSparsifier, edges: Any) -> Figure:
    """Take in edges; return the CPU seconds in all, until the first resample, and of resamples."""
    begin = last = time.process_time()
    resamples = first = 0.0
    before = leaf.n_resamples_
    for batch in edges:
        read = time.process_time()
        known = leaf.n_resamples_
        leaf.update(batch.u, batch.v)
        last = time.process_time()
        if leaf.n_resamples_ > known:  # the other work on such a batch is small
            resamples += last - read
            first = first or last - begin
    return {
        "cpu_s": last - begin,
        "until_first_resample_cpu_s": first,
        "resamples": leaf.n_resamples_ - before,
        "resamples_cpu_s": resamples,
        "rows": leaf.n_rows_,
    }


def _measure_quality(options: argparse.Namespace, client: Client) -> None:
    """Compare the epsilon of eight partitions with that of one stream with the same budget."""
    for name in ("paper", "blocks", "barbell", "attachment", "6 decades", "complete"):
        family = FAMILIES[name]()
        ruler, n = Ruler(family.graph), family.graph.n_nodes
        for split_every in (2, 4):
            merged, single, rows = [], [], []
            for seed in range(options.seeds):
                u, v, w = family.stream("random", seed)
                cuts = np.array_split(np.arange(len(u)), 8)
                parts = [dask.delayed((u[cut], v[cut], w[cut])) for cut in cuts]
                edges = ClusterEdges(parts, client=client, split_every=split_every)
                found = sparsify(edges, max_edges=20 * n, random_state=seed)
                ids = edges.nodes.ids()
                a, b, weights = found.edges()
                h = Graph.from_edges(ids[a], ids[b], weights, n_nodes=n)
                one = StreamingSparsifier(n_nodes=n, max_edges=20 * n, random_state=seed)
                g = one.update(u, v, w).snapshot()
                rows.append((h.n_edges, g.n_edges))
                merged.append(ruler.epsilon(h))
                single.append(ruler.epsilon(g))
            certificate = certify(edges, found, random_state=0)
            emit(
                {
                    "bench": "cluster",
                    "case": "quality",
                    "family": name,
                    "split_every": split_every,
                    "seeds": options.seeds,
                    "epsilon_cluster": float(np.mean(merged)),
                    "epsilon_stream": float(np.mean(single)),
                    "cluster_over_stream": float(np.mean(merged) / np.mean(single)),
                    "rows_cluster": float(np.mean([pair[0] for pair in rows])),
                    "rows_stream": float(np.mean([pair[1] for pair in rows])),
                    "last_certified": certificate.epsilon,
                    "last_exact": merged[-1],
                }
            )


if __name__ == "__main__":
    main()
