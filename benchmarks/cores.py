"""Compare two threads with one, from the file to the result.

``python -m benchmarks.cores`` prints one JSON line per figure, and a table at the end. Figures
replace those of the same cases in ``benchmarks/results/cores.jsonl``:

- ``parquet``: Parquet to sparsifier, with int64 and with string ids, beside reading the file with
  pyarrow on one thread;
- ``paper``: update and snapshot of the paper's graph, with its edges in memory in row order;
- ``labels``: three passes of `HFSClassifier` over the Parquet files, with 4 classes and 20 labels
  of each;
- ``resample``: the snapshot of a sparsifier that is about to resample;
- ``large`` (with ``--large``): 2e8 edges among a million nodes on two threads, with a budget of 16
  rows per node, beside reading the file.

Each measurement runs in its own child process, one and two threads in turn; the round with the
least wall seconds counts. The suite fails if two results of a case differ in a bit.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import machine
from benchmarks.measure import (
    Figure,
    emit,
    peak_mib,
    reset_peak,
    run_child,
    timed,
    wait_for_idle,
)
from benchmarks.results import FOLDER, Results
from benchmarks.sparsifier import EPSILON as PAPER_EPSILON
from benchmarks.sparsifier import ROWS_PER_NODE
from benchmarks.stream_tables import cores_table

CASES = ("parquet", "paper", "labels", "resample")
BLOCKS, INSIDE = 20, 0.9  # planted blocks of nodes, and the share of edges inside them
CLASSES, LABELS = 4, 20  # neighbouring blocks make up a class; labels of each class
LARGE = (1_000_000, 200_000_000)
REPEATS = 3  # snapshots of a child
WARM = 1000  # nodes and edges of the file on which a child warms up


def write_edges(path: Path, n: int, m: int, ids: str) -> None:
    """Write random edges, most of them inside of blocks of neighbouring numbers."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    kind, names = pa.int64(), None
    if ids == "string":
        kind = pa.string()
        names = pa.array([f"user-{at * 2654435761 % 10**10:010d}" for at in range(n)])
    size = n // BLOCKS
    with parquet.ParquetWriter(path, pa.schema({"source": kind, "target": kind})) as writer:
        for first in range(0, m, 1 << 22):
            rows = min(1 << 22, m - first)
            u = rng.integers(0, n, rows)
            is_inside = rng.random(rows) < INSIDE
            near = u // size * size + rng.integers(0, size, rows)
            v = np.where(is_inside, near, rng.integers(0, n, rows)) % n
            columns = [pa.array(end) if names is None else names.take(end) for end in (u, v)]
            table = pa.table(columns, names=["source", "target"])
            writer.write_table(table, row_group_size=1 << 20)


def blocks_file(folder: Path, n: int, m: int, ids: str) -> Path:
    """Return the file of edges, which is written only if the folder does not have it."""
    path = folder / f"{ids[0]}{n}_{m}.parquet"
    return _made(path, partial(write_edges, n=n, m=m, ids=ids))


def paper_file(folder: Path, neighbours: int) -> Path:
    """Return the file of the paper's graph: an array with both ends of all edges, in row order."""
    from ohmlearn import gallery

    def write(path: Path) -> None:
        u, v, _ = gallery.paper_knn(neighbours).edges()
        with path.open("wb") as file:
            np.save(file, np.stack([u, v]))

    return _made(folder / f"paper_{neighbours}.npy", write)


def full_file(folder: Path, path: Path, n: int, epsilon: float) -> Path:
    """Save a sparsifier as it is before the last resample in a pass over a file.

    It is not kept for later runs, because it may depend on the version of ohmlearn.
    """
    from ohmlearn import StreamingSparsifier, read_edges

    def pieces() -> Iterator[tuple[Any, ...]]:
        for batch in read_edges(path):
            for first in range(0, len(batch[0]), n):
                yield tuple(x if x is None else x[first : first + n] for x in batch)

    def fill(count: int | None) -> tuple[StreamingSparsifier, int]:
        """Take in pieces; return also how many of them came before the last resample."""
        filled, before = StreamingSparsifier(epsilon=epsilon, random_state=0, n_jobs=2), 0
        for number, piece in enumerate(islice(pieces(), count)):
            resamples = filled.n_resamples_
            if filled.update(*piece).n_resamples_ > resamples:
                before = number
        return filled, before

    _, before = fill(None)
    filled, _ = fill(before or None)
    filled.save(folder / "full.ohm")
    return folder / "full.ohm"


