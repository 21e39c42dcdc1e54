"""The graphs of the solver benchmark, as connected Laplacians in .npz files."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

DATA = Path(os.environ.get("OHMLEARN_DATA", "../shared/data"))
REAL = (
    "fem_wave",
    "fem_wing",
    "fem_4elt",
    "road_luxembourg_osm",
    "snap_email_enron",
    "condmat2005_weighted",
    "internet_as2006",
)


def _gallery(name: str, *arguments: int) -> Callable[[], sp.csr_array]:
    def build() -> sp.csr_array:
        from ohmlearn import gallery

        return getattr(gallery, name)(*arguments).laplacian()

    return build


MADE: dict[str, Callable[[], sp.csr_array]] = {
    "grid_1000x1000": _gallery("grid2d", 1000, 1000),
    "grid_100x100x100": _gallery("grid3d", 100, 100, 100),
    "knn10_random_order": _gallery("knn_points", 1_000_000, 10),
    "preferential_attachment": _gallery("preferential_attachment", 1_000_000, 5),
}
QUICK: dict[str, Callable[[], sp.csr_array]] = {
    "quick_grid_100x100": _gallery("grid2d", 100, 100),
    "quick_knn10": _gallery("knn_points", 10_000, 10),
    "quick_preferential": _gallery("preferential_attachment", 10_000, 5),
    "quick_chimera": _gallery("chimera", 10_000),
}


def read_edges(path: Path) -> sp.csr_array:
    """Return the Laplacian of a Parquet edge table (columns u, v and optionally w)."""
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    n = json.loads(table.schema.metadata[b"graph"])["n_nodes"]
    u, v = (table[key].to_numpy().astype(np.int64) for key in "uv")
    w = table["w"].to_numpy().astype(float) if "w" in table.column_names else np.ones(len(u))
    half = sp.coo_array((w, (u, v)), shape=(n, n)).tocsr()
    adjacency = half + half.T
    return (sp.diags_array(adjacency.sum(axis=1)) - adjacency).tocsr()


def largest_component(laplacian: sp.csr_array) -> sp.csr_array:
    """Return the largest component, because some peers cannot solve on a disconnected graph."""
    count, label = connected_components(laplacian, directed=False)
    if count == 1:
        return laplacian
    keep = np.flatnonzero(label == np.bincount(label).argmax())
    return laplacian[keep][:, keep].tocsr()


def store(name: str, folder: Path) -> Path | None:
    """Write the graph to ``folder`` if it is not there; return None if its data file is missing."""
    target = folder / f"{name}.npz"
    if target.exists():
        return target
    source = DATA / f"{name}_edges.parquet"
    if name in REAL and not source.exists():
        return None
    build = {**MADE, **QUICK}.get(name)
    if grid := re.fullmatch(r"grid_(\d+)x(\d+)", name):
        build = _gallery("grid2d", *(int(side) for side in grid.groups()))
    build = build or (lambda: read_edges(source))
    sp.save_npz(target, sp.csr_matrix(largest_component(build())), compressed=False)
    return target


def load(path: Path) -> sp.csr_matrix:
    """Load a sorted CSR matrix with 32-bit indices, which every peer accepts without a copy."""
    laplacian = sp.load_npz(path)
    laplacian.indptr = laplacian.indptr.astype(np.int32)
    laplacian.indices = laplacian.indices.astype(np.int32)
    laplacian.sort_indices()
    return laplacian
