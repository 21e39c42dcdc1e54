"""Services and edges that tests of ``ohmlearn serve`` share."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ohmlearn.reading.table_reader import RawBatch
from ohmlearn.serve.service import LabelRow, Service
from ohmlearn.serve.settings import Settings

GROUPS = 3


def make_edges(
    n_edges: int, n_nodes: int = 60, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return u, v, w and t; node i is in group i % 3, and most edges are inside of groups."""
    rng = np.random.default_rng(seed)
    u = rng.integers(0, n_nodes, n_edges)
    inside = rng.integers(0, n_nodes // GROUPS, n_edges) * GROUPS + u % GROUPS
    v = np.where(rng.random(n_edges) < 0.95, inside, rng.integers(0, n_nodes, n_edges))
    v = np.where(u == v, (v + GROUPS) % n_nodes, v)
    return u, v, rng.integers(1, 9, n_edges) / 4.0, 1.7e9 + np.arange(n_edges, dtype=float)


def cut(columns: tuple[Any, ...], size: int) -> Iterator[RawBatch]:
    """Yield batches of edges."""
    for first in range(0, len(columns[0]), size):
        u, v, w, t = (column[first : first + size] for column in columns)
        yield RawBatch(u, v, w, t=t)


def three_labels() -> list[LabelRow]:
    """Return three labels for each group."""
    return [LabelRow(node, f"group {node % GROUPS}") for node in range(9)]


@contextmanager
def serving(folder: Path, **settings: Any) -> Iterator[Service]:
    """Run a service; it is stopped at the end."""
    options = {"certify_every": None, "every_seconds": 0.0, **settings}
    service = Service(folder, Settings(**options))
    try:
        service.start()
        yield service
    finally:
        service.stop()


def wait_for(holds: Callable[[], Any], seconds: float = 60.0) -> Any:
    """Wait until something is true; fail if it never is."""
    end = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < end, "waited for too long"
        time.sleep(0.005)
    return found


def wait_for_answers(service: Service) -> None:
    """Wait until the answers reflect all edges and labels."""
    labeller, follower = service._labeller, service._follower

    def is_up_to_date() -> bool:
        has_all = follower.operation == service._log.n_operations
        wanted = (follower.version, service.labels_version)
        return has_all and labeller.solved is not None and labeller._answered == wanted

    wait_for(is_up_to_date)
