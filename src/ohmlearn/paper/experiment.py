"""The experiment and the figures of the paper that introduced Sparse-HFS.

The data are n = 12,100 points in the plane, in four clusters from top to bottom. The two upper
clusters form one class. Two points of the uppermost and two of the lowermost cluster are labelled.
The k-nearest-neighbour graphs range from sparse to nearly complete; gamma = 1 and epsilon = 0.8.
The paper does not publish its points, so these are chosen to reproduce what it describes. Each job
runs in its own process, so that its memory and time can be measured.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ohmlearn._arrays_file import write_whole
from ohmlearn.checks.parameters import require_extra
from ohmlearn.paper import experiment_page
from ohmlearn.points.point_arrays import check_n_neighbors
from ohmlearn.report.html_page import describe_versions, figure_to_png

NEIGHBOURS = (100, 1000, 2000, 3000, 4000, 4500, 5000, 6000, 8000, 10_000, 12_000)
QUICK = (100, 4000, 4500, 12_000)
# The scheme "paper" solves more systems and takes minutes where the default takes seconds.
PAPER_SCHEME, PAPER_SCHEME_QUICK = (100, 1000, 4500), (100,)
JOB = "ohmlearn.paper.experiment_job"  # run as a program


@dataclass(frozen=True)
class ExperimentSettings:
    """Settings of the experiment."""

    neighbours: tuple[int, ...]
    paper_scheme: tuple[int, ...]
    draws: int
    seed: int
    n_points: int
    epsilon: float = 0.8
    workers: int = field(default_factory=lambda: min(2, os.cpu_count() or 1))

    @classmethod
    def choose(
        cls,
        quick: bool,
        paper_scheme: str,
        neighbors: tuple[int, ...],
        draws: int | None,
        points: int,
        seed: int,
    ) -> "ExperimentSettings":
        """Return the settings for the options of the command line."""
        chosen = tuple(sorted(set(neighbors))) or (QUICK if quick else NEIGHBOURS)
        check_n_neighbors(chosen[-1], points)
        some = PAPER_SCHEME_QUICK if quick else PAPER_SCHEME
        scheme = {"none": (), "some": tuple(k for k in chosen if k in some), "all": chosen}
        if draws is None:
            draws = 3 if quick else 10
        return cls(chosen, scheme[paper_scheme], draws, seed, points)

    def jobs(self) -> list[dict[str, Any]]:
        """Return the jobs, longest first."""
        shared = {key: getattr(self, key) for key in ("n_points", "draws", "seed", "epsilon")}
        wanted = [("paper", k) for k in self.paper_scheme]
        wanted += [(kind, k) for k in self.neighbours for kind in ("stream", "stored")]
        weight = {"paper": 5.0, "stream": 1.0, "stored": 0.3}
        wanted.sort(key=lambda job: -weight[job[0]] * job[1])
        return [{"kind": kind, "k": k, **shared} for kind, k in wanted]


def run_experiment(settings: ExperimentSettings) -> dict[str, Any]:
    """Run all jobs, with progress on stderr, and return all results."""
    jobs, start = settings.jobs(), time.perf_counter()
    done: list[dict[str, Any]] = []
    with ThreadPoolExecutor(settings.workers) as pool:  # each thread waits for a process
        futures: list[Future[dict[str, Any]]] = [pool.submit(_run_apart, job) for job in jobs]
        try:
            for future in as_completed(futures):
                done.append(future.result())
                progress = f"[{len(done)}/{len(jobs)}, {time.perf_counter() - start:.0f} s]"
                print(progress, _describe(done[-1]), file=sys.stderr, flush=True)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return {
        "settings": {**asdict(settings), "neighbours": list(settings.neighbours)},
        "versions": describe_versions(),
        "results": _collect(done, settings.neighbours),
    }


def _run_apart(job: dict[str, Any]) -> dict[str, Any]:
    """Run a job in its own process."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", JOB, json.dumps(job)]
    run = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if run.returncode != 0:
        lines = run.stderr.strip().splitlines() or [f"exit code {run.returncode}"]
        raise RuntimeError(f"the job {job['kind']!r} at k = {job['k']} failed: {lines[-1]}")
    result: dict[str, Any] = json.loads(run.stdout)
    return result


def _describe(result: dict[str, Any]) -> str:
    kind, k = result["kind"], result["k"]
    if "skipped" in result:
        return f"k = {k}: the graph was not stored, because it {result['skipped']}"
    if kind == "stored":
        peak = result["cost"]["peak_bytes"] / 2**30
        return f"k = {k}: {result['n_edges']:,} edges stored, {peak:.2f} GiB"
    kept = f"k = {k}: {result['n_edges']:,} edges, {result['kept_share']:.2%} kept"
    if kind == "paper":
        return f"{kept} by the paper's scheme, fraction correct: {np.mean(result['sparse']):.3f}"
    means = (f"{name} {np.mean(result[name]):.3f}" for name in ("sparse", "refined", "exact"))
    return f"{kept}, fraction correct: {', '.join(means)}"


def _collect(done: list[dict[str, Any]], neighbours: Iterable[int]) -> list[dict[str, Any]]:
    """Sort the results of the jobs by k."""
    results = []
    for k in neighbours:
        found = {result["kind"]: result for result in done if result["k"] == k}
        exact = float(np.mean(found["stream"]["exact"]))
        results.append({"k": k, "n_edges": found["stream"]["n_edges"], "exact": exact, **found})
    return results


def describe(results: dict[str, Any]) -> str:
    """Return the main results as lines of text."""
    lines = [f"{'k':>7} {'edges':>11} {'kept':>8} {'fraction':>8}   exact  1 pass  refined"]
    for found in results["results"]:
        stream = found["stream"]
        means = [float(np.mean(stream[name])) for name in ("exact", "sparse", "refined")]
        lines.append(
            f"{found['k']:>7,} {found['n_edges']:>11,} {stream['n_kept']:>8,} "
            f"{stream['kept_share']:>8.2%}   {means[0]:.3f}   {means[1]:.3f}    {means[2]:.3f}"
        )
    return "\n".join(lines)


def write_results(results: dict[str, Any], folder: Path, command: str) -> list[Path]:
    """Write the figures, all numbers as JSON, the tables as Markdown, and one HTML page."""
    require_extra("matplotlib", "plot")
    folder.mkdir(exist_ok=True)
    findings, costs = (folder / f"figure-{part}.png" for part in ("abc", "d"))
    figure_to_png(experiment_page.draw_findings(results), findings)
    figure_to_png(experiment_page.draw_costs(results), costs)
    numbers, page, tables = (folder / f"paper.{kind}" for kind in ("json", "html", "md"))
    write_whole(numbers, (json.dumps({"command": command, **results}, indent=1) + "\n").encode())
    experiment_page.make_page(results, command).write(page)
    write_whole(tables, experiment_page.make_markdown(results).encode())
    return [findings, costs, numbers, tables, page]
