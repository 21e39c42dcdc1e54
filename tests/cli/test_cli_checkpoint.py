"""``ohmlearn label --checkpoint``: a run is resumed with the edges it has seen, or refused."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from python_labels import write_python_labels

from ohmlearn import StreamingSparsifier, read_edges, sparsify
from ohmlearn.cli import checkpoint, main, state_sources
from ohmlearn.cli.state_sources import some_rows
from ohmlearn.edges import Batch
from ohmlearn.reading import byte_blocks as byte_streams
from ohmlearn.report.progress import StatusLine

N_EDGES = 4000


def label(*args: object, **options: object) -> Result:
    return CliRunner().invoke(main, ["label", *map(str, args)], **options)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Edges with three possible ends and two possible weights, in blocks of about 100 rows."""
    monkeypatch.setattr(byte_streams, "BLOCK", 2000)
    rows = np.random.default_rng(0).integers(10, 90, (N_EDGES, 5)).tolist()
    edges, labels = tmp_path / "edges.csv", tmp_path / "labels.csv"
    lines = [",".join(map(str, row)) for row in rows]
    edges.write_text("\n".join(["src,dst,other,w,amount", *lines]) + "\n")
    labels.write_text("node,label\n10,red\n80,blue\n")
    return edges, labels


def interrupt_after(n_batches: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Press Ctrl-C in the middle of a batch: its first half has been seen."""
    add, count = StreamingSparsifier.add, iter(range(n_batches))

    def interrupted(self: StreamingSparsifier, batch: Batch, number: int) -> None:
        if next(count, None) is not None:
            add(self, batch, number)
            return
        add(self, some_rows(batch, 0, len(batch.u) // 2), number)
        raise KeyboardInterrupt

    monkeypatch.setattr(StreamingSparsifier, "add", interrupted)


def save(files: tuple[Path, Path], *args: object, n_batches: int = 10) -> Path:
    """Leave a checkpoint behind."""
    edges, labels = files
    kept = edges.parent / "run.ohm"
    with pytest.MonkeyPatch.context() as patch:
        interrupt_after(n_batches, patch)
        result = label(edges, "--labels", labels, "--checkpoint", kept, *args)
    assert result.exit_code == 130, result.output
    assert 0 < StreamingSparsifier.load(kept).n_edges_seen_ < N_EDGES
    return kept


def test_an_interrupted_run_ends_as_if_it_had_not_been(files: tuple[Path, Path], tmp_path: Path):
    edges, labels = files
    whole, out, kept = tmp_path / "whole.csv", tmp_path / "out.csv", tmp_path / "run.ohm"
    common = [edges, "--labels", labels, "--max-edges", 200, "--checkpoint-every", 0]
    assert label(*common, "-o", whole).exit_code == 0
    seen = []
    for n_batches in (0, 3, 1, 40):
        with pytest.MonkeyPatch.context() as patch:
            interrupt_after(n_batches, patch)
            result = label(*common, "-o", out, "--checkpoint", kept)
        if result.exit_code == 0:
            break
        assert "Interrupted after" in result.stderr
        seen.append(StreamingSparsifier.load(kept).n_edges_seen_)
    assert len(seen) >= 3
    assert seen == sorted(set(seen))
    result = label(*common, "-o", out, "--checkpoint", kept)
    assert result.exit_code == 0, result.output
    assert out.read_bytes() == whole.read_bytes()
    assert not kept.exists()


LABELS = {
    "few": "node,label\n10,red\n80,blue\n",
    "many": "node,label\n" + "".join(f"{i},{i % 3}\n" for i in range(89, 40, -1)),
    "in no edge": "node,label\n7777,green\n80,blue\n-5,red\n10,red\n",
}


@pytest.mark.filterwarnings("ignore:2 of the 4 labelled nodes are in no edge")
@pytest.mark.parametrize("kind", LABELS)
def test_after_the_first_pass_labels_can_be_replaced(
    files: tuple[Path, Path], tmp_path: Path, kind: str
):
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    edges, labels = files
    kept, out, python = tmp_path / "run.ohm", tmp_path / "out.csv", tmp_path / "python.csv"
    args = [edges, "--max-edges", 200, "--seed", 4, "--checkpoint", kept, "-o", out, "--json"]
    labels.write_text(LABELS[kind])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ohmlearn.estimators.problem.refine", interrupt)
        assert label(*args, "--labels", labels).exit_code == 130
    found = StreamingSparsifier.load(kept).snapshot().edges()
    h = sparsify(read_edges(edges), max_edges=200, random_state=4)
    assert h.n_edges < N_EDGES / 10
    for here, there in zip(found, h.edges(), strict=True):
        np.testing.assert_array_equal(here, there)

    content = kept.read_bytes()
    for text in LABELS.values():
        kept.write_bytes(content)
        labels.write_text(text)
        result = label(*args, "--labels", labels)
        assert result.exit_code == 0, result.output
        assert "Continuing from" in result.stderr
        assert json.loads(result.stderr.splitlines()[-1])["n_edges_kept"] == h.n_edges
        write_python_labels(python, edges, labels, max_edges=200, random_state=4)
        assert out.read_bytes() == python.read_bytes()


def test_each_pass_of_a_resumed_run_reads_all_edges_and_shows_it(
    files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    edges, labels = files
    out, python = tmp_path / "out.csv", tmp_path / "python.csv"
    options = ["--max-edges", 200, "--passes", 3]
    kept = save(files, *options)
    n_seen = StreamingSparsifier.load(kept).n_edges_seen_
    shown: list[tuple[int, int | None]] = []

    def show(_: object, n_edges: int, fraction: float, sparsifier: object) -> None:
        assert 0.0 <= fraction <= 1.0
        rows = None if sparsifier is None else sparsifier.n_edges_seen_
        shown.append((n_edges, rows))

    monkeypatch.setattr(StatusLine, "read", show)
    args = [edges, "--labels", labels, "--checkpoint", kept, "-o", out, "--json"]
    result = label(*args, *options)
    assert result.exit_code == 0, result.output
    summary = json.loads(result.stderr.splitlines()[-1])
    assert summary["passes"] == 3
    assert summary["n_edges_seen"] + summary["n_self_loops_dropped"] == N_EDGES

    ends = [at for at, (n_edges, _) in enumerate(shown) if n_edges == N_EDGES]
    assert len(ends) == 3
    first, *later = shown[: ends[0] + 1], shown[ends[0] + 1 : ends[1] + 1], shown[ends[1] + 1 :]
    n_skipped = len(later[0]) - len(first)
    assert n_skipped == 10  # batches; in the eleventh one Ctrl-C was pressed
    assert n_seen < first[0][1]
    assert first[-1][1] == summary["n_edges_seen"]
    for reading in later:
        same = [n_edges for n_edges, _ in reading][n_skipped:]
        assert same == [n_edges for n_edges, _ in first]
        assert {rows for _, rows in reading} == {None}

    write_python_labels(python, edges, labels, max_edges=200, passes=3, random_state=0)
    assert out.read_bytes() == python.read_bytes()


@pytest.mark.parametrize(
    ("option", "before", "now"),
    [
        ("--source-col", "src", "other"),
        ("--target-col", "dst", "other"),
        ("--weight-col", "w", "amount"),
        ("--on-bad", "raise", "skip"),
        ("--delimiter", None, ","),
        ("--comment", None, "#"),
        ("--id-type", None, "string"),
        ("--format", None, "tsv"),
    ],
)
def test_other_ways_to_read_are_refused(
    files: tuple[Path, Path], option: str, before: str | None, now: str
):
    edges, labels = files
    kept = save(files, *([] if before is None else [option, before]))
    content = kept.read_bytes()
    result = label(edges, "--labels", labels, "--checkpoint", kept, option, now)
    assert result.exit_code == 2
    expected = f"{kept} was saved with {option} {before}, but this command has {now}"
    if option == "--format":  # cannot even be opened
        expected = "edges.csv: an edge needs two columns"
    assert expected in result.stderr
    assert kept.read_bytes() == content
    result = label(
        edges, "--labels", labels, "--checkpoint", kept, *([option, before] if before else [])
    )
    assert result.exit_code == 0, result.output


def test_a_header_that_was_no_header_is_refused(files: tuple[Path, Path]):
    edges, labels = files
    edges.write_text("10,80\n" * 3000)
    kept = save(files, n_batches=5)
    result = label(edges, "--labels", labels, "--checkpoint", kept, "--header")
    assert "was saved with --header None, but this command has True" in result.stderr


def changes(text: str) -> Iterator[tuple[str, str, str]]:
    lines = text.splitlines(keepends=True)
    end = lines[-1].replace(lines[-1][:2], "99", 1)
    yield "longer", text + "10,20,30,40,50\n", "was saved with edges.csv of 60,023 bytes, but"
    yield "at the end", "".join([*lines[:-1], end]), "edges.csv has changed since"
    yield "the columns", text.replace("src,dst,other", "dst,src,other"), "edges.csv has changed"


def test_edited_files_are_refused(files: tuple[Path, Path]):
    edges, labels = files
    before = edges.read_text()
    for what, text, message in changes(before):
        edges.write_text(before)
        kept = save(files)
        edges.write_text(text)
        result = label(edges, "--labels", labels, "--checkpoint", kept)
        assert result.exit_code == 2, what
        assert message in result.stderr, what
        kept.unlink()


def test_an_edit_between_the_samples_is_found_by_its_time(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
):
    edges, labels = files
    monkeypatch.setattr(state_sources, "BLOCK", 8)
    kept = save(files)
    content, lines = kept.read_bytes(), edges.read_text().splitlines(keepends=True)
    lines[200], lines[201] = lines[201], lines[200]
    edges.write_text("".join(lines))
    result = label(edges, "--labels", labels, "--checkpoint", kept)
    assert result.exit_code == 2
    assert f"edges.csv has changed since {kept} was saved" in result.stderr
    assert kept.read_bytes() == content


def test_other_edges_from_a_pipe_are_refused(files: tuple[Path, Path], tmp_path: Path):
    edges, labels = files
    kept = tmp_path / "run.ohm"
    args = ["-", "--labels", labels, "--checkpoint", kept]
    with pytest.MonkeyPatch.context() as patch:
        interrupt_after(10, patch)
        assert label(*args, input=edges.read_bytes()).exit_code == 130
    lines = edges.read_text().splitlines(keepends=True)
    for other, message in (
        (["dst,src,other,w,amount\n", *lines[1:]], "has seen other edges: the first"),
        ([*lines[:900], *lines[901:]], "has seen other edges: the first"),
        (lines[:500], "edges, but there are only 499; use the same command"),
    ):
        result = label(*args, input="".join(other).encode())
        assert result.exit_code == 2
        assert message in result.stderr
    assert label(*args, input=edges.read_bytes()).exit_code == 0


def test_interrupted_on_the_way_to_where_it_was_the_file_stays(files: tuple[Path, Path]):
    edges, labels = files
    kept = save(files)
    content = kept.read_bytes()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint.Checkpoint, "_check_digest", interrupt)
        result = label(edges, "--labels", labels, "--checkpoint", kept)
    assert result.exit_code == 130
    assert kept.read_bytes() == content


FORMATS = ["edges.csv.gz", "edges.parquet", "edges.jsonl", "edges.arrow", "parts"]


def write_as(name: str, source: Path) -> Path:
    """Write edges in another format, with names as ids, and return their path."""
    pa = pytest.importorskip("pyarrow")
    path = source.parent / name
    rows = [line.split(",") for line in source.read_text().splitlines()[1:]]
    columns = {
        "src": [f"node {row[0]}" for row in rows],
        "dst": [f"node {row[1]}" for row in rows],
        "w": [int(row[3]) for row in rows],
    }
    table = pa.table(columns)
    lines = [f"{u},{v},{w}" for u, v, w in zip(*columns.values(), strict=True)]
    if name == "edges.csv.gz":
        path.write_bytes(gzip.compress("\n".join(["src,dst,w", *lines]).encode()))
    elif name == "edges.jsonl":
        path.write_text("\n".join(map(json.dumps, table.to_pylist())))
    elif name == "edges.arrow":
        feather = pytest.importorskip("pyarrow.feather")
        feather.write_feather(table, path, chunksize=100, compression="uncompressed")
    else:
        pq = pytest.importorskip("pyarrow.parquet")
        if name == "parts":
            path.mkdir()
            pq.write_table(table.slice(0, 700), path / "0.parquet", row_group_size=150)
            pq.write_table(table.slice(700), path / "1.parquet", row_group_size=300)
        else:
            pq.write_table(table, path, row_group_size=300)
    return path


@pytest.mark.parametrize("name", FORMATS)
def test_a_crashed_run_continues_from_its_last_save(
    name: str, files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    class Crash(BaseException):
        """Nothing is saved, as if the process was killed."""

    monkeypatch.setattr("ohmlearn.reading.parquet_reader.ROWS", 130)
    monkeypatch.setattr(checkpoint, "WORTH", 0.0)
    edges, labels = write_as(name, files[0]), files[1]
    labels.write_text("node,label\nnode 10,red\nnode 80,blue\n")
    whole, out, kept = tmp_path / "whole.csv", tmp_path / "out.csv", tmp_path / "run.ohm"
    common = [edges, "--labels", labels, "--max-edges", 200, "--checkpoint-every", 0]
    assert label(*common, "-o", whole).exit_code == 0
    add = StreamingSparsifier.add
    seen = [0]
    for n_batches in (1, 5, 9, 3):
        count = iter(range(n_batches))

        def crash(
            self: StreamingSparsifier, batch: tuple, number: int, count: Iterator[int] = count
        ) -> None:
            if next(count, None) is None:
                raise Crash
            add(self, batch, number)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(StreamingSparsifier, "add", crash)
            with pytest.raises(Crash):
                label(*common, "-o", out, "--checkpoint", kept)
        seen.append(StreamingSparsifier.load(kept).n_edges_seen_)
        assert seen[-1] > seen[-2]
    result = label(*common, "-o", out, "--checkpoint", kept)
    assert result.exit_code == 0, result.output
    assert out.read_bytes() == whole.read_bytes()


def test_saving_takes_a_small_share_of_the_time(
    files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    clock = {"now": 0.0, "saving": 0.0, "n_saves": 0.0}
    write, add = checkpoint.write_arrays, StreamingSparsifier.add

    def slow_write(path: Path, arrays: dict) -> None:
        clock["now"] += 0.2
        clock["saving"] += 0.2
        clock["n_saves"] += 1
        if clock["n_saves"] == 1:
            assert 2.0 < clock["now"] < 5.0  # from the first seconds on
        write(path, arrays)

    def slow_add(self: StreamingSparsifier, *args: object) -> None:
        clock["now"] += 2.0
        add(self, *args)

    monkeypatch.setattr(checkpoint, "write_arrays", slow_write)
    monkeypatch.setattr(StreamingSparsifier, "add", slow_add)
    monkeypatch.setattr(checkpoint.time, "perf_counter", lambda: clock["now"])
    edges, labels = files
    result = label(edges, "--labels", labels, "--checkpoint", tmp_path / "run.ohm", "--passes", 1)
    assert result.exit_code == 0, result.output
    assert clock["n_saves"] >= 3
    assert clock["saving"] < 0.05 * clock["now"]


def test_a_plain_sparsifier_is_no_checkpoint(files: tuple[Path, Path], tmp_path: Path):
    edges, labels = files
    kept = tmp_path / "h.ohm"
    StreamingSparsifier(epsilon=0.8, random_state=0).update([0], [1]).save(kept)
    result = label(edges, "--labels", labels, "--checkpoint", kept)
    assert result.exit_code == 2
    assert f"{kept} does not say which edges it has seen" in result.stderr
