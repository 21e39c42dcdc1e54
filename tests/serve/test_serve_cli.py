"""``ohmlearn serve``: a process that is started, asked and stopped, and what it refuses."""

import io
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

pytest.importorskip("starlette")

from confluent_kafka import Producer
from pyarrow import csv
from serve_broker import Broker
from serve_cases import make_edges
from serve_http import JSON, WRITE, Client, StandIn, make_certificate, read_all, wait_for

from ohmlearn.cli import main
from ohmlearn.reading.table_reader import RawBatch
from ohmlearn.serve.http_logs import logs_to
from ohmlearn.serve.http_runner import Server, run
from ohmlearn.serve.service import Service
from ohmlearn.serve.settings import Settings

OHMLEARN = [sys.executable, "-m", "ohmlearn"]


def invoke(*args):
    return CliRunner().invoke(main, [str(arg) for arg in args])


class Process:
    """A running server; `errors` is what it has written to the standard error when it is done."""

    def __init__(self, running, address):
        self.running, self.address, self.errors = running, address, ""
        self.client = Client(int(re.search(r":(\d+)/", address)[1]))

    def stop(self, number=signal.SIGTERM):
        """Send a signal and return the exit code."""
        self.running.send_signal(number)
        _, self.errors = self.running.communicate(timeout=60)
        return self.running.returncode


@contextmanager
def started(*args):
    """Run ``ohmlearn serve`` on a free port."""
    command = [*OHMLEARN, "serve", *(str(arg) for arg in args), "--port", "0"]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        line = running.stdout.readline()
        assert line.startswith("Listening on "), running.communicate(timeout=30)
        yield Process(running, line.split()[-1])
    finally:
        if running.poll() is None:
            running.kill()
        with suppress(ValueError):  # its output has been read
            running.communicate(timeout=30)


@pytest.mark.slow
def test_a_folder_is_served_stopped_and_served_again(tmp_path):
    folder = tmp_path / "live"
    with started(folder, "--half-life", "7d", "--log-format", "json") as one:
        assert one.address.startswith("http://127.0.0.1:")
        client = one.client
        assert client.get("/readyz").json == {"ready": True}
        assert client.post_csv("/v1/edges?batch_id=1", "u,v\na,b\nb,c\n").json["n_edges"] == 2
        client.post_json("/v1/labels", {"labels": [{"node": "a", "label": "x"}]})
        # In use, it can be checked and copied.
        checked = invoke("serve", folder, "--check")
        assert (checked.exit_code, "Edges        2\n" in checked.stdout) == (0, True)
        copied = invoke("serve", folder, "--backup", tmp_path / "copy")
        assert copied.exit_code == 0
        assert "the copy is whole" in copied.stderr
        second = invoke("serve", folder, "--port", 0)
        assert second.exit_code in (1, 2)
        assert second.stderr.startswith("Error: ")
        assert len(second.stderr.splitlines()) == 1
        assert one.stop() == 0
    events = [json.loads(line) for line in one.errors.splitlines()]
    names = [event["event"] for event in events if event["logger"] == "ohmlearn.serve.http_runner"]
    assert names == ["listening", "ready", "stopping", "stopped"]
    assert {"at", "level", "event", "logger"} <= events[0].keys()
    with started(tmp_path / "copy", "--log-format", "text") as two:
        status = two.client.get("/v1/status").json
        assert (status["edges"], status["half_life"]) == (2, "7d")
        again = two.client.post_csv("/v1/edges?batch_id=1", "u,v\na,b\nb,c\n").json
        assert again["repeated"]
        assert two.stop(signal.SIGINT) == 0
    assert re.search(r"^\S+ info    stopped ", two.errors, re.M)
    checked = invoke("serve", folder, "--check")
    assert (checked.exit_code, "Edges        2\n" in checked.stdout) == (0, True)
    other = invoke("serve", folder, "--half-life", "8d", "--port", "0")
    assert other.exit_code == 2
    assert "was made with --half-life 7d, got '8d'" in other.stderr


