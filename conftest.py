"""Makes tests repeatable: seeds drawn from numpy's global state are the same in each run."""

import numpy as np
import pytest


def pytest_runtest_setup(item: pytest.Item) -> None:
    np.random.seed(0)  # noqa: NPY002 (random_state=None draws from this legacy state)
