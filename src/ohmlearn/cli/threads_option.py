"""The option ``--threads``, which also limits what numpy and pyarrow take when they are loaded."""

import os
import sys

import click

__all__ = ["threads_option"]

# Of the libraries that numpy and scipy may be built with.
LIMITS = (
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "OMP_NUM_THREADS",
)


def _limit_blas(_context: click.Context, _option: click.Parameter, threads: int) -> int:
    """Let BLAS start no more threads than asked for; it reads the limits when it is loaded."""
    if threads > 0 and "numpy" not in sys.modules:
        os.environ.update(dict.fromkeys(LIMITS, str(threads)))
    # The pool that pyarrow prefers keeps much free memory for each thread, 50 MB and more.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    from ohmlearn.checks.parameters import check_n_jobs

    check_n_jobs(threads)  # before anything is read
    return threads


threads_option = click.option(
    "--threads",
    type=int,
    default=1,
    callback=_limit_blas,
    help="-1 for all cores; results do not depend on it.",
)
