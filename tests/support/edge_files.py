"""Files of edges for tests of clusters."""

from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet


def write_people(folder: Path, n_edges: int) -> list[Path]:
    """Write five files of weighted edges among 300 people, some of whom are only in the last one.

    A file has four row groups.
    """
    generator = np.random.default_rng(5)
    names = np.array([f"person {i}" for i in range(300)])
    paths = []
    for number in range(5):
        ends = generator.integers(0, 250, (2, n_edges)) + (50 if number == 4 else 0)
        weights = generator.uniform(0.5, 2.0, n_edges)
        table = pa.table({"src": names[ends[0]], "dst": names[ends[1]], "weight": weights})
        paths.append(folder / f"part-{number}.parquet")
        parquet.write_table(table, paths[-1], row_group_size=n_edges // 4)
    return paths
