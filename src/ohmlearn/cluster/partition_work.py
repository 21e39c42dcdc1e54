"""The two kinds of work on partitions, as pure functions that any engine can run.

An engine calls `read` for each partition, and `merge` for each node of the tree (merge_tree.py).
Results have `to_bytes` and `from_bytes`. All that a call depends on is in its arguments and in the
fields of the work, so it gives the same bytes wherever and however often it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from ohmlearn.cluster.partition_product import PartialProduct, add_products, multiply_partition
from ohmlearn.cluster.partition_sparsifier import (
    Partial,
    derive_seed,
    merge_partials,
    sparsify_partition,
)
from ohmlearn.nodes import NodeTable
from ohmlearn.reading.read_options import ReadOptions

__all__ = ["Multiplying", "Sparsifying", "Work"]


class Work(Protocol):
    """What an engine runs.

    Attributes
    ----------
    stage : str
        What is done, for messages.
    result : type
        `Partial` or `PartialProduct`.
    """

    stage: ClassVar[str]
    result: ClassVar[Any]

    def read(self, content: Any, number: int, name: str, *shared: Any) -> Any:
        """Return the result of a partition; `shared` is what all partitions need."""

    def merge(self, parts: list[Any], level: int, index: int) -> Any:
        """Return one result for several, in order of their partitions."""


@dataclass(frozen=True)
class Sparsifying:
    """Sparsify partitions, and merge the sparsifiers.

    Examples
    --------
    >>> work = Sparsifying(ReadOptions(), {"epsilon": 0.9}, seed=0)
    >>> parts = [work.read(([0], [at]), at, f"partition {at}") for at in (1, 2)]
    >>> work.merge(parts, 1, 0).sparsifier(work.parameters, 0).n_edges_seen_
    2
    """

    options: ReadOptions
    parameters: dict[str, Any]
    seed: int
    stage: ClassVar[str] = "sparsify"
    result: ClassVar[Any] = Partial

    def read(self, content: Any, number: int, name: str) -> Partial:
        """Return the sparsifier of a partition."""
        seed = derive_seed(self.seed, 0, number)
        return sparsify_partition(content, number, name, self.options, self.parameters, seed)

    def merge(self, parts: list[Partial], level: int, index: int) -> Partial:
        """Return the sparsifier of several."""
        return merge_partials(parts, self.parameters, derive_seed(self.seed, level, index))


@dataclass(frozen=True)
class Multiplying:
    """Multiply with the Laplacians of partitions, and add up the products."""

    options: ReadOptions
    stage: ClassVar[str] = "multiply"
    result: ClassVar[Any] = PartialProduct

    def read(
        self,
        content: Any,
        number: int,
        name: str,
        nodes: NodeTable,
        x: NDArray[np.float64],
        component: NDArray[np.int32] | None,
        watched: tuple[NDArray[np.float32], NDArray[np.int64]] | None,
        weigh: Callable[..., tuple[Any, ...]] | None,
    ) -> PartialProduct:
        """Return the product with a partition; for the arguments see `multiply_partition`."""
        return multiply_partition(content, nodes, x, component, watched, weigh, name, self.options)

    def merge(self, parts: list[PartialProduct], level: int, index: int) -> PartialProduct:
        """Return the sum."""
        return add_products(parts)
