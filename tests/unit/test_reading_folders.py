"""Folders: partitions, mixed formats, patterns, hidden files."""

import numpy as np
import pytest
from refuses import refuses
from row_files import write_rows

from ohmlearn import read_edges
from ohmlearn.reading import SourceError
from ohmlearn.reading.file_names import find_files

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def write(path, rows):
    """Write rows (u, v, n) in the format of the ending."""
    write_rows(path, dict(zip("uvn", map(list, zip(*rows, strict=True)), strict=True)))


def edges_of(source, **options):
    stream = read_edges(source, **options)
    ids = stream.nodes.ids
    found = [(ids()[b.u].tolist(), ids()[b.v].tolist(), getattr(b, "t", None), b.w) for b in stream]
    t = None if not stream.has_times else np.concatenate([t for _, _, t, _ in found]).tolist()
    w = None if found[0][3] is None else np.concatenate([w for *_, w in found]).tolist()
    pairs = [pair for u, v, _, _ in found for pair in zip(u, v, strict=True)]
    return pairs, t, w


@pytest.fixture(params=["csv", "jsonl", "parquet"])
def days(request, tmp_path):
    """A folder with a folder for each day, in each of the formats."""
    for at, day in enumerate(("2026-01-01", "2026-01-02", "2026-01-03")):
        write(
            tmp_path / f"day={day}" / "size=2" / f"part.{request.param}",
            [(at, 10, 5), (at, 11, 15)],
        )
    (tmp_path / "day=2026-01-04").mkdir()  # a day without edges
    (tmp_path / "_temporary").mkdir()
    (tmp_path / "_temporary" / "part.txt").write_text("no edges")
    (tmp_path / "day=2026-01-01" / ".part.crc").write_text("x")
    (tmp_path / "_SUCCESS").write_text("")
    return tmp_path


def test_names_of_folders_are_columns(days):
    seconds = [86400.0 * day for day in (20454, 20454, 20455, 20455, 20456, 20456)]
    pairs = [(0, 10), (0, 11), (1, 10), (1, 11), (2, 10), (2, 11)]
    assert edges_of(days, time="day") == (pairs, seconds, None)
    assert edges_of(days, time="day", weight_col="size") == (pairs, seconds, [2.0] * 6)
    assert edges_of(days, where="day >= '2026-01-02' and n > 10")[0] == [(1, 11), (2, 11)]
    assert edges_of(days, where="size = 2 and not day = '2026-01-02'")[0] == pairs[:2] + pairs[4:]
    assert edges_of(days, where="day in ('2026-01-03', '2026-01-04')", time="day") == (
        pairs[4:],
        seconds[4:],
        None,
    )
    assert edges_of(days, time="day", latest="2027-01-01") == (pairs, seconds, None)
    with pytest.raises(SourceError, match=r"folder, a time is 2026-01-02T.*, later"):
        edges_of(days, time="day", latest="2026-01-01")
    with refuses(SourceError, parameter="where", value="size > 2"):
        edges_of(days, where="size > 2")
    with pytest.raises(SourceError, match="has no column 'hour' for where, only 'u', 'v', 'n'"):
        edges_of(days, where="hour > 2")
    with pytest.raises(SourceError, match="source_col = 'day' is the name of a folder"):
        edges_of(days, source_col="day")
    with pytest.raises(SourceError, match="the weight in the name of its folder is '2026-01-01'"):
        edges_of(days, weight_col="day")


def test_files_of_other_days_are_not_read(days):
    path = next((days / "day=2026-01-02").rglob("part.*"))
    if path.suffix == ".parquet":  # the footer stays
        content = path.read_bytes()
        path.write_bytes(b"PAR1" + b"x" * 60 + content[64:])
    else:
        path.write_text(path.read_text() + "broken\n")
    with pytest.raises(SourceError):
        edges_of(days)
    assert len(edges_of(days, where="day != '2026-01-02'")[0]) == 4


def test_a_time_is_guessed_from_the_name_of_a_folder(tmp_path):
    write(tmp_path / "date=2026-01-01" / "e.csv", [(1, 2, 3)])
    assert edges_of(tmp_path, time=True)[1] == [86400.0 * 20454]
    write(tmp_path / "date=soon" / "e.csv", [(1, 2, 3)])
    with pytest.raises(SourceError, match="in the name of its folder, a time must be a"):
        edges_of(tmp_path / "date=soon", time=True)


