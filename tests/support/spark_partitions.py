"""The partitions of a Spark DataFrame, as tables in this process, and the bytes of results."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from ohmlearn import StreamingSparsifier
from ohmlearn.cluster.spark_jobs import map_in_arrow


def content(found: StreamingSparsifier) -> bytes:
    """All that a result consists of: the state of the sampler, parameters, seed and node ids."""
    assert found.nodes is not None
    return b"".join(array.tobytes() for array in found.get_state().values())


def take_partitions(frame: Any) -> list[Any]:
    """Return each partition as a table; an empty one as an empty list."""

    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        sink, rows = pa.BufferOutputStream(), list(batches)
        if rows:
            with pa.ipc.new_stream(sink, rows[0].schema) as writer:
                for batch in rows:
                    writer.write_batch(batch)
        number = TaskContext.get().partitionId()
        yield pa.record_batch({"number": [number], "content": [sink.getvalue().to_pybytes()]})

    found = map_in_arrow(frame, pack, "number long, content binary").collect()
    tables = {row[0]: pa.ipc.open_stream(row[1]).read_all() if row[1] else [] for row in found}
    return [tables[number] for number in range(len(tables))]
