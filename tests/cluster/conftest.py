"""Clusters of real worker processes, and files of edges for them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
pytest.importorskip("pyarrow")


def start(**shape: Any) -> Iterator[distributed.Client]:
    with (
        # Else Dask gives up a worker that is down again 15 s after it was killed.
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1 day"}),
        distributed.LocalCluster(
            dashboard_address="127.0.0.1:0", silence_logs=50, **shape
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="session")
def two() -> Iterator[distributed.Client]:
    """Two processes."""
    yield from start(n_workers=2, threads_per_worker=1)


@pytest.fixture(scope="session")
def four() -> Iterator[distributed.Client]:
    """Four threads of this process, which start at once."""
    yield from start(n_workers=2, threads_per_worker=2, processes=False)


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    from edge_files import write_people

    return write_people(tmp_path_factory.mktemp("edges"), 40_000)
