"""Named pipes and process substitution: opened once, read once."""

import gzip
import json
import os
import subprocess
import sys
from contextlib import contextmanager

import pytest

from ohmlearn import HFSClassifier, read_edges, read_features
from ohmlearn.reading import SourceError

EDGES = "src,dst\n" + "".join(
    f"n{i},n{(7 * i + 3) % 50}\nn{i},n{(i + 1) % 50}\n" for i in range(50)
)
LABELS = "node,label\n" + "".join(f"n{i},{'ab'[i // 25]}\n" for i in range(0, 50, 5))
FEED = "import sys; open(sys.argv[1], 'wb').write(sys.stdin.buffer.read())"
LIMIT = 60  # seconds, after which a reader that waits for a second writer is killed

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes"),
]


@contextmanager
def fifo(path, content):
    """Yield a named pipe that another process feeds once."""
    os.mkfifo(path)
    content = content if isinstance(content, bytes) else content.encode()
    with subprocess.Popen([sys.executable, "-c", FEED, path], stdin=subprocess.PIPE) as feeder:
        try:
            feeder.stdin.write(content)
            feeder.stdin.close()
            yield path
        finally:
            feeder.kill()


def pairs(stream):
    rows = [(batch.u, batch.v) for batch in stream]
    ids = stream.nodes.ids()
    return [(ids[x], ids[y]) for u, v in rows for x, y in zip(u, v, strict=True)]


def run(script, folder, **files):
    """Run a command of the shell, in which $OHM is the command line."""
    for name, text in files.items():
        (folder / f"{name}.csv").write_text(text)
    how = {"capture_output": True, "text": True, "timeout": LIMIT, "cwd": folder}
    environment = {**os.environ, "OHM": f"{sys.executable} -m ohmlearn"}
    return subprocess.run(["bash", "-c", script], env=environment, **how)


@pytest.mark.timeout(LIMIT)
@pytest.mark.parametrize("form", ["csv", "gz", "jsonl", "text", "konect"])
def test_edges_from_a_named_pipe(tmp_path, form):
    rows = [line.split(",") for line in EDGES.split()[1:]]
    content = {
        "csv": EDGES,
        "gz": gzip.compress(EDGES.encode()),
        "jsonl": "".join(json.dumps({"src": u, "dst": v}) + "\n" for u, v in rows),
        "text": "".join(f"{u} {v}\n" for u, v in rows),
        "konect": "% sym unweighted\n" + "".join(f"{u} {v}\n" for u, v in rows),
    }[form]
    with fifo(tmp_path / "pipe", content) as path:
        stream = read_edges(path)
        assert not stream.rereadable
        assert pairs(stream) == [tuple(row) for row in rows]
        with pytest.raises(SourceError, match="pipe: can be read only once; write it to a file"):
            list(stream)


@pytest.mark.timeout(LIMIT)
def test_labels_and_features_from_named_pipes(tmp_path):
    edges = tmp_path / "e.csv"
    edges.write_text(EDGES)
    y = dict(line.split(",") for line in LABELS.split()[1:])
    expected = HFSClassifier(random_state=0).fit_edges(edges, y).transduction_
    with fifo(tmp_path / "labels", LABELS) as path:
        model = HFSClassifier(random_state=0).fit_edges(edges, path)
    assert model.transduction_.tolist() == expected.tolist()
    with fifo(tmp_path / "features", "node,age\nn1,30\nn2,40\n") as path:
        assert read_features(path).ids.tolist() == ["n1", "n2"]


@pytest.mark.timeout(3 * LIMIT)
def test_process_substitution_on_the_command_line(tmp_path):
    files = {"e": EDGES, "y": LABELS}
    expected = run("$OHM label e.csv --labels y.csv --passes 1 -q", tmp_path, **files)
    assert expected.returncode == 0, expected.stderr
    found = run("$OHM label <(cat e.csv) --labels <(cat y.csv) -q", tmp_path)
    assert (found.stdout, found.returncode) == (expected.stdout, 0)
    refused = run("$OHM label <(cat e.csv) --labels y.csv --passes 3 -q", tmp_path)
    assert "a pipe can be read only once: use --passes 1, or a file" in refused.stderr
    assert refused.returncode == 2
