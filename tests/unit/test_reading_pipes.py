"""Named pipes and process substitution: opened once, read once."""

import os
import subprocess
import sys
import threading

import pytest

from ohmlearn import HFSClassifier, read_edges, read_features
from ohmlearn.reading import SourceError

EDGES = "src,dst\n" + "".join(
    f"n{i},n{(7 * i + 3) % 50}\nn{i},n{(i + 1) % 50}\n" for i in range(50)
)
LABELS = "node,label\n" + "".join(f"n{i},{'ab'[i // 25]}\n" for i in range(0, 50, 5))
LIMIT = 60  # seconds, after which a reader that waits for a second writer is killed

pytestmark = [
    pytest.mark.timeout(LIMIT),
    pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes"),
]


def fifo(path, text):
    """Return a named pipe that a thread feeds once; it does not block the end of the test."""
    os.mkfifo(path)
    threading.Thread(target=path.write_text, args=(text,), daemon=True).start()
    return path


@pytest.mark.parametrize("form", ["text", "konect"])
def test_edges_from_a_named_pipe(tmp_path, form):
    """The formats with a heading are in contract/test_same_bytes.py."""
    rows = [tuple(line.split(",")) for line in EDGES.split()[1:]]
    head = {"text": "", "konect": "% sym unweighted\n"}[form]
    stream = read_edges(fifo(tmp_path / "pipe", head + "".join(f"{u} {v}\n" for u, v in rows)))
    assert not stream.rereadable
    (batch,) = stream
    ids = stream.nodes.ids
    assert list(zip(ids(batch.u), ids(batch.v), strict=True)) == rows
    with pytest.raises(SourceError, match="pipe: can be read only once; write it to a file"):
        list(stream)


def test_labels_and_features_from_named_pipes(tmp_path):
    edges = tmp_path / "e.csv"
    edges.write_text(EDGES)
    y = dict(line.split(",") for line in LABELS.split()[1:])
    expected = HFSClassifier(random_state=0).fit_edges(edges, y).transduction_
    labels = fifo(tmp_path / "labels", LABELS)
    model = HFSClassifier(random_state=0).fit_edges(edges, labels)
    assert model.transduction_.tolist() == expected.tolist()
    features = fifo(tmp_path / "features", "node,age\nn1,30\nn2,40\n")
    assert read_features(features).ids.tolist() == ["n1", "n2"]


@pytest.mark.slow
@pytest.mark.timeout(3 * LIMIT)
def test_process_substitution_on_the_command_line(tmp_path):
    (tmp_path / "e.csv").write_text(EDGES)
    (tmp_path / "y.csv").write_text(LABELS)

    def run(script):
        """Run a command of the shell, in which $OHM is the command line."""
        how = {"capture_output": True, "text": True, "timeout": LIMIT, "cwd": tmp_path}
        environment = {**os.environ, "OHM": f"{sys.executable} -m ohmlearn label"}
        return subprocess.run(["bash", "-c", script], env=environment, **how)

    expected = run("$OHM e.csv --labels y.csv --passes 1 -q")
    assert expected.returncode == 0, expected.stderr
    found = run("$OHM <(cat e.csv) --labels <(cat y.csv) -q")
    assert (found.stdout, found.returncode) == (expected.stdout, 0)
    refused = run("$OHM <(cat e.csv) --labels y.csv --passes 3 -q")
    assert "a pipe can be read only once: use --passes 1, or a file" in refused.stderr
    assert refused.returncode == 2
