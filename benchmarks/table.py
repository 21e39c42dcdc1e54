"""Print figures from a file of JSON lines as Markdown tables that compare ours with each peer."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.measure import Figure


def show(path: Path) -> None:
    """Print CPU seconds, ratios to ours, memory and, if measured, the speed-up of two threads."""
    figures = [json.loads(line) for line in path.read_text().splitlines() if line.startswith("{")]
    figures = [f for f in figures if f.get("bench") == "solver" and "solver" in f]
    single = [f for f in figures if f["threads"] == 1]
    ours = {(f["graph"], f.get("rhs")): f for f in single if f["solver"] == "ohmlearn"}
    print(
        "| graph | solver | rhs | set-up + solve, CPU s | total | over ours | iterations | "
        "residual | MiB over baseline | status |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for f in single:
        cells = [f["graph"], f["solver"], str(f.get("rhs", ""))]
        if "solve_cpu_s" in f:
            ratio = _ratio(f, ours.get((f["graph"], f["rhs"])))
            cells += [f"{f['setup_cpu_s']:.3g} + {f['solve_cpu_s']:.3g}", f"{_total(f):.3g}", ratio]
            cells += [str(f["iterations"]), f"{f['residual']:.1e}"]
            cells += [f"{f['rss_peak_mib'] - f['rss_baseline_mib']:.0f}"]
        else:
            cells += [""] * 6
        print("| " + " | ".join([*cells, f"{f['status']} {f.get('note', '')}".strip()]) + " |")
    _speed_up(figures, ours)


def _speed_up(figures: list[Figure], ours: dict[tuple[str, int], Figure]) -> None:
    double = [f for f in figures if f["threads"] == 2 and "solve_wall_s" in f]
    if double:
        print("\n| graph | rhs | solve wall s, 1 thread | 2 threads | speed-up |")
        print("|---|---|---|---|---|")
    for f in double:
        one = ours.get((f["graph"], f["rhs"]), {}).get("solve_wall_s")
        if one:
            two = f["solve_wall_s"]
            print(f"| {f['graph']} | {f['rhs']} | {one:.3g} | {two:.3g} | {one / two:.2f} |")


def _total(figure: Figure) -> float:
    return float(figure["setup_cpu_s"] + figure["solve_cpu_s"])


def _ratio(figure: Figure, ours: Figure | None) -> str:
    if not ours or "solve_cpu_s" not in ours:
        return ""
    return f"{_total(figure) / _total(ours):.2f}"
