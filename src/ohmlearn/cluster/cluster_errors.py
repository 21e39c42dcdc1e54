"""What goes wrong with a partition, as one error that names it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ohmlearn.errors import OhmError, Param, Place, SourceError, text_of


class PartitionError(SourceError):
    """A partition that cannot be read or sparsified; the message says which, and why."""

    __module__ = "ohmlearn.cluster"  # where users import it from


class WorkerError(OhmError, OSError):
    """Workers died at a partition again and again, or the cluster is gone."""

    __module__ = "ohmlearn.cluster"


@contextmanager
def in_partition(name: str) -> Iterator[None]:
    """Turn whatever goes wrong with a partition into one error, of a single line, that names it."""
    try:
        yield
    except PartitionError:
        raise
    except Exception as error:
        said = text_of(error)
        if isinstance(error, MemoryError):
            remedy = f"give {Param('partition_edges')} or {Param('max_edges')} a smaller value"
            said = f"out of memory ({said}); {remedy}"
        elif not isinstance(error, ValueError | TypeError | OSError | ImportError):
            said = f"{type(error).__name__}: {said}"
        raise PartitionError(said, place=Place(name)) from error
