"""Makes tests repeatable, and says which folders of tests are slow.

Seeds drawn from numpy's global state are the same in each run.
"""

import shutil
from importlib.util import find_spec
from pathlib import Path

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
if find_spec("anndata") is None:  # make check-fields has it
    collect_ignore_glob.append("src/ohmlearn/anndata.py")


TESTS = Path(__file__).parent / "tests"
SLOW = {
    "cluster",
    "project",
    "serve",
    "spark",
    "statistical",
}  # folders: servers, processes, many draws
QUICK = {
    "test_counts.py",
    "test_figures.py",
    "test_metadata.py",
    "test_names.py",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave whole folders to `make check`."""
    for item in items:
        if TESTS in item.path.parents:
            folder = item.path.relative_to(TESTS).parts[0]
            if folder in SLOW and item.path.name not in QUICK:
                item.add_marker(pytest.mark.slow)


def pytest_runtest_setup(item: pytest.Item) -> None:
    np.random.seed(0)  # noqa: NPY002 (random_state=None draws from this legacy state)
