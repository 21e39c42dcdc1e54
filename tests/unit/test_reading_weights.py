"""Weights that are functions of a column, and edges and labels in other forms."""

import numpy as np
import pytest
from click.testing import CliRunner

from ohmlearn import EdgeLog, HFSClassifier, HFSRegressor, StreamingSparsifier, read_edges, sparsify
from ohmlearn.cli import main
from ohmlearn.cluster.partitions import make_options
from ohmlearn.errors import InputError, OhmWarning
from ohmlearn.reading import SourceError
from ohmlearn.reading.label_table import read_labels

N = 150_000  # more than the rows that decide where `cap` is
RANDOM = np.random.default_rng(0)
U, V = RANDOM.integers(0, 1000, N), RANDOM.integers(0, 1000, N)
AMOUNT = np.round(RANDOM.exponential(10.0, N) ** 2, 3)
CAP = np.sort(AMOUNT[:100_000])[99_000 - 1]  # the 0.99 quantile: 99 % are at most as large


@pytest.fixture(scope="module")
def amounts(tmp_path_factory):
    path = tmp_path_factory.mktemp("weights") / "e.csv"
    rows = zip(U.tolist(), V.tolist(), AMOUNT.tolist(), strict=True)
    path.write_text("src,dst,amount\n" + "".join(f"{u},{v},{x}\n" for u, v, x in rows))
    return path


EXPECTED = [
    ("log", np.log1p(AMOUNT)),
    ("sqrt", np.sqrt(AMOUNT)),
    ("cap=0.99", np.minimum(AMOUNT, CAP)),
]


def weights(stream, n_jobs=1):
    return np.concatenate([batch.w for batch in stream.batches(n_jobs)])


@pytest.mark.parametrize(("function", "expected"), EXPECTED)
def test_functions_of_a_column(amounts, tmp_path, function, expected):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    assert np.array_equal(weights(read_edges(amounts, weight_col=f"amount:{function}")), expected)
    stream = read_edges(amounts, weight_col=f"2:{function}")
    assert np.array_equal(weights(stream, 2), expected)
    assert np.array_equal(weights(stream), expected)  # a second pass
    parquet.write_table(
        pa.table({"src": U, "dst": V, "amount": AMOUNT}), tmp_path / "e.parquet", row_group_size=999
    )
    stream = read_edges(tmp_path / "e.parquet", weight_col=f"amount:{function}")
    assert np.array_equal(weights(stream, 3), expected)
    stream = read_edges(iter([(U[:7], V[:7], AMOUNT[:7]), (U[7:], V[7:], AMOUNT[7:])]),
                        weight_col=f"2:{function}")  # fmt: skip
    assert np.array_equal(weights(stream), expected)  # can be read once


def test_functions_of_a_column_on_the_command_line(tmp_path):
    path, labels = tmp_path / "e.csv", tmp_path / "y.csv"
    path.write_text("a,b,amount\nx,y,1\ny,z,100\nz,x,10000\n")
    labels.write_text("node,label\nx,p\nz,q\n")
    command = ["label", str(path), "--labels", str(labels), "--passes", "1", "--from", "a"]
    result = CliRunner().invoke(main, [*command, "--weight", "amount:log"])
    assert result.exit_code == 0, result.output
    assert "weights = log(1 + 'amount')" in result.stderr
    assert "no weights" in CliRunner().invoke(main, [*command, "--weight", "none"]).stderr


