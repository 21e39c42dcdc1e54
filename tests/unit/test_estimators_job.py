"""The labelling job: streams with ids, more edges, other labels, more passes."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from ohmlearn import Graph, gallery
from ohmlearn.estimators import HFSClassifier
from ohmlearn.points import knn_edges
from ohmlearn.reading import read_edges

POINTS = gallery.paper_points(1210)
LABELS = {3: 1, 200: 1, 500: 1, 900: -7, 1100: -7}


@pytest.mark.parametrize("model", [HFSClassifier(random_state=0), HFSClassifier(epsilon=None)])
@pytest.mark.parametrize(
    ("text", "known", "stranger"),
    [
        ("src,dst\nann,bob\nbob,cy\ncy,dee\n", {"dee": "x", "ann": "y"}, "zoe"),
        ("10,20\n20,30\n30,40\n", {40: "x", 10: "y"}, 99),
    ],
)
def test_a_dict_has_the_ids_of_the_stream(model, text, known, stranger, tmp_path):
    path = tmp_path / "e.csv"
    path.write_text(text)
    edges = read_edges(path)
    found = model.fit_edges(edges, known).transduction_
    labels = dict(zip(edges.nodes.ids().tolist(), found.tolist(), strict=True))
    assert known.items() <= labels.items()
    assert len(labels) == 4
    swapped = dict(zip(known, reversed(known.values()), strict=True))
    labels = dict(
        zip(edges.nodes.ids().tolist(), model.relabel(swapped).transduction_, strict=True)
    )
    assert swapped.items() <= labels.items()
    with pytest.warns(UserWarning, match=f"1 of the 3 labelled nodes are in no edge.*{stranger}"):
        model.fit_edges(read_edges(path), known | {stranger: "x"})


def test_a_stream_with_other_numbers_is_refused(tmp_path):
    u, v, _ = gallery.complete(120).edges()
    lines = [f"n{a},n{b}\n" for a, b in zip(u, v, strict=True)]
    path = tmp_path / "e.csv"
    path.write_text("src,dst\n" + "".join(lines))
    first = read_edges(path)
    model = HFSClassifier(passes=1, random_state=0).fit_edges(first, {"n0": "x", "n1": "y"})
    with pytest.raises(ValueError, match=r"read_edges\(..., nodes=first.nodes\)"):
        model.update(read_edges(path))
    assert model.refine(read_edges(path)).n_iter_ == 4  # numbers its nodes in the same way
    path.write_text("src,dst\n" + "".join(reversed(lines)))
    with pytest.raises(ValueError, match="node 0 is 'n118' in one numbering and 'n0' in the other"):
        model.refine(read_edges(path))
    model.update(read_edges(path, nodes=first.nodes))
    assert model.sparsifier_.n_edges_seen_ == 2 * len(u)


def test_nothing_dropped_needs_one_pass():
    class Once:
        n_nodes = 300
        reads = 0

        def __iter__(self):
            self.reads += 1
            yield gallery.knn_points(300, 4, random_state=0).edges()

    edges = Once()
    model = HFSClassifier(passes=9).fit_edges(edges, {0: 0, 9: 1})
    assert (edges.reads, model.n_iter_) == (1, 1)
    exact = HFSClassifier(epsilon=None).fit_edges(
        gallery.knn_points(300, 4, random_state=0), {0: 0, 9: 1}
    )
    np.testing.assert_allclose(model.scores_, exact.scores_, atol=1e-6)


def test_answers_while_the_stream_lasts():
    stream = list(knn_edges(POINTS, n_neighbors=200, weights="uniform", block=32))
    model = HFSClassifier(random_state=0, passes=1)
    for batch in stream[:3]:
        model.update(batch)
    with (
        pytest.warns(UserWarning, match="3 of the 5 labelled nodes are in no edge"),
        pytest.warns(UserWarning, match="without a label"),
    ):
        model.relabel(LABELS)
    for batch in stream[3:]:
        model.update(batch, solve=False)
    with pytest.raises(NotFittedError, match=r"taken in edges since the last answer; call solve"):
        model.transduction_  # noqa: B018
    model.solve()
    at_once = HFSClassifier(random_state=0, passes=1, tol=1e-9).fit_edges(stream, LABELS)
    graph = at_once.sparsifier_.snapshot()
    assert graph == model.sparsifier_.snapshot()
    np.testing.assert_allclose(
        model.scores_, at_once.scores_, atol=1e-4 * np.abs(at_once.scores_).max()
    )
    before = model.scores_
    refined = model.refine(stream, passes=8)
    exact = HFSClassifier(epsilon=None).fit_edges(stream, LABELS)
    off = np.linalg.norm(refined.scores_ - exact.scores_)
    assert off < 0.01 * np.linalg.norm(before - exact.scores_)
    assert model.n_iter_ == 9


def test_other_labels_without_reading_an_edge():
    class Counted:
        n_nodes = 1210
        reads = 0

        def __iter__(self):
            self.reads += 1
            yield from knn_edges(POINTS, n_neighbors=300, weights="uniform")

    edges = Counted()
    model = HFSClassifier(random_state=2, passes=1).fit_edges(edges, LABELS)
    other = {5: "x", 500: "y", 1000: "z"}
    model.relabel(other)
    assert edges.reads == 1
    fresh = HFSClassifier(random_state=2, passes=1).fit_edges(edges, other)
    assert model.classes_.tolist() == ["x", "y", "z"]
    assert np.array_equal(model.transduction_, fresh.transduction_)
    with pytest.raises(ValueError, match="one entry for each of the 1210 nodes, got 3"):
        model.relabel([0, 1, -1])


def test_streams_that_can_be_read_once():
    edges = gallery.knn_points(300, 5, random_state=0).edges()
    once = HFSClassifier(passes=1).fit_edges(iter([edges]), {0: 0, 9: 1})
    assert once.n_iter_ == 1
    with pytest.raises(ValueError, match=r"passes=1 does not\) reads the edges several"):
        HFSClassifier(passes=2).fit_edges(iter([edges]), {0: 0, 9: 1})
    with pytest.raises(ValueError, match="predict needs points, but this estimator was fitted to"):
        once.predict(np.eye(3))
    with pytest.raises(TypeError, match="edges are needed, got int; give its"):
        HFSClassifier(passes=1).fit_edges(5, {0: 0, 1: 1})


def test_snapshots_that_drop_edges_are_refined():
    # Few enough edges to keep all of them during the stream, but too many for the snapshot.
    graph = gallery.complete(100)
    y = {0: 0, 1: 1, 2: 2}
    model = HFSClassifier(epsilon=0.5, passes=40, tol=1e-9, random_state=0)
    model.fit_edges(graph, y)
    assert model.sparsifier_.n_resamples_ == 0
    assert model.sparsifier_.snapshot().n_edges < graph.n_edges
    exact = HFSClassifier(epsilon=None).fit_edges(graph, y)
    np.testing.assert_allclose(model.scores_, exact.scores_, atol=1e-8)


@pytest.mark.parametrize("epsilon", [0.8, None])
def test_update_takes_the_ids_of_its_first_stream(tmp_path, epsilon):
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for path, names in zip(paths, ("xyz", "pqr"), strict=True):
        path.write_text("u,v\n" + "".join(f"{a},{b}\n" for a, b in pairwise(names)))
    first = read_edges(paths[0])
    model = HFSClassifier(epsilon=epsilon).update(first).relabel({"x": "a", "z": "b"})
    with pytest.raises(ValueError, match=r"read_edges\(..., nodes=first.nodes\)"):
        model.update(read_edges(paths[1]))
    with pytest.warns(UserWarning, match="3 of 6 nodes are in components without a label"):
        model.update(read_edges(paths[1], nodes=first.nodes)).relabel({"x": "a", "z": "b"})
    assert len(model.transduction_) == 6


@pytest.mark.parametrize(("tol", "passes"), [(1e-6, 3), (1e-9, 40), (1e-9, 3)])
def test_a_tolerance_that_was_asked_for_is_reached_or_warned_of(tol, passes):
    """Three passes do not reach the default, which nobody has asked for."""
    model = HFSClassifier(epsilon=0.9, tol=tol, passes=passes, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit_edges(gallery.complete(300), {0: "a", 1: "b", 2: "a"})
    assert model.converged_.all() == (passes == 40)
    found = [one for one in caught if issubclass(one.category, ConvergenceWarning)]
    assert len(found) == (passes == 3 and tol == 1e-9)
    for one in found:
        assert "the relative error after 3 passes is" in str(one.message)
        assert "above tol = 1e-09; raise passes or tol" in str(one.message)


@pytest.mark.filterwarnings("ignore:the relative error")
def test_refining_goes_on_from_the_present_answer():
    graph = gallery.complete(300)
    labels = {0: "a", 1: "b", 2: "a"}
    exact = HFSClassifier(epsilon=None, gamma=1.0, tol=1e-12).fit_edges(graph, labels).scores_
    model = HFSClassifier(gamma=1.0, passes=3, epsilon=0.9, tol=1e-12, random_state=0)
    errors = [np.linalg.norm(model.fit_edges(graph, labels).scores_ - exact)]
    for _ in range(3):
        errors.append(np.linalg.norm(model.refine(graph, passes=2).scores_ - exact))
    assert model.n_iter_ == 9
    assert all(after < 0.5 * before for before, after in pairwise(errors))
    model.refine(graph, passes=1)
    assert model.n_iter_ == 10
    assert np.linalg.norm(model.scores_ - exact) < errors[-1]


@pytest.mark.parametrize("ids", ["names", "numbers"])
def test_the_sparsifier_depends_neither_on_labels_nor_on_earlier_passes(ids, tmp_path):
    """After a pass the stream knows its number of nodes, which must not matter."""
    u, v, _ = gallery.complete(120).edges()
    names = [f"n{i:03}" if ids == "names" else 7 * i for i in range(120)]
    path = tmp_path / "e.csv"
    rows = (f"{names[a]},{names[b]}\n" for a, b in zip(u, v, strict=True))
    path.write_text("u,v\n" + "".join(rows))
    kept = []
    edges = read_edges(path)
    for given, labelled in ((edges, (0, 1)), (edges, (0, 1)), (read_edges(path), (119, 60, 3))):
        y = {names[i]: i % 2 for i in labelled}
        kept.append(HFSClassifier(passes=1, random_state=0).fit_edges(given, y).graph_)
        assert given.nodes.ids().tolist() == names
    assert kept[0].n_edges < len(u)
    assert kept[0] == kept[1] == kept[2]


def test_one_fit_makes_one_snapshot(monkeypatch):
    made = []
    take = Graph._from_csr.__func__

    def count(cls, *arrays):
        made.append(cls)
        return take(cls, *arrays)

    monkeypatch.setattr(Graph, "_from_csr", classmethod(count))
    graph = gallery.complete(200)
    made.clear()
    model = HFSClassifier(epsilon=0.9, random_state=0).fit_edges(graph, {0: 0, 1: 1})
    assert (model.n_iter_, len(made)) == (3, 1)
    assert model.graph_.n_edges < graph.n_edges
    assert len(made) == 1


def test_all_edges_can_be_kept_and_more_taken_in():
    u, v, w = gallery.complete(30).edges()
    model = HFSClassifier(epsilon=None).fit_edges((u[:300], v[:300]), {0: 0, 1: 1})
    model.update((u[300:], v[300:]))
    whole = HFSClassifier(epsilon=None).fit_edges((u, v, w), {0: 0, 1: 1})
    assert model.graph_ == whole.graph_
    assert model.sparsifier_ is None
    np.testing.assert_allclose(model.scores_, whole.scores_, atol=1e-9)
    assert model.refine((u, v)).n_iter_ == 1  # the answer already counts all edges


def test_ids_of_labels_are_read_as_those_of_the_edges(tmp_path):
    path = tmp_path / "e.csv"
    path.write_text("10,20\n20,30\n")
    model = HFSClassifier(random_state=0).fit_edges(read_edges(path), {"10": "a", "30": "b"})
    assert model.labelled_.tolist() == [0, 2]
    with pytest.raises(ValueError, match="y: the ids of the edges are integers, but 'x1' is"):
        model.relabel({"x1": "a", "10": "b"})
    with pytest.raises(ValueError, match="no edge has any of these nodes, such as 11"):
        HFSClassifier(random_state=0).fit_edges(read_edges(path), {11: "a", 12: "b"})
    with pytest.warns(UserWarning, match="1 node has contradicting labels, such as 10: a 1, b 1;"):
        model.relabel({10: "a", "10": "b"})
    assert model.contradicting_.tolist() == [0]
