"""Results do not depend on the threads of BLAS, and --threads limits these."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg
import threadpoolctl

from ohmlearn._blas import one_blas_thread

SUPPORT = Path(__file__).parents[1] / "support"


def run_with(n_threads: int, *command: str) -> str:
    """Return what a child prints, in which BLAS may start so many threads."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": str(n_threads)}
    environment |= {"MKL_NUM_THREADS": str(n_threads), "OMP_NUM_THREADS": str(n_threads)}
    child = subprocess.run(
        [sys.executable, *command], env=environment, capture_output=True, text=True, check=True
    )
    return child.stdout


def blas_threads() -> list[int]:
    """Return the number of threads that each BLAS library may use."""
    libraries = threadpoolctl.threadpool_info()
    return [library["num_threads"] for library in libraries if library["user_api"] == "blas"]


@pytest.mark.slow
def test_same_bits_for_any_number_of_blas_threads():
    job = str(SUPPORT / "blas_job.py")
    first = run_with(1, job)
    assert len(first.splitlines()) >= 7
    assert run_with(2, job) == first
    assert run_with(4, job) == first


# The program that `ohmlearn` starts, in a process that prints the threads of BLAS at its end.
COMMAND = """
import sys, threadpoolctl
from ohmlearn.cli import main
main(sys.argv[1:], standalone_mode=False)
import numpy, scipy.linalg
counts = [x["num_threads"] for x in threadpoolctl.threadpool_info() if x["user_api"] == "blas"]
print("threads", *counts)
"""


@pytest.mark.slow
@pytest.mark.parametrize("threads", ["1", "2"])
def test_threads_of_a_command_limit_blas(tmp_path, threads):
    edges, h = tmp_path / "edges.csv", tmp_path / "h.ohm"
    edges.write_text("u,v\n" + "".join(f"{i},{i + 1}\n" for i in range(20)))
    options = ["sparsify", str(edges), "-o", str(h), "--threads", threads, "--quiet"]
    printed = run_with(4, "-c", COMMAND, *options)
    counts = printed.splitlines()[-1].split()[1:]
    assert counts, printed
    assert all(int(count) <= int(threads) for count in counts)
    assert printed.splitlines()[-1].startswith("threads")


@pytest.fixture
def two_threads():
    """Tests run with one thread of BLAS, with which a limit would change nothing."""
    scipy.linalg.cholesky(np.eye(2))
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        assert set(blas_threads()) == {2}
        yield


def test_limit_ends_with_the_last_call_inside(two_threads):
    before = blas_threads()
    with one_blas_thread():
        with one_blas_thread():
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {1}
    assert blas_threads() == before
    with pytest.raises(KeyError), one_blas_thread():
        raise KeyError
    assert blas_threads() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_forked_inside_is_not_blocked(two_threads):
    with one_blas_thread():
        child = os.fork()
        if child == 0:
            with one_blas_thread():
                os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
