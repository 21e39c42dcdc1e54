"""Run measurements in child processes, measure time and memory, and print JSON lines.

Each measurement runs in its own child process, so that its peak memory is measured separately and a
hanging measurement can be stopped. The child prints one JSON object per figure. The parent adds
further fields and prints it.

In a run of all suites, a child starts when the machine is idle, and is started again if other
processes disturbed it; ``others`` is how many cores they used meanwhile.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
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

PATIENCE = "OHMLEARN_BENCH_PATIENCE"  # seconds to wait until the machine is idle; 0 if not set
MOST_OTHERS = 0.1  # cores that others may use during a measurement; with more, it is repeated
TRIES = 3
MOST_WAITED_S = 60.0  # a suite waits and repeats measurements for so long, all children together


class _Spare:
    """How long this process may still wait for others, or repeat what they disturbed."""

    seconds = MOST_WAITED_S


_spare = _Spare()


def emit(figure: Figure) -> None:
    """Print one figure as one line and flush."""
    print(json.dumps(figure), flush=True)


def run_child(
    module: str,
    arguments: list[str],
    limit: float,
    threads: int = 1,
    memory_gib: float | None = None,
) -> Iterator[Figure]:
    """Yield the figures printed by ``python -m module arguments``, and how the child ended.

    ``limit`` is in CPU seconds, including start and loading. A child that asks for more than
    ``memory_gib`` of memory fails, so that it does not bring down the machine. The last figure is
    ``{"end": "ok" | "unfinished" | "failed", "note": ...}``.
    """
    patience = float(os.environ.get(PATIENCE, "0"))
    least, figures = float("inf"), list[Figure]()
    for tried in range(TRIES if patience > 0 else 1):
        start = time.monotonic()
        wait_for_idle(min(patience, _spare.seconds))
        _spare.seconds -= time.monotonic() - start
        others, start = Others(), time.monotonic()
        found = _run_once(module, arguments, limit, threads, memory_gib)
        cores = others.cores()
        if cores < least:
            least, figures = cores, found
        took = time.monotonic() - start
        _spare.seconds -= took if tried else 0.0
        if least <= MOST_OTHERS or took > _spare.seconds:
            break
    *lines, end = figures
    yield from ({**line, "others": round(least, 2)} for line in lines)
    yield end


def _run_once(
    module: str, arguments: list[str], limit: float, threads: int, memory_gib: float | None
) -> list[Figure]:
    environment = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, str(threads))}
    command = [sys.executable, "-m", module, *arguments]

    def bound() -> None:
        if memory_gib is not None:
            resource.setrlimit(resource.RLIMIT_DATA, (int(memory_gib * 2**30),) * 2)

    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=out, stderr=err, preexec_fn=bound
        )
        stopped = _wait(process, limit)
        out.seek(0)
        err.seek(0)
        text, note = out.read(), " ".join(err.read().strip().splitlines()[-1:])
    end = "ok" if process.returncode == 0 else "failed"
    if stopped:
        note, end = stopped, "unfinished"
    elif -process.returncode == signal.SIGKILL:
        note = "killed from outside: out of memory?"
    # A stopped child may leave half a line.
    lines = [line for line in text.splitlines() if line.startswith("{") and line.endswith("}")]
    return [*map(json.loads, lines), {"end": end, "note": "" if end == "ok" else note[:300]}]


def _wait(process: subprocess.Popen[str], limit: float) -> str:
    """Wait for a child; if it exceeds its limit, kill it and return the reason.

    RLIMIT_CPU is not used, because with it Linux reports CPU time in steps of 4 ms.
    """
    start = time.monotonic()
    while True:
        try:
            process.wait(timeout=0.5)
            return ""
        except subprocess.TimeoutExpired:
            cpu, wall = _cpu_of(process.pid), time.monotonic() - start
        if cpu > limit or wall > 4 * limit:  # 4: a child on a busy machine needs more wall time
            process.kill()
            process.wait()
            return (
                f"stopped after {cpu:.0f} CPU s" if cpu > limit else f"stopped after {wall:.0f} s"
            )


def _cpu_of(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0  # this system has no /proc: only the wall time limits the child
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def timed(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """Return the result, CPU seconds (all threads of this process) and wall seconds."""
    cpu, wall = time.process_time(), time.perf_counter()
    result = work()
    return result, time.process_time() - cpu, time.perf_counter() - wall


def reset_peak() -> float:
    """Reset the peak of resident memory; return the current resident memory in MiB."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return peak_mib()
    return _status_mib("VmRSS")


def peak_mib() -> float:
    """Return the peak resident memory in MiB since `reset_peak`, or since the start without it."""
    try:
        return _status_mib("VmHWM")
    except (OSError, StopIteration):
        kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return kib / (2**20 if sys.platform == "darwin" else 2**10)


def _status_mib(key: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(key)).split()[1]) / 1024


def wait_for_idle(seconds: float) -> None:
    """Wait until other processes leave the cores of a Linux machine idle, at most so long."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        before = _busy_s()
        time.sleep(0.2)
        if _busy_s() - before < 0.03:
            return


def _busy_s() -> float:
    """Return the CPU seconds that all processes, and others of the host, used since the start."""
    try:
        found = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()
    except OSError:
        return _own_s()  # this system has no /proc: others are not seen
    user, nice, system, _idle, _wait, irq, softirq, stolen = map(int, found[1:9])
    ticks = user + nice + system + irq + softirq + stolen
    return ticks / os.sysconf("SC_CLK_TCK")


def _own_s() -> float:
    """Return the CPU seconds of this process and of the children that have ended."""
    both = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)


class Others:
    """How many cores others use from now on, on average."""

    def __init__(self) -> None:
        self._start, self._used = time.monotonic(), _busy_s() - _own_s()

    def cores(self) -> float:
        """Return the mean number of cores until now."""
        seconds = time.monotonic() - self._start
        return max(0.0, _busy_s() - _own_s() - self._used) / max(seconds, 0.1)
