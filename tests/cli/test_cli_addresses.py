"""Addresses on the command line: edges and labels are read from there, and results written."""

import io

import numpy as np
import pytest
from commands import refuse, succeed
from servers import serve_bucket, serve_files

from ohmlearn.reading import SourceError, remote
from ohmlearn.report.write_table import write_table

pytest.importorskip("pyarrow")
pytestmark = pytest.mark.filterwarnings("ignore:.*labels are few for:UserWarning")


@pytest.fixture(scope="module")
def contents():
    ends = np.random.default_rng(0).integers(0, 60, (4000, 2))
    edges = "u,v\n" + "".join(f"{a},{b}\n" for a, b in ends)
    return {"e.csv": edges.encode(), "y.csv": b"node,label\n1,a\n2,b\n3,a\n4,b\n"}


@pytest.fixture
def files(contents, tmp_path):
    """The same files on this machine and, as bytes, for a server."""
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    return contents


@pytest.fixture(scope="module")
def bucket(contents):
    pytest.importorskip("moto.server")
    with pytest.MonkeyPatch.context() as patch, serve_bucket(patch, contents) as client:
        yield client


def test_edges_and_labels_from_a_server(files, tmp_path):
    outputs = tmp_path / "here.csv", tmp_path / "there.csv"
    with serve_files(files) as server:
        for folder, output in zip((tmp_path, server.address), outputs, strict=True):
            labels = f"{folder}/y.csv"
            args = ("--labels", labels, "--max-edges", 200, "-o", output)
            succeed("label", f"{folder}/e.csv", *args)
        assert outputs[0].read_bytes() == outputs[1].read_bytes()
        problem = f"there is no file {server.address}/z.txt"
        refuse("label", tmp_path / "e.csv", "--labels", f"{server.address}/z.txt", said=problem)


def test_results_are_written_to_s3(bucket, files, tmp_path):
    label = ("label", tmp_path / "e.csv", "--labels", tmp_path / "y.csv", "--max-edges", 200)
    commands = {
        "y.csv": label,
        "y.parquet": label,
        "y.arrow": label,
        "h.jsonl": ("sparsify", tmp_path / "e.csv", "--max-edges", 200),
        "h.ohm": ("sparsify", tmp_path / "e.csv", "--max-edges", 200),
    }
    for name, command in commands.items():
        for place in (f"{tmp_path}/here-{name}", f"s3://edges/out/{name}"):
            succeed(*command, "--seed", 1, "-o", place)
        written = bucket.get_object(Bucket="edges", Key=f"out/{name}")["Body"].read()
        assert written == (tmp_path / f"here-{name}").read_bytes()


@pytest.mark.parametrize(
    ("option", "address", "message"),
    [
        ("-o", "s3://nobody/y.csv", "there is no file s3://nobody/y.csv; check the name of bucket"),
        ("-o", "s3://edges/days", "s3://edges/days: the name must end in one of .parquet"),
        (
            "-o",
            "https://host/y.csv",
            "https://host/y.csv: web servers can be read, but not written",
        ),
        ("-o", "s3://edges/e.csv", "-o s3://edges/e.csv would overwrite what is read"),
        ("--state", "s3://edges/s.ohm", "--state s3://edges/s.ohm must be on this machine"),
    ],
)
def test_outputs_are_checked_before_the_work(bucket, option, address, message):
    refuse("label s3://edges/e.csv --labels s3://edges/y.csv", option, address, said=message)


def test_long_messages_of_libraries_are_cut_off_after_a_sentence(files, tmp_path, monkeypatch):
    said = "UNAVAILABLE: there is no access token. " * 20

    def fail(*_):
        raise OSError(said)

    monkeypatch.setattr(remote, "_resolve", fail)
    result = refuse("label gs://b/e.csv --labels", tmp_path / "y.csv")
    assert "gs://b/e.csv: " in result.stderr
    assert "check the name, your credentials and the network" in result.stderr
    quoted = result.stderr.rpartition(" (")[2].removesuffix(")\n")
    assert said.startswith(quoted + " ")
    assert quoted.endswith("token.")


def test_an_output_that_cannot_be_copied_is_not_left_half(monkeypatch):
    stored = pytest.importorskip("fsspec.implementations.memory")

    def lose(file, content):
        if file.tell() > 20:
            raise OSError("the network is gone")
        return io.BytesIO.write(file, content)

    monkeypatch.setattr(remote, "BLOCK", 10)
    monkeypatch.setattr(stored.MemoryFile, "write", lose, raising=False)
    with pytest.raises(SourceError, match=r"memory://t\.csv: cannot be written, .*network is gone"):
        write_table("memory://t.csv", {"node": np.arange(100)})
    assert not stored.MemoryFileSystem().exists("/t.csv")
