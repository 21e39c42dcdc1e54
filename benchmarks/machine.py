"""Describe the machine of a run: processor, memory, system, and versions of all packages."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path

from benchmarks.measure import ROOT, Figure

# Distribution, and the subject in which it is compared.
PEERS = {
    "apxchol": "solver",
    "approx-chol": "solver",
    "pyamg": "solver",
    "pyamgcl": "solver",
    "networkit": "resistances",
    "scikit-learn": "labels",
    "scikit-network": "labels",
    "graphlearning": "labels",
    "networkx": "labels",
    "torch": "features",
    "torch-geometric": "features",
    "pyarrow": "reading",
}
OWN = ("ohmlearn", "numpy", "scipy")
# Suites of each subject.
SUITES = {
    "solver": ("solver", "scaling"),
    "resistances": ("resistance",),
    "labels": ("labels", "label_cost", "events", "scaling"),
    "features": ("features",),
    "reading": ("streams", "sparsifier", "events", "scaling"),
}


def version(package: str) -> str | None:
    """Return the installed version of a package, or None if it is missing.

    Examples
    --------
    >>> version("numpy") is None, version("no-such-package") is None
    (False, True)
    """
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def describe() -> Figure:
    """Describe this machine and the installed packages.

    Examples
    --------
    >>> found = describe()
    >>> found["cores"] >= 1, found["packages"]["numpy"] == version("numpy")
    (True, True)
    """
    versions = {name: version(name) for name in (*OWN, *PEERS)}
    return {
        "cpu": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "memory_gib": round(_memory_gib(), 1),
        "os": _system(),
        "python": platform.python_version(),
        "packages": {name: found for name, found in versions.items() if found},
        "missing": [name for name, found in versions.items() if not found],
        "commit": _commit(),
    }  # fmt: skip


def _commit() -> str:
    """Return the commit that is checked out, with a plus sign if its code was changed."""
    commit = _git("rev-parse", "--short", "HEAD")
    changed = _git("status", "--porcelain", "--", "src", "cpp", "benchmarks/*.py")
    return commit + "+" * bool(changed) if commit else "unknown"


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


def _system() -> str:
    try:
        name = platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        name = platform.platform(terse=True)
    return f"{name}, {platform.system()} {platform.release()}, {platform.machine()}"
