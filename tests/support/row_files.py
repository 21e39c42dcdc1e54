"""The same rows as a file of any format that is read."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

MARKS = {".csv": ",", ".tsv": "\t", ".txt": " "}


def write_rows(path: Path, columns: Mapping[str, Sequence[Any]], together: int = 1 << 20) -> Path:
    """Write columns in the format of the ending, so many rows in a batch, and return the path.

    A missing value is None.
    """
    rows = list(zip(*columns.values(), strict=True))
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        parquet.write_table(pa.table(dict(columns)), path, row_group_size=together)
    elif path.suffix in (".arrow", ".feather"):
        table = pa.table(dict(columns))
        with pa.ipc.new_file(path, table.schema) as file:
            file.write_table(table, max_chunksize=together)
    elif path.suffix == ".jsonl":
        lines = [json.dumps(dict(zip(columns, row, strict=True)), default=np.generic.item)
                 for row in rows]  # fmt: skip
        path.write_text("\n".join([*lines, ""]))
    elif path.suffix == ".npz":
        np.savez(path, **columns)
    else:
        mark = MARKS[path.suffix]
        lines = [mark.join("" if x is None else str(x) for x in row) for row in (columns, *rows)]
        path.write_text("\n".join([*lines, ""]))
    return path
