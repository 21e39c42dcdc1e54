"""Makes tests repeatable: seeds drawn from numpy's global state are the same in each run."""

import shutil
from importlib.util import find_spec

import numpy as np
import pytest

HAS_SPARK = find_spec("pyspark") is not None and shutil.which("java") is not None
collect_ignore_glob = (
    []
    if HAS_SPARK
    else ["src/ohmlearn/*spark*.py", "src/ohmlearn/cluster/spark_*.py", "tests/spark/*"]
)
if find_spec("playwright") is None:  # only make check-page needs it
    collect_ignore_glob.append("tests/project/check_page.py")


def pytest_runtest_setup(item: pytest.Item) -> None:
    np.random.seed(0)  # noqa: NPY002 (random_state=None draws from this legacy state)
