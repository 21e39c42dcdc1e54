"""Damaged files give edges or a clear error; support/fuzz_readers.py runs many more."""

import pytest

pytest.importorskip("pyarrow")
import fuzz_readers


@pytest.mark.filterwarnings("ignore:.* is in both columns")
@pytest.mark.parametrize("reader", fuzz_readers.READERS)
def test_damaged_files(reader, tmp_path):
    outcomes = {fuzz_readers.run(reader, seed, str(tmp_path)) for seed in range(150)}
    assert outcomes == {"edges", "refused"}
