"""Tables of nodes: labels in, results out."""

import numpy as np
import pytest
from stream_cases import edges

from ohmlearn.report.tables import write_table
from ohmlearn.streams import SourceError, read_edges
from ohmlearn.streams.tables import read_labels


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ('node,label\n"a\nb",x\nc,y\n', [("a\nb", "x"), ("c", "y")]),
        ('# e\nnode,label\n"a\n# b",x\n# d,"z\nc,y\n', [("a\n# b", "x"), ("c", "y")]),
        ("node,label\ra,x\rc,y\r", [("a", "x"), ("c", "y")]),
        ("node,label\na\u2028b,x\nc\x1cd,y\n", [("a\u2028b", "x"), ("c\x1cd", "y")]),
        ("node,label\n#cats,x\nc,y\n", [("#cats", "x"), ("c", "y")]),
        ("# who, what\na x\nc y\n", [("a", "x"), ("c", "y")]),
    ],
)
def test_labels_in_text(tmp_path, text, pairs):
    path = tmp_path / "labels.csv"
    path.write_bytes(text.encode())
    assert read_labels(str(path)) == pairs


def test_a_quote_that_is_not_closed_swallows_no_label(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text('node,label\nb,x\n"a,y\nc,"z\n')
    with pytest.raises(SourceError, match=r"labels.csv, row 3: is not CSV from here on"):
        read_labels(str(path))


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl"])
def test_any_name_comes_back(tmp_path, ending):
    names = ["a\nb", "c\u2028d", "e\x85f", '"g"', "h,\t;i", "#j", "=k", "l\rm"]
    path = tmp_path / f"table.{ending}"
    write_table(str(path), {"node": np.array(names, dtype=object), "label": np.array(names)})
    assert read_labels(str(path)) == [(name, name) for name in names]


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_any_name_is_an_end_of_an_edge(tmp_path, ending):
    names = ["a\rb", " c", "d\t", "e\r\n", '"', "'", ",", "#f", "%g", "=h", "\ufeffi"]
    path = tmp_path / f"edges.{ending}"
    ids = np.array(names, dtype=object)
    write_table(str(path), {"u": ids, "v": ids[::-1], "w": np.ones(len(ids))})
    assert edges(read_edges(path)) == (names, names[::-1], [1.0] * len(names))
