"""Checks of parameters: numbers, options, seeds, threads, and all parameters of a class at once.

A class declares its constraints as data, a dict from the name of a parameter to the values that it
may have; `check_parameters` compares them with what was given.
"""

import math
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from numbers import Integral, Real
from types import ModuleType, NoneType
from typing import Any, Literal

import numpy as np

from ohmlearn.errors import InputError, Param, bad_value

MAX_THREADS = 4096
MAX_BYTES = 2**60
SMALLEST, LARGEST = 1e-100, 1e100  # squares and inverses of other numbers overflow
# Weights of labels. With any weights of edges, gamma="auto" is between SMALLEST and LARGEST.
LIGHTEST, HEAVIEST = 1e-50, 1e50


@dataclass(frozen=True)
class Interval:
    """Numbers, Integral or Real, between two limits."""

    numbers: type
    low: float = -math.inf
    high: float = math.inf
    closed: Literal["both", "right", "neither"] = "both"

    def allows(self, value: object) -> bool:
        """Return whether a value lies in the interval; booleans and infinity do not."""
        if not isinstance(value, self.numbers) or isinstance(value, bool):
            return False
        given: Any = value
        number = int(given) if isinstance(given, Integral) else float(given)
        above = number >= self.low if self.closed == "both" else number > self.low
        below = number < self.high if self.closed == "neither" else number <= self.high
        return above and below and abs(number) != math.inf

    def __str__(self) -> str:
        what = "an integer" if self.numbers is Integral else "a number"
        if self.high == math.inf:
            return what if self.low == -math.inf else f"{what} >= {self.low}"
        if self.closed == "neither":
            return f"{what} above {self.low} and below {self.high}"
        return f"{what} in {'[' if self.closed == 'both' else '('}{self.low}, {self.high}]"


@dataclass(frozen=True)
class Options:
    """One of a few strings."""

    values: tuple[str, ...]

    def allows(self, value: object) -> bool:
        """Return whether a value is one of the strings."""
        return isinstance(value, str) and value in self.values

    def __str__(self) -> str:
        known = ", ".join(map(repr, self.values))
        return known if len(self.values) == 1 else f"one of {known}"


@dataclass(frozen=True)
class Allowed:
    """Values of which a function says whether they are allowed."""

    allows: Callable[[Any], bool]
    described: str

    def __str__(self) -> str:
        return self.described


FRACTION = Interval(Real, 0, 1, "neither")
POSITIVE = Interval(Real, SMALLEST, LARGEST)
# What a parameter may be: one of the classes above, a type, or None for None itself.
Constraints = Mapping[str, tuple[Any, ...]]
ARRAY = Allowed(lambda value: hasattr(value, "__len__") and not isinstance(value, str), "an array")
CALLABLE = Allowed(callable, "a function")
RANDOM_STATE = (None, Interval(Integral, 0, 2**64 - 1), np.random.Generator, np.random.RandomState)
N_JOBS = (None, Interval(Integral))  # `check_n_jobs` knows the limits
VERBOSE = (bool, Interval(Integral, 0))


def check_parameters(owner: str, constraints: Constraints, values: Mapping[str, Any]) -> None:
    """Raise ValueError for the first parameter whose value no constraint allows.

    Names without constraints are not checked. `owner` is the name of the class or function.
    """
    for name, choices in constraints.items():
        if name in values:
            check_value(name, values[name], *choices, owner=f" of {owner}")


def check_value(name: str, value: Any, *choices: Any, owner: str = "") -> Any:
    """Return a value if one of the choices allows it."""
    for choice in choices:
        is_type = choice is None or isinstance(choice, type)
        if isinstance(value, choice or NoneType) if is_type else choice.allows(value):
            return value
    expected = (f"a {x.__name__}" if isinstance(x, type) else str(x) for x in choices)
    raise bad_value(name, f"be {' or '.join(expected)}", value, owner=owner)


