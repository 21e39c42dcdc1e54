"""Edges from JSON lines."""

import io
import json
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stream_cases import edges

from ohmlearn.reading import SourceError, read_edges
from ohmlearn.reading.json_reader import JsonLinesSource


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_json_lines(tmp_path):
    path = write(
        tmp_path / "e.jsonl",
        '{"src": "ann", "dst": "bob", "w": 2}\n\n{"dst": "\\u00e9", "src": "bob", "w": 0.5}',
    )
    stream = read_edges(path)
    assert stream.columns == "u = 'src', v = 'dst', weights = 'w' (guessed)"
    assert edges(stream) == edges(stream) == (["ann", "bob"], ["bob", "é"], [2.0, 0.5])
    path = write(tmp_path / "e.ndjson", f'{{"u": 1, "v": {-(2**63)}}}\n{{"u": 3, "v": 1}}\n')
    assert edges(read_edges(path)) == ([1, 3], [-(2**63), 1], None)
    assert edges(read_edges(path, id_type="string"))[0] == ["1", "3"]
    mixed = write(tmp_path / "m.jsonl", '{"u": 1, "v": "b"}\n')
    assert edges(read_edges(mixed)) == (["1"], ["b"], None)


def test_many_blocks_and_pipes(tmp_path, monkeypatch):
    text = "".join(f'{{"u": {i}, "v": {i + 1}}}\n' for i in range(100_000))  # more than 1 MiB
    assert edges(read_edges(write(tmp_path / "e.jsonl", text)))[0] == list(range(100_000))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text[:100].encode() + b"\n")))
    with pytest.raises(SourceError, match=r"standard input, row \d+: is not JSON"):
        list(read_edges("-", format="jsonl"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "is not JSON: "),
        ("[" * 100_000, "is not JSON: "),
        ("[1, 2]", r"a line must be an object with names, got '\[1, 2\]'"),
        ('{"u": 1}', "'v' is missing"),
    ],
)
def test_bad_lines(tmp_path, line, message):
    path = write(tmp_path / "e.jsonl", '{"u": 1, "v": 2, "w": 1}\n\n' + line + "\n")
    with pytest.raises(SourceError, match=f"row 3: {message}"):
        list(read_edges(path))
    stream = read_edges(path, on_bad="skip")
    assert edges(stream)[0] == [1]
    assert stream.n_bad == 1
    assert "e.jsonl, row 3: " in stream.first_bad


def test_names_after_integers_and_halves_of_letters(tmp_path):
    block = '{"u": 1, "v": 2}\n' * 70_000
    path = write(tmp_path / "e.jsonl", block + '{"u": "x", "v": 2}\n')
    with pytest.raises(SourceError, match=r"row 70001: 'u' is 'x', but node ids were integers"):
        list(read_edges(path))
    write(path, '{"u": "\\ud800", "v": "b"}\n')
    with pytest.raises(SourceError, match=r"row 1: 'u' is not valid Unicode"):
        list(read_edges(path))
    write(path, "\n\n")
    with pytest.raises(SourceError, match="is empty: there is no line with an edge"):
        read_edges(path)


def test_arrays(tmp_path, monkeypatch):
    rows = [{"u": 1, "v": 2, "w": 0.5}, {"u": 3, "v": 4, "w": 1}]
    for text in (json.dumps(rows), json.dumps(rows, indent=1)):
        for name in ("e.json", "e.jsonl", "e.txt"):
            assert edges(read_edges(write(tmp_path / name, text))) == ([1, 3], [2, 4], [0.5, 1])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        assert edges(read_edges("-"))[0] == [1, 3]
    path = write(tmp_path / "e.json", json.dumps([*rows, {"u": 5, "w": 1}]))
    with pytest.raises(SourceError, match=r"e.json, row 3: 'v' is missing"):
        list(read_edges(path))
    write(path, '[{"u": 1, "v": 2}')
    with pytest.raises(SourceError, match=r"starts with \[, but is not a JSON array"):
        read_edges(path)
    write(path, "[" + '{"u": 1, "v": 2},' * 1_000_000 + "1]")
    with pytest.raises(SourceError, match=r"more than 16 MiB; .* jq -c '.\[\]'"):
        read_edges(path)


def test_weights_of_later_rows_are_not_lost(tmp_path):
    path = write(tmp_path / "e.jsonl", '{"u": 1, "v": 2}\n{"u": 1, "v": 3, "weight": 5}\n')
    with pytest.raises(SourceError, match="row 2: it has 'weight', but the first row has not"):
        list(read_edges(path))
    stream = read_edges(path, on_bad="skip")
    assert edges(stream)[1] == [2]
    assert stream.n_bad == 1


def test_bad_first_rows_can_be_skipped(tmp_path):
    path = write(tmp_path / "e.jsonl", '{"u": 1\n{"u": 1, "v": 3}\n')
    stream = read_edges(path, on_bad="skip")
    assert edges(stream)[1] == [3]
    assert stream.n_bad == 1


def same_by_lines(path, monkeypatch, **options):
    """Return the edges of a file, which must be the same without pyarrow."""
    found = edges(read_edges(path, **options))
    with monkeypatch.context() as patch:
        patch.setattr(JsonLinesSource, "_read_fast", lambda *_: None)
        assert edges(read_edges(path, **options)) == found
    return found


VALUES = r"""
    1 -7 17.0 1e3 9223372036854775807 9223372036854775808 9007199254740993 9007199254740993.0
    true null NaN "" "a" "2026-03-31" "7" "\u00e9" "\ud83d\ude00" "a\"b" "\\" "\n" [1] {"u":1}
"""
IDS = st.sampled_from(VALUES.split())


@given(st.lists(st.tuples(st.sampled_from(["u", "v", "w", "x"]), IDS), max_size=60), st.randoms())
@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_pyarrow_and_json_agree(tmp_path, monkeypatch, cells, random):
    """Rows are plain, or have a few odd values, repeated names, or fewer names."""
    kind = random.choice(["%d", '"n%d"'])
    lines = ['{"u": ' + kind % 0 + ', "v": ' + kind % 1 + ', "w": 1}']
    for number, (name, value) in enumerate(cells):
        row = {"u": kind % number, "v": kind % random.randrange(9), "w": "0.5", name: value}
        fields = [f'"{field}": {text}' for field, text in row.items()]
        if random.random() < 0.1:
            fields.append(random.choice(fields))
        if random.random() < 0.1:
            fields.pop(random.randrange(3))
        lines.append("{" + ", ".join(fields) + "}")
    path = write(tmp_path / "e.jsonl", "\n".join(lines))
    same_by_lines(path, monkeypatch, on_bad="skip", source_col="u", target_col="v")
