"""Where parameters that cannot be right are refused: numbers, options, seeds, threads."""

import math
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from importlib import import_module
from numbers import Integral, Real
from types import ModuleType
from typing import Any

import numpy as np

__all__ = [
    "LARGEST",
    "SMALLEST",
    "check_at_least",
    "check_count",
    "check_fraction",
    "check_max_iter",
    "check_memory",
    "check_n_jobs",
    "check_option",
    "check_positive",
    "check_seed",
    "naming_size",
    "require_extra",
]

MAX_THREADS = 4096
MAX_BYTES = 2**60
SMALLEST, LARGEST = 1e-100, 1e100  # what comes of other numbers overflows


def _as_float(value: Any) -> float:
    """Return a number as float, infinity if it is too large for one; NaN for what is no number."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def check_option(name: str, value: Any, options: Collection[str]) -> str:
    """Return `value` if it is one of the options."""
    if value not in options:
        known = ", ".join(repr(option) for option in options)
        raise ValueError(f"{name} must be one of {known}, got {value!r}")
    return str(value)


def check_n_jobs(n_jobs: int | None) -> int:
    """Return the number of threads that `n_jobs` stands for, as scikit-learn reads it.

    None means 1, or what an active ``joblib.parallel_config`` says; -1 means all cores.

    Examples
    --------
    >>> check_n_jobs(None), check_n_jobs(3)
    (1, 3)
    """
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral)):
        raise ValueError(f"n_jobs must be an integer or None, got {n_jobs!r}")
    if n_jobs is not None and int(n_jobs) > MAX_THREADS:
        raise ValueError(
            f"n_jobs must be at most {MAX_THREADS} threads, got {n_jobs}; -1 is all cores"
        )
    if n_jobs == 0:
        raise ValueError("n_jobs = 0 has no meaning; use None or 1 for one thread, -1 for all")
    from joblib import effective_n_jobs  # late: starting up should not pay for it

    return int(effective_n_jobs(n_jobs))


def check_seed(random_state: Any) -> int:
    """Return a seed in 0, ..., 2**64 - 1 for a `random_state` as scikit-learn knows it.

    An integer is its own seed. Generators are advanced by one draw; None draws from numpy's global
    state, so that ``numpy.random.seed`` governs it.

    Examples
    --------
    >>> check_seed(7)
    7
    >>> check_seed(np.random.default_rng(0)) == check_seed(np.random.default_rng(0))
    True
    """
    end = 2**64
    if random_state is None:
        return int(np.random.randint(0, end, dtype=np.uint64))  # noqa: NPY002
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(0, end, dtype=np.uint64))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(0, end, dtype=np.uint64))
    if isinstance(random_state, bool) or not isinstance(random_state, Integral):
        raise ValueError(
            "random_state must be None, an integer, a numpy Generator or a RandomState, "
            f"got {random_state!r}"
        )
    if not 0 <= int(random_state) < end:
        raise ValueError(f"random_state must lie between 0 and 2**64 - 1, got {random_state}")
    return int(random_state)


def check_max_iter(max_iter: Any, default: int) -> int:
    """Return an iteration limit."""
    if max_iter is None:
        return default
    if not isinstance(max_iter, Integral) or isinstance(max_iter, bool) or max_iter < 0:
        raise ValueError(f"max_iter must be None or an integer >= 0, got {max_iter!r}")
    return min(int(max_iter), 2**31 - 1)


def check_fraction(name: str, value: Any) -> float:
    """Return a number between 0 and 1, both excluded."""
    if not 0 < _as_float(value) < 1:
        raise ValueError(f"{name} must be a number above 0 and below 1, got {value!r}")
    return float(value)


def check_count(name: str, value: Any, most: int = 2**63 - 1) -> int:
    """Return an integer that is at least 1, and at most `most`.

    Examples
    --------
    >>> check_count("max_edges", 2**63)
    Traceback (most recent call last):
    ...
    ValueError: max_edges must be at most 9223372036854775807, got 9223372036854775808
    """
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be an integer >= 1, got {value!r}")
    if int(value) > most:
        raise ValueError(f"{name} must be at most {most}, got {value}")
    return int(value)


def check_positive(name: str, value: Any) -> float:
    """Return a number above 0 whose square and inverse are numbers, too.

    Examples
    --------
    >>> check_positive("gamma", 1e308)
    Traceback (most recent call last):
    ...
    ValueError: gamma must lie between 1e-100 and 1e+100, got 1e+308
    """
    number = _as_float(value)
    if not 0 < number < math.inf:
        raise ValueError(f"{name} must be a finite number above 0, got {value!r}")
    if not SMALLEST <= number <= LARGEST:
        raise ValueError(f"{name} must lie between {SMALLEST:g} and {LARGEST:g}, got {value!r}")
    return number


def check_at_least(name: str, value: Any, least: float) -> float:
    """Return a finite number that is not below `least`.

    Examples
    --------
    >>> check_at_least("epsilon", 2, 0.0)
    2.0
    """
    number = _as_float(value)
    if not least <= number < math.inf:
        raise ValueError(f"{name} must be a finite number, at least {least:g}, got {value!r}")
    if number > LARGEST:
        raise ValueError(f"{name} must be at most {LARGEST:g}, got {value!r}")
    return number


def check_memory(name: str, value: Any) -> int:
    """Return a number of bytes, given as such or like "500MB".

    Examples
    --------
    >>> check_memory("memory", "500MB"), check_memory("memory", "1.5 GiB")
    (500000000, 1610612736)
    """
    size: float | None = None
    if isinstance(value, str):
        found = re.fullmatch(r"\s*(\d+\.?\d*)\s*([kmgt]?)(i?)b\s*", value.lower())
        if found:
            power = " kmgt".index(found[2] or " ")
            size = float(found[1]) * (1024 if found[3] else 1000) ** power
    elif isinstance(value, Integral) and not isinstance(value, bool) and int(value) > 0:
        size = int(value)
    if size is None:
        raise ValueError(
            f'{name} must be a number of bytes or like "500MB" or "2GiB", got {value!r}'
        )
    if size > MAX_BYTES:
        raise ValueError(f"{name} must be at most {MAX_BYTES} bytes, got {value!r}")
    return int(size)


def require_extra(module: str, extra: str) -> ModuleType:
    """Import an optional module, or say which extra of ohmlearn brings it.

    Examples
    --------
    >>> require_extra("math", "plot").pi
    3.14...
    >>> require_extra("no_such_module", "plot")
    Traceback (most recent call last):
    ...
    ImportError: no_such_module is needed for this; install it with pip install "ohmlearn[plot]"
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f'{module} is needed for this; install it with pip install "ohmlearn[{extra}]"'
        ) from error


@contextmanager
def naming_size(what: str) -> Iterator[None]:
    """Say in a MemoryError what there is no memory for."""
    try:
        yield
    except MemoryError as error:
        raise MemoryError(f"there is not enough memory for {what}") from error
