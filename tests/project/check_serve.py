"""Kills ``ohmlearn serve`` again and again under load, for ``make check-serve``.

Clients send edges over HTTP without a pause, as Arrow and as JSON lines. Most of what was not
answered is sent again with the same batch id. Others remove edges and give labels. The server is
killed with SIGKILL at random moments, also while it starts, and started again with the same folder.
In the end

- every acknowledged edge is in the log once, and every other batch completely or not at all;
- the sparsifier has the bits of one that was never interrupted, if nothing was removed;
- given labels are the acknowledged ones, and computed labels are those of a batch run on the log.

There are two rounds with half of the kills each: one with a half-life, in which nothing is removed,
and one with a window, removals, and a log that is often compacted. Every other server is the plain
command. The rest save, forget and compact all the time, so that many are killed while they do.
"""

import argparse
import http.client
import io
import itertools
import json
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ohmlearn import EdgeLog, HFSClassifier, StreamingSparsifier
from ohmlearn.serve.service_folder import check_folder_contents

START = 1_700_000_000  # Unix time of the first batch; each batch is a second later
N_PEOPLE, N_GROUPS = 300, 3
MOST_ROWS = 5000  # of a batch
MAX_STALENESS = 0.3
WINDOW = 300  # seconds, and so batches
TYPES = {"arrow": "application/vnd.apache.arrow.stream", "ndjson": "application/x-ndjson"}
ROUNDS = {
    "half-life": ["--half-life", "1h", "--epsilon", "0.9"],
    "window": ["--horizon", str(WINDOW), "--epsilon", "0.9"],
}
BUSY_SERVER = """
import sys
from ohmlearn.serve import service, settings
service.EXPIRE_EVERY, service.MANY_RECORDS, service.MANY_DEAD = 0.1, 40, 10_000
settings.Settings.__init__.__kwdefaults__["checkpoint_seconds"] = 0.1
from ohmlearn.cli import main
main(sys.argv[1:])
"""


def edges_of(number: int) -> dict[str, Any]:
    """Return the edges of a batch. Each has a time of its own, by which it is found again."""
    rng = np.random.default_rng(number)
    size = int(min(MOST_ROWS, np.exp(rng.uniform(0, np.log(2 * MOST_ROWS)))))
    u = rng.integers(0, N_PEOPLE, size)
    near = rng.random(size) < 0.9
    v = np.where(near, u + N_GROUPS * rng.integers(1, 90, size), u + rng.integers(1, 299, size))
    names = np.array([f"person {n}" for n in range(N_PEOPLE)], dtype=object)
    a, b = names[u], names[v % N_PEOPLE]
    a[0], b[0] = f"left {number}", f"right {number}"  # the only edge between these two
    times = START + number + np.arange(size) / 8192
    return {"u": a, "v": b, "weight": rng.uniform(0.5, 2.0, size), "time": times}


def encode(form: str, columns: dict[str, Any]) -> bytes:
    """Return the body of a request."""
    if form == "arrow":
        table = pa.table({name: pa.array(column) for name, column in columns.items()})
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return sink.getvalue()
    rows = zip(*(list(column) for column in columns.values()), strict=True)
    return "\n".join(json.dumps(dict(zip(columns, row, strict=True))) for row in rows).encode()


