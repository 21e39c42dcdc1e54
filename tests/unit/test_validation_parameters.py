import subprocess
import sys

import joblib
import numpy as np
import pytest

from ohmlearn.validation.parameters import check_n_jobs, check_seed, require_extra


def test_n_jobs_follows_scikit_learn():
    assert check_n_jobs(None) == 1
    assert check_n_jobs(2) == 2
    assert check_n_jobs(-1) == joblib.cpu_count()
    with joblib.parallel_config(backend="threading", n_jobs=3):
        assert check_n_jobs(None) == 3
        assert check_n_jobs(2) == 2


@pytest.mark.parametrize(
    ("n_jobs", "text"),
    [
        (0, "^n_jobs = 0 has no meaning; use None or 1 for one thread, -1 for all"),
        (1.5, "^n_jobs must be an integer or None, got 1.5"),
        (True, "^n_jobs must be an integer or None, got True"),
    ],
)
def test_bad_n_jobs(n_jobs, text):
    with pytest.raises(ValueError, match=text):
        check_n_jobs(n_jobs)


def test_integers_are_their_own_seed():
    assert check_seed(0) == 0
    assert check_seed(np.int32(5)) == 5
    assert check_seed(2**64 - 1) == 2**64 - 1


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_generators_repeat_and_advance(make):
    first, second = make(3), make(3)
    seeds = [check_seed(first), check_seed(first)]
    assert seeds == [check_seed(second), check_seed(second)]
    assert seeds[0] != seeds[1]
    assert max(seeds) < 2**64


def test_no_seed_draws_from_the_global_state():
    state = np.random.get_state()  # noqa: NPY002
    try:
        np.random.seed(1)  # noqa: NPY002
        drawn = check_seed(None)
        assert drawn == check_seed(np.random.RandomState(1))
        assert drawn != check_seed(None)
    finally:
        np.random.set_state(state)  # noqa: NPY002


@pytest.mark.parametrize(
    ("random_state", "text"),
    [
        (-1, r"^random_state must lie between 0 and 2\*\*64 - 1, got -1"),
        (2**64, r"^random_state must lie between 0 and 2\*\*64 - 1, got 18446744073709551616"),
        (
            "7",
            "^random_state must be None, an integer, a numpy Generator or a RandomState, got '7'",
        ),
        (True, "^random_state must be None, an integer, .*, got True"),
    ],
)
def test_bad_random_state(random_state, text):
    with pytest.raises(ValueError, match=text):
        check_seed(random_state)


def test_missing_extra_is_named():
    with pytest.raises(
        ImportError,
        match=r'^nosuch is needed for this; install it with pip install "ohmlearn\[files\]"$',
    ):
        require_extra("nosuch", "files")
    assert require_extra("json", "files").loads("1") == 1


def test_import_is_cheap():
    script = "import sys, ohmlearn; print(sorted({'numpy', 'scipy', 'sklearn'} & set(sys.modules)))"
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]"
