"""Memory of this process."""

import sys
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
