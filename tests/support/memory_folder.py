"""A temporary folder in memory, where flushing to disk costs no time; elsewhere if there is none."""

import os
import tempfile
from pathlib import Path

PLACE = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def make_memory_folder():
    """Return the path of a new folder."""
    return Path(tempfile.mkdtemp(dir=PLACE))
