"""Send edges to ``ohmlearn serve`` over HTTP, and look labels up meanwhile.

``python -m benchmarks.serve`` prints one JSON line per figure. The server is a process of its own,
and so is each client; bodies are encoded before the clock starts. A batch counts when the server
has acknowledged it, that is, when it is on disk.

- ``ingest``: batches of 10,000 edges as Arrow, CSV and NDJSON, with integer and with string ids;
- ``lookup``: one label after the other, while edges arrive at half of the speed just measured and
  labels are computed again all the time;
- ``memory``: resident memory of the server after each tenth of many edges, when the labels reflect
  them.
"""

from __future__ import annotations

import argparse
import http.client
import io
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import emit

BATCH = 10_000
STEPS = 4  # how often the memory is looked at
GROUPS = 20  # of nodes; nine in ten edges are inside of one
N_BODIES = {"arrow": 500, "csv": 50, "ndjson": 50}  # different ones, sent in turn
TYPES = {
    "arrow": "application/vnd.apache.arrow.stream",
    "csv": "text/csv",
    "ndjson": "application/x-ndjson",
}
CASES = (
    ("arrow", "int64"),
    ("arrow", "string"),
    ("csv", "int64"),
    ("ndjson", "int64"),
    ("ndjson", "string"),
)


def main() -> None:
    """Run each case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", nargs="+", default=["ingest", "lookup", "memory"])
    parser.add_argument("--edges", type=float, default=2e7, help="of the ingest of Arrow")
    parser.add_argument("--text-edges", type=float, default=3e6, help="of that of text")
    parser.add_argument("--memory-edges", type=float, default=1e8)
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--connections", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=60.0, help="of the look-ups")
    parser.add_argument("--folder", help="where the files go; by default a temporary folder")
    options = parser.parse_args()
    rate = 1e6
    if "ingest" in options.cases:
        rate = measure_ingest(options)
    if "lookup" in options.cases:
        measure_lookups(options, rate / 2)
    if "memory" in options.cases:
        measure_memory(options)


def measure_ingest(options: argparse.Namespace) -> float:
    """Measure each form; return edges per second of the first one."""
    rates = []
    for form, ids in CASES:
        n_edges = int(options.edges if form == "arrow" else options.text_edges)
        with serving(options.folder) as server:
            spent = send(server, options, form, ids, n_edges)
            caught_up = server.wait_until_sampled()
            rates.append(n_edges / spent)
            emit(
                {
                    "bench": "serve", "case": "ingest", "form": form, "ids": ids,
                    "edges": n_edges, "nodes": options.nodes, "batch": BATCH,
                    "connections": options.connections, "wall_s": spent,
                    "edges_per_s": n_edges / spent, "sampled_after_s": caught_up,
                    "server_cpu_s": server.cpu_seconds(), "rss_mib": server.status()["memory_mib"],
                    "load": os.getloadavg()[0],
                }
            )  # fmt: skip
    return rates[0]


def measure_lookups(options: argparse.Namespace, rate: float) -> None:
    """Look labels up while edges arrive and labels are computed."""
    with serving(options.folder, "--answer-every", "0") as server:
        send(server, options, "arrow", "int64", 2_000_000)
        server.give_labels(options.nodes)
        results: Any = multiprocessing.Queue()
        reader = multiprocessing.Process(
            target=look_up, args=(server.port, options.nodes, options.seconds, results)
        )
        before = server.status()["answers"]["version"]
        reader.start()
        n_edges = int(rate * options.seconds) // BATCH * BATCH
        spent = send(server, options, "arrow", "int64", n_edges, rate)
        seconds = np.array(results.get(timeout=600))
        reader.join()
        emit(
            {
                "bench": "serve", "case": "lookup", "nodes": options.nodes,
                "lookups": len(seconds), "p50_ms": 1e3 * float(np.quantile(seconds, 0.5)),
                "p99_ms": 1e3 * float(np.quantile(seconds, 0.99)),
                "max_ms": 1e3 * float(seconds.max()), "edges_per_s": n_edges / spent,
                "answers": server.status()["answers"]["version"] - before,
                "recompute_s": server.status()["recompute_seconds"], "load": os.getloadavg()[0],
            }
        )  # fmt: skip


def measure_memory(options: argparse.Namespace) -> None:
    """Send many edges, and look at the memory of the server."""
    total, step = int(options.memory_edges), int(options.memory_edges) // STEPS
    with serving(options.folder) as server:
        server.give_labels(options.nodes)
        sent = 0
        while sent < total:
            spent = send(server, options, "arrow", "int64", step)
            sent += step
            server.wait_until_answered()
            status = server.status()
            emit(
                {
                    "bench": "serve", "case": "memory", "nodes": options.nodes, "edges": sent,
                    "rss_mib": status["memory_mib"], "peak_mib": server.peak_mib(),
                    "rows": status["rows"], "edges_per_s": step / spent,
                    "disk_mib": server.disk_mib(), "load": os.getloadavg()[0],
                }
            )  # fmt: skip


class Server:
    """A server in another process."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder = folder
        command = [sys.executable, "-m", "ohmlearn", "serve", str(folder), "--port", "0"]
        self.process = subprocess.Popen(
            [*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if "Listening on " in line:
                self.port = int(line.rstrip("/\n").rpartition(":")[2])
                break
        else:
            sys.exit("the server did not start")
        threading.Thread(target=self._drop_output, daemon=True).start()

    def _drop_output(self) -> None:
        assert self.process.stdout is not None
        for _ in self.process.stdout:
            pass

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Return the answer to one request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        content = None if body is None else json.dumps(body)
        connection.request(method, path, content, {"Content-Type": "application/json"})
        answer = json.loads(connection.getresponse().read())
        connection.close()
        return answer

    def status(self) -> Any:
        """Return the figures of the server."""
        return self.ask("GET", "/v1/status")

    def give_labels(self, n_nodes: int) -> None:
        """Give 100 labels of 5 classes."""
        nodes = np.random.default_rng(1).choice(n_nodes, 100, replace=False).tolist()
        rows = [{"node": node, "label": f"class {_group(node, n_nodes) % 5}"} for node in nodes]
        self.ask("POST", "/v1/labels", {"labels": rows})

    def wait_until_sampled(self) -> float:
        """Wait until the sampler has seen all edges; return the seconds that took."""
        start = time.perf_counter()
        while self.status()["unsampled_edges"] > 0:
            time.sleep(0.02)
        return time.perf_counter() - start

    def wait_until_answered(self) -> None:
        """Wait until the labels reflect all edges."""
        end = time.monotonic() + 300
        while self.status()["answers"]["lag_edges"] > 0 and time.monotonic() < end:
            time.sleep(0.1)

    def cpu_seconds(self) -> float:
        """Return the processor time so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def peak_mib(self) -> float:
        """Return the peak of the resident memory."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024

    def disk_mib(self) -> float:
        """Return the size of the folder."""
        return sum(path.stat().st_size for path in self.folder.rglob("*.*")) / 2**20


@contextmanager
def serving(parent: str | None, *arguments: str) -> Iterator[Server]:
    """Run a server with an empty folder."""
    with tempfile.TemporaryDirectory(dir=parent) as folder:
        server = Server(Path(folder) / "live", *arguments)
        try:
            yield server
        finally:
            server.process.terminate()
            try:
                server.process.wait(60)
            except subprocess.TimeoutExpired:
                server.process.kill()
                server.process.wait()


def _group(node: Any, n_nodes: int) -> Any:
    return node // (n_nodes // GROUPS)


def make_bodies(form: str, ids: str, n_nodes: int) -> list[bytes]:
    """Return batches of edges, encoded."""
    import pyarrow as pa
    from pyarrow import csv

    bodies = []
    size = n_nodes // GROUPS
    for seed in range(N_BODIES[form]):
        rng = np.random.default_rng(seed)
        u = rng.integers(0, n_nodes, BATCH)
        near = u // size * size + rng.integers(0, size, BATCH)
        v = np.where(rng.random(BATCH) < 0.9, near, rng.integers(0, n_nodes, BATCH)) % n_nodes
        columns: list[Any] = [u, v]
        if ids == "string":
            columns = [[f"user-{node:010d}" for node in column.tolist()] for column in columns]
        table = pa.table(columns, names=["u", "v"])
        if form == "ndjson":
            rows = (json.dumps(row, separators=(",", ":")) for row in table.to_pylist())
            bodies.append("\n".join(rows).encode())
            continue
        sink = io.BytesIO()
        if form == "csv":
            csv.write_csv(table, sink)
        else:
            with pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table)
        bodies.append(sink.getvalue())
    return bodies


def send(
    server: Server, options: argparse.Namespace, form: str, ids: str, n_edges: int,
    rate: float | None = None,
) -> float:  # fmt: skip
    """Send edges from another process; return the seconds until all are acknowledged."""
    results: Any = multiprocessing.Queue()
    arguments = (server.port, options, form, ids, n_edges // BATCH, rate, results)
    client = multiprocessing.Process(target=run_client, args=arguments)
    client.start()
    spent = results.get(timeout=600)
    client.join()
    return float(spent)


def run_client(
    port: int, options: argparse.Namespace, form: str, ids: str, n_batches: int,
    rate: float | None, results: Any,
) -> None:  # fmt: skip
    """Send batches over several connections, at most so many edges per second."""
    bodies = make_bodies(form, ids, options.nodes)
    numbers, guard = iter(range(n_batches)), threading.Lock()
    run = f"{os.getpid()}"
    start = time.perf_counter()

    def work() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        while True:
            with guard:
                number = next(numbers, None)
            if number is None:
                connection.close()
                return
            if rate is not None:
                time.sleep(max(0.0, start + number * BATCH / rate - time.perf_counter()))
            headers = {"Content-Type": TYPES[form], "Idempotency-Key": f"{run}-{number}"}
            while True:
                connection.request("POST", "/v1/edges", bodies[number % len(bodies)], headers)
                answer = connection.getresponse()
                answer.read()
                if answer.status == 200:
                    break
                assert answer.status == 429, answer.status
                time.sleep(float(answer.headers["Retry-After"]))

    threads = [threading.Thread(target=work) for _ in range(options.connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    results.put(time.perf_counter() - start)


def look_up(port: int, n_nodes: int, seconds: float, results: Any) -> None:
    """Ask for one label after the other, about a hundred per second."""
    rng = np.random.default_rng(2)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    end, spent = time.perf_counter() + seconds, []
    while time.perf_counter() < end:
        node = int(rng.integers(0, n_nodes))
        start = time.perf_counter()
        connection.request("GET", f"/v1/labels/{node}")
        answer = connection.getresponse()
        answer.read()
        spent.append(time.perf_counter() - start)
        assert answer.status in (200, 404), answer.status
        time.sleep(0.01)
    connection.close()
    results.put(spent)


if __name__ == "__main__":
    main()