class Server:
    """The command on one port, killed and started again."""

    def __init__(self, folder: Path, options: list[str], errors: Path) -> None:
        self.folder, self._options, self._errors = folder, options, errors
        self.process: subprocess.Popen[str] | None = None
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])

    def start(self, *, is_busy: bool = False) -> None:
        """Start the process; it may not listen yet."""
        command = [str(Path(sys.executable).with_name("ohmlearn"))]
        if is_busy:
            command = [sys.executable, "-c", BUSY_SERVER]
        command += ["serve", str(self.folder), "--port", str(self.port), "--answer-every", "0"]
        command += ["--certify-every", "1s"]
        with self._errors.open("a") as errors:
            self.process = subprocess.Popen(
                [*command, *self._options], stdout=subprocess.DEVNULL, stderr=errors, text=True
            )

    def wait_until_ready(self, seconds: float = 60.0) -> None:
        """Wait until edges are accepted."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                if self.ask("GET", "/readyz")[0] == 200:
                    return
            except OSError:
                pass
            assert self.process is not None
            assert self.process.poll() is None, self._errors.read_text()[-3000:]
            time.sleep(0.02)
        raise AssertionError(f"the server is not ready after {seconds:g} seconds")

    def kill(self) -> None:
        """Kill the process, as a crash would."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """Ask the process to end, and wait for it."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(60)
        assert status == 0, status

    def ask(
        self, method: str, path: str, body: bytes | None = None, kind: str = "application/json"
    ) -> tuple[int, Any]:
        """Send one request, and return the status and the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body, {"Content-Type": kind})
            reply = connection.getresponse()
            return reply.status, json.loads(reply.read())
        except http.client.HTTPException as error:
            raise ConnectionError(str(error)) from error
        finally:
            connection.close()


class Load:
    """Clients that send until they are told to stop, and what was acknowledged to them."""

    def __init__(self, server: Server, *, removes: bool) -> None:
        self._server, self._stopping = server, threading.Event()
        self._numbers = itertools.count()
        self.sent: set[int] = set()
        self.acknowledged: dict[int, dict[str, Any]] = {}
        self.asked_to_remove: set[int] = set()
        self.removed: set[int] = set()
        self.labels: dict[str, set[str]] = {}  # each node's last label, or several possible ones
        self.repeated = self.failed = 0
        self.faults: list[str] = []
        works = [self._send, self._send, self._send, self._label, self._label]
        works += [self._remove] * removes
        self._threads = [
            threading.Thread(target=self._work, args=(work, at)) for at, work in enumerate(works)
        ]

    def start(self) -> None:
        """Start all clients."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End all clients; what is being sent is not repeated any more."""
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        assert not self.faults, self.faults[:5]

    def _work(self, work: Any, seed: int) -> None:
        rng = random.Random(seed)
        try:
            while not self._stopping.is_set():
                work(rng, seed)
        except Exception as error:
            self.faults.append(f"{type(error).__name__}: {error}")

    def _until_answered(self, *request: Any) -> dict[str, Any] | None:
        """Repeat a request until it is answered with 200; None if it is given up before."""
        while not self._stopping.is_set():
            try:
                status, answer = self._server.ask(*request)
            except ConnectionRefusedError:
                status, answer = 0, {}
            except OSError:  # the server was killed; was the request done or not?
                status, answer = 0, {}
                if random.random() < 0.3:
                    return None
            if status == 200:
                return dict(answer)
            self.failed += 1
            if status not in (0, 429, 503):
                raise AssertionError(f"{request[:2]}: {status} {answer}")
            time.sleep(0.05)
        return None

    def _send(self, rng: random.Random, _: int) -> None:
        number = next(self._numbers)
        if self.acknowledged and rng.random() < 0.1:
            number = rng.choice(list(self.acknowledged))  # once more, although it is there
        form = rng.choice(list(TYPES))
        body = encode(form, edges_of(number))
        was_known = number in self.acknowledged
        self.sent.add(number)
        path = f"/v1/edges?batch_id=batch-{number}"
        answer = self._until_answered("POST", path, body, TYPES[form])
        if answer is None:
            return
        self.repeated += answer["repeated"]
        if was_known and not answer["repeated"]:
            self.faults.append(f"batch {number} was counted again: {answer}")
        if answer["n_edges"] != len(edges_of(number)["u"]) or answer["n_bad"]:
            self.faults.append(f"batch {number} was counted wrongly: {answer}")
        self.acknowledged[number] = answer

    def _remove(self, rng: random.Random, _: int) -> None:
        time.sleep(0.05)
        left = sorted(set(self.acknowledged) - self.removed)[-50:]
        chosen = rng.sample(left, min(len(left), 3))
        if not chosen:
            return
        self.asked_to_remove |= set(chosen)
        pairs = {"u": [f"left {n}" for n in chosen], "v": [f"right {n}" for n in chosen]}
        path = f"/v1/removals?batch_id=removal-{min(chosen)}-{rng.getrandbits(32)}"
        answer = self._until_answered("POST", path, encode("ndjson", pairs), TYPES["ndjson"])
        if answer is not None:
            self.removed |= set(chosen)
            if answer["n_removed"] + answer["n_missing"] != len(chosen):
                self.faults.append(f"removal of {chosen}: {answer}")

    def _label(self, rng: random.Random, seed: int) -> None:
        """Give a label, or delete one; each client has nodes of its own."""
        time.sleep(0.03)
        at = 2 * rng.randrange(10) + seed % 2
        node, before = f"person {at}", self.labels.get(f"person {at}", {""})
        label = rng.choice(["", f"group {at % N_GROUPS}", f"group {at % N_GROUPS}", "other"])
        self.labels[node] = before | {label}
        if label:
            rows = {"labels": [{"node": node, "label": label}]}
            answer = self._until_answered("POST", "/v1/labels", json.dumps(rows).encode())
        else:
            rows = {"nodes": [node]}
            answer = self._until_answered("DELETE", "/v1/labels", json.dumps(rows).encode())
        if answer is not None:
            self.labels[node] = {label}