@pytest.mark.slow
def test_accepted_requests_are_finished_and_a_second_signal_ends_at_once(tmp_path):
    with started(tmp_path / "live") as process:
        with process.client.connect() as raw:
            head = b"POST /v1/edges HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/csv\r\n"
            raw.sendall(head + b"Content-Length: 8\r\n\r\nu,v\n")
            time.sleep(0.3)  # the body is being read
            process.running.send_signal(signal.SIGTERM)
            raw.sendall(b"a,b\n")
            assert read_all(raw).startswith(b"HTTP/1.1 200 ")
        _, errors = process.running.communicate(timeout=60)
        assert (process.running.returncode, "a request failed" in errors) == (0, False)
    with started(tmp_path / "live") as process, process.client.connect() as raw:
        raw.sendall(head + b"Content-Length: 8\r\n\r\nu,v\n")  # holds the first one up
        time.sleep(0.3)
        process.running.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        assert process.stop() == 128 + signal.SIGTERM
    assert "Edges        1\n" in invoke("serve", tmp_path / "live", "--check").stdout


@pytest.mark.slow
def test_tokens_and_tls(tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text(f"write {WRITE}\n")
    tokens.chmod(0o644)
    certfile, keyfile = make_certificate(tmp_path)
    certificate = ("--ssl-certfile", certfile, "--ssl-keyfile", keyfile)
    with started(tmp_path / "live", "--host", "0.0.0.0", "--token-file", tokens, *certificate) as p:
        assert p.address.startswith("https://0.0.0.0:")
        context = ssl.create_default_context(cafile=certfile)
        for token, status in ((WRITE, b" 200 "), ("no", b" 401 ")):
            raw = socket.create_connection(("127.0.0.1", p.client.port), timeout=30)
            with context.wrap_socket(raw, server_hostname="localhost") as packed:
                packed.sendall(
                    f"GET /v1/status HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n"
                    f"Authorization: Bearer {token}\r\n\r\n".encode()
                )
                assert status in packed.recv(100)
        assert p.stop() == 0
    assert f"Warning: other users can read {tokens}; use: chmod 600 {tokens}" in p.errors
    assert WRITE not in p.errors
    wrong = invoke("serve", tmp_path / "live", "--ssl-certfile", tokens, "--port", 0)
    assert wrong.exit_code == 2
    assert "and its key cannot be used" in wrong.stderr


@pytest.mark.slow
def test_the_demo_moves(tmp_path):
    with started("--demo", "--log-format", "json") as process:
        end = time.monotonic() + 60
        while True:
            status = process.client.get("/v1/status").json
            if status["edges"] > 1000 and len(status["classes"]) == 4:
                break
            assert time.monotonic() < end, status
            time.sleep(0.2)
        assert process.stop() == 0
    assert "a request failed" not in process.errors


@pytest.mark.slow
def test_edges_from_kafka(tmp_path):
    with Broker() as broker:
        broker.topic("edges", 1)
        producer = Producer({"bootstrap.servers": broker.address})
        for at in range(20):
            producer.produce("edges", json.dumps({"u": at, "v": at + 1}).encode())
        assert producer.flush(30) == 0
        config = tmp_path / "kafka.properties"
        config.write_text("client.id = test\n")
        options = ("--kafka", broker.address, "--topic", "edges", "--kafka-config", config)
        with started(tmp_path / "live", *options) as process:
            wait_for(lambda: process.client.get("/v1/status").json["kafka"]["messages"] == 20, 60)
            status = process.client.get("/v1/status").json
            assert (status["edges"], status["kafka"]["topics"]) == (20, ["edges"])
            figures = process.client.get("/metrics").body.decode()
            assert "\nohmlearn_kafka_messages_total 20.0\n" in figures
            assert process.stop() == 0


USAGE = [
    ((), "give a FOLDER, or --demo"),
    (("F", "--demo"), "--demo has a folder of its own; leave out FOLDER"),
    (("F", "--check", "--backup", "G"), "--check, --backup and --demo exclude each other"),
    (("--demo", "--half-life", "7d"), "--demo has settings of its own; leave out --half-life"),
    (("F", "--topic", "edges"), "--topic needs --kafka"),
    (("F", "--kafka", "localhost:1"), "--kafka needs --topic"),
    (("F", "--kafka-group", "g"), "--kafka-group needs --kafka"),
    (("F", "--host", "0.0.0.0"), "--host 0.0.0.0 can be reached by other machines, which needs"),
    (("F", "--port", "70000"), "70000 is not in the range 0<=x<=65535"),
    (("F", "--half-life", "soon"), "--half-life must be a positive number"),
    (("F", "--half-life", "7d", "--horizon", "3d"), "--half-life 7d and --horizon 3d exclude"),
    (("F", "--certify-every", "often"), "--certify-every must be a positive number"),
    (("F", "--epsilon", "2"), "is not in the range"),
    (("F", "--token-file", "none"), "File 'none' does not exist"),
    (("F", "--token-file", "empty"), "empty has no token"),
    (("F", "--check"), "F is not the folder of a service"),
    (("F", "--backup", "G"), "F is not the folder of a service"),
    (("F", "--ssl-keyfile", "empty"), "--ssl-keyfile needs --ssl-certfile"),
    (
        ("F", "--ssl-certfile", "empty", "--port", 0),
        "--ssl-certfile empty and its key cannot be used",
    ),
    (("other",), "is not the folder of a service and has other files, such as a.txt"),
    (("F", "--features", "empty"), "empty: is empty"),
    (("F", "--features", "people.csv"), "in --read-features node=...; the columns are 'age'"),
    (("F", "--host", "no.such.host.invalid", "--token-file", "tokens"), "is not a name or address"),
]


@pytest.mark.parametrize(("args", "message"), USAGE)
def test_wrong_usage(tmp_path, monkeypatch, args, message):
    monkeypatch.chdir(tmp_path)
    Path("empty").write_text("")
    Path("empty").chmod(0o600)
    Path("tokens").write_text(f"read {WRITE}\n")
    Path("people.csv").write_text("age,city\n3,Rome\n")
    Path("tokens").chmod(0o600)
    Path("other").mkdir()
    Path("other/a.txt").write_text("")
    result = invoke("serve", *args)
    assert result.exit_code == 2
    assert message in result.stderr.replace("\n", " ")
    assert "Traceback" not in result.output
    assert "--features" not in args or not Path("F").exists()


def test_a_port_in_use(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = invoke("serve", tmp_path / "live", "--port", port)
    assert result.exit_code == 2
    assert f"cannot listen on --host 127.0.0.1, --port {port}: Address already in use" in (
        result.stderr
    )


def test_damage_is_found(tmp_path):
    service = Service(tmp_path / "live")
    service.start()
    service.submit(RawBatch(np.arange(1000), np.arange(1, 1001))).result()
    service.stop()
    assert invoke("serve", tmp_path / "live", "--check").exit_code == 0
    (file,) = (tmp_path / "live" / "log").glob("edges-*")
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0x55
    file.write_bytes(content)
    result = invoke("serve", tmp_path / "live", "--check")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"Error: {file}")


@pytest.mark.parametrize("content", [b"", b"other" * 2000, None])
def test_damage_of_the_database_is_named(tmp_path, content):
    folder = tmp_path / "live"
    service = Service(folder)
    service.start()
    service.submit(RawBatch(np.arange(10), np.arange(1, 11))).result()
    service.stop()
    file = folder / "service.sqlite"
    file.write_bytes(file.read_bytes()[:9000] if content is None else content)
    for args in (("--check",), ("--port", "0"), ("--backup", tmp_path / "copy")):
        result = invoke("serve", folder, *args)
        assert result.exit_code == 2
        assert f"{file} is" in result.stderr
        assert "restore it from a copy" in result.stderr


# The runner, in this process.


def test_an_error_while_starting_ends_the_server():
    service = StandIn()

    def fail():
        raise ValueError("Kafka refuses the password")

    stopped = []
    service.start, service.stop = lambda: None, lambda: stopped.append(True)
    with pytest.raises(ValueError, match="Kafka refuses"):
        run(service, port=0, when_started=fail, announce=print)
    assert stopped == [True]


def test_a_server_that_fails_ends():
    """It does not wait for ever for its own start."""
    service, stopped, raised = StandIn(), [], []
    service.start, service.stop = lambda: None, lambda: stopped.append(True)

    async def fail(*_, **__):
        raise OSError("no more files can be opened")

    def serve():
        with pytest.raises(OSError, match="no more files"):
            run(service, port=0, announce=print)
        raised.append(True)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Server, "startup", fail)
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        thread.join(30)
    assert (stopped, raised) == ([True], [True])


