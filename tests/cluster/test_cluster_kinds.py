"""Two kinds of nodes in partitions on a cluster."""

from pathlib import Path

import numpy as np
import pytest

from ohmlearn import certify
from ohmlearn.dask import ClusterEdges, label

RNG = np.random.default_rng(0)
U, V = RNG.integers(30, size=(2, 600))
V = V - V % 2 + U % 2


def write(folder: Path, *headings: str) -> list[Path]:
    """Write the edges to one file for each heading."""
    paths = []
    for number, heading in enumerate(headings):
        rows = zip(U[number :: len(headings)], V[number :: len(headings)], strict=True)
        lines = ([heading] if heading else []) + [f"{a},{b}" for a, b in rows]
        paths.append(folder / f"part-{number}.csv")
        paths[-1].write_text("\n".join(lines) + "\n")
    return paths


def test_partitions_have_the_same_kinds(tmp_path: Path):
    # The second file has no names of columns.
    paths = write(tmp_path, "user,item", "", "user,item")
    edges = ClusterEdges(paths, partition_edges=100, bipartite=True)
    assert edges.n_partitions > 1
    kept = edges.sparsify(random_state=0)
    assert len(edges.nodes) == 60
    assert edges.nodes.kinds == ("user", "item")
    assert certify(edges, kept.snapshot(), random_state=0).epsilon < 1
    known = {f"user:{i}": "eo"[i % 2] for i in range(8)}
    how = {"partition_edges": 100, "bipartite": True}
    found = label(paths, known, calibration=None, random_state=0, **how)
    answers = dict(zip(found.ids.tolist(), found.labels.tolist(), strict=True))
    assert all(answer == "eo"[int(node.split(":")[1]) % 2] for node, answer in answers.items())


def test_columns_of_a_data_frame():
    frames, pandas = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    table = pandas.DataFrame({"share": U / 7, "shop": U, "what": V, "user_id": U, "item_id": V})
    edges = ClusterEdges(frames.from_pandas(table, npartitions=3), bipartite=True)
    edges.sparsify(random_state=0)
    assert edges.nodes.kinds == ("user", "item")
    assert len(edges.nodes) == 60
    two = frames.from_pandas(table[["share", "shop", "what"]], npartitions=2)
    assert ClusterEdges(two, bipartite=False).columns.startswith("u = 'shop', v = 'what'")