def kill_again_and_again(server: Server, load: Load, kills: int, rng: random.Random) -> None:
    """Start and kill the server."""
    for at in range(kills):
        server.start(is_busy=at % 2 == 1)
        if rng.random() < 0.3:
            time.sleep(rng.uniform(0.0, 1.2))  # while it starts
        else:
            server.wait_until_ready()
            while not load.acknowledged and not load.faults:  # on a busy machine
                time.sleep(0.01)
            time.sleep(rng.uniform(0.0, 1.5))
        server.kill()
        if at % 10 == 9:
            check_folder_contents(server.folder)
            print(f"  {at + 1} kills, {len(load.acknowledged):,} batches", flush=True)
        assert not load.faults, load.faults[:5]


def read_columns(log: EdgeLog) -> list[Any]:
    """Return u, v, w and t of all live edges, in their order."""
    batches = list(log)
    return [np.concatenate([batch[at] for batch in batches]) for at in range(4)]


def check_edges(log: EdgeLog, columns: list[Any], load: Load, window: float) -> None:
    """Compare the edges in the log with those that were sent and acknowledged."""
    ids = np.array(log.nodes.ids(), dtype=object)
    found = dict(zip(columns[3].tolist(), range(len(columns[3])), strict=True))
    assert len(found) == len(columns[3]), "an edge is there twice"
    counts = Counter((columns[3] - START).astype(int).tolist())
    assert set(counts) <= load.sent
    oldest = columns[3].max() - window
    n_whole = 0
    for number in sorted(load.sent):
        sent = edges_of(number)
        counting = sent["time"] >= oldest
        rows = np.array([found.get(t, -1) for t in sent["time"].tolist()])
        # The first edge of a batch may be removed, and those before the window may be forgotten.
        must = counting.copy()
        if number in load.asked_to_remove:
            assert rows[0] < 0 or number not in load.removed, f"an edge of {number} came back"
            must[0] = False
        is_there = rows >= 0
        if number in load.acknowledged:
            assert is_there[must].all(), f"edges of batch {number} are lost"
        elif must.any():
            assert is_there[must].all() or not is_there.any(), f"batch {number} is there in part"
        n_whole += bool(is_there.any() and number not in load.acknowledged)
        at = rows[is_there]
        for name, column in zip("uv", columns[:2], strict=True):
            assert (ids[column[at]] == sent[name][is_there]).all(), number
        assert (columns[2][at] == sent["weight"][is_there]).all(), number
    print(f"  {len(columns[0]):,} edges in the log, {n_whole} batches without an answer are there")