def test_the_server_answers_while_the_service_starts():
    service, go, addresses = StandIn(), threading.Event(), []
    service.ready = False

    def start():
        go.wait(30)
        service.ready = True

    service.start, service.stop = start, lambda: None
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    announced = threading.Event()

    def ask():
        client = Client(port)
        while True:
            try:
                addresses.append(client.get("/readyz").status)
                break
            except OSError:
                time.sleep(0.01)
        assert not announced.is_set()
        go.set()
        announced.wait(30)
        addresses.append(client.get("/readyz").status)
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=ask)
    thread.start()
    run(service, port=port, announce=lambda _: announced.set())
    thread.join()
    assert addresses == [503, 200]
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_logs_are_lines(capsys):
    import logging
    import warnings

    logger = logging.getLogger("ohmlearn.serve.test")
    for form in ("json", "text"):
        with logs_to(form):
            logger.info("a\nb", extra={"path": "x\x1b[31m\ny"})
            try:
                raise KeyError("k")
            except KeyError:
                logger.exception("failed")
            with warnings.catch_warnings():
                warnings.simplefilter("always")
                warnings.warn("rough\n  figures", stacklevel=1)
                warnings.warn("rough figures", stacklevel=1)
        lines = capsys.readouterr().err.splitlines()
        if form == "json":
            first, second, third = map(json.loads, lines)
            assert (first["event"], first["level"], first["path"]) == (
                "a\nb",
                "info",
                "x\x1b[31m\ny",
            )
            assert second["error"] == "KeyError: 'k'"
            assert "test_logs_are_lines" in second["traceback"]
            assert (third["event"], third["level"]) == ("rough figures", "warning")
        else:
            assert lines[2].startswith("    Traceback")
            assert lines[0].endswith(r" info    a\nb path=x\x1b[31m\ny")
            assert " error   failed error=KeyError: 'k'" in lines[1]
            assert lines[-1].endswith("warning rough figures")
    logger.info("nobody sees this")
    assert capsys.readouterr().err == ""


