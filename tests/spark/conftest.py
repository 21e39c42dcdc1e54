"""A Spark session on two cores of this machine, and files of edges for it."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from edge_files import write_people

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.log.level": "OFF",
}
# Read when Spark starts, in tests and in doctests. A task may fail three times.
os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
os.environ["PYSPARK_SUBMIT_ARGS"] = " ".join(
    ["--master local[2,4]", *(f"--conf {k}={v}" for k, v in SETTINGS.items()), "pyspark-shell"]
)

# What Spark does itself, in one version or another.
NOISE = (
    "ignore:distutils Version:DeprecationWarning",
    "ignore:PySpark does not yet fully support pandas:FutureWarning",
    "ignore:unclosed <socket:ResourceWarning",
    "ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning",
)


def pytest_configure(config: pytest.Config) -> None:
    for line in NOISE:
        config.addinivalue_line("filterwarnings", line)


@pytest.fixture(scope="session")
def spark() -> Any:
    from pyspark.sql import SparkSession

    return SparkSession.builder.getOrCreate()


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_people(tmp_path_factory.mktemp("edges"), 20_000)
