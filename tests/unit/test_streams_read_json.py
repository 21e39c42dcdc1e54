"""Edges from JSON lines."""

import io
import sys

import pytest
from stream_cases import edges

from ohmlearn.reading import SourceError, read_edges


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
        ("{", "row 3: is not JSON: "),
        ("[" * 100_000, "row 3: is not JSON: "),
        ("[1, 2]", r"row 3: a line must be an object with names, got '\[1, 2\]'"),
        ('{"u": 1}', "row 3: 'v' is missing"),
        ('{"u": null, "v": 1}', "row 3: 'u' is missing"),
        ('{"u": 1.5, "v": 1}', "row 3: 'u' must be a whole number or a string, got '1.5'"),
        ('{"u": true, "v": 1}', "row 3: 'u' must be an integer or a string, got 'True'"),
        ('{"u": 1, "v": 9223372036854775808}', "row 3: 'v' does not fit int64: 92233"),
        ('{"u": 1, "v": 2, "w": -1}', "row 3: the weight, 'w', must not be negative nor above"),
        ('{"u": 1, "v": 2, "w": 1e-45}', "row 3: .* nor below 1.2e-38 unless 0, got '1e-45'"),
        ('{"u": 1, "v": 2, "w": NaN}', "row 3: the weight, 'w', must not be negative nor above"),
        ('{"u": 1, "v": 2, "w": "x"}', "row 3: the weight, 'w', is not a number: \"'x'\""),
    ],
)
def test_bad_lines(tmp_path, line, message):
    path = write(tmp_path / "e.jsonl", '{"u": 1, "v": 2, "w": 1}\n\n' + line + "\n")
    with pytest.raises(SourceError, match=message):
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