def _made(path: Path, write: Callable[[Path], None]) -> Path:
    if not path.exists():
        print(f"writing {path}", file=sys.stderr, flush=True)
        part = path.with_suffix(".part")  # an interrupted run leaves no file that looks whole
        write(part)
        part.replace(path)
    return path


def _read(path: Path) -> int:
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        return sum(len(batch) for batch in file.iter_batches(1 << 20, use_threads=False))


def _sparsify(path: Path, threads: int, **target: Any) -> Any:
    from ohmlearn import StreamingSparsifier, read_edges

    sparsifier = StreamingSparsifier(random_state=0, n_jobs=threads, **target)
    return sparsifier.update(read_edges(path)).snapshot()


def _classes(ids: Any, n: int) -> Any:
    return np.minimum(ids // (n // BLOCKS), BLOCKS - 1) * CLASSES // BLOCKS


def _label(path: Path, n: int, threads: int, epsilon: float) -> Any:
    from ohmlearn import HFSClassifier, read_edges

    nodes = np.arange(CLASSES * LABELS) * n // (CLASSES * LABELS)
    known = dict(zip(nodes.tolist(), _classes(nodes, n).tolist(), strict=True))
    model = HFSClassifier(passes=3, epsilon=epsilon, random_state=0, n_jobs=threads)
    return model.fit_edges(read_edges(path), known)


def _hash(*arrays: Any) -> str:
    found = hashlib.sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(array))
    return found.hexdigest()[:16]


def _child(options: argparse.Namespace) -> None:
    import pyarrow as pa

    from ohmlearn import StreamingSparsifier

    case, path, n, threads = options.child, options.path, int(options.nodes[0]), options.threads
    epsilon = {"epsilon": options.epsilon}
    pa.set_cpu_count(threads)
    with tempfile.TemporaryDirectory() as folder:  # imports and first calls are not measured
        warm = blocks_file(Path(folder), WARM, WARM, options.ids)
        _read(warm)
        _sparsify(warm, threads, **epsilon)
        if case == "labels":
            _label(warm, WARM, threads, options.epsilon)
    works: list[Callable[[], Any]]
    facts: Figure = {}
    if case == "read":
        works = [partial(_read, path)]
    elif case == "labels":
        works = [partial(_label, path, n, threads, options.epsilon)]
    elif case == "paper":
        u, v = np.load(path)
        how: Figure = {"epsilon": PAPER_EPSILON, "random_state": 0, "n_jobs": threads}
        works = [lambda: StreamingSparsifier(n_nodes=n, **how).update(u, v).snapshot()]
    elif case == "resample":
        full = StreamingSparsifier.load(path)
        facts = {"rows_before": full.n_rows_, "resamples": full.n_resamples_}
        works = [full.copy(n_jobs=threads).snapshot for _ in range(REPEATS)]
    else:
        target = {"max_edges": ROWS_PER_NODE * n} if case == "large" else epsilon
        works = [partial(_sparsify, path, threads, **target)]
    reset_peak()
    result, cpu, wall = min((timed(work) for work in works), key=lambda found: found[2])
    figure = {"wall_s": wall, "cpu_s": cpu, "rss_peak_mib": peak_mib(), **facts}
    if case == "read":
        figure["hash"] = f"{result} rows"
    elif case == "labels":
        ids, labels = result.sparsifier_.nodes.ids(), result.transduction_
        figure["accuracy"] = float(np.mean(labels == _classes(ids, n)))
        figure["hash"] = _hash(ids, labels, result.label_distributions_)
    else:
        figure["rows"] = result.n_edges
        figure["hash"] = _hash(result.indptr, result.indices, result.weights)
    emit(figure)


