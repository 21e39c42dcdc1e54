"""A reading that starts at a place of an earlier one yields the same edges from there on."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ohmlearn import read_edges
from ohmlearn.reading import array_reader, parquet_reader
from ohmlearn.reading import byte_blocks as byte_streams

N = 2000
RNG = np.random.default_rng(0)
U, V = RNG.integers(1, 300, (2, N))
W = RNG.integers(1, 9, N)


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(byte_streams, "BLOCK", 1500)
    monkeypatch.setattr(parquet_reader, "ROWS", 130)
    monkeypatch.setattr(array_reader, "ROWS", 130)


def rows(start: int = 0, stop: int = N) -> list[tuple[str, str, int]]:
    return [(f"n{u}", f"n{v}", int(w)) for u, v, w in zip(U, V, W, strict=True)][start:stop]


def csv_text(start: int = 0, stop: int = N, end: str = "\n") -> str:
    """Rows with a line break in quotes now and then, and bad weights."""
    lines = ["src,dst,w"]
    for at, (u, v, w) in enumerate(rows(start, stop)):
        lines.append(
            f'"{u}\n",{v},{w}' if at % 97 == 0 else f"{u},{v},{'-3' if at % 89 == 1 else w}"
        )
    return end.join(lines) + end


def write_csv(path: Path) -> Path:
    path.write_text(csv_text())
    return path


def write_bom(path: Path) -> Path:
    path.write_bytes(b"\xef\xbb\xbf" + csv_text()[:-1].encode())  # and no newline at the end
    return path


def write_old_mac(path: Path) -> Path:
    path.write_bytes(csv_text(end="\r").replace("\n", "").encode())
    return path


def write_gzip(path: Path) -> Path:
    path.write_bytes(gzip.compress(csv_text().encode()))
    return path


def write_zstd(path: Path) -> Path:
    pa = pytest.importorskip("pyarrow")
    path.write_bytes(pa.compress(csv_text().encode(), "zstd", asbytes=True))
    return path


def write_json(path: Path) -> Path:
    names = ("u", "v", "w")
    lines = [json.dumps(dict(zip(names, row, strict=True))) for row in rows()]
    path.write_text("\n".join([*lines[:500], "", '{"u": 1}', *lines[500:]]))
    return path


def table() -> Any:
    pa = pytest.importorskip("pyarrow")
    u, v, w = zip(*rows(), strict=True)
    return pa.table(
        {"u": u, "v": v, "w": pa.array([None if i % 77 == 3 else x for i, x in enumerate(w)])}
    )


def write_parquet(path: Path) -> Path:
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(table(), path, row_group_size=300)
    return path


def write_arrow(path: Path) -> Path:
    feather = pytest.importorskip("pyarrow.feather")
    feather.write_feather(table(), path, chunksize=170, compression="uncompressed")
    return path


def write_npy(path: Path) -> Path:
    np.save(path, np.stack([U, V, W], axis=1))
    return path


def write_matrix(path: Path) -> Path:
    lines = [f"{u} {v} {w}" for u, v, w in zip(U, V, W, strict=True)]
    head = f"%%MatrixMarket matrix coordinate integer general\n300 300 {N}\n"
    path.write_text(head + "\n".join(lines) + "\n")
    return path


FILES: dict[str, Callable[[Path], Path]] = {
    "a.csv": write_csv,
    "b.csv": write_bom,
    "c.csv": write_old_mac,
    "d.csv.gz": write_gzip,
    "e.csv.zst": write_zstd,
    "f.jsonl": write_json,
    "g.parquet": write_parquet,
    "h.arrow": write_arrow,
    "i.npy": write_npy,
    "j.mtx": write_matrix,
}
STRINGS = [name for name in FILES if not name.startswith(("i", "j"))]


def read_all(stream: Any) -> tuple[list[Any], np.ndarray]:
    """Return where each batch starts, and all rows."""
    places, found = [], []
    for batch in stream:
        places.append(stream.place)
        found.append(np.stack(batch[:3], axis=1))
    return places, np.concatenate(found)


def assert_continues(paths: list[str], folder: Path) -> None:
    def open_it(nodes: Any = None) -> Any:
        names = [str(FILES[name](folder / name)) for name in paths]
        return read_edges(names, on_bad="skip", nodes=nodes)

    stream = open_it()
    places, found = read_all(stream)
    assert len(places) > 10 * len(paths)
    for at in {0, 1, len(places) // 3, len(places) // 2, len(places) - 1}:
        place = type(places[at])(*json.loads(json.dumps(places[at])))
        again = open_it(stream.nodes)
        again.start_at(place)
        np.testing.assert_array_equal(read_all(again)[1], found[place.n_read :])
        names = ("n_read", "n_bad", "first_bad", "fraction", "n_edges")
        assert [getattr(again, x) for x in names] == [getattr(stream, x) for x in names]
        np.testing.assert_array_equal(read_all(again)[1], found)  # only one reading starts there


@pytest.mark.parametrize("name", FILES)
def test_one_file_continues(name: str, tmp_path: Path):
    assert_continues([name], tmp_path)


def test_several_files_continue(tmp_path: Path):
    pytest.importorskip("pyarrow")
    assert_continues(STRINGS, tmp_path)


@pytest.mark.parametrize("name", ["edges.csv", "edges.parquet", "edges.jsonl"])
def test_times_continue(name: str, tmp_path: Path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / name
    t = 1_700_000_000_000 + 1000 * np.arange(N)  # Unix milliseconds
    frame = pa.table({"u": U, "v": V, "t": t})
    if name == "edges.parquet":
        pq.write_table(frame, path, row_group_size=300)
    elif name == "edges.jsonl":
        path.write_text("\n".join(map(json.dumps, frame.to_pylist())))
    else:
        lines = [f"{a},{b},{c}" for a, b, c in zip(U, V, t, strict=True)]
        path.write_text("\n".join(["u,v,t", *lines]))
    stream = read_edges(path, time="t")
    place = [stream.place for _ in stream][-2]
    again = read_edges(path, time="t", nodes=stream.nodes)
    again.start_at(type(place)(*json.loads(json.dumps(place))))
    later = np.concatenate([batch.t for batch in again])
    np.testing.assert_array_equal(later, t[place.n_read :])
    assert again.time_unit == stream.time_unit == "ms"


@pytest.mark.parametrize("name", ["a.csv", "b.csv", "c.csv", "d.csv.gz", "f.jsonl", "g.parquet"])
def test_messages_name_the_row_in_the_file(name: str, tmp_path: Path):
    path = FILES[name](tmp_path / name)
    stream = read_edges(path, on_bad="skip")
    places, _ = read_all(stream)
    half = places[len(places) // 2]
    with_bad = read_edges(path, on_bad="skip", nodes=stream.nodes)
    with_bad.start_at(half._replace(first_bad=None))
    read_all(with_bad)
    reference = read_edges(path, on_bad="skip")
    messages = {raw.first_bad for raw in reference._sources[0].batches(None)}
    if name.endswith((".csv", ".gz")):  # the first fault of the text is repeated
        text = csv_text(end="\r").replace("\n", "") if name == "c.csv" else csv_text()
        row = int(with_bad.first_bad.split("row ")[1].split(":")[0])
        assert "-3" in text.replace("\r", "\n").split("\n")[row - 1]
        assert row > N / 3
    elif half.n_bad < stream.n_bad:
        assert with_bad.first_bad in messages
