"""Edges in partitions on a Dask cluster: sparsified and multiplied where they are."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from distributed import Client
from numpy.typing import NDArray

from ohmlearn._display import Shown
from ohmlearn.dask.partial import derive_seed, merge_partials, sparsify_partition
from ohmlearn.dask.partitions import find_partitions, make_options, open_partition
from ohmlearn.dask.product import PartialProduct, add_products, multiply_partition
from ohmlearn.dask.tree import Progress, find_client, hold, run_tree
from ohmlearn.graph.passes import Passes, PassTotals
from ohmlearn.graph.time_view import TimeView
from ohmlearn.nodes import NodeTable
from ohmlearn.sparsifier import StreamingSparsifier
from ohmlearn.validation.parameters import check_count, check_seed

__all__ = ["ClusterEdges"]

PARTITION_EDGES = 50_000_000


class ClusterEdges(Shown):
    """Edges in partitions on a Dask cluster.

    `refine` and `certify` accept them like other edges, once they have been sparsified: each worker
    multiplies by the edges of its partitions, and the products are added up in a tree.

    Parameters
    ----------
    edges : dask.dataframe.DataFrame, path, list of paths, or list of dask.delayed.Delayed
        A Delayed must return something that `read_edges` accepts: arrays (u, v), (u, v, w) or
        (u, v, w, t), a table, or a list of batches. A path is a file, a pattern or a folder that
        all workers can read.
    client : dask.distributed.Client, optional
        The current client by default. Without one, threads of this process do the work.
    split_every : int
        Number of sparsifiers that one task merges.
    partition_edges : int
        Approximate number of edges in a partition of files. Small files are put together, large
        Parquet files are divided between row groups.
    progress : callable, optional
        Called with the name of a stage, the number of finished partitions and that of all.
    **options
        How to read: the fields of `ReadOptions`, as for `read_edges`.

    Attributes
    ----------
    nodes : NodeTable
        The ids of the nodes, after `sparsify`.
    columns : str or None
        The columns that are read.
    sources : list of str
        Names of the partitions.
    n_bad, first_bad : int, str or None
        Number of rows that `sparsify` skipped with ``on_bad="skip"``, and what was wrong with the
        first of them.
    has_times : bool
        Whether times are read, with the option `time`.
    time_unit : str or None
        What the times are, see `EdgeStream`; for edges that are not in files only after `sparsify`.
    traffic : tuple of int
        Bytes of the merged sparsifiers for each level of the tree, partitions first.

    Examples
    --------
    >>> import dask
    >>> from ohmlearn.dask import ClusterEdges
    >>> edges = ClusterEdges([dask.delayed((["a"], ["b"])), dask.delayed((["b"], ["c"]))])
    >>> edges.sparsify(random_state=0).snapshot().edges()
    (array([0, 1], dtype=int32), array([1, 2], dtype=int32), array([1., 1.]))
    >>> edges.nodes.ids()
    array(['a', 'b', 'c'], dtype=object)
    """

    rereadable = True

    def __init__(
        self,
        edges: Any,
        *,
        client: Client | None = None,
        split_every: int = 8,
        partition_edges: int = PARTITION_EDGES,
        progress: Progress | None = None,
        **options: Any,
    ) -> None:
        self.client = find_client(client)
        self.split_every = check_count("split_every", split_every)
        if self.split_every < 2:
            raise ValueError(f"split_every must be at least 2, got {split_every}")
        self.options = make_options(options)
        self.partitions, self.columns = find_partitions(edges, partition_edges, self.options)
        first = self.partitions[0].content
        if isinstance(first, tuple) and self.options.bipartite in (None, True):
            # The first file decides, because others may have no names of columns.
            kinds = open_partition(first[:1], self.options).kinds
            if len(kinds) == 2:
                self.options = replace(self.options, bipartite=kinds)
        self.progress = progress
        self.nodes = NodeTable()
        self.sources = [part.name for part in self.partitions]
        self.n_bad = 0
        self.first_bad: str | None = None
        self.traffic: tuple[int, ...] = ()
        self.has_times = self.options.time is not None
        self._time_unit: str | None = "unknown"
        self._held_nodes: Any = None

    def _facts(self) -> dict[str, Any]:
        return {
            "source": self.sources[0],
            "partitions": self.n_partitions,
            "columns": self.columns,
            "nodes": len(self.nodes) or None,
            "bad rows left out": self.n_bad or None,
        }

    @property
    def n_partitions(self) -> int:
        """Number of partitions."""
        return len(self.partitions)

    @property
    def time_unit(self) -> str | None:
        """What the times are; read from the first partition, if it consists of files."""
        first = self.partitions[0].content
        if self._time_unit == "unknown" and self.has_times and isinstance(first, tuple):
            self._time_unit = open_partition(first, self.options).time_unit
        return None if self._time_unit == "unknown" else self._time_unit

    def sparsify(
        self,
        *,
        epsilon: float = 0.5,
        max_edges: int | None = None,
        constants: str = "practical",
        half_life: Any = None,
        horizon: Any = None,
        random_state: Any = None,
    ) -> StreamingSparsifier:
        """Return a sparsifier of all edges; its nodes are numbered as in `nodes`.

        Parameters
        ----------
        epsilon, max_edges, constants, half_life, horizon, random_state
            See `StreamingSparsifier`.

        Returns
        -------
        StreamingSparsifier
        """
        parameters: dict[str, Any] = {
            "epsilon": epsilon,
            "max_edges": max_edges,
            "constants": constants,
            "half_life": half_life,
            "horizon": horizon,
        }
        seed = check_seed(random_state)
        StreamingSparsifier(**parameters, random_state=seed)  # refuses bad parameters
        found = run_tree(
            "sparsify",
            self.partitions,
            lambda part: partial(
                sparsify_partition,
                number=part.number,
                name=part.name,
                options=self.options,
                parameters=parameters,
                seed=derive_seed(seed, 0, part.number),
            ),
            lambda level, index: partial(
                merge_partials, parameters=parameters, seed=derive_seed(seed, level, index)
            ),
            self.split_every,
            self.client,
            self.progress,
        )
        self.nodes, self._held_nodes = found.nodes(), None
        self.n_bad, self.first_bad, self.traffic = found.n_bad, found.first_bad, found.traffic
        self._time_unit = found.time_unit
        sparsifier: StreamingSparsifier = found.sparsifier(parameters, seed)
        sparsifier.nodes = self.nodes
        return sparsifier

    def open_passes(
        self, component: NDArray[np.int32], reader: str, view: TimeView | None = None
    ) -> Passes:
        """Return passes that multiply by the Laplacian of these edges; call `sparsify` before."""
        if len(self.nodes) == 0:
            raise ValueError(
                f"{reader} needs the ids of the nodes, which are not known yet; call the method "
                f"sparsify of these edges first"
            )
        if self._held_nodes is None:
            self._held_nodes = hold(self.nodes, self.client)
        return ClusterPasses(self, self._held_nodes, component, reader, view)


class ClusterPasses(Passes):
    """Passes over edges on a cluster, for `refine` and `certify`."""

    def __init__(
        self,
        edges: ClusterEdges,
        nodes: Any,
        component: NDArray[np.int32],
        reader: str,
        view: TimeView | None,
    ) -> None:
        super().__init__(component, reader)
        self._edges = edges
        self._nodes = nodes
        self._weigh: Any = None
        if view is not None:
            self._weigh = hold(partial(view.weigh, component=component), edges.client)

    def _read(self, x: NDArray[np.float64]) -> PassTotals:
        edges, first = self._edges, self.passes == 0
        x_held = hold(x, edges.client)
        component = hold(self.component, edges.client) if first else None
        watched = None if self.watched is None else hold(self.watched, edges.client)
        found: PartialProduct = run_tree(
            "multiply",
            edges.partitions,
            lambda part: partial(multiply_partition, name=part.name, options=edges.options),
            lambda level, index: add_products,
            edges.split_every,
            edges.client,
            edges.progress,
            (self._nodes, x_held, component, watched, self._weigh),
        )
        if first:
            self._roots = found.roots
        return found.totals
