"""Clusters of real worker processes, and files of edges for them."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


def start(n_workers: int) -> Iterator[distributed.Client]:
    with (
        # Else Dask gives up a worker that is down again 15 s after it was killed.
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1 day"}),
        distributed.LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            silence_logs=50,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="session")
def two() -> Iterator[distributed.Client]:
    yield from start(2)


@pytest.fixture(scope="session")
def four() -> Iterator[distributed.Client]:
    yield from start(4)


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Five files of weighted edges among 300 people, some of whom are only in the last one."""
    folder = tmp_path_factory.mktemp("edges")
    generator = np.random.default_rng(5)
    names = np.array([f"person {i}" for i in range(300)])
    paths = []
    for number in range(5):
        ends = generator.integers(0, 250, (2, 40_000)) + (50 if number == 4 else 0)
        weights = generator.uniform(0.5, 2.0, 40_000)
        table = pa.table({"src": names[ends[0]], "dst": names[ends[1]], "weight": weights})
        paths.append(folder / f"part-{number}.parquet")
        parquet.write_table(table, paths[-1], row_group_size=10_000)
    return paths
