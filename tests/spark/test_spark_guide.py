"""The code of docs/spark.md runs, from top to bottom."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

PAGE = Path(__file__).parents[2] / "docs" / "spark.md"


def test_the_guide(spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    u, v = np.random.default_rng(0).integers(0, 60, (2, 5000))
    v = v - v % 3 + u % 3
    u[0], v[:3], u[1:3] = 0, [1, 2, 0], [1, 2]  # three groups that hang together
    (tmp_path / "events").mkdir()
    names = np.array([f"user {i}" for i in range(60)])
    table = pa.table({"note": u, "src": names[u], "dst": names[v], "weight": np.ones(5000)})
    parquet.write_table(table, tmp_path / "events" / "1.parquet")
    known = "".join(f"user {i},{'abc'[i % 3]}\n" for i in range(12))
    (tmp_path / "known.csv").write_text("node,label\n" + known)
    scope: dict[str, Any] = {}
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    assert len(blocks) == 3
    for block in blocks:
        # Spark runs in another folder.
        exec(re.sub(r'"(events|known\.csv|labels)"', rf'"{tmp_path}/\1"', block), scope)
    assert "energies in H are" in capsys.readouterr().out
    rows = spark.read.parquet(str(tmp_path / "labels")).collect()
    right = sum(row["label"] == "abc"[int(row["node"].split()[1]) % 3] for row in rows)
    assert len(rows) == 60
    assert right == 60
