"""Events with ids: overlapping extracts count once, whatever the format, batches and threads."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from row_files import write_rows

from ohmlearn import HFSClassifier, StateFile, StreamingSparsifier, read_edges
from ohmlearn.cli import main
from ohmlearn.reading import SourceError, event_ids

Rows = list[tuple[Any, ...]]
NAMES = ("id", "src", "dst", "w", "time")


def make_rows(n_rows: int, start: int = 0, seed: int = 0) -> Rows:
    """Return events with ids from `start` on; those of one number are the same in each call."""
    rng = np.random.default_rng(seed)
    columns = rng.integers(0, 60, (2, 2000))
    return [
        (f"e{i}", f"n{columns[0, i]}", f"n{columns[1, i]}", 1 + i % 3, 1000.0 + i)
        for i in range(start, start + n_rows)
    ]


def write(path: Path, rows: Rows, names: tuple[str, ...] = NAMES) -> Path:
    return write_rows(path, dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)), 97)


def read_all(source: object, n_jobs: int = 1, **options: Any) -> tuple[list[Any], int]:
    stream = read_edges(source, **options)
    found = []
    for u, v, w, t in stream.batches(n_jobs):
        columns = (stream.nodes.ids(u), stream.nodes.ids(v), w, t)
        found += list(zip(*(x.tolist() for x in columns if x is not None), strict=True))
    return found, stream.n_repeated


def first_of_each(rows: Rows, most: int | None = None) -> Rows:
    seen: dict[Any, None] = {}
    found = []
    for row in rows:
        if row[0] not in seen:
            seen[row[0]] = None
            found.append(row[1:])
            if most is not None and len(seen) > most:
                del seen[next(iter(seen))]
    return found


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "arrow", "jsonl"])
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_a_repeated_event_counts_once(ending: str, n_jobs: int, tmp_path: Path):
    first = make_rows(500)
    second = [*make_rows(300, 400), *make_rows(5, 690)]
    files = [write(tmp_path / f"{k}.{ending}", rows) for k, rows in enumerate((first, second))]
    expected = first_of_each(first + second)
    found, n_repeated = read_all(files, n_jobs, event_id_col="id", time="time")
    assert found == expected
    assert n_repeated == 805 - len(expected) == 105
    stream = read_edges(files, event_id_col="id")
    passes = [sum(len(batch.u) for batch in stream) for _ in range(2)]
    assert passes == [700, 700]
    assert read_all(files, n_jobs, time="time")[1] == 0


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow", "jsonl"])
def test_an_empty_id_is_no_event(ending: str, tmp_path: Path):
    rows = [("", *row[1:]) if k in (3, 7) else row for k, row in enumerate(make_rows(20))]
    path = write(tmp_path / f"e.{ending}", rows)
    with pytest.raises(SourceError, match=r"row [45]: .*'id',? is (empty|missing)"):
        read_all(path, event_id_col="id", time="time")
    found, n_repeated = read_all(path, event_id_col="id", time="time", on_bad="skip")
    assert (found, n_repeated) == ([row[1:] for row in rows if row[0]], 0)


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_ends_of_repeated_events_are_no_nodes(n_jobs: int, tmp_path: Path):
    rows = [(i % 50, f"n{i % 7}" if i < 50 else f"other{i}", f"n{i % 11}") for i in range(90)]
    stream = read_edges(write(tmp_path / "e.csv", rows, NAMES[:3]), event_id_col="id")
    model = HFSClassifier(n_jobs=n_jobs).fit_edges(stream, {"n0": "a", "n5": "b"})
    assert len(model.nodes_) == len(model.transduction_) == 11


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_integers_are_ids_and_rows_that_do_not_count_are_not_remembered(
    ending: str, tmp_path: Path
):
    rows = [(i % 40, f"n{i}", f"n{i + 1}", 1 + i % 3, 5.0) for i in range(200)]
    path = write(tmp_path / f"e.{ending}", rows)
    expected = first_of_each([row for row in rows if row[3] > 1])
    found, n_repeated = read_all(path, event_id_col="id", time="time", where="w > 1")
    assert found == expected
    assert n_repeated == sum(row[3] > 1 for row in rows) - 40


def test_formats_have_the_same_hashes(tmp_path: Path):
    csv = write(tmp_path / "a.csv", [(i, *row[1:]) for i, row in enumerate(make_rows(50))])
    table = write(tmp_path / "b.parquet", [(i, *row[1:]) for i, row in enumerate(make_rows(60))])
    lines = write(tmp_path / "c.jsonl", [(str(i), *row[1:]) for i, row in enumerate(make_rows(70))])
    _, n_repeated = read_all([csv, table, lines], event_id_col="id")
    assert n_repeated == 110


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_a_missing_id_is_a_bad_row(ending: str, tmp_path: Path):
    rows = [
        (f"e{i}" if i != 7 else ("" if ending == "csv" else None), "a", f"b{i}") for i in range(9)
    ]
    path = write(tmp_path / f"e.{ending}", rows, NAMES[:3])
    with pytest.raises(SourceError, match=r"'id'.* is (empty|missing)"):
        read_all(path, event_id_col="id")
    stream = read_edges(path, event_id_col="id", on_bad="skip")
    assert sum(len(batch.u) for batch in stream) == 8
    assert (stream.n_bad, stream.n_repeated) == (1, 0)


def test_only_the_last_ids_are_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(event_ids, "MOST", 50)
    rows = [*make_rows(60), *make_rows(12), *make_rows(60, 20)]
    path = write(tmp_path / "e.csv", rows)
    assert read_all(path, event_id_col="id", time="time")[0] == first_of_each(rows, 50)


def test_frames_have_event_ids_and_arrays_have_not():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"id": [1, 2, 1], "u": ["a", "b", "a"], "v": ["b", "c", "b"]})
    assert read_all(frame, event_id_col="id") == ([("a", "b"), ("b", "c")], 1)
    with pytest.raises(SourceError, match="ids of events need a table with columns"):
        read_edges((np.array([0]), np.array([1])), event_id_col="id")
    with pytest.raises(SourceError, match="has no column 'key', only 'id', 'u', 'v'"):
        read_all(frame, event_id_col="key")
    with pytest.raises(SourceError, match="needs different columns, got 1 and 2, and 1 for the"):
        read_all(frame, event_id_col="u", source_col="u", target_col="v")


def label(*args: object) -> Any:
    return CliRunner().invoke(main, ["label", *map(str, args)])


def test_a_state_remembers_events(tmp_path: Path):
    known = tmp_path / "known.csv"
    known.write_text("".join(f"n{i},{'odd' if i % 2 else 'even'}\n" for i in range(20)))
    day, other = tmp_path / "day.csv", tmp_path / "other.parquet"
    how = ["--event-id", "id", "--seed", 1, "-o", tmp_path / "out.csv"]
    state, whole = tmp_path / "s.ohm", tmp_path / "whole.ohm"
    write(day, make_rows(400))
    found = label(day, "--labels", known, "--state", state, *how)
    assert "event ids = 'id'" in found.stderr
    write(day, make_rows(700))  # the file has grown
    found = label(day, "--state", state, *how)
    assert found.exit_code == 0, found.stderr
    assert "400 rows left out, because their events were read before" in found.stderr
    write(other, make_rows(500, 450))
    found = label(other, "--state", state, *how)
    assert "250 rows left out" in found.stderr
    model = HFSClassifier.load(state)
    rows = write(tmp_path / "all.csv", make_rows(950))
    kept = StreamingSparsifier(epsilon=0.8, random_state=1).update(read_edges(rows))
    assert model.sparsifier_.snapshot() == kept.snapshot()
    before = state.read_bytes()
    assert label(other, "--state", state, *how).exit_code == 0
    assert state.read_bytes() == before
    StateFile(whole, random_state=1, passes=1).update(
        [rows, other], {"n0": "even", "n1": "odd"}, event_id_col="id"
    )
    assert HFSClassifier.load(whole).sparsifier_.snapshot() == kept.snapshot()
    np.testing.assert_array_equal(
        HFSClassifier.load(whole).kept_.events.ids(), model.kept_.events.ids()
    )


@pytest.mark.parametrize("first", [{}, {"event_id_col": "id"}])
def test_a_state_warns_if_only_some_edges_have_event_ids(first: dict[str, Any], tmp_path: Path):
    paths = [write(tmp_path / f"{k}.csv", make_rows(50, 40 * k)) for k in range(2)]
    state = StateFile(tmp_path / "s.ohm")
    state.update(paths[0], {"n0": "even", "n1": "odd"}, **first)
    then = {} if first else {"event_id_col": "id"}
    with pytest.warns(UserWarning, match="has read edges with.* event_id_col before, but these"):
        state.update(paths[1], **then)


def test_partitions_of_a_cluster_refuse_event_ids():
    from ohmlearn.cluster.partitions import make_options

    with pytest.raises(ValueError, match="event_id_col = 'id' needs edges that are read one after"):
        make_options({"event_id_col": "id"})
