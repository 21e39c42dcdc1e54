"""Settings for worker processes on this machine."""

__all__ = ["SETTINGS"]

SETTINGS = {
    # When a worker is lost, Dask looks after this time whether it is back, and else never restarts
    # it. With the default of 15 s, a restarted worker that has just died again would be given up.
    "distributed.deploy.lost-worker-timeout": "1 day",
    # Dask makes workers return freed memory to the system at once. Each batch then needs new pages,
    # which takes a third more time. With these thresholds workers keep freed memory up to 256 MB.
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": str(2**28),
    "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": str(2**26),
}