def check_option(name: str, value: object, options: Collection[str]) -> str:
    """Return `value` if it is one of the options."""
    return str(check_value(name, value, Options(tuple(options))))


def check_n_jobs(n_jobs: int | None) -> int:
    """Return the number of threads that `n_jobs` means in scikit-learn.

    None means 1, or the number set by an active ``joblib.parallel_config``; -1 means all cores.
    """
    check_value("n_jobs", n_jobs, *N_JOBS)
    if n_jobs is not None and n_jobs > MAX_THREADS:
        raise bad_value("n_jobs", f"be at most {MAX_THREADS} threads", n_jobs, "-1 is all cores")
    if n_jobs == 0:
        remedy = "use 1 for one thread, -1 for all cores"
        raise InputError(f"{Param('n_jobs', 0)} has no meaning", remedy=remedy)
    if "joblib" not in sys.modules and (n_jobs is None or n_jobs > 0):
        return 1 if n_jobs is None else int(n_jobs)
    from joblib import effective_n_jobs  # late: it would slow down the start of the command line

    return int(effective_n_jobs(n_jobs))


def check_seed(random_state: object) -> int:
    """Return a seed in 0, ..., 2**64 - 1 for a `random_state` in the sense of scikit-learn.

    An integer is the seed. A generator is advanced by one draw of 64 bits. None draws from numpy's
    global state, so that ``numpy.random.seed`` makes it reproducible.
    """
    given = check_value("random_state", random_state, *RANDOM_STATE)
    if given is None:
        return int(np.random.randint(0, 2**64, dtype=np.uint64))  # noqa: NPY002
    if isinstance(given, np.random.RandomState):
        return int(given.randint(0, 2**64, dtype=np.uint64))
    if isinstance(given, np.random.Generator):
        return int(given.integers(0, 2**64, dtype=np.uint64))
    return int(given)


def check_fraction(name: str, value: object) -> float:
    """Return a number between 0 and 1, both excluded."""
    return float(check_value(name, value, FRACTION))


def check_positive(name: str, value: object) -> float:
    """Return a number above 0 whose square and inverse do not overflow."""
    return float(check_value(name, value, POSITIVE))


def check_at_least(name: str, value: object, least: float) -> float:
    """Return a number that is not below `least`."""
    return float(check_value(name, value, Interval(Real, least, LARGEST)))


def check_count(name: str, value: object, most: int = 2**63 - 1) -> int:
    """Return an integer that is at least 1, and at most `most`."""
    count = int(check_value(name, value, Interval(Integral, 1)))
    if count > most:
        raise bad_value(name, f"be at most {most}", value)
    return count


def check_memory(name: str, value: object) -> int:
    """Return a number of bytes, given as such or like "500MB"."""
    size: float | None = None
    if isinstance(value, str):
        found = re.fullmatch(r"\s*(\d+\.?\d*)\s*([kmgt]?)(i?)b\s*", value.lower())
        if found:
            power = " kmgt".index(found[2] or " ")
            size = float(found[1]) * (1024 if found[3] else 1000) ** power
    elif isinstance(value, Integral) and not isinstance(value, bool) and int(value) > 0:
        size = int(value)
    if size is None:
        raise bad_value(name, 'be a number of bytes or like "500MB" or "2GiB"', value)
    if size > MAX_BYTES:
        raise bad_value(name, f"be at most {MAX_BYTES} bytes", value)
    return int(size)


def require_extra(module: str, extra: str) -> ModuleType:
    """Import an optional module, or say which extra of ohmlearn installs it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f'{module} is needed for this; install it with pip install "ohmlearn[{extra}]"'
        ) from error


@contextmanager
def naming_size(what: str) -> Iterator[None]:
    """Name in a MemoryError what did not fit into memory."""
    try:
        yield
    except MemoryError as error:
        raise MemoryError(f"there is not enough memory for {what}") from error
