"""Changed files of sparsifiers and models are refused or can be used; see support/fuzz_saved.py."""

import os

import fuzz_saved
import pytest

COUNT = 5000 if os.environ.get("OHMLEARN_LONG") == "1" else 200


@pytest.mark.parametrize("kind", ["sparsifiers", pytest.param("models", marks=pytest.mark.slow)])
def test_changed_files(kind, tmp_path):
    outcomes = [fuzz_saved.RUNS[kind](seed, str(tmp_path)) for seed in range(COUNT)]
    assert set(outcomes) == {"used", "refused"}
    assert outcomes.count("used") > COUNT // 20
