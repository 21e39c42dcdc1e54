"""Servers for tests of remote files, on this machine: S3, and HTTP that loses connections."""

import http.server
import re
import threading
from contextlib import contextmanager

KEYS = {
    "AWS_ACCESS_KEY_ID": "key",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


@contextmanager
def serve_bucket(monkeypatch, files):
    """Serve files, as bytes by name, in the bucket "edges" of moto; yield a client of boto3."""
    import logging

    import boto3
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        address = "http://{}:{}".format(*server.get_host_and_port())
        for name, value in {**KEYS, "AWS_ENDPOINT_URL": address}.items():
            monkeypatch.setenv(name, value)
        client = boto3.client("s3")
        client.create_bucket(Bucket="edges")
        for name, content in files.items():
            client.put_object(Bucket="edges", Key=name, Body=content)
        yield client
        client.close()
    finally:
        server.stop()


class FileServer(http.server.ThreadingHTTPServer):
    """Serves bytes by name.

    Attributes
    ----------
    files : dict
    knows_ranges : bool
    drops : list of int
        Each number makes an answer end after so many bytes, as if the connection were lost.
    statuses : list of int
        Each number is the status of an answer without content.
    requests : list of (str, str)
        Names and ranges that were asked for.
    """

    daemon_threads = True
    request_queue_size = 128  # of 5, a reader of many parts is refused, and waits for a second

    def __init__(self, files):
        super().__init__(("127.0.0.1", 0), FileHandler)
        self.files = files
        self.knows_ranges = True
        self.says_length = True
        self.changed = None  # Last-Modified, if given
        self.drops, self.statuses, self.requests = [], [], []

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request, client_address):
        """Print nothing: readers may close a connection early."""


class FileHandler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        name = self.path.lstrip("/").partition("?")[0]
        asked = self.headers.get("Range", "")
        server.requests.append((name, asked))
        content = server.files.get(name)
        status = server.statuses.pop(0) if server.statuses else 404 if content is None else 200
        if status != 200:
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        found = re.fullmatch(r"bytes=(\d+)-(\d*)", asked) if server.knows_ranges else None
        size = len(content)
        if found and int(found[1]) >= size:
            self.send_response(416)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if found:
            start, stop = int(found[1]), min(size, int(found[2] or size) + 1)
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{stop - 1}/{size}")
        else:
            start, stop = 0, size
            self.send_response(200)
        if server.says_length:
            self.send_header("Content-Length", str(stop - start))
        if server.changed is not None:
            self.send_header("Last-Modified", server.changed)
        self.end_headers()
        if server.drops and stop - start > server.drops[0]:
            stop = start + server.drops.pop(0)
        self.wfile.write(content[start:stop])

    def log_message(self, *_):
        """Print nothing."""


@contextmanager
def serve_files(files):
    """Serve bytes by name by HTTP; yield the server."""
    with FileServer(files) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
