"""Child processes for measurements, their clocks and memory, and JSON lines.

A measurement runs alone in a child, so that its peak memory is its own and a hang can be stopped.
The child prints one JSON object per figure; the parent completes it and prints it.
"""

from __future__ import annotations

import json
import math
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)
Figure = dict[str, Any]


def emit(figure: Figure) -> None:
    """Print one figure as one line, at once."""
    print(json.dumps(figure), flush=True)


def run_child(
    module: str, arguments: list[str], limit: float, threads: int = 1
) -> Iterator[Figure]:
    """Figures printed by ``python -m module arguments``; the last one tells how it ended.

    ``limit`` is in CPU seconds, those of start and loading included.
    The last figure is ``{"end": "ok" | "unfinished" | "failed", "note": ...}``.
    """
    environment = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, str(threads))}
    command = [sys.executable, "-m", module, *arguments]
    seconds = math.ceil(limit)
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=4 * limit,  # for a child that sleeps; a busy machine must not stop the others
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 9)),
        )
        text, note = done.stdout, done.stderr.strip().splitlines()[-1:]
        end = "ok" if done.returncode == 0 else "failed"
        if -done.returncode == signal.SIGXCPU:
            note, end = [f"stopped after {limit:g} CPU s"], "unfinished"
        elif -done.returncode == signal.SIGKILL:  # not by us: the hard limit is above the soft one
            note = ["killed from outside: out of memory?"]
    except subprocess.TimeoutExpired as expired:
        text = (expired.stdout or b"").decode()
        note, end = [f"stopped after {4 * limit:g} s of wall time"], "unfinished"
    for line in text.splitlines():
        if line.startswith("{"):
            yield json.loads(line)
    yield {"end": end, "note": "" if end == "ok" else " ".join(note)[:300]}


def timed(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """Result, CPU seconds (all threads of this process) and wall seconds."""
    cpu, wall = time.process_time(), time.perf_counter()
    result = work()
    return result, time.process_time() - cpu, time.perf_counter() - wall


def reset_peak() -> float:
    """Start a new peak of resident memory; return the present one in MiB."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return peak_mib()
    return _status_mib("VmRSS")


def peak_mib() -> float:
    """Peak resident memory in MiB since `reset_peak`, or since the start where it cannot be."""
    try:
        return _status_mib("VmHWM")
    except (OSError, StopIteration):
        kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return kib / (2**20 if sys.platform == "darwin" else 2**10)


def _status_mib(key: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(key)).split()[1]) / 1024
