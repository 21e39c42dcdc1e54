"""Changed files of models are refused or can be used; support/fuzz_saved.py runs many more."""

import os
from pathlib import Path

import fuzz_saved
import pytest

COUNT = 5000 if os.environ.get("OHMLEARN_LONG") == "1" else 200


@pytest.mark.slow
def test_changed_models_are_refused_or_can_be_used(tmp_path: Path):
    outcomes = [fuzz_saved.run_model(seed, str(tmp_path)) for seed in range(COUNT)]
    assert set(outcomes) == {"used", "refused"}
    assert outcomes.count("used") > COUNT // 20
