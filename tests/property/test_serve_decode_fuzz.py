"""Edges survive each form of a body; damaged bodies give edges or BadBody."""

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyarrow")
import serve_fuzz_decode as fuzz

from ohmlearn.nodes.node_ids import Strings, decode_strings
from ohmlearn.serve.decode_edges import decode_edges

COUNT = 20_000 if os.environ.get("OHMLEARN_LONG") == "1" else 300

INTEGERS = st.integers(-(2**63), 2**63 - 1)
# Blanks around values of CSV are dropped, and rows are lines.
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20).filter(
    lambda text: text == text.strip(" \t")
)
WEIGHTS = st.just(0.0) | st.floats(2**-126, 1e27)
TIMES = st.floats(-1e12, 1.7e9)


@st.composite
def edges(draw):
    ids = draw(st.sampled_from([INTEGERS, TEXTS]))
    columns = {"u": ids, "v": ids}
    if draw(st.booleans()):
        columns["weight"] = WEIGHTS
    if draw(st.booleans()):
        columns["t"] = TIMES
    rows = draw(st.lists(st.tuples(*columns.values()), min_size=1, max_size=30))
    return dict(zip(columns, map(list, zip(*rows, strict=True)), strict=True))


def encode(columns: dict) -> dict[str, bytes]:
    rows = list(zip(*columns.values(), strict=True))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([list(columns), *rows])
    lines = (json.dumps(dict(zip(columns, row, strict=True))) for row in rows)
    return {
        "ndjson": "\n".join(lines).encode(),
        "csv": text.getvalue().encode(),
        "arrow": fuzz.ipc(columns, rows=7),
    }


@given(edges(), st.sampled_from([None, "same"]), st.booleans())
def test_each_form_gives_the_same_edges(columns, kind, skip_bad):
    is_text = isinstance(columns["u"][0], str)
    kind = kind and ("string" if is_text else "int64")
    for form, body in encode(columns).items():
        raw = decode_edges(body, form, id_kind=kind, skip_bad=skip_bad)
        found = {"u": raw.u, "v": raw.v, "weight": raw.w, "t": raw.t}
        digits = form == "csv" and kind is None and not isinstance(raw.u, Strings)
        for name, column in found.items():
            if name not in columns:
                assert column is None
            elif isinstance(column, Strings):
                assert decode_strings(column).tolist() == columns[name]
            elif name in "uv" and is_text and digits:  # CSV does not say that these are texts
                assert list(map(str, column.tolist())) == columns[name]
            else:
                assert column.dtype == (np.int64 if name in "uv" else np.float64)
                assert column.tolist() == columns[name]
        assert raw.n_bad == 0


@pytest.mark.slow
@pytest.mark.parametrize("form", fuzz.BODIES)
def test_damaged_bodies(form):
    # In another process: damaged Arrow data must not end this one.
    script = Path(fuzz.__file__)
    command = [sys.executable, str(script), "--only", form, f"--count={COUNT}"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    _, _, read, _, refused = done.stdout.split()
    assert min(int(read), int(refused)) > 0
    assert int(read) + int(refused) == COUNT
