"""Linear algebra of numpy and scipy on one thread.

On several threads BLAS adds numbers in another order, so results would depend on the number of
cores and on OPENBLAS_NUM_THREADS. Only small dense matrices, or products with a few dozen columns,
go through BLAS here; the rest of the work is in kernels with threads of their own.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

_lock = Lock()
_n_inside = 0  # calls at work, in all threads
_limit: Any = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let BLAS use one thread: a context, or a decorator of functions.

    The limit holds for the whole process while any thread is inside. Other code may be slower
    meanwhile, but gets the same results.
    """
    global _n_inside, _limit
    with _lock:
        if _n_inside == 0:
            _limit = _libraries().limit(limits=1, user_api="blas")
        _n_inside += 1
    try:
        yield
    finally:
        with _lock:
            _n_inside -= 1
            if _n_inside == 0:
                _limit.restore_original_limits()


@cache
def _libraries() -> Any:
    """Return the BLAS libraries of numpy and of scipy, which may be two."""
    import scipy.linalg  # noqa: F401  loads the second one
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _after_fork_in_child() -> None:
    global _lock
    _lock = Lock()  # another thread may have held it


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_after_fork_in_child)
