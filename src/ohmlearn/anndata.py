"""Single cells: labels and fates of the cells of an AnnData, written back into it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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

GRAPH, POINTS = "connectivities", "X_pca"  # names that scanpy gives


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
        Gets ``obsm[key_added]``, a data frame with the probability of each type, and the columns
        ``{key_added}_label``, ``_uncertainty`` (1 - the largest probability) and ``_abstains`` of
        ``obs``.
    key : str
        The column of ``obs`` with the known types; missing values mean unlabelled.
    use : str, optional
        A symmetric matrix of ``obsp``, such as ``"connectivities"``, the default if there is one.
        Or an entry of ``obsm``, by default ``"X_pca"``, in which nearest neighbours are found.
    model : HFSClassifier, optional
        What to fit; by default one with the default parameters.
    unlabelled : optional
        A type that also means unlabelled, such as ``"Unknown"``.
    abstain : float
        Smallest probability of a label; less certain cells have none.
    key_added : str
        How to name what is added.

    Returns
    -------
    HFSClassifier
        The fitted model. Its nodes are ``obs_names``, as in ``model.explain("cell 17")``.

    Examples
    --------
    >>> import numpy as np
    >>> from anndata import AnnData
    >>> from ohmlearn.anndata import label_cells
    >>> cells = AnnData(np.zeros((6, 1)), obs={"type": ["B", None, None, None, None, "T"]})
    >>> cells.obsm["X_pca"] = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    >>> model = label_cells(cells, "type", model=HFSClassifier(n_neighbors=2))
    >>> cells.obs["ohmlearn_label"].tolist()
    ['B', 'B', 'B', 'T', 'T', 'T']
    """
    import pandas as pd

    model = HFSClassifier() if model is None else model
    graph = _graph_of(adata, use, model.n_neighbors)
    known = adata.obs[key].astype(object).dropna()
    model.fit_edges(graph, known[known != unlabelled])
    p = model.label_distributions_
    labels = pd.Categorical(model.transduction_, model.classes_)
    unsure = (p.max(axis=1) < abstain) | ~model.reached_
    labels[unsure] = None
    columns = {"label": labels, "uncertainty": 1.0 - p.max(axis=1), "abstains": unsure}
    for name, column in columns.items():
        adata.obs[f"{key_added}_{name}"] = column
    adata.obsm[key_added] = pd.DataFrame(p, adata.obs_names, model.classes_.astype(str))
    return model


def find_fates(
    adata: AnnData,
    terminal: str | Mapping[str, Iterable[str]],
    *,
    use: str | None = None,
    key_added: str = "fates",
    n_jobs: int | None = None,
) -> DataFrame:
    """Return the probabilities that random walks from each cell end in each terminal state.

    A walk moves to a neighbour with probability proportional to the weight of the edge, until it
    reaches a cell of some terminal state. One grounded system is solved, with a column for each
    state: (L + D) F = B, B the weights to the states and D their sums, without terminal cells.

    Parameters
    ----------
    adata : AnnData
        Gets ``obsm[key_added]``, the data frame that is returned.
    terminal : str, or dict {state: names of cells}
        A column of ``obs`` with the state of each terminal cell, missing for all others; or cells.
    use, key_added
        As for `label_cells`.
    n_jobs : int, optional
        Number of threads, as in scikit-learn.

    Returns
    -------
    DataFrame of shape (n_cells, n_states)
        NaN for cells that no path joins to a terminal state.

    Examples
    --------
    >>> import numpy as np
    >>> from anndata import AnnData
    >>> from ohmlearn import gallery
    >>> from ohmlearn.anndata import find_fates
    >>> cells = AnnData(np.zeros((5, 1)), obs={"end": ["left", None, None, None, "right"]})
    >>> cells.obsp["connectivities"] = gallery.path(5).adjacency()
    >>> find_fates(cells, "end")["left"].round(6).tolist()
    [1.0, 0.75, 0.5, 0.25, 0.0]
    """
    import pandas as pd

    graph = _graph_of(adata, use, NEIGHBORS)
    if isinstance(terminal, str):
        ends = adata.obs[terminal].astype(object)
    else:
        ends = pd.Series(index=adata.obs_names, dtype=object)
        for state, cells in terminal.items():
            ends[list(cells)] = state
    codes, states = pd.factorize(ends, sort=True)
    n, free, (u, v, w) = graph.n_nodes, codes < 0, graph.edges()
    inside, leaves = free[u] & free[v], free[u] != free[v]
    starts, stops = np.where(free[u], (u, v), (v, u))[:, leaves]
    exits = coo_array((w[leaves], (starts, codes[stops])), (n, len(states))).toarray()
    between = Graph.from_edges(u[inside], v[inside], w[inside], n_nodes=n)
    solver = LaplacianSolver(between, ground=exits.sum(axis=1), random_state=0, n_jobs=n_jobs)
    found = np.maximum(solver.solve(exits), 0.0)
    found[~free, codes[~free]] = 1.0
    totals = found.sum(axis=1, keepdims=True)
    fates = pd.DataFrame(found / np.where(totals > 0.0, totals, np.nan), adata.obs_names, states)
    adata.obsm[key_added] = fates
    return fates


def _graph_of(adata: AnnData, use: str | None, n_neighbors: int) -> Graph:
    """Return the graph of the cells, with their names."""
    name = use or (GRAPH if GRAPH in adata.obsp else POINTS)
    if name in adata.obsp:
        graph = Graph.from_scipy(adata.obsp[name])
    elif name in adata.obsm:
        graph = knn_edges(np.asarray(adata.obsm[name]), n_neighbors=n_neighbors).to_graph()
    else:
        raise InputError(
            f"{Param('use')}: adata has no {name!r} in obsp or obsm, only {list(adata.obsp)} and "
            f"{list(adata.obsm)}",
            remedy="run scanpy.pp.neighbors(adata), or name one of these",
        )
    graph.nodes = NodeTable()
    graph.nodes.add(np.asarray(adata.obs_names, dtype=object))
    if len(graph.nodes) < graph.n_nodes:
        raise InputError("names of cells are repeated", remedy="call adata.obs_names_make_unique()")
    return graph
