"""Speed of reading remote files beside that of the same files on this machine.

``python -m benchmarks.remote`` writes CSV and Parquet files, serves them by moto's S3 server and by
a web server that knows ranges, each in a process of its own, and reads them in turn. It prints one
JSON line per format and place: seconds of the fastest of some readings, MB per second, and the
speed relative to the files on this machine. ``--latency`` lets the web server wait before each
answer, as a distant one would. For each request, moto copies the whole file, however few bytes are
asked for; with ``--parts 1`` its own speed is what is measured. Needs moto[server].
"""

from __future__ import annotations

import argparse
import http.server
import multiprocessing
import os
import re
import socketserver
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from benchmarks.measure import emit
from ohmlearn import read_edges

BUCKET = "ohmlearn"
MB = 1e6


def make_files(folder: Path, n_edges: int, n_parts: int) -> dict[str, list[Path]]:
    """Write edges with a column that is not read; return the files by format."""
    random = np.random.default_rng(0)
    ids = np.array([f"user-{number:07d}" for number in range(200_000)])
    paths: dict[str, list[Path]] = {"csv": [], "parquet": []}
    for part in range(n_parts):
        size = n_edges // n_parts
        columns = {name: ids[random.integers(0, len(ids), size)] for name in ("src", "dst", "note")}
        table = pa.table({**columns, "weight": random.random(size).round(4)})
        for ending, found in paths.items():
            found.append(folder / f"part-{part:03d}.{ending}")
        pa.csv.write_csv(table, paths["csv"][-1])
        pa.parquet.write_table(table, paths["parquet"][-1], row_group_size=250_000)
    return paths


class RangeHandler(http.server.SimpleHTTPRequestHandler):
    """Sends parts of files, after a while."""

    protocol_version = "HTTP/1.1"
    latency = 0.0

    def do_GET(self) -> None:
        time.sleep(self.latency)
        path = Path(self.directory) / self.path.lstrip("/")
        size = path.stat().st_size
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        start, stop = (int(found[1]), min(int(found[2]) + 1, size)) if found else (0, size)
        self.send_response(206 if found else 200)
        self.send_header("Content-Length", str(stop - start))
        self.send_header("Content-Range", f"bytes {start}-{stop - 1}/{size}")
        self.end_headers()
        with path.open("rb") as file:
            os.sendfile(self.wfile.fileno(), file.fileno(), start, stop - start)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


def serve_files(folder: str, latency: float, port: Any) -> None:
    """Serve a folder by HTTP until the process ends."""

    class Handler(RangeHandler):
        def __init__(self, *args: Any) -> None:
            self.latency = latency
            super().__init__(*args, directory=folder)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        port.send(server.server_address[1])
        server.serve_forever()


def serve_bucket(paths: list[str], port: Any) -> None:
    """Serve files by moto until the process ends."""
    import logging

    import boto3
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    address = "http://{}:{}".format(*server.get_host_and_port())
    client = boto3.client("s3", endpoint_url=address)
    client.create_bucket(Bucket=BUCKET)
    for path in paths:
        client.upload_file(path, BUCKET, Path(path).name)
    port.send(address)
    time.sleep(3600)


def read(names: list[str]) -> tuple[float, int]:
    """Return the seconds that reading takes, and the number of edges."""
    start = time.perf_counter()
    stream = read_edges(names)
    n_edges = sum(len(batch.u) for batch in stream)
    return time.perf_counter() - start, n_edges


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edges", type=int, default=2_000_000)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--parts", type=int, default=8, help="files of each format")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    keys = {
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "b",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    os.environ.update(keys)
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        files = make_files(Path(folder), options.edges, options.parts)
        every = [str(path) for paths in files.values() for path in paths]
        ports = [context.Pipe() for _ in range(2)]
        servers = [
            context.Process(target=serve_files, args=(folder, options.latency, ports[0][1])),
            context.Process(target=serve_bucket, args=(every, ports[1][1])),
        ]
        for server in servers:
            server.start()
        try:
            http_port, endpoint = (port[0].recv() for port in ports)
            os.environ["AWS_ENDPOINT_URL"] = endpoint
            for ending, paths in files.items():
                places = {
                    "local": [str(path) for path in paths],
                    "s3": [f"s3://{BUCKET}/{path.name}" for path in paths],
                    "http": [f"http://127.0.0.1:{http_port}/{path.name}" for path in paths],
                }
                size = sum(path.stat().st_size for path in paths) / MB
                measure(ending, size, places, options)
        finally:
            for server in servers:
                server.terminate()
                server.join()


def measure(
    ending: str, size: float, places: dict[str, list[str]], options: argparse.Namespace
) -> None:
    """Read files from each place in turn, several times."""
    best: dict[str, float] = {}
    for _ in range(options.repeats):
        for place, names in places.items():
            seconds, n_edges = read(names)
            assert n_edges == options.edges, f"{names}: {n_edges} edges"
            best[place] = min(seconds, best.get(place, seconds))
            print(f"{ending} {place}: {seconds:.2f} s", file=sys.stderr)
    for place, seconds in best.items():
        figure: dict[str, Any] = {"suite": "remote", "format": ending, "place": place}
        figure |= {"mb": round(size, 1), "parts": options.parts, "wall_s": round(seconds, 3)}
        figure |= {"mb_per_s": round(size / seconds, 1)}
        figure |= {"of_local": round(best["local"] / seconds, 3)}
        emit(figure | ({"latency_s": options.latency} if place == "http" else {}))


if __name__ == "__main__":
    main()
