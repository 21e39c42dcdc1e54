"""Pictures for docs/benchmarks.md."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.label_methods import METHODS
from benchmarks.label_tables import by_set
from benchmarks.measure import Figure
from benchmarks.results import Results
from benchmarks.solver_tables import GRAPHS, SOLVERS, total
from ohmlearn.report.html_page import (
    COLOURS,
    INK,
    add_legend,
    figure_to_png,
    new_figure,
    style_axes,
)

BLUE, ORANGE, GREEN, VIOLET, GREY = COLOURS
# Colour, marker and line of each method; they can be distinguished without colour.
LOOK: dict[tuple[str, int], tuple[str, str, str]] = {
    ("1 pass", 1): (BLUE, "o", "-"),
    ("1 pass", 2): (BLUE, "o", ":"),
    ("3 passes", 1): (BLUE, "s", "--"),
    ("LabelSpreading", 1): (ORANGE, "^", "-"),
    ("Poisson", 1): (GREEN, "D", "-"),
    ("Diffusion", 1): (VIOLET, "v", "-"),
    ("harmonic_function", 1): (GREY, "P", "-"),
}
SOLVER_LOOK = {
    "ohmlearn": (BLUE, "o", "-"),
    "apxchol": (ORANGE, "^", "-"),
    "approx-chol": (GREEN, "D", "-"),
    "pyamg": (VIOLET, "v", "-"),
    "pyamgcl": (GREY, "P", "-"),
    "scipy-cg": (INK, "x", "--"),
}


def draw_all(results: Results, folder: Path) -> list[Path]:
    """Write all pictures for which there are figures; return their paths."""
    drawn = {
        "bench-scaling-labels.png": draw_label_scaling,
        "bench-scaling-solver.png": draw_solver_scaling,
        "bench-solver.png": draw_solvers,
        "bench-accuracy.png": draw_accuracy,
        "bench-reliability.png": draw_reliability,
        "bench-sparsifier.png": draw_hindsight,
        "bench-forgetting.png": draw_forgetting,
    }
    paths = []
    for name, draw in drawn.items():
        try:
            figure = draw(results)
        except (LookupError, ValueError) as error:
            print(f"not drawn: {name}: {error!r}", file=sys.stderr)
            figure = None
        if figure is not None:
            figure_to_png(figure, folder / name, dpi=90)
            paths.append(folder / name)
    return paths


def draw_label_scaling(results: Results) -> Any:
    """Draw CPU time and memory of labelling over nodes and over edges."""
    if not results.figures("scaling"):
        return None
    figure = new_figure(9.5, 6.6)
    panels = figure.subplots(2, 2, sharey="row")
    # For two threads the picture shows wall time, because they do not save CPU time.
    for row, (key, unit) in enumerate((("cpu_s", "CPU seconds"), ("memory_mib", "MiB"))):
        for panel, curve, over in zip(
            panels[row], ("nodes", "edges"), ("n_nodes", "n_edges"), strict=True
        ):
            _draw_curves(panel, results, curve, over, key)
            title = {
                ("nodes", 0): "100 edges per node", ("edges", 0): "30,000 nodes",
            }.get((curve, row), "")  # fmt: skip
            style_axes(panel, title, "nodes" if curve == "nodes" else "edges", "")
        panels[row][0].set_ylabel(unit, color=INK)
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=8.5)
    return figure


def _draw_curves(panel: Any, results: Results, curve: str, over: str, key: str) -> None:
    for (method, threads), (colour, marker, line) in LOOK.items():
        chosen = results.figures(
            "scaling", curve=curve, method=method, threads=threads, status="ok"
        )
        if threads == 2 and key == "memory_mib":
            continue
        values = [f["wall_s"] if threads == 2 else f[key] for f in chosen]
        package = METHODS[method].package
        name = f"ohmlearn, {method}" if package == "ohmlearn" else package
        name += ", 2 threads, wall" if threads == 2 else ""
        panel.plot([f[over] for f in chosen], values, color=colour, marker=marker, linestyle=line,
                   markersize=5, linewidth=1.4, label=name)  # fmt: skip
    panel.set_xscale("log")
    panel.set_yscale("log")


def draw_solver_scaling(results: Results) -> Any:
    """Draw CPU time and memory of the solver over the nodes of square grids."""
    figures = results.figures("scaling", curve="solver", threads=1, status="ok")
    if not figures:
        return None
    figure = new_figure(9.5, 3.6)
    left, right = figure.subplots(1, 2)
    for name, (colour, marker, line) in SOLVER_LOOK.items():
        chosen = [f for f in figures if f["solver"] == name]
        n = [f["n_nodes"] for f in chosen]
        look = {"color": colour, "marker": marker, "linestyle": line, "linewidth": 1.4,
                "markersize": 5}  # fmt: skip
        left.plot(
            n, [total(f) for f in chosen], label=SOLVERS.get(name, "scipy cg, diagonal"), **look
        )
        used = [f["rss_peak_mib"] - f["rss_baseline_mib"] for f in chosen]
        right.plot(n, used, **look)
    for panel, what in (
        (left, "CPU seconds, set-up and one solve"),
        (right, "MiB, without the graph"),
    ):
        style_axes(panel, "", "nodes of a square grid", what)
        panel.set_xscale("log")
        panel.set_yscale("log")
    add_legend(left, fontsize=8)
    return figure


def draw_solvers(results: Results) -> Any:
    """Draw the CPU time of each solver divided by ours, for each graph."""
    figures = results.figures("solver", threads=1)
    if not figures:
        return None
    graphs = list(dict.fromkeys(f["graph"] for f in figures))
    figure = new_figure(9.5, 0.34 * len(graphs) + 1.6)
    panels = figure.subplots(1, 2, sharey=True)
    for panel, rhs in zip(panels, (1, 16), strict=True):
        for name, (colour, marker, _) in SOLVER_LOOK.items():
            xs, ys = [], []
            for at, graph in enumerate(graphs):
                peer, ours = (
                    results.one("solver", graph=graph, solver=s, threads=1, rhs=rhs)
                    for s in (name, "ohmlearn")
                )
                reached = peer.get("status") in ("ok", "projected")
                if reached and "solve_cpu_s" in peer and "solve_cpu_s" in ours:
                    xs.append(total(peer) / total(ours))
                    ys.append(at)
            label = SOLVERS.get(name, "scipy cg, diagonal")
            panel.scatter(xs, ys, color=colour, marker=marker, s=34, label=label, zorder=3)
        what = "one right-hand side" if rhs == 1 else f"{rhs} right-hand sides"
        style_axes(panel, what, "CPU time divided by ours", "")
        panel.set_xscale("log")
        panel.axvline(1.0, color=INK, linewidth=1)
    panels[0].set_yticks(range(len(graphs)), [GRAPHS.get(g, g).split(", n =")[0] for g in graphs])
    panels[0].invert_yaxis()
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6, frameon=False)
    return figure


def draw_accuracy(results: Results) -> Any:
    """Draw the accuracy of each method minus that of three passes, for each set."""
    rows = by_set(results.figures("labels"))
    shown = [m for m in METHODS if m != "3 passes"]
    if not rows:
        return None
    figure = new_figure(9.5, 3.4)
    panels = figure.subplots(1, 3, sharey=True, sharex=True)
    spread = np.random.default_rng(0)
    for panel, labels in zip(panels, ("1", "5", "10"), strict=True):
        for at, method in enumerate(shown):
            chosen = [
                row[method]["accuracy"] - row["3 passes"]["accuracy"]
                for (_, used), row in rows.items()
                if used == labels and {method, "3 passes"} <= row.keys()
            ]
            colour, marker, _ = LOOK.get((method, 1), (BLUE, "o", ""))
            panel.scatter(chosen, at + spread.uniform(-0.22, 0.22, len(chosen)), s=12,
                          color=colour, marker=marker, alpha=0.8, linewidths=0)  # fmt: skip
            if chosen:
                panel.scatter([np.mean(chosen)], [at], color=INK, marker="|", s=260, zorder=3)
        ending = "label per class" if labels == "1" else "labels per class"
        style_axes(panel, f"{labels} {ending}", "accuracy minus three passes, points", "")
        panel.axvline(0.0, color=INK, linewidth=1)
    panels[0].set_yticks(range(len(shown)), shown)
    panels[0].invert_yaxis()
    return figure


def draw_reliability(results: Results) -> Any:
    """Draw the share of right labels over their probability, before and after calibration."""
    figures = results.figures("trust", case="reliability")
    if not figures:
        return None
    counts = list(dict.fromkeys(f["labels"] for f in figures))
    figure = new_figure(9.5, 3.4)
    panels = np.atleast_1d(figure.subplots(1, len(counts), sharey=True))
    ways = {"before": ("not calibrated", ORANGE, "^"), "after": ("calibrated", BLUE, "o")}
    for panel, labels in zip(panels, counts, strict=True):
        panel.plot([0, 1], [0, 1], color=INK, linewidth=1)
        for way, (label, colour, marker) in ways.items():
            number, confidence, right = np.mean(
                [f[way] for f in figures if f["labels"] == labels], axis=0
            )
            there = number > 0.001  # a bin of few nodes says little
            x, y, n = (a[there] for a in (confidence, right, number))
            panel.plot(x / n, y / n, color=colour, linewidth=1.2)
            panel.scatter(x / n, y / n, s=12 + 300 * n, color=colour, marker=marker, alpha=0.8,
                          linewidths=0, label=label, zorder=3)  # fmt: skip
        style_axes(panel, f"{labels} labels per class", "probability of the label", "")
        panel.set_xlim(0, 1)
        panel.set_ylim(0, 1)
    panels[0].set_ylabel("share of right labels", color=INK)
    handles, names = panels[0].get_legend_handles_labels()
    legend = figure.legend(handles, names, loc="outside lower center", ncols=2, frameon=False)
    for handle in legend.legend_handles:
        handle.set_sizes([40])
    return figure


def draw_hindsight(results: Results) -> Any:
    """Draw the measured epsilon at equal rows: one pass, merged streams, one-shot, uniform."""
    figures = results.figures("hindsight")
    if not figures:
        return None
    families = list(dict.fromkeys(f["family"] for f in figures))
    figure = new_figure(7.5, 3.4)
    panel = figure.subplots()
    ways = {
        "stream": ("one pass over the stream", BLUE, "o"),
        "merged": ("eight streams, merged", GREEN, "D"),
        "exact": ("one-shot, exact resistances", ORANGE, "^"),
        "uniform": ("uniform", GREY, "P"),
    }
    for shift, (way, (label, colour, marker)) in enumerate(ways.items()):
        values = [
            np.mean([f[f"epsilon_{way}"] for f in figures if f["family"] == family])
            for family in families
        ]
        heights = np.arange(len(families)) + 0.16 * (shift - 1.5)
        panel.scatter(values, heights, color=colour, marker=marker, s=34, label=label, zorder=3)
    style_axes(panel, "", "measured epsilon at equal rows (smaller is better)", "")
    panel.set_yticks(range(len(families)), families)
    panel.invert_yaxis()
    panel.set_xlim(left=0)
    add_legend(panel, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def draw_forgetting(results: Results) -> Any:
    """Draw what each length of half-life and window gives: static labels, links, drift."""
    static = {"case": "labels", "set": "dblp_temporal", "method": "harmonic", "labels": 20}
    drift = {"case": "drift", "rate": 0.02, "labels": 20}
    cases = [  # figures, measure, title, unit of the lengths, how to write them
        (static, "accuracy", "areas of dblp_temporal", "length, share of the stream", _as_share),
        ({"case": "links"}, "random", "pairs of mathoverflow", "length, days", _as_days),
        (drift, "day_60", "groups, 2% move per day", "length, days", _as_days),
    ]
    if not results.figures("forgetting"):
        return None
    figure = new_figure(9.5, 3.2)
    panels = figure.subplots(1, 3)
    looks = {"half-life": (BLUE, "o", "-"), "window": (ORANGE, "^", "--")}
    for panel, (wanted, key, title, unit, length) in zip(panels, cases, strict=True):
        found = results.figures("forgetting", **wanted)
        for kind, (colour, marker, line) in looks.items():
            chosen = [f for f in found if f.get("kind") == kind]
            panel.errorbar(
                [length(f)[0] for f in chosen], [100 * f[key] for f in chosen],
                [200 * f[f"{key}_se"] for f in chosen], color=colour, marker=marker, linestyle=line,
                markersize=5, linewidth=1.4, label=kind,
            )  # fmt: skip
        for f in found:
            if f.get("kind") == "all":
                panel.axhline(100 * f[key], color=INK, linewidth=1, label="all edges")
        style_axes(panel, title, unit, "")
        panel.set_xscale("log")
        ticks = dict(length(f) for f in found if f.get("kind") == "half-life")
        panel.set_xticks(list(ticks), list(ticks.values()))
        panel.minorticks_off()
    panels[0].set_ylabel("accuracy or AUC, percent", color=INK)
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=3, frameon=False)
    return figure


def _as_share(figure: Figure) -> tuple[float, str]:
    share = figure["share"]
    return 1.0 / share, "1" if share == 1 else f"1/{share}"


def _as_days(figure: Figure) -> tuple[float, str]:
    return figure["days"], f"{figure['days']}"
