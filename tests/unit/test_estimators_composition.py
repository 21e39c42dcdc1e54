"""Attributes after `fit` are plain, errors change nothing, and the job needs no scikit-learn."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from ohmlearn import HFSClassifier, HFSRegressor, StreamingSparsifier, gallery, read_edges

PLAIN = {
    "scores_", "transduction_", "reached_", "residual_", "converged_", "gamma_", "method_",
    "n_iter_", "labelled_", "kept_", "problem_", "answer_",
}  # fmt: skip
GRAPH, Y = gallery.complete(60), {0: "a", 1: "b", 2: "a", 3: "b", 4: "a", 5: "b"}
MORE = (np.array([0, 1]), np.array([60, 60]))


def fitted(**parameters) -> HFSClassifier:
    return HFSClassifier(epsilon=0.9, random_state=0, **parameters).fit_edges(GRAPH.edges(), Y)


@pytest.mark.filterwarnings("ignore:.*labels are few")
def test_attributes_are_plain_and_measurements_are_kept(monkeypatch: pytest.MonkeyPatch):
    model = fitted(passes=1)
    assert vars(model).keys() >= PLAIN | {"classes_", "contradicting_", "class_prior_"}
    numbers = HFSRegressor(random_state=0).fit_edges(GRAPH, {0: 1.0, 1: 2.0})
    assert vars(numbers).keys() >= PLAIN | {"mean_"}
    first = model.label_distributions_, model.stability_, model.uncertainty_
    monkeypatch.setattr("ohmlearn.estimators.problem.solve_hfs", None)  # a solve would fail
    again = model.label_distributions_, model.stability_, model.uncertainty_
    assert all(a is b for a, b in zip(first, again, strict=True))


def test_an_update_solves_unless_it_is_told_not_to():
    model, once = fitted(passes=1), fitted(passes=1)
    before = vars(model).keys()
    with pytest.raises(NotFittedError, match="HFSClassifier instance is not fitted yet"):
        HFSClassifier().scores_  # noqa: B018
    waiting = model.update(MORE, solve=False)
    for name in ("scores_", "transduction_", "answer_", "label_distributions_", "uncertainty_"):
        with pytest.raises(NotFittedError, match=r"since the last answer; call solve\(\)"):
            getattr(waiting, name)
    with pytest.raises(NotFittedError, match="call solve"):
        waiting.suggest_labels()
    assert waiting.graph_.n_nodes == 61
    assert vars(waiting.solve()).keys() == before
    np.testing.assert_array_equal(waiting.scores_, once.update(MORE).scores_)
    assert waiting.transduction_.shape == (61,)
    with pytest.raises(AttributeError, match="no attribute 'nothing_'"):
        model.nothing_  # noqa: B018


@pytest.mark.parametrize("epsilon", [0.9, None])
def test_errors_change_nothing(epsilon: float | None, monkeypatch: pytest.MonkeyPatch):
    model = HFSClassifier(epsilon=epsilon, random_state=0).fit_edges(GRAPH.edges(), Y)
    before = dict(vars(model))

    def fail(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    for call in (
        lambda: model.fit_edges(([0], [-1]), Y),
        lambda: model.fit_edges(GRAPH, {0: [{"a"}]}),
        lambda: model.relabel({0: "a", 10**9: "b"}),
        lambda: model.update(([0], [-1])),
    ):
        with pytest.raises(ValueError, match=r"must|a label|memory"):
            call()
        assert vars(model) == before
    with monkeypatch.context() as patch:
        patch.setattr("ohmlearn.estimators.problem.solve_hfs", fail)
        with pytest.raises(KeyboardInterrupt):
            model.relabel({0: "b", 1: "a"})
    assert vars(model) == before
    # Edges before the wrong batch count, so the answers are no longer those of all edges.
    with pytest.raises(ValueError, match="must"):
        model.update([MORE, ([0], [-1])])
    assert hasattr(model, "scores_") == (epsilon is None)


@pytest.mark.slow
def test_the_job_needs_no_scikit_learn(tmp_path: Path):
    edges, labels, state = (tmp_path / name for name in ("e.csv", "l.csv", "s.ohm"))
    u, v, _ = GRAPH.edges()
    edges.write_text("u,v\n" + "".join(f"n{a},n{b}\n" for a, b in zip(u, v, strict=True)))
    labels.write_text("node,label\n" + "".join(f"n{node},{name}\n" for node, name in Y.items()))
    code = f"""
import sys
from click.testing import CliRunner
from ohmlearn.cli import main
for command in (
    ["label", {str(edges)!r}, "--labels", {str(labels)!r}, "--state", {str(state)!r}],
    ["label", "--state", {str(state)!r}, "--method", "auto"],
    ["suggest", {str(edges)!r}, "--labels", {str(labels)!r}],
    ["suggest", "--state", {str(state)!r}],
):
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 0, result.output
import ohmlearn.serve.label_thread
slow = {{"sklearn", "pandas", "scipy.stats", "matplotlib"}} & set(sys.modules)
assert not slow, slow
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("forget", [{}, {"half_life": 10.0}])
def test_edges_that_are_numbered_in_another_way_change_nothing(forget):
    first = [(["a", "b", "c"], ["b", "c", "d"], None, [1.0, 2.0, 3.0])]
    other = [(["d", "c"], ["c", "b"], None, [4.0, 5.0])]
    how = {"time": True} if forget else {}
    model = HFSClassifier(epsilon=None, **forget).fit_edges(
        read_edges(first, **how), {"a": "x", "d": "y"}
    )
    before = model.graph_.edges()
    with pytest.raises(ValueError, match="numbered in two ways"):
        model.update(read_edges(other, **how))  # without nodes=model.nodes_
    for was, now in zip(before, model.graph_.edges(), strict=True):
        np.testing.assert_array_equal(was, now)
    assert model.nodes_.ids().tolist() == ["a", "b", "c", "d"]


def test_a_sparsifier_can_be_fed_again_after_edges_without_times():
    sparsifier = StreamingSparsifier(half_life=10.0, random_state=0)
    edges = [(["a"], ["b"], None, [1.0])]
    with pytest.raises(ValueError, match="have no times"):
        sparsifier.update(read_edges(edges))
    assert sparsifier.update(read_edges(edges, time=True)).n_edges_seen_ == 1
