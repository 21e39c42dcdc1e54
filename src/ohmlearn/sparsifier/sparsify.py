"""Sparsify edges in one call."""

from typing import Literal

from ohmlearn import _core
from ohmlearn._defaults import EPSILON
from ohmlearn._warnings import warn
from ohmlearn.graph import Graph
from ohmlearn.reading.as_edges import as_edges
from ohmlearn.sparsifier.sparsifier_options import Duration
from ohmlearn.sparsifier.streaming_sparsifier import StreamingSparsifier


def sparsify(
    edges: object,
    *,
    epsilon: float = EPSILON,
    n_nodes: int | None = None,
    max_edges: int | None = None,
    memory: int | str | None = None,
    scheme: Literal["resample", "online", "paper"] = "resample",
    constants: Literal["practical", "theory"] = "practical",
    random_state: object = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    half_life: Duration | None = None,
    horizon: Duration | None = None,
    at: object = None,
    since: object = None,
) -> Graph:
    """Sparsify edges in one pass.

    Parameters
    ----------
    edges : stream, Graph, or tuple (u, v) or (u, v, w) of arrays
        As for `StreamingSparsifier.update`.
    epsilon, n_nodes, max_edges, memory, scheme, constants, random_state, n_jobs, verbose, \
half_life, horizon
        As for `StreamingSparsifier`.
    at, since : number or date, optional
        As for `StreamingSparsifier.snapshot`.

    Returns
    -------
    Graph
        The sparsifier. Its attribute `nodes` holds the ids, if `edges` has ids.

    Examples
    --------
    >>> from ohmlearn import gallery, sparsify
    >>> sparsify(gallery.complete(500), epsilon=0.9, random_state=0).n_edges < 15_000
    True
    """
    edges = as_edges(edges)
    if n_nodes is None and edges.nodes_are_final:
        n_nodes = edges.n_nodes
    sparsifier = StreamingSparsifier(
        n_nodes=n_nodes,
        epsilon=epsilon,
        max_edges=max_edges,
        memory=memory,
        scheme=scheme,
        constants=constants,
        random_state=random_state,
        n_jobs=n_jobs,
        verbose=verbose,
        half_life=half_life,
        horizon=horizon,
    )
    h = sparsifier.update(edges).snapshot(at=at, since=since)
    if edges.loses_weights and (n_parts := h.components()[0]) > 1:
        warn(
            f"H has {n_parts} components: weights between them are below "
            f"{_core.SMALLEST_WEIGHT:.2g}, which count as 0; give a smaller gamma of the kernel"
        )
    return h
