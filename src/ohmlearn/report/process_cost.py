"""Memory and processor time of this process."""

import sys
import time
from pathlib import Path


def peak_memory() -> int:
    """Return the peak memory of this process in bytes."""
    # Avoid ru_maxrss on Linux, where a child process starts with the value of its parent.
    try:
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def cpu_seconds() -> float:
    """Return the processor time of this process and its threads since it started."""
    return time.process_time()
