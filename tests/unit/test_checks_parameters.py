"""Parameters: their ranges, seeds, threads and memory."""

import inspect
import re
from functools import partial
from numbers import Integral, Real

import joblib
import numpy as np
import pytest
from refuses import refuses

import ohmlearn
from ohmlearn import Graph, LaplacianSolver, gallery, paper
from ohmlearn.checks.parameters import (
    ARRAY,
    CALLABLE,
    N_JOBS,
    RANDOM_STATE,
    VERBOSE,
    Interval,
    Options,
    check_memory,
    check_n_jobs,
    check_parameters,
    check_seed,
    require_extra,
)

KINDS = {
    "share": (Interval(Real, 0, 1, "neither"),),
    "count": (None, Interval(Integral, 1)),
    "amplitude": (Interval(Real, 0, 1, "right"),),
    "gamma": (Options(("auto",)), Interval(Real, 1e-100, 1e100)),
    "affinity": (Options(("knn", "rbf")), CALLABLE),
    "prior": (None, ARRAY),
    "seed": RANDOM_STATE,
    "n_jobs": N_JOBS,
    "verbose": VERBOSE,
    "text": (str,),
}


@pytest.mark.parametrize(
    "values",
    [
        {"share": 0.5, "count": None, "amplitude": 1, "gamma": "auto", "affinity": "rbf"},
        {"count": np.int32(4), "gamma": np.float32(2), "affinity": len, "prior": [0.5, 0.5]},
        {"prior": np.ones(2), "seed": 2**64 - 1, "n_jobs": -1, "verbose": True, "text": ""},
        {"seed": np.random.default_rng(0), "verbose": 3, "unknown": "not checked"},
    ],
)
def test_parameters_that_are_allowed(values):
    check_parameters("Thing", KINDS, values)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("share", 1, "a number above 0 and below 1, got 1"),
        ("share", np.nan, "a number above 0 and below 1, got nan"),
        ("share", "0.5", "a number above 0 and below 1, got '0.5'"),
        ("count", 0, "None or an integer >= 1, got 0"),
        ("count", 2.0, "None or an integer >= 1, got 2.0"),
        ("count", True, "None or an integer >= 1, got True"),
        ("amplitude", 0, "a number in (0, 1], got 0"),
        ("amplitude", -np.inf, "a number in (0, 1], got -inf"),
        ("gamma", 10**400, f"'auto' or a number in [1e-100, 1e+100], got {10**400}"),
        ("affinity", "cosine", "one of 'knn', 'rbf' or a function, got 'cosine'"),
        ("prior", 0.5, "None or an array, got 0.5"),
        ("seed", -1, "None or an integer in [0, 18446744073709551615] or a Generator or a RandomS"),
        ("text", 7, "a str, got 7"),
    ],
)
def test_parameters_that_are_refused(name, value, expected):
    with pytest.raises(ValueError, match=re.escape(f"{name} of Thing must be {expected}")):
        check_parameters("Thing", KINDS, {name: value})


PUBLIC = [getattr(ohmlearn, name) for name in ("certify", "refine", "solve_hfs")]
PUBLIC += [ohmlearn.effective_resistance, LaplacianSolver, LaplacianSolver.solve]
PUBLIC += [LaplacianSolver.as_linear_operator]
PUBLIC += [getattr(Graph, name) for name in dir(Graph) if name.startswith("from_")]
PUBLIC += [getattr(gallery, name) for name in gallery.__all__]
PUBLIC += [getattr(paper, name) for name in paper.__all__ if name.islower()]


@pytest.mark.parametrize("function", PUBLIC, ids=lambda f: f.__qualname__)
def test_options_are_keyword_only(function):
    data = {"w", "pairs", "edge_weight", "certificate", "n_points"}  # data that may be left out
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.default is not parameter.empty and name not in data:
            assert parameter.kind is parameter.KEYWORD_ONLY, name
        if name == "random_state":
            assert parameter.default is None


def test_n_jobs_follows_scikit_learn():
    assert check_n_jobs(None) == 1
    assert check_n_jobs(2) == 2
    assert check_n_jobs(-1) == joblib.cpu_count()
    with joblib.parallel_config(backend="threading", n_jobs=3):
        assert check_n_jobs(None) == 3
        assert check_n_jobs(2) == 2


@pytest.mark.parametrize(
    ("check", "parameter", "values"),
    [(check_n_jobs, "n_jobs", [0, 1.5, True]),
     (check_seed, "random_state", [-1, 2**64, "7", True]),
     (partial(check_memory, "memory"), "memory", ["2 k b", 0, True])],
)  # fmt: skip
def test_bad_values(check, parameter, values):
    for value in values:
        with refuses(parameter=parameter, value=value):
            check(value)


def test_integers_are_their_own_seed():
    assert [check_seed(seed) for seed in (0, np.int32(5), 2**64 - 1)] == [0, 5, 2**64 - 1]


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_generators_repeat_and_advance(make):
    first, second = make(3), make(3)
    seeds = [check_seed(first) for _ in range(64)]
    assert seeds == [check_seed(second) for _ in range(64)]
    assert len(set(seeds)) == 64
    assert 2**63 <= max(seeds) < 2**64  # of a fixed seed; others would fail with probability 2^-64


def test_no_seed_draws_from_the_global_state():
    state = np.random.get_state()  # noqa: NPY002
    try:
        np.random.seed(1)  # noqa: NPY002
        drawn = check_seed(None)
        assert drawn == check_seed(np.random.RandomState(1))
        assert drawn != check_seed(None)
    finally:
        np.random.set_state(state)  # noqa: NPY002


def test_memory_in_bytes():
    for given, size in ((7, 7), (" 500 mb ", 500_000_000), ("1.5 GiB", 3 << 29)):
        assert check_memory("memory", given) == size


def test_missing_extra_is_named():
    with pytest.raises(
        ImportError,
        match=r'^nosuch is needed for this; install it with pip install "ohmlearn\[files\]"$',
    ):
        require_extra("nosuch", "files")
    assert require_extra("json", "files").loads("1") == 1
