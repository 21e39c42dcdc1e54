"""How far a stream of edges has been read, on stderr: quiet unless that is a terminal."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

__all__ = ["describe_progress", "watch"]

EVERY = 0.2  # seconds


def describe_progress(
    n_edges: int, seconds: float, fraction: float | None, sparsifier: Any = None
) -> str:
    """Say in a line how far it is.

    Examples
    --------
    >>> describe_progress(2_000_000, 4.0, 0.25)
    '2,000,000 edges, 0.5 M/s, ... MiB, 25%, 0:00:12 left'
    """
    kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    mib = kib / (2**20 if sys.platform == "darwin" else 2**10)
    parts = [f"{n_edges:,} edges", f"{n_edges / max(seconds, 1e-9) / 1e6:.1f} M/s"]
    if sparsifier is not None:
        parts.append(f"{sparsifier.n_rows_:,} rows, {sparsifier.n_resamples_} resamples")
    parts.append(f"{mib:,.0f} MiB")
    if fraction:
        left = round(seconds * (1 - fraction) / fraction)
        parts.append(f"{fraction:.0%}")
        parts.append(f"{left // 3600}:{left // 60 % 60:02d}:{left % 60:02d} left")
    return ", ".join(parts)


def watch(stream: Any, sparsifier: Any = None, quiet: bool = False) -> Iterator[Any]:
    """Yield the batches of a stream and show how far it is."""
    if quiet or not sys.stderr.isatty():
        yield from stream
        return
    start = told = time.perf_counter()
    n_edges = 0
    with ExitStack() as stack:
        show = _line(stack)
        for batch in stream:
            n_edges += len(batch[0])
            yield batch
            now = time.perf_counter()
            if now - told > EVERY:
                told = now
                show(describe_progress(n_edges, now - start, stream.fraction, sparsifier))


def _line(stack: ExitStack) -> Any:
    """Return a function that shows a text in place of the one before."""
    try:
        from rich.console import Console
    except ImportError:
        stack.callback(lambda: print(file=sys.stderr))
        return lambda text: print(f"\r{text}", end="\033[K", file=sys.stderr, flush=True)
    status = stack.enter_context(Console(stderr=True).status("reading"))
    return status.update