def test_functions_that_cannot_be(tmp_path):
    for given in ("w:cap", "w:cap=1", "w:cap=x", "w:cap=nan"):
        with pytest.raises(InputError, match="needs a quantile between 0 and 1; for example w:cap"):
            read_edges(([0], [1]), weight_col=given)
    path = tmp_path / "e.csv"
    path.write_text("u,v,amount\n1,2,5\n1,2,-5\n")
    pyarrow = pytest.importorskip("pyarrow")
    known = "functions of it are amount:log, amount:sqrt and amount:cap=0.99"
    for source in (path, pyarrow.table({"u": [1], "v": [2], "amount": [5]})):
        with pytest.raises(SourceError, match=f"has no column 'amount:sq', .*; {known}"):
            list(read_edges(source, weight_col="amount:sq"))
        with pytest.raises(SourceError, match=r"has no column 'price:sq', [^;]*$"):
            list(read_edges(source, weight_col="price:sq"))
    with pytest.raises(SourceError, match="functions of it are 2:log"):
        list(read_edges(path, weight_col="2:sq", header=False))
    with pytest.raises(SourceError, match="row 3: weights must not be negative"):
        list(read_edges(path, weight_col="amount:log"))
    path.write_text("u,v,amount\n1,2,0\n1,2,0\n3,4,1\n")
    with pytest.raises(SourceError, match=r"the 0.5 quantile of the weights .* is 0; use a larger"):
        list(read_edges(path, weight_col="amount:cap=0.5"))
    with pytest.raises(InputError, match="partitions that are read at the same time"):
        make_options({"weight_col": "amount:cap=0.5"})


def test_lists_of_edges(tmp_path):
    rows = [("a", "b"), ("b", "c", 2.0), ("c", "d", {"weight": 3})]
    stream = read_edges(rows)
    (batch,) = stream
    assert (batch.w.tolist(), stream.nodes.ids().tolist()) == ([1, 2, 3], ["a", "b", "c", "d"])
    assert HFSClassifier().fit_edges(rows, {"a": 0, "d": 1}).transduction_.tolist() == [0, 0, 1, 1]
    numbers = [(0, 1), (1, 2, 2.0), [2, 3]]
    assert HFSClassifier().fit_edges(numbers, [0, -1, -1, 1]).transduction_.shape == (4,)
    (batch,) = read_edges([("a", "b", 1.0, "2026-01-01")], time=True)
    assert batch.t.tolist() == [1767225600.0]
    for number, given in enumerate((rows, numbers)):
        with EdgeLog(tmp_path / f"log{number}") as log:
            assert log.append(given) == 3
    with pytest.raises(SourceError, match=r"the list, row 1: an edge is a tuple .* got"):
        read_edges([("a", "b"), ("c",)])


def test_paths_are_read_where_edges_are_taken(tmp_path):
    path = tmp_path / "e.csv"
    path.write_text("src,dst,weight\na,b,1\nb,c,2\nc,d,1\n")
    y = {"a": "x", "d": "y"}
    expected = HFSClassifier(random_state=0).fit_edges(read_edges(path), y).transduction_.tolist()
    for given in (path, str(path)):
        model = HFSClassifier(random_state=0).fit_edges(given, y)
        assert model.transduction_.tolist() == expected
        assert model.refine(given).update(given).nodes_.ids().tolist() == ["a", "b", "c", "d"]
        assert sparsify(given).n_edges == 3
        assert StreamingSparsifier(random_state=0).update(given).n_edges_seen_ == 3
    with pytest.raises(TypeError, match=r"numbers, but no ids, .* the path .*read_edges"):
        StreamingSparsifier(random_state=0).update([0], [1]).update(path)
    with pytest.raises(TypeError, match=r"the nodes of a .* of edges have ids, so labels need"):
        HFSClassifier().fit_edges(path, [0, 1, -1, -1])


SECTIONS = "n8,admin\n" + "".join(f"n{i},{'libs' if i < 5 else 'games'}\n" for i in range(8))
SECTIONS += "n9,games\n"


@pytest.fixture
def edges(tmp_path):
    path = tmp_path / "e.csv"
    path.write_text("src,dst\n" + "".join(f"n{i},n{i + 1}\n" for i in range(9)))
    return path


@pytest.mark.parametrize("heading", ["package,section\n", "Package, Section \n", ""])
def test_the_heading_of_labels_is_no_label(tmp_path, edges, heading):
    """Decided from the labels alone: `section` is in no other row, which nearly all labels are."""
    labels = tmp_path / "y.csv"
    labels.write_text(heading + SECTIONS)
    model = HFSClassifier(random_state=0).fit_edges(edges, labels)
    assert model.classes_.tolist() == ["admin", "games", "libs"]
    assert len(model.transduction_) == 10
    result = CliRunner().invoke(main, ["label", str(edges), "--labels", str(labels)])
    assert result.exit_code == 0, result.output
    assert ("nodes = 'package', labels = 'section'" in result.stderr.lower()) == bool(heading)
    assert "admin: " in result.stderr
    assert "section: " not in result.stderr.lower()


