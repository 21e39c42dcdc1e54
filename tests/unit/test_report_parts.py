"""Measured memory, and the groups of the reliability diagram."""

import subprocess
import sys

import numpy as np
import pytest

from ohmlearn import HFSClassifier, gallery
from ohmlearn.estimators.answer import judge_left_out
from ohmlearn.report.label_report import draw_reliability
from ohmlearn.report.report_quality import group_by_probability, group_labels


@pytest.mark.slow
def test_peak_memory_is_that_of_the_process_itself():
    """Measured in a new process, whose parent has used far more memory."""
    block = b"\1" * 400_000_000
    code = """
from ohmlearn.report.progress import peak_memory
before = peak_memory()
block = b"1" * 200_000_000
print(before, peak_memory())
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    before, after = (float(number) for number in run.stdout.split())
    assert before < 200_000_000 < len(block)
    assert 190_000_000 < after - before < 300_000_000


@pytest.fixture(scope="module")
def model() -> HFSClassifier:
    graph = gallery.stochastic_blocks([60, 40], 0.3, bridges=250, random_state=0)
    drawn = np.random.default_rng(0).choice(100, 40, replace=False)
    return HFSClassifier(random_state=0).fit_edges(graph, {int(i): int(i >= 60) for i in drawn})


def test_labels_left_out_agree_with_the_estimated_accuracy(model: HFSClassifier):
    probability, right, weights, _ = judge_left_out(model.answer_)
    assert len(right) == 40
    assert np.average(right, weights=weights) == pytest.approx(model.accuracy_estimate_.value)
    assert np.all((probability >= 0.5) & (probability <= 1.0))


def test_groups_are_means_over_tenths(model: HFSClassifier):
    probability, right, weights, _ = judge_left_out(model.answer_)
    groups = group_by_probability(probability, right, weights)
    assert sum(group.n_labels for group in groups) == 40
    for group in groups:
        tenth = np.floor(10 * group.probability)
        part = np.floor(10 * probability) == tenth
        assert group.n_labels == part.sum()
        assert group.probability == pytest.approx(probability[part].mean())
        assert group.right == pytest.approx(right[part].mean())
        assert group.low <= group.right <= group.high


def test_groups_by_class(model: HFSClassifier):
    probability, right, weights, codes = judge_left_out(model.answer_)
    groups = group_labels(probability, right, weights, codes)
    assert [group.key for group in groups] == [0, 1]
    for group in groups:
        part = codes == group.key
        assert group.n_labels == part.sum()
        assert group.right == pytest.approx(right[part].mean())


def test_probability_one_is_in_the_last_group():
    (group,) = group_by_probability(np.array([0.95, 1.0]), np.ones(2), np.ones(2))
    assert (group.probability, group.n_labels) == (0.975, 2)


def test_dots_are_at_the_groups(model: HFSClassifier):
    pytest.importorskip("matplotlib")
    groups = group_by_probability(*judge_left_out(model.answer_)[:3])
    (axes,) = draw_reliability(groups).axes
    dots = axes.collections[-1]
    expected = [(group.probability, group.right) for group in groups]
    np.testing.assert_allclose(dots.get_offsets(), expected)
