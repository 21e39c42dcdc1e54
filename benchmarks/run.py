"""Run all benchmarks: ``python -m benchmarks.run`` writes one file of JSON lines per suite.

The first line of a file describes the machine, and the last line gives the time that the suite
took. While a suite runs, its figures are in NAME.local.jsonl in ``benchmarks/results`` (with
``--quick`` in ``out/bench``). When it finishes, the file is renamed to NAME.jsonl. A child that
fails becomes a line among the figures. A suite that fails leaves the earlier file unchanged, and
the other suites still run. So does a suite during which others used more than a quarter of a core:
its figures stay in NAME.local.jsonl. ``--resume`` runs such suites again, from their beginning.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import TextIO

from benchmarks import machine
from benchmarks.measure import PATIENCE, ROOT, THREAD_VARIABLES, Others, wait_for_idle

RESULTS = ROOT / "benchmarks" / "results"
QUICK_RESULTS = ROOT / "out" / "bench"

MOST_OTHERS = 0.25  # cores that others may use during a suite that is published

PEERS = ("apxchol", "approx-chol", "pyamg", "pyamgcl")  # scipy's CG is part of scaling

# Arguments of each suite, without and with --quick. Suites run in this order.
SUITES: dict[str, tuple[list[str], list[str]]] = {
    "streams": ([], ["--edges=1000000", "--rounds=1"]),
    "sparsifier": (
        [],
        ["--neighbours=1000", "--million=1e7", "--parquet=1e6", "--flat", "1e6", "1e7"],
    ),
    "resistance": (["--tol=0.5", "--epsilon=0.4"], ["--sides=100", "--tol=0.5", "--epsilon=0.4"]),
    "estimates": (["--seeds=2"], ["--seeds=1", "--families", "paper", "--sets", "school_primary"]),
    "hindsight": (["--seeds=6"], ["--seeds=2"]),
    "edge_log": (["--rounds=2"], ["--edges=1e7", "--small=200"]),
    "serve": (["--seconds=30"], ["--edges=1e6", "--text-edges=2e5", "--memory-edges=2e6",
                                 "--seconds=5"]),
    "label_cost": (
        ["--limit=120"],
        ["--points=3025", "--cases", "paper k=4500, 1 pass", "paper k=4500, 4 passes",
         "LabelSpreading k=4500, points", "LabelSpreading k=4500, stored",
         "Poisson k=4500, stored", "Diffusion k=4500, stored", "harmonic_function k=4500, stored"],
    ),
    "events": ([], ["--events=2e6", "--draws=2", "--made-draws=2", "--limit=30"]),
    "solver": (
        ["--limit=40", "--peers", *PEERS],
        ["--quick", "--limit=10", "--peers", *PEERS],
    ),
    "neighbors": ([], ["--share=0.1"]),
    "smoothing": (["--large"], ["--nodes=2e4", "--edges=2e5"]),
    "advice": (["--draws=5"], ["--points=3025", "--draws=3", "--sets", "digits",
                               "school_primary"]),
    "trust": (
        ["--draws=4", "--points=3000"],
        ["--draws=2", "--dense=300", "--sets", "digits", "ssl_bci", "school_primary"],
    ),
    "reasons": (
        ["--explained=25"],
        ["--points=600", "--explained=5", "--cost-nodes=1e4", "--sets", "digits", "cora",
         "--auto", "digits"],
    ),
    "forgetting": (["--draws=5", "--months=6"], ["--draws=2", "--months=2"]),
    "scaling": (
        ["--limit=100"],
        ["--nodes", "1000", "3000", "--edges", "300000", "1000000", "--sides", "32", "100"],
    ),
    "features": (
        ["--limit=150", "--slow-draws=3"],
        ["--sets", "cora", "ssl_digit1", "--draws=2", "--slow-draws=1"],
    ),
    "labels": (
        ["--draws=4", "--limit=100", "--points=3000"],
        ["--sets", "digits", "cora", "school_primary", "--neighbors=10", "--points=1500",
         "--draws=3", "--full", "--limit=30"],
    ),
}  # fmt: skip


def main() -> int:
    """Run the chosen suites; return 1 if one of them failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, about five minutes")
    parser.add_argument("--only", nargs="+", choices=SUITES, default=list(SUITES))
    parser.add_argument("--out", type=Path, help="folder for the figures")
    parser.add_argument(
        "--resume", action="store_true", help="skip the suites that the last run finished"
    )
    parser.add_argument(
        "--patience", type=float, default=60, help="seconds to wait until the machine is idle"
    )
    options = parser.parse_args()
    patience = 0.0 if options.quick else options.patience
    folder = options.out or (QUICK_RESULTS if options.quick else RESULTS)
    folder.mkdir(parents=True, exist_ok=True)
    journal = folder / "finished.local.txt"
    finished = journal.read_text().split() if options.resume and journal.exists() else []
    journal.write_text("".join(f"{name}\n" for name in finished))
    failed, start = [], time.perf_counter()
    for name in SUITES:  # in the order of SUITES, not of the options
        if name not in options.only or name in finished:
            continue
        if run_suite(name, options.quick, folder, patience):
            with journal.open("a") as lines:
                lines.write(f"{name}\n")
        else:
            failed.append(name)
    print(f"all suites: {(time.perf_counter() - start) / 60:.0f} minutes", file=sys.stderr)
    if failed:
        print(f"failed: {' '.join(failed)}; --resume runs them again", file=sys.stderr)
    return 1 if failed else 0


def run_suite(name: str, quick: bool, folder: Path, patience: float) -> bool:
    """Run a suite in its own process; if it finishes undisturbed, replace its figures."""
    form = "quick" if quick else "full"
    command = [sys.executable, "-m", f"benchmarks.{name}", *SUITES[name][quick]]
    print(f"== {name}: {' '.join(command[2:])}", file=sys.stderr, flush=True)
    unfinished = folder / f"{name}.local.jsonl"
    wait_for_idle(patience)
    others = Others()
    start, used = time.perf_counter(), _children_cpu()
    with unfinished.open("w", encoding="utf-8") as file:
        facts = {"bench": "machine", "suite": name, "form": form, "arguments": command[3:]}
        _write(file, {**facts, **machine.describe()})
        one_thread = {
            **os.environ,
            **dict.fromkeys(THREAD_VARIABLES, "1"),
            PATIENCE: str(patience),
        }  # a suite may choose more threads for its children
        done = subprocess.run(command, cwd=ROOT, stdout=file, env=one_thread, check=False)
        end = {"bench": "end", "suite": name, "wall_s": round(time.perf_counter() - start, 1)}
        end |= {"cpu_s": round(_children_cpu() - used, 1), "others": round(others.cores(), 2)}
        _write(file, end)
    print(f"== {name}: {end['wall_s']:.0f} s, code {done.returncode}", file=sys.stderr, flush=True)
    if done.returncode:
        return False
    if patience > 0 and end["others"] > MOST_OTHERS:
        disturbed = f"others used {end['others']:.2f} cores; the figures stay in {unfinished}"
        print(f"== {name}: {disturbed}", file=sys.stderr)
        return False
    unfinished.replace(folder / f"{name}.jsonl")
    return True


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _write(file: TextIO, figure: dict[str, object]) -> None:
    file.write(json.dumps(figure) + "\n")
    file.flush()


if __name__ == "__main__":
    sys.exit(main())