def test_the_first_label_may_be_the_only_one_of_its_class(tmp_path, edges):
    labels = tmp_path / "y.csv"
    model = HFSClassifier(random_state=0)
    labels.write_text(SECTIONS)  # a node has a digit
    assert "admin" in model.fit_edges(edges, labels).classes_
    labels.write_text("ann,rare\n" + SECTIONS)
    assert "ann" not in read_labels(str(labels))
    assert read_labels(str(labels), node_col=0, label_col=1)["ann"] == "rare"
    labels.write_text("ann,rare\nbob,libs\ncy,libs\n")
    assert "ann" in read_labels(str(labels))
    labels.write_text("package,priority\nn4,1\nn5,2\n")
    assert model.fit_edges(edges, labels).classes_.tolist() == [1, 2]


def test_labels_are_checked_before_edges_are_read(tmp_path):
    edges, labels = tmp_path / "e.csv", tmp_path / "y.csv"
    rows = "".join(f"{i},{i + 1}\n" for i in range(200_000))
    edges.write_text(f"src,dst\n{rows}3,\n")  # the last row is bad
    labels.write_text("node,label\nann,red\n")
    with pytest.raises(SourceError, match=r"y\.csv: .* are integers, but 'ann' is not"):
        HFSClassifier().fit_edges(edges, labels)


def test_numbers_from_a_file(tmp_path, edges):
    labels = tmp_path / "y.csv"
    labels.write_text("node,value\nn0,-1\nn9,8.5\n")
    values = HFSRegressor(random_state=0).fit_edges(edges, labels).transduction_
    assert values[0] == pytest.approx(-1.0, abs=1.0)
    labels.write_text("node,value\nn0,low\nn9,8.5\n")
    with pytest.raises(SourceError, match="labels must be numbers here, got 'low'"):
        HFSRegressor().fit_edges(edges, labels)


def test_names_of_classes_that_are_alike(edges):
    y = {"n0": "legit", "n1": "legit", "n5": "Legit ", "n9": "fraud"}
    with pytest.warns(UserWarning, match="differ only in case or blanks"):
        HFSClassifier(random_state=0).fit_edges(edges, y)


def test_shares_of_classes_that_do_not_sum_to_one(edges):
    with pytest.warns(UserWarning, match=r"class_prior sum to 0\.9"):
        model = HFSClassifier(class_prior={"ham": 0.6, "spam": 0.3}).fit_edges(
            edges, {"n0": "ham", "n9": "spam"}
        )
    assert model.class_prior_.tolist() == pytest.approx([2 / 3, 1 / 3])


def test_amounts_that_are_not_read_are_told(tmp_path):
    pandas, path = pytest.importorskip("pandas"), tmp_path / "e.csv"
    frame = pandas.DataFrame(
        {"src": ["a", "b"], "dst": ["b", "c"], "amount": [5, 10], "item_id": [7, 8], "day": [1, 2]}
    )
    frame.to_csv(path, index=False)
    what = r"no column is read as weights, though 'amount' has numbers; .*weight_col=\"amount\""
    labels = {"a": 0, "c": 1}
    for source in (frame, path):
        with pytest.warns(OhmWarning, match=what) as caught:
            HFSClassifier(random_state=0).fit_edges(source, labels)  # which reads it several times
        assert len(caught) == 1
        for options in ({"weight_col": "amount"}, {"weight_col": False}, {"where": "amount > 1"}):
            assert sum(len(batch.u) for batch in read_edges(source, **options)) == 2
    list(read_edges(frame.drop(columns="amount")))
    list(read_edges(frame.assign(amount=["few", "many"])))
    list(read_edges(frame.assign(weight=1.0)))
