"""Ends of lines and records in text: all kinds of line ends, quotes, long comments."""

import gzip
import io
import sys

import pytest
from stream_cases import edges

from ohmlearn.reading import SourceError, read_edges
from ohmlearn.reading.csv_reader import find_delimiter

ENDS = {"lf": "\n", "crlf": "\r\n", "cr": "\r"}


def write(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize(
    ("name", "lines", "ids"),
    [
        ("e.csv", ["u,v", "1,2", "", "3,4"], [1, 3]),
        ("e.csv", ["u,v,more", "a,b,x", 'c,d,"y"'], ["a", "c"]),
        ("e.txt", ["# Nodes: 4", "1 2", "3\t4"], [1, 3]),
        (
            "e.mtx",
            ["%%MatrixMarket matrix coordinate real general", "% c", "4 4 2", "1 2 1", "3 4 1"],
            [1, 3],
        ),
    ],
)
def test_all_kinds_of_line_ends(tmp_path, name, lines, ids, end, last):
    path = write(tmp_path / name, end.join(lines) + (end if last else ""))
    assert edges(read_edges(path))[0] == ids


def test_carriage_returns_end_lines_beyond_the_first_block_and_in_pipes(tmp_path, monkeypatch):
    count = 400_000
    text = "u,v\r" + "".join(f"{i},{i + 1}\r" for i in range(count))
    expected = list(range(count))
    assert edges(read_edges(write(tmp_path / "e.csv", text)))[0] == expected
    path = write(tmp_path / "e.csv.gz", gzip.compress(text.encode()))
    assert edges(read_edges(path))[0] == expected
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert edges(read_edges("-"))[0] == expected


@pytest.mark.parametrize(
    ("text", "row", "n_good"),
    [
        ("u,v\n1,2\r3,4\n5,6\n", 2, 1),
        ("u,v\na,b\rc,d\ne,f\n", 2, 1),
        ("u,v,t\na,b,x\rc,d,y\ne,f,z\n", 2, 1),  # also in a column that is not read
        ("u,v\na,b\n# c\r1,2\n", 3, 1),
        ("u,v\na,b\nc,d\r\r\n", 3, 1),
    ],
)
def test_mixed_line_ends_neither_lose_nor_invent_edges(tmp_path, text, row, n_good):
    path = write(tmp_path / "e.csv", text)
    message = f"row {row}: a carriage return is inside .*; lines must all end with"
    with pytest.raises(SourceError, match=message):
        list(read_edges(path, comment="#"))
    stream = read_edges(path, comment="#", on_bad="skip")
    assert len(edges(stream)[0]) == n_good
    assert stream.n_bad == 1


@pytest.mark.parametrize("text", ["# c\r1,2\n3,4\n", "u,v\r1,2\n3,4\n"])
def test_mixed_line_ends_before_the_first_edge(tmp_path, text):
    with pytest.raises(SourceError, match="row 1: a carriage return is inside"):
        read_edges(write(tmp_path / "e.csv", text))


@pytest.mark.parametrize("on_bad", ["raise", "skip"])
def test_quoted_line_ends_belong_to_the_field(tmp_path, on_bad):
    text = 'u,v\n"a\nb,c",d\n"x\r\n""y""",z\ne,f\n'
    stream = read_edges(write(tmp_path / "e.csv", text), on_bad=on_bad)
    assert edges(stream)[:2] == (["a\nb,c", 'x\r\n"y"', "e"], ["d", "z", "f"])
    assert stream.n_bad == 0


@pytest.mark.parametrize("on_bad", ["raise", "skip"])
def test_quoted_line_ends_in_columns_that_are_not_read(tmp_path, on_bad):
    text = 'u,v,"a\nnote"\na,b,"first\nsecond,line"\nc,d,plain\n'
    stream = read_edges(write(tmp_path / "e.csv", text), on_bad=on_bad)
    assert edges(stream)[:2] == (["a", "c"], ["b", "d"])
    assert stream.n_bad == 0


def test_a_header_longer_than_a_block(tmp_path):
    names = "x\n" * 1_500_000
    path = write(tmp_path / "e.csv", f'u,v,"{names}"\na,b,c\n')
    assert edges(read_edges(path))[:2] == (["a"], ["b"])
    path = write(tmp_path / "e.csv", f'u,v,"{names}\na,b,c\n')
    with pytest.raises(SourceError, match=r"row 1: a quote is not closed"):
        read_edges(path)


def test_rows_after_quoted_line_ends_keep_their_numbers(tmp_path):
    text = 'u,v,w,t\na,b,1,"x\n\ny"\nc,d,-1,\n'
    with pytest.raises(SourceError, match=r"row 5: weights must not be negative"):
        list(read_edges(write(tmp_path / "e.csv", text)))


def test_integers_are_not_mistaken_for_strings_because_of_quoted_text(tmp_path):
    path = write(tmp_path / "e.csv", 'u,v,t\n1,2,"x\ny, z"\n3,4,\n')
    assert edges(read_edges(path))[0] == [1, 3]


def test_a_quote_that_is_never_closed_loses_only_its_line(tmp_path):
    rows = [f"a{i},b{i}" for i in range(300_000)]  # several blocks
    rows[1000] = '"a,b'
    path = write(tmp_path / "e.csv", "\n".join(["u,v", *rows]))
    with pytest.raises(SourceError, match=r"row 1002: a quote is not closed"):
        list(read_edges(path))
    stream = read_edges(path, on_bad="skip")
    assert sum(len(batch.u) for batch in stream) == len(rows) - 1
    assert stream.n_bad == 1


@pytest.mark.parametrize("options", [{}, {"where": "u != 'z'"}], ids=["all", "where"])
def test_many_stray_quotes_are_not_compared_with_all_later_ones(tmp_path, options):
    # Each line opens a quote that the next one closes, but the last one is not closed. If each line
    # were read to the end of the file, this would take minutes.
    stray = 'a","b\n' * 300_000  # two blocks
    path = write(tmp_path / "e.csv", f"u,v\na,b\n{stray}a,c\n")
    with pytest.raises(SourceError, match=r"row 3: a quote is not closed"):
        list(read_edges(path, **options))
    stream = read_edges(path, on_bad="skip", **options)
    assert edges(stream)[:2] == (["a", "a"], ["b", "c"])
    assert stream.n_bad == 300_000


def test_quoted_text_across_blocks(tmp_path):
    long = "\n".join(["q,r"] * 700_000)  # 2.8 MB
    path = write(tmp_path / "e.csv", f'u,v,t\na,b,"{long}"\nc,"d\n{long}",x\ne,f,\n')
    u, v, _ = edges(read_edges(path))
    assert u == ["a", "c", "e"]
    assert v == ["b", f"d\n{long}", "f"]


@pytest.mark.parametrize("name", ["e.csv", "e.txt", "e.mtx"])
@pytest.mark.parametrize("size", [3_000_000, (1 << 20) - 5])  # the second ends a block
def test_long_comments_before_the_first_edge(tmp_path, name, size):
    mark, banner, body = "#", "", "u v\nann bob\nbob cy\n"
    if name.endswith("mtx"):
        mark, banner = "%", "%%MatrixMarket matrix coordinate pattern general\n"
        body = "3 3 2\n1 2\n2 3\n"
    comments = f"{mark} {'x' * 62}\n" * ((size - len(banner)) // 65)
    comments += f"{mark}{'y' * (size - len(banner) - len(comments) - 2)}\n"
    path = write(tmp_path / name, banner + comments + body)
    expected = [1, 2] if name.endswith("mtx") else ["ann", "bob"]
    assert edges(read_edges(path))[0] == expected


def test_only_comments_are_empty_however_long(tmp_path):
    path = write(tmp_path / "e.txt", "# x\n" * 600_000)
    with pytest.raises(SourceError, match=r"e.txt: is empty: there is no line with an edge"):
        read_edges(path)


@pytest.mark.parametrize(
    ("line", "style", "delimiter"),
    [
        (b"a;b;c", "csv", ";"),
        (b"a b", "csv", ""),
        (b"ab", "csv", ","),
        (b"a b\tc d", "text", "\t"),
        (b"a\tb", "text", ""),
        (b"a,b", "text", ","),
        (b"a b {'x': 1, 'y': 2}", "text", ""),
        (b"1 2 5\t9", "text", ""),
    ],
)
def test_delimiter_of_a_first_line(line: bytes, style: str, delimiter: str):
    assert find_delimiter(line, style) == delimiter
