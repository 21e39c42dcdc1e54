"""Settings for worker processes on this machine."""

__all__ = ["SETTINGS"]

SETTINGS = {
    # Else Dask gives up a worker that dies twice, if it is down 15 s after the first time.
    "distributed.deploy.lost-worker-timeout": "1 day",
    # Dask lets workers give memory back at once; batches then come on fresh pages each, which takes
    # a third more time.
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": str(2**28),
    "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": str(2**26),
}
