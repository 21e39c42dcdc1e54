"""Changed files of sparsifiers are refused or can be used; support/fuzz_saved.py runs many more."""

import os

import fuzz_saved

COUNT = 5000 if os.environ.get("OHMLEARN_LONG") == "1" else 300


def test_changed_files(tmp_path):
    outcomes = [fuzz_saved.run(seed, str(tmp_path)) for seed in range(COUNT)]
    assert set(outcomes) == {"used", "refused"}
    assert outcomes.count("used") > COUNT // 20