def measure(case: Figure, path: Path, runs: list[tuple[str, int]], options: Any) -> list[Figure]:
    """Run all pairs of work and number of threads in turn; return the best round of each."""
    best: dict[tuple[str, int], Figure] = {}
    hashes: dict[str, set[str]] = {}
    for run in runs * options.rounds:
        work, threads = run
        print(*case.values(), *run, file=sys.stderr, flush=True)
        arguments = [f"--child={work}", f"--path={path}", f"--nodes={case['nodes']}"]
        arguments += [f"--ids={case['ids']}", f"--threads={threads}"]
        arguments += [f"--epsilon={options.epsilon}"]
        figure: Figure = {**case, "work": work, "threads": threads, "rounds": options.rounds}
        wait_for_idle(options.patience)
        for part in run_child("benchmarks.cores", arguments, options.limit, threads):
            figure |= part
        if figure.pop("end") != "ok":
            raise RuntimeError(f"{case}, {work} on {threads} thread(s): {figure['note']}")
        figure["load"] = round(os.getloadavg()[0], 2)
        del figure["note"]
        hashes.setdefault(work, set()).add(figure["hash"])
        if len(hashes[work]) > 1:
            raise RuntimeError(f"{case}, {work}: runs differ: {sorted(hashes[work])}")
        best[run] = min(best.get(run, figure), figure, key=lambda found: found["wall_s"])
    for figure in best.values():
        emit(figure)
    return list(best.values())


def run_case(case: str, folder: Path, options: argparse.Namespace) -> Iterator[Figure]:
    """Make the files of a case and yield its figures."""
    sizes = [(int(n), int(options.edges)) for n in options.nodes]
    sizes = {"large": [LARGE], "paper": [(12_100, 0)], "resample": sizes[-1:]}.get(case, sizes)
    for n, m in sizes:
        for ids in ("int64", "string") if case == "parquet" else ("int64",):
            runs = [(case, 1), (case, 2)]
            if case == "paper":
                path = paper_file(folder, options.neighbours)
                m = np.load(path, mmap_mode="r").shape[1]
            else:
                path = blocks_file(folder, n, m, ids)
            if case == "large":
                runs = [(case, 2)]
            if case in ("parquet", "large"):
                runs = [("read", 1), *runs]
            facts = {"bench": "cores", "case": case, "nodes": n, "edges": m, "ids": ids}
            with tempfile.TemporaryDirectory(dir=folder) as own:
                if case == "resample":
                    path = full_file(Path(own), path, n, options.epsilon)
                yield from measure(facts, path, runs, options)


def store(folder: Path, cases: list[str], figures: list[Figure]) -> None:
    """Write the figures, the earlier ones of other cases, and a description of the machine."""
    kept = [figure for figure in Results(folder).figures("cores") if figure["case"] not in cases]
    first = {"bench": "machine", "suite": "cores", "arguments": sys.argv[1:], **machine.describe()}
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(line) + "\n" for line in (first, *kept, *figures)]
    (folder / "cores.jsonl").write_text("".join(lines), encoding="utf-8")


def main() -> None:
    """Run the chosen cases, or one measurement in this process."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", nargs="*", choices=CASES, default=CASES)
    parser.add_argument("--large", action="store_true", help="with an empty --cases: only this")
    parser.add_argument("--nodes", nargs="+", type=float, default=[1e4, 1e5])
    parser.add_argument("--edges", type=float, default=1e8, help="in each file")
    parser.add_argument("--neighbours", type=int, default=4500, help="of the paper's graph")
    parser.add_argument("--epsilon", type=float, default=0.5, help="of parquet, labels, resample")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--patience", type=float, default=0.0, help="seconds to wait for idleness")
    parser.add_argument("--limit", type=float, default=600.0, help="CPU seconds for each child")
    parser.add_argument("--folder", type=Path, help="keeps the files; default: a temporary one")
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder for cores.jsonl")
    for name, kind in (("child", str), ("path", Path), ("ids", str), ("threads", int)):
        parser.add_argument(f"--{name}", type=kind, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        warnings.simplefilter("ignore")
        _child(options)
        return
    cases = [*options.cases, *(["large"] if options.large else [])]
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.folder or Path(temporary)).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        for case in cases:  # stored after each case, so that a later failure loses nothing
            store(options.out, [case], list(run_case(case, folder, options)))
    print(cores_table(Results(options.out)), file=sys.stderr)


if __name__ == "__main__":
    main()