def test_a_column_of_the_file_comes_first(tmp_path):
    write(tmp_path / "n=7" / "e.csv", [(1, 2, 3), (4, 5, 6)])
    assert edges_of(tmp_path, where="n = 3")[0] == [(1, 2)]


def test_a_missing_value_of_a_folder(tmp_path):
    write(tmp_path / "kind=__HIVE_DEFAULT_PARTITION__" / "e.csv", [(1, 2, 3)])
    write(tmp_path / "kind=a%20b" / "e.csv", [(3, 4, 5)])
    assert edges_of(tmp_path, where="kind is null")[0] == [(1, 2)]
    assert edges_of(tmp_path, where="kind = 'a b'")[0] == [(3, 4)]
    with pytest.raises(SourceError, match="its folder has no value of 'kind'"):
        edges_of(tmp_path, weight_col="kind")


def test_patterns_of_folders(days):
    names = [path.split("day=")[1][:10] for path in find_files(f"{days}/day=*/")]
    assert names == ["2026-01-01", "2026-01-02", "2026-01-03"]
    assert len(find_files(f"{days}/day=2026-01-0[12]")) == 2
    assert len(find_files(f"{days}/**/size=2")) == 3
    assert len(find_files(f"{days}/**")) == 3  # hidden ones are left out
    assert find_files(f"{days}/_S*") == [f"{days}/_SUCCESS"]  # unless they are asked for
    with pytest.raises(FileNotFoundError, match=r"only folders without files fit .*day=2026-01-04"):
        find_files(f"{days}/day=2026-01-04*")
    with pytest.raises(FileNotFoundError, match="no file fits"):
        find_files(f"{days}/month=*")


def test_a_pattern_that_fits_files_leaves_folders_out(tmp_path):
    write(tmp_path / "e.csv", [(1, 2, 3)])
    write(tmp_path / "old" / "e.csv", [(1, 2, 3)])
    assert find_files(f"{tmp_path}/*") == [str(tmp_path / "e.csv")]


def test_a_folder_with_different_formats_is_refused(tmp_path):
    for name in ("a.parquet", "b.parquet", "c.csv"):
        write(tmp_path / name, [(1, 2, 3)])
    message = (
        r"has files of different formats: 2 parquet \(such as .*a\.parquet\) and 1 csv \(such as"
    )
    with pytest.raises(
        ValueError, match=message + r".*; choose some with a pattern, such as .*\*\.parquet"
    ):
        read_edges(tmp_path)
    assert len(edges_of(f"{tmp_path}/**/*.parquet")[0]) == 2
    assert len(edges_of([tmp_path / "a.parquet", tmp_path / "c.csv"])[0]) == 2


def test_files_with_other_columns_are_refused(tmp_path):
    pq.write_table(pa.table({"u": [1], "v": [2]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"x": [1], "u": [5], "v": [6]}), tmp_path / "b.parquet")
    assert edges_of(tmp_path)[0] == [(1, 2), (5, 6)]  # found by name
    pq.write_table(pa.table({"src": [1], "dst": [2]}), tmp_path / "c.parquet")
    message = (
        "c.parquet: its columns would be src, dst, but those of .*a.parquet are u, v; name them"
    )
    with pytest.raises(SourceError, match=message):
        read_edges(tmp_path)
    with pytest.raises(SourceError, match=r"c\.parquet: has no column 'u'"):
        read_edges(tmp_path, source_col="u", target_col="v")
    pq.write_table(pa.table({"u": ["a"], "v": ["b"]}), tmp_path / "c.parquet")
    with pytest.raises(SourceError, match=r"c\.parquet: .*id_type=\"string\""):
        edges_of(tmp_path)
    pq.write_table(pa.table({"u": [1], "v": [2], "n": ["x"]}), tmp_path / "c.parquet")
    pq.write_table(pa.table({"u": [1], "v": [2], "n": [3]}), tmp_path / "b.parquet")
    with pytest.raises(SourceError, match=r"a\.parquet: has no column 'n' for where"):
        read_edges(tmp_path, where="n > 1")


def test_a_folder_of_hidden_files_only(tmp_path):
    (tmp_path / "_SUCCESS").write_text("")
    with pytest.raises(FileNotFoundError, match="is a folder without files"):
        read_edges(tmp_path)
