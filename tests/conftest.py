"""What holds for all tests."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import scipy.linalg  # noqa: F401  loads the second BLAS library, which is to be limited, too
import threadpoolctl
from memory_folder import make_memory_folder


@pytest.fixture(scope="session", autouse=True)
def one_thread_for_dense_answers() -> Iterator[None]:
    """Let BLAS use one thread.

    The dense matrices that tests compare with are small. On two cores, one of which has other work,
    two threads of BLAS wait for each other: eigenvalues of 400 nodes take 0.4 or 10 seconds.
    test_blas_threads.py sets the number of threads that it needs. The limit is not that of
    `one_blas_thread`, which would then have nothing to do in any test.
    """
    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        yield


@pytest.fixture
def folder() -> Iterator[Path]:
    """A place for a log, in memory."""
    place = make_memory_folder()
    yield place / "log"
    shutil.rmtree(place)
