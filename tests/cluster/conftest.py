"""Clusters of real worker processes, and files of edges for them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
pytest.importorskip("pyarrow")


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
    from edge_files import write_people

    return write_people(tmp_path_factory.mktemp("edges"), 40_000)
