"""The demo prints what it really did, and its page needs no other file."""

import re
from pathlib import Path

import numpy as np
import pytest
from commands import succeed
from pages import Page

from ohmlearn import demo, gallery
from ohmlearn.harmonic import solve_hfs


@pytest.fixture(scope="module")
def found() -> demo.Demo:
    return demo.run(605, 225)


def test_exact_answer_is_that_of_the_stored_graph(found: demo.Demo):
    graph = gallery.paper_knn(225, n_points=605)
    assert found.n_edges == graph.n_edges
    values = found.classes[found.labelled]
    np.testing.assert_allclose(values, [1, 1, -1, -1])
    columns = np.stack([values > 0, values < 0], axis=1).astype(float)
    f = solve_hfs(graph, found.labelled, columns).f
    np.testing.assert_allclose(
        found.exact.scores, f[:, 0] - f[:, 1], atol=1e-5 * np.abs(f).max(), rtol=0
    )


def test_shares_of_right_labels_are_counted_over_unlabelled_points(found: demo.Demo):
    for answer in (found.one_pass, found.refined, found.exact):
        unlabelled = np.setdiff1d(np.arange(605), found.labelled)
        right = np.mean((answer.scores[unlabelled] > 0) == (found.classes[unlabelled] > 0))
        assert answer.right == pytest.approx(right)
    assert found.exact.right == 1.0
    assert found.one_pass.passes == 1 < found.refined.passes <= found.exact.passes
    assert found.n_kept < found.n_edges
    assert found.agreement(found.exact) == 1.0


@pytest.mark.slow
def test_command_prints_and_writes_a_page_that_stands_alone(tmp_path: Path):
    page = tmp_path / "demo.html"
    result = succeed("demo --points 605 --neighbors 225 -o", page)
    for word in ("Points", "Stream", "Kept", "Certificate", "Labels", "Cost", "Page"):
        assert re.search(rf"^{word} ", result.output, re.M)
    assert "605 in the plane, 4 of them labelled" in result.output
    assert "100.00% correct on the whole graph" in result.output
    read = Page(page)
    assert read.faults == []
    assert read.n_figures == 1
    assert [row[0] for row in read.tables[0]] == ["answer", "Sparse-HFS", "refined", "exact"]
    assert "ohmlearn demo --points 605 --neighbors 225" in read.text
    assert page.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
