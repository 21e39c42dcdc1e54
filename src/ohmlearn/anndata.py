"""Single cells: labels and fates of the cells of an AnnData, written back into it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import coo_array

from ohmlearn._defaults import NEIGHBORS
from ohmlearn.errors import InputError, Param
from ohmlearn.estimators import HFSClassifier
from ohmlearn.graph import Graph
from ohmlearn.nodes import NodeTable
from ohmlearn.points import knn_edges
from ohmlearn.solver import LaplacianSolver

if TYPE_CHECKING:
    from anndata import AnnData
    from pandas import DataFrame

__all__ = ["find_fates", "label_cells"]


def label_cells(
    adata: AnnData,
    key: str,
    *,
    use: str | None = None,
    model: HFSClassifier | None = None,
    unlabelled: object = None,
    abstain: float = 0.5,
    key_added: str = "ohmlearn",
) -> HFSClassifier:
    """Label all cells from those whose type is known.

    Parameters
    ----------
    adata : AnnData
        Gets ``obsm[key_added]``, a data frame of the probabilities of all types, and the columns
        ``{key_added}_label``, ``_uncertainty`` (1 - the largest one) and ``_abstains`` of ``obs``.
    key : str
        The column of ``obs`` with the known types. Cells without one are unlabelled, and so are
        those of the type `unlabelled`, such as ``"Unknown"``.
    use : str, optional
        A matrix of ``obsp``, by default ``"connectivities"`` if it is there. Or points of ``obsm``,
        else ``"X_pca"``, of which the nearest neighbours are found.
    model : HFSClassifier, optional
        What to fit; one with the default parameters if not given.
    abstain : float
        Smallest probability of a label; less certain cells have none.

    Returns
    -------
    HFSClassifier
        The fitted model. Its nodes are ``obs_names``, as in ``model.explain("cell 17")``.

    Examples
    --------
    >>> import numpy as np
    >>> from anndata import AnnData
    >>> from ohmlearn.anndata import label_cells
    >>> cells = AnnData(np.zeros((40, 1)))
    >>> cells.obsm["X_pca"] = np.arange(40.0)[:, np.newaxis]
    >>> cells.obs["type"] = ["B"] * 5 + [None] * 30 + ["T"] * 5
    >>> _ = label_cells(cells, "type", abstain=0.9)
    >>> cells.obs["ohmlearn_label"].value_counts(dropna=False).to_dict()
    {'B': 17, 'T': 17, nan: 6}
    """
    import pandas as pd

    model = HFSClassifier() if model is None else model
    known = adata.obs[key].astype(object).dropna()
    model.fit_edges(_graph_of(adata, use, model.n_neighbors), known[known != unlabelled])
    p, columns = model.label_distributions_, model.classes_
    unsure = (p.max(axis=1) < abstain) | ~model.reached_
    codes = np.where(unsure, -1, np.searchsorted(columns, model.transduction_))
    adata.obs[f"{key_added}_label"] = pd.Categorical.from_codes(codes, columns)
    adata.obs[f"{key_added}_uncertainty"] = 1.0 - p.max(axis=1)
    adata.obs[f"{key_added}_abstains"] = unsure
    adata.obsm[key_added] = pd.DataFrame(p, adata.obs_names, columns.astype(str))
    return model


def find_fates(
    adata: AnnData, terminal: str, *, use: str | None = None, key_added: str = "fates"
) -> DataFrame:
    """Return the probabilities that random walks from each cell end in each terminal state.

    A walk moves to a neighbour with a probability proportional to the weight of the edge, until it
    is at a cell of a terminal state. This is one block solve: with B the weights of the other cells
    to the states, D its row sums and L the Laplacian between them, (L + D) F = B.

    Parameters
    ----------
    adata : AnnData
        Gets ``obsm[key_added]``, the data frame that is returned, a column for each state. Cells
        that no path joins to a terminal state have NaN.
    terminal : str
        A column of ``obs`` with the states of terminal cells, missing for others, as CellRank has.
    use : str, optional
        As for `label_cells`.

    Examples
    --------
    >>> import numpy as np
    >>> from anndata import AnnData
    >>> from ohmlearn.anndata import find_fates
    >>> cells = AnnData(np.zeros((5, 1)), obs={"end": ["left", None, None, None, "right"]})
    >>> cells.obsp["connectivities"] = np.eye(5, k=1) + np.eye(5, k=-1)
    >>> find_fates(cells, "end")["left"].round(6).tolist()
    [1.0, 0.75, 0.5, 0.25, 0.0]
    """
    import pandas as pd

    graph = _graph_of(adata, use, NEIGHBORS)
    codes, states = pd.factorize(adata.obs[terminal].astype(object), sort=True)
    n, free, (u, v, w) = graph.n_nodes, codes < 0, graph.edges()
    inside, leaves = free[u] & free[v], free[u] != free[v]
    starts, stops = np.where(free[u], (u, v), (v, u))[:, leaves]
    exits = coo_array((w[leaves], (starts, codes[stops])), (n, len(states))).toarray()
    between = Graph.from_edges(u[inside], v[inside], w[inside], n_nodes=n)
    solver = LaplacianSolver(between, ground=exits.sum(axis=1), random_state=0)
    found = np.maximum(solver.solve(exits), 0.0)
    found[~free, codes[~free]] = 1.0
    totals = found.sum(axis=1, keepdims=True)
    fates = pd.DataFrame(found / np.where(totals > 0.0, totals, np.nan), adata.obs_names, states)
    adata.obsm[key_added] = fates
    return fates


def _graph_of(adata: AnnData, use: str | None, n_neighbors: int) -> Graph:
    """Return the graph of the cells, with their names."""
    name = use or ("connectivities" if "connectivities" in adata.obsp else "X_pca")
    if name in adata.obsp:
        graph = Graph.from_scipy(adata.obsp[name])
    elif name in adata.obsm:
        graph = knn_edges(np.asarray(adata.obsm[name]), n_neighbors=n_neighbors).to_graph()
    else:
        remedy = "run scanpy.pp.neighbors(adata), or name an entry of obsp or obsm"
        raise InputError(f"{Param('use', use)}: there is no {name!r} in adata", remedy=remedy)
    graph.nodes = NodeTable()
    graph.nodes.add(np.asarray(adata.obs_names, dtype=object))
    if len(graph.nodes) < graph.n_nodes:
        raise InputError("names of cells are repeated", remedy="call adata.obs_names_make_unique()")
    return graph
