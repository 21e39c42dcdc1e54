"""The option ``--cluster``: the same work on the workers of a Dask cluster."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from ohmlearn.cli.edge_options import reading_options
from ohmlearn.cli.messages import status_line, tell

if TYPE_CHECKING:
    from ohmlearn.dask import ClusterEdges

__all__ = ["cluster_option", "open_on_cluster"]

REFUSED = {
    "memory": "it limits a single process; give --max-edges or --epsilon",
    "n_nodes": "workers find the nodes themselves",
}

MAX_WORKERS = 1024  # each is a process

# Workers ignore SIGINT (Ctrl-C). The main process stops them.
DEAF = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"

cluster_option = click.option(
    "--cluster",
    metavar="ADDRESS|local[:N]",
    help="Work on a Dask cluster: the address of its scheduler, or N processes here. Labels depend "
    "on how files are cut into partitions, not on the number of workers.",
)


@contextmanager
def open_on_cluster(
    options: dict[str, Any], *, needs_times: bool = False
) -> Iterator["ClusterEdges"]:
    """Give the edges that the options of `edge_options` ask for, on the cluster asked for."""
    for name, reason in REFUSED.items():
        if options.get(name) is not None:
            raise click.UsageError(
                f"--{name.replace('_', '-')} has no use with --cluster: {reason}"
            )
    address, n_workers = _parse(options["cluster"])

    from ohmlearn.checks.parameters import require_extra

    require_extra("distributed", "dask")
    from ohmlearn.dask import ClusterEdges

    with _connect(address, n_workers) as client:
        if not options["quiet"] and not options["as_json"]:
            tell(f"Dashboard {client.dashboard_link}")
        line = status_line()
        edges = ClusterEdges(
            list(options["edges"]),
            client=client,
            progress=None if line is None else line.show,
            **asdict(reading_options(options, needs_times=needs_times)),
        )
        if edges.columns is not None and not (options["quiet"] or options["as_json"]):
            tell(f"{edges.sources[0]}: {edges.columns}")
        yield edges


def _parse(where: str) -> tuple[str | None, int | None]:
    """Return an address, or a number of workers to start here."""
    kind, _, rest = where.partition(":")
    if kind != "local":
        return where, None
    if rest and not (rest.isdecimal() and int(rest) > 0):
        raise click.UsageError(f"--cluster local:N needs a number of workers, got {where!r}")
    if rest and int(rest) > MAX_WORKERS:
        raise click.UsageError(
            f"--cluster local:N starts at most {MAX_WORKERS} workers, got {where!r}"
        )
    return None, int(rest) if rest else None


@contextmanager
def _connect(address: str | None, n_workers: int | None) -> Iterator[Any]:
    import logging

    import dask
    import joblib
    from distributed import Client, LocalCluster

    from ohmlearn.cluster.dask_tree import SETTINGS

    if address is not None:
        try:
            client = Client(address, timeout=10)
        except (OSError, ValueError) as error:
            said = " ".join(str(error).split())
            raise click.UsageError(f"there is no Dask scheduler at {address}: {said}") from error
        with client:
            yield client
        return
    with (
        dask.config.set(SETTINGS),
        LocalCluster(
            n_workers=n_workers or joblib.cpu_count(),
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,  # our own errors report dead workers
            preload=[DEAF],
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client