def test_an_error_cannot_forge_lines_of_the_log():
    import logging

    written = io.StringIO()
    with logs_to("text", written):
        try:
            raise ValueError("bad\n2026-01-01T00:00:00 info    all is well\x1b[2J\r")
        except ValueError:
            logging.getLogger("ohmlearn.serve.test").exception("failed")
    first, *others = written.getvalue().splitlines()
    assert " error   failed error=ValueError: bad\\n2026" in first
    assert "    2026-01-01T00:00:00 info    all is well\\x1b[2J" in others
    assert all(line.startswith("    ") for line in others)


# The same edges, labels and options give the answers of the command line.

OPTIONS = {
    "default": [],
    "method": ["--method", "restart", "--weight", "amount:log"],
    "prior": ["--class-prior", "group 0=.2,group 1=.3,group 2=.5", "--gamma", "0.05"],
    "rough": ["--class-prior", "labels", "--option", "prior_strength=rough"],
    "cmn": ["--option", "normalization=cmn", "--weight", "amount:sqrt"],
    "none": ["--option", "normalization=none", "--option", "calibration=none", "--weight", "none"],
    "sure": ["--min-probability", "0.985", "--epsilon", "0.9", "--seed", "3"],
}


def check_answers(found, expected):
    """Compare looked-up answers with the rows that `ohmlearn label` wrote, by node."""
    for row in found:
        other = expected[row["node"]]
        assert (row["label"] or "") == (other["label"] or ""), row
        for label, p in row["probabilities"].items():
            assert p == pytest.approx(other[f"probability_{label}"], abs=2e-4), row


@pytest.mark.slow
@pytest.mark.parametrize("name", OPTIONS)
def test_live_answers_are_those_of_the_command_line(tmp_path, name):
    u, v, amounts, _ = make_edges(4000, 200)
    options = OPTIONS[name]
    heading = "amount" if "--weight" in options else "weight"
    rows = zip(u.tolist(), v.tolist(), (100 * amounts).tolist(), strict=True)
    text = f"u,v,{heading}\n" + "".join(f"{a},{b},{w}\n" for a, b, w in rows)
    (tmp_path / "edges.csv").write_text(text)
    chosen = np.random.default_rng(1).choice(200, 40, replace=False).tolist()
    labels = [{"node": node, "label": f"group {node % 3}"} for node in chosen]
    lines = "".join(f"{one['node']},{one['label']}\n" for one in labels)
    (tmp_path / "labels.csv").write_text("node,label\n" + lines)
    files = ["--labels", tmp_path / "labels.csv", "-o", tmp_path / "out.csv", "--passes", "1"]
    done = invoke("label", tmp_path / "edges.csv", *files, *options)
    assert done.exit_code == 0, done.output
    expected = {row["node"]: row for row in csv.read_csv(tmp_path / "out.csv").to_pylist()}
    with started(tmp_path / "live", "--certify-every", "never", *options) as one:
        assert one.client.post_csv("/v1/edges", text).status == 200
        assert one.client.post_json("/v1/labels", {"labels": labels}).status == 200

        def is_done():
            mark = one.client.get("/v1/status").json["answers"]["watermark"]
            return mark["edges"] == 4000 and mark["labels_version"] > 0

        wait_for(is_done)
        body = json.dumps({"nodes": list(range(200))}).encode()
        found = one.client.ask("POST", "/v1/labels:lookup", body, JSON).json["results"]
    check_answers(found, expected)
    if name == "sure":
        assert all(row["abstained"] == expected[row["node"]]["abstained"] for row in found)
        assert any(row["abstained"] for row in found)


