"""Reviews: estimates compared with the truth, nodes with their probabilities, changes by id."""

import numpy as np
import pytest

from ohmlearn import Graph, HFSClassifier, gallery
from ohmlearn.estimators.review import FEW


def noisy_graph(seed: int, n: int = 1200) -> tuple[Graph, np.ndarray, np.random.Generator]:
    """Return a graph whose edges join like nodes three times as often, 30% of them fraud."""
    rng = np.random.default_rng(seed)
    truth = np.where(rng.random(n) < 0.3, "fraud", "fine")
    u, v = rng.integers(n, size=(2, 20 * n))
    kept = (u != v) & ((truth[u] == truth[v]) | (rng.random(len(u)) < 1 / 3))
    return Graph.from_edges(u[kept][: 4 * n], v[kept][: 4 * n], n_nodes=n), truth, rng


@pytest.mark.filterwarnings("ignore::UserWarning")  # some nodes have no edge
def test_estimates_hold_the_truth() -> None:
    """Of 25 intervals of 95%, 4 or more miss with a probability of 0.034 if they are just wide
    enough; here they are wider. The mean of 25 errors with a deviation of 0.1 is above 0.06 with a
    probability of 0.003."""
    held = np.zeros((25, 2), np.bool_)
    errors = np.zeros((25, 2))
    for seed in range(25):
        graph, truth, rng = noisy_graph(seed)
        y = {int(node): truth[node] for node in rng.choice(len(truth), 80, replace=False)}
        model = HFSClassifier(epsilon=None, random_state=0).fit_edges(graph, y)
        (row,) = (r for r in model.review(thresholds=[0.5]).thresholds if r.label == "fraud")
        others = model.reached_ & ~np.isin(np.arange(len(truth)), list(y))
        above = others & (model.label_distributions_[:, 1] >= 0.5)
        assert row.n_nodes == np.count_nonzero(above)
        fraud = truth == "fraud"
        for at, (one, true) in enumerate(
            [(row.precision, fraud[above].mean()), (row.recall, above[others & fraud].mean())]
        ):
            assert one is not None
            held[seed, at], errors[seed, at] = one.low <= true <= one.high, one.value - true
    assert np.all(held.sum(axis=0) >= 22)
    assert np.all(np.abs(errors.mean(axis=0)) < 0.06)


def test_listed_nodes_are_the_surest_and_the_most_doubtful() -> None:
    graph, truth, rng = noisy_graph(3, n=300)
    y = {int(node): truth[node] for node in rng.choice(300, 40, replace=False)}
    model = HFSClassifier(epsilon=None, random_state=0).fit_edges(graph, y)
    review = model.review(n=7)
    p = model.label_distributions_
    for name in ("fine", "fraud"):
        code = model.classes_.tolist().index(name)
        these = (model.transduction_ == name) & model.reached_
        these[list(y)] = False
        expected = np.sort(p[these, code])
        assert [one.probability for one in review.surest[name]] == expected[:-8:-1].tolist()
        assert [one.probability for one in review.borderline[name]] == expected[:7].tolist()
        assert {one.against for one in review.surest[name]} == {"fraud", "fine"} - {name}
    frame = review.to_frame()
    assert frame["n_nodes"].tolist() == [row.n_nodes for row in review.thresholds]
    assert str(review).count("p >= 0.5") == 2


def test_few_labels_say_nothing() -> None:
    model = HFSClassifier(random_state=0).fit_edges(
        gallery.path(30), dict.fromkeys(range(FEW - 1), "a") | dict.fromkeys(range(25, 30), "b")
    )
    rows = {row.label: row for row in model.review(thresholds=[0.5]).thresholds}
    assert rows["a"].precision is rows["a"].recall is None
    assert rows["b"].precision is not None
    assert str(rows["a"]).endswith("but too few labels say how many of them are right")


def test_changes_are_matched_by_id() -> None:
    first = HFSClassifier(random_state=0).fit_edges(
        [("a", "b"), ("b", "c"), ("d", "e")], {"a": "x", "c": "y", "d": "x"}
    )
    second = HFSClassifier(random_state=0).fit_edges(
        [("e", "d"), ("c", "b"), ("b", "c"), ("a", "f")], {"a": "x", "c": "y", "d": "y"}
    )
    changes = second.review().changed_since(first)
    before = dict(zip(first.nodes_.ids().tolist(), first.transduction_.tolist(), strict=True))
    after = dict(zip(second.nodes_.ids().tolist(), second.transduction_.tolist(), strict=True))
    expected = {(node, before[node], after[node]) for node in before if before[node] != after[node]}
    assert {one[:3] for one in changes.surest} == expected
    assert changes.n_compared == 5
    assert sum(changes.counts.values()) == len(expected) > 1
    numbered = HFSClassifier(random_state=0).fit_edges(gallery.path(4), {0: "x", 3: "y"})
    with pytest.raises(ValueError, match="cannot be matched"):
        second.review().changed_since(numbered)


def test_changes_where_no_label_reaches() -> None:
    model = HFSClassifier(random_state=0)
    with pytest.warns(UserWarning, match="components without a label"):
        model.fit_edges(([0, 1, 3], [1, 2, 4]), {0: "x", 2: "y"})
    before = model.review()
    model.update(([2], [3]))
    changes = model.review().changed_since(before)
    assert changes.counts[None, "y"] == 2
    assert str(changes).endswith('from no label to "y"')
