"""Labels and fates of cells: with the real package, a dense solve, and CellRank if it is there."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.neighbors import kneighbors_graph

anndata = pytest.importorskip("anndata")
from ohmlearn import HFSClassifier  # noqa: E402
from ohmlearn.anndata import find_fates, label_cells  # noqa: E402
from ohmlearn.errors import InputError  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")  # of the other packages


@pytest.fixture
def cells():
    """Return 300 cells of a trunk that divides into two branches, with labels of some."""
    rng = np.random.default_rng(0)
    time, side = np.sort(rng.random(300)), rng.choice([-1, 1], 300)
    points = np.c_[time, side * np.maximum(0, time - 0.4), rng.normal(0, 0.02, (300, 3))]
    nearest = kneighbors_graph(points, 10)
    found = anndata.AnnData(points.astype(np.float32))
    found.obsm["X_pca"] = points
    found.obsp["connectivities"] = found.obsp["distances"] = nearest.maximum(nearest.T).tocsr()
    found.uns["neighbors"] = {
        "connectivities_key": "connectivities",
        "distances_key": "distances",
        "params": {"n_neighbors": 10, "method": "umap"},
    }
    branch = np.where(time < 0.4, "trunk", np.where(side > 0, "up", "down"))
    found.obs["branch"] = branch
    known = rng.random(300) < 0.2
    found.obs["known"] = np.where(known, branch, "Unknown")
    found.obs["end"] = np.where((time > 0.95) & (branch != "trunk"), branch, None)
    return found


@pytest.mark.parametrize("use", [None, "X_pca"])
def test_labels_are_those_of_the_classifier(cells, use):
    model = label_cells(cells, "known", use=use, unlabelled="Unknown", abstain=0.7)
    p = cells.obsm["ohmlearn"]
    known = cells.obs["known"][cells.obs["known"] != "Unknown"]
    if use is None:
        y = np.where(cells.obs["known"] == "Unknown", None, cells.obs["known"]).tolist()
        same = HFSClassifier(affinity="precomputed").fit(cells.obsp["connectivities"], y)
        np.testing.assert_allclose(p, same.label_distributions_, atol=1e-12)
    assert p.columns.tolist() == ["down", "trunk", "up"]
    assert (p.index == cells.obs_names).all()
    label, unsure = cells.obs["ohmlearn_label"], cells.obs["ohmlearn_abstains"]
    assert (label.isna() == unsure).all()
    assert (unsure == (p.max(axis=1) < 0.7)).all()
    np.testing.assert_allclose(cells.obs["ohmlearn_uncertainty"], 1 - p.max(axis=1))
    assert (label[~unsure] == p.idxmax(axis=1)[~unsure]).all()
    assert (label[~unsure] == cells.obs["branch"][~unsure]).mean() > 0.95
    assert model.explain(known.index[0]).node == known.index[0]


def test_answers_are_written_to_a_file(cells, tmp_path):
    label_cells(cells, "known", unlabelled="Unknown")
    find_fates(cells, "end")
    cells.write_h5ad(tmp_path / "cells.h5ad")
    again = anndata.read_h5ad(tmp_path / "cells.h5ad")
    assert (
        again.obs["ohmlearn_label"].astype(str) == cells.obs["ohmlearn_label"].astype(str)
    ).all()
    np.testing.assert_array_equal(again.obsm["fates"], cells.obsm["fates"])


def test_fates_are_those_of_a_dense_solve(cells):
    found = find_fates(cells, "end")
    ends = cells.obs["end"].astype(object)
    walk = cells.obsp["connectivities"].toarray()
    walk /= walk.sum(axis=1, keepdims=True)
    free = ends.isna().to_numpy()
    targets = np.column_stack([ends == name for name in found.columns]).astype(float)
    exits = walk[np.ix_(free, ~free)] @ targets[~free]
    targets[free] = np.linalg.solve(np.eye(free.sum()) - walk[np.ix_(free, free)], exits)
    np.testing.assert_allclose(found, targets, atol=1e-7)
    assert found is cells.obsm["fates"] or found.equals(cells.obsm["fates"])


def test_fates_are_those_of_cellrank(cells):
    cellrank = pytest.importorskip("cellrank")
    kernel = cellrank.kernels.ConnectivityKernel(cells)
    kernel.compute_transition_matrix(density_normalize=False)
    estimator = cellrank.estimators.GPCCA(kernel)
    ends = cells.obs["end"].dropna()
    estimator.set_terminal_states({name: list(ends.index[ends == name]) for name in ("up", "down")})
    estimator.compute_fate_probabilities(tol=1e-12, use_petsc=False)
    theirs = estimator.fate_probabilities
    ours = find_fates(cells, "end")[list(theirs.names)]
    np.testing.assert_allclose(ours, np.asarray(theirs), atol=1e-6)
    again = find_fates(cells, "term_states_fwd")[list(theirs.names)]  # the column of CellRank
    np.testing.assert_allclose(again, ours, atol=1e-9)


def test_cells_that_reach_no_end_have_no_fate():
    cells = anndata.AnnData(np.zeros((4, 1)), obs={"end": ["a", None, None, None]})
    pairs = np.zeros((4, 4))
    pairs[0, 1] = pairs[1, 0] = pairs[2, 3] = pairs[3, 2] = 1.0
    cells.obsp["connectivities"] = csr_array(pairs)
    np.testing.assert_array_equal(find_fates(cells, "end")["a"], [1.0, 1.0, np.nan, np.nan])


def test_what_is_missing_is_named(cells):
    with pytest.raises(InputError, match="there is no 'X_umap' in adata"):
        label_cells(cells, "known", use="X_umap")
    cells.obs_names = ["cell"] * 300
    with pytest.raises(InputError, match="obs_names_make_unique"):
        find_fates(cells, "end")