def check_sparsifier(log: EdgeLog, columns: list[Any]) -> None:
    """Compare the sparsifier with one that has read all edges at once, bit for bit."""
    plain = StreamingSparsifier(epsilon=0.9, half_life="1h", random_state=0).update(*columns)
    for mine, theirs in zip(log.snapshot().edges(), plain.snapshot().edges(), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def read_labels(server: Server, log: EdgeLog, load: Load) -> tuple[Any, dict[str, str]]:
    """Return the server's answers for all nodes, when they are up to date, and the given labels."""
    rows = server.ask("GET", "/v1/labels?limit=10000")[1]["labels"]
    given = {row["node"]: row["label"] for row in rows}
    for node, possible in load.labels.items():
        assert given.get(node, "") in possible, (node, given.get(node), possible)
    for _ in range(600):
        status = server.ask("GET", "/v1/status")[1]
        reflected, staleness = status["answers"]["watermark"], status["answers"]["staleness"]
        is_new = all(reflected[name] == status[name] for name in ("operation", "labels_version"))
        if is_new and staleness <= MAX_STALENESS:
            break
        time.sleep(0.1)
    else:
        raise AssertionError(f"the answers do not catch up: {status['answers']}")
    ids = [str(node) for node in log.nodes.ids()]
    results = []
    for at in range(0, len(ids), 10_000):
        body = json.dumps({"nodes": ids[at : at + 10_000]}).encode()
        results += server.ask("POST", "/v1/labels:lookup", body)[1]["results"]
    return results, {node: given[node] for node in ids if node in given}


def compare(results: list[dict[str, Any]], edges: Any, given: Any, **forget: Any) -> None:
    """Compare answers of the server with those of an estimator."""
    model = HFSClassifier(epsilon=0.9, random_state=0, passes=1, **forget)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some nodes are not connected to labels
        model.fit_edges(edges, given)
        labels, reached = model.transduction_, model.reached_
        shares = model.label_distributions_.max(axis=1)
    for at, row in enumerate(results):
        assert row["reached"] == (at < len(labels) and reached[at]), row
        if row["reached"]:
            assert row["label"] == labels[at], (row, labels[at])
            assert abs(row["probability"] - shares[at]) < 1e-5, (row, shares[at])


def run_round(name: str, kills: int, seed: int, folder: Path) -> None:
    """Kill a server under load, then look at what it has left."""
    print(f"{name}: {kills} kills", flush=True)
    began, rng = time.monotonic(), random.Random(seed)
    errors = folder / f"{name}.stderr"
    server = Server(folder / name, ROUNDS[name], errors)
    load = Load(server, removes=name == "window")
    load.start()
    try:
        kill_again_and_again(server, load, kills, rng)
    finally:
        load.stop()
        if server.process is not None and server.process.poll() is None:
            server.kill()
    print(
        f"  {len(load.acknowledged):,} batches acknowledged, {len(load.sent):,} sent, "
        f"{load.repeated:,} repeated, {load.failed:,} requests failed, "
        f"{len(load.removed):,} removed edges, {len(load.labels)} labelled nodes"
    )
    said = errors.read_text()
    assert "Traceback" not in said, said[-5000:]
    check_folder_contents(server.folder)
    log = EdgeLog(server.folder / "log")
    columns = read_columns(log)
    check_edges(log, columns, load, float("inf") if name == "half-life" else WINDOW)
    if name == "half-life":
        check_sparsifier(log, columns)
    server.start()
    try:
        server.wait_until_ready()
        results, given = read_labels(server, log, load)
    finally:
        server.stop()
    if name == "half-life":
        codes = {at: given[row["node"]] for at, row in enumerate(results) if row["node"] in given}
        compare(results, [tuple(columns)], codes, half_life="1h")
        compare(results, EdgeLog(server.folder / "log"), given, half_life="1h")
    else:  # only the log itself has the sample that is left after removals
        compare(results, EdgeLog(server.folder / "log"), given, horizon=WINDOW)
    print(f"  as it should be, after {time.monotonic() - began:.0f} s", flush=True)


def main() -> None:
    """Run both rounds."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("kills", nargs="?", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0, help="of the moments of the kills")
    parser.add_argument("--folder", type=Path, help="where the files stay; else they are deleted")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        run_round("half-life", options.kills - options.kills // 2, options.seed, folder)
        if options.kills > 1:
            run_round("window", options.kills // 2, options.seed + 1, folder)


if __name__ == "__main__":
    main()