FEATURE_OPTIONS = {
    "logistic": [],
    "prior": ["--class-prior", "group 0=.2,group 1=.3,group 2=.5", "--gamma", "2", "--seed", "3"],
    "trees": ["--method", "hist-gradient-boosting", "--min-probability", "0.6"],
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "posts"), [("logistic", "some rows"), ("prior", "all rows"), ("trees", "nothing")]
)
def test_live_answers_with_features_are_those_of_the_command_line(tmp_path, name, posts):
    u, v, w, _ = make_edges(3000, 150)
    text = "u,v,weight\n" + "".join(f"{a},{b},{c}\n" for a, b, c in zip(u, v, w, strict=True))
    (tmp_path / "edges.csv").write_text(text)
    rng = np.random.default_rng(1)
    # Node 150 to 154 have no edge; some values are missing.
    nodes = rng.permutation(155).tolist()
    kinds = ["" if node % 7 == 0 else "xyz"[node % 3] for node in nodes]
    sizes = [f"{node % 3 + rng.normal():.3f}" for node in nodes]
    days = [f"2026-01-{1 + node % 28:02}" for node in nodes]
    rows = [",".join(map(str, row)) for row in zip(nodes, sizes, kinds, days, strict=True)]
    table = tmp_path / "features.csv"
    table.write_text("\n".join(["id,size,kind,since", *rows, ""]))
    chosen = [*sorted(rng.choice(150, 40, replace=False).tolist()), 152]
    labels = [{"node": node, "label": f"group {node % 3}"} for node in chosen]
    lines = "".join(f"{one['node']},{one['label']}\n" for one in labels)
    (tmp_path / "labels.csv").write_text("node,label\n" + lines)
    options = FEATURE_OPTIONS[name]
    files = ["--labels", tmp_path / "labels.csv", "-o", tmp_path / "out.csv", "--passes", "1"]
    done = invoke("label", tmp_path / "edges.csv", *files, "--features", table, *options)
    assert done.exit_code == 0, done.output
    expected = {row["node"]: row for row in csv.read_csv(tmp_path / "out.csv").to_pylist()}
    if posts == "some rows":  # in place of wrong ones
        wrong = [f"{row.split(',')[0]},0.5,x,2020-01-01" for row in rows[:50]]
        table.write_text("\n".join(["id,size,kind,since", *wrong, *rows[50:], ""]))
    options = options if posts == "all rows" else [*options, "--features", table]
    sent = {"nothing": 0, "some rows": 50, "all rows": 155}[posts]
    with started(tmp_path / "live", "--certify-every", "never", *options) as one:
        body = "\n".join(["id,size,kind,since", *rows[:sent], ""])
        if sent:
            assert one.client.post_csv("/v1/features", body).status == 200
        assert one.client.post_csv("/v1/edges", text).status == 200
        assert one.client.post_json("/v1/labels", {"labels": labels}).status == 200

        def is_done():
            status = one.client.get("/v1/status").json
            mark = status["answers"]["watermark"]
            is_last = mark["labels_version"] == status["labels_version"]
            return mark["edges"] == 3000 and is_last

        wait_for(is_done)
        status = one.client.get("/v1/status").json
        assert status["features"].keys() == {"features", "both", "graph"}
        assert status["accuracy"]["estimate"]["n_labels"] == 41
        body = json.dumps({"nodes": list(range(155))}).encode()
        found = one.client.ask("POST", "/v1/labels:lookup", body, JSON).json["results"]
    check_answers(found, expected)
    assert found[152]["given"]


def test_options_that_a_service_refuses(tmp_path):
    for wrong, words in (
        ({"model": {"method": "best"}}, "method of Settings must be"),
        ({"model": {"passes": 3}}, "model has 'passes'"),
        ({"weight": "amount:cap=0.9"}, "use log or sqrt"),
        ({"min_probability": 1.5}, "min_probability of Settings must"),
    ):
        with pytest.raises(ValueError, match=words):
            Settings(**wrong)
    Service(tmp_path / "s", Settings(weight="amount:log")).stop()
    service = Service(tmp_path / "s")
    assert service.weight.column == "amount"
    service.stop()
    with pytest.raises(ValueError, match="amount:log"):
        Service(tmp_path / "s", Settings(weight="amount"))
