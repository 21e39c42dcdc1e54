"""Figures and page of the paper's experiment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ohmlearn import gallery
from ohmlearn.paper.experiment_job import (
    REFINED_PASSES,
    STORED_LIMIT,
    Floats,
    draw_labelled,
    make_classes,
)
from ohmlearn.report.html_page import COLOURS, INK, Report, add_legend, new_figure, style_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, PURPLE, GREY = COLOURS
NAMES = {
    "exact": "stable-HFS, exact",
    "sparse": "Sparse-HFS, one pass",
    "refined": f"Sparse-HFS, {REFINED_PASSES} passes",
}
STYLES: dict[str, dict[str, Any]] = {
    "exact": {"color": GREY, "marker": "s", "markersize": 6, "linewidth": 3, "alpha": 0.7},
    "sparse": {"color": BLUE, "marker": "o", "markersize": 4},
    "refined": {"color": ORANGE, "marker": "D", "markersize": 3.5, "linestyle": "--"},
}


def draw_points(
    axes: Axes,
    points: Floats,
    colours: NDArray[np.str_],
    labelled: NDArray[np.int64],
    classes: Floats,
) -> None:
    """Draw points in the plane, the labelled ones as stars."""
    axes.scatter(points[:, 0], points[:, 1], c=colours, s=1.2, linewidths=0, rasterized=True)
    for sign, colour in ((1.0, BLUE), (-1.0, ORANGE)):
        here = points[labelled[classes[labelled] == sign]]
        axes.scatter(
            here[:, 0], here[:, 1], marker="*", s=150, c=colour, edgecolors=INK, linewidths=1.0
        )
    axes.set(xticks=[], yticks=[])  # no equal aspect, because much of the height is gaps
    axes.grid(False)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _draw_error(axes: Axes, results: dict[str, Any]) -> None:
    style_axes(axes, "(b) fraction of wrong labels, mean and range over draws", "", "error")
    k = [found["k"] for found in results["results"]]
    for name in ("exact", "sparse", "refined"):
        errors = 1.0 - np.array([found["stream"][name] for found in results["results"]])
        style = STYLES[name]
        axes.plot(k, errors.mean(axis=1), label=NAMES[name], **style)
        if name != "exact":
            low, high = errors.min(axis=1), errors.max(axis=1)
            axes.fill_between(k, low, high, color=style["color"], alpha=0.2, linewidth=0)
    axes.set_ylim(bottom=-0.02)
    add_legend(axes, loc="upper left", bbox_to_anchor=(0.02, 1.0))


def _draw_ratio(axes: Axes, results: dict[str, Any]) -> None:
    style_axes(axes, "(c) edges kept, |H| / |G|", "neighbours k", "fraction")
    k = [found["k"] for found in results["results"]]
    fractions = [found["stream"]["kept_share"] for found in results["results"]]
    axes.plot(k, fractions, label="Sparse-HFS", **STYLES["sparse"])
    paper = [found for found in results["results"] if "paper" in found]
    if paper:
        some = [found["k"] for found in paper]
        fractions = [found["paper"]["kept_share"] for found in paper]
        axes.plot(some, fractions, color=PURPLE, marker="^", linestyle=":", label='scheme="paper"')
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda fraction, _: f"{100 * fraction:g}%")
    add_legend(axes, loc="upper right")


COSTS = [("sparse", "stream", "sparse_cost"), ("refined", "stream", "refined_cost")]
COSTS += [("exact", "stored", "cost")]


def draw_findings(results: dict[str, Any]) -> Figure:
    """Draw the figure of the paper: (a) next to (b) and (c)."""
    figure: Figure = new_figure(9.5, 6.2)
    grid = figure.add_gridspec(2, 2, width_ratios=[1, 6.2], height_ratios=[1.6, 1])
    n, seed = (results["settings"][name] for name in ("n_points", "seed"))
    classes, data = make_classes(n), figure.add_subplot(grid[:, 0])
    style_axes(data, "(a) data")
    colours, labelled = np.where(classes > 0, BLUE, ORANGE), draw_labelled(n, 1, seed)[0]
    draw_points(data, gallery.paper_points(n), colours, labelled, classes)
    top = figure.add_subplot(grid[0, 1])
    _draw_error(top, results)
    _draw_ratio(figure.add_subplot(grid[1, 1], sharex=top), results)
    return figure


def draw_costs(results: dict[str, Any]) -> Figure:
    figure: Figure = new_figure(9.5, 3.4)
    panels = [
        ("peak memory of the process", "GiB", "peak_bytes", 2**30),
        ("processor time, start to labels", "seconds", "cpu_seconds", 1),
    ]
    for axes, (title, unit, key, scale) in zip(figure.subplots(1, 2), panels, strict=True):
        style_axes(axes, f"(d) {title}", "neighbours k", unit)
        for name, kind, cost in COSTS:
            found = [f for f in results["results"] if cost in f[kind]]
            values = [f[kind][cost][key] / scale for f in found]
            label = "graph in memory, exact" if kind == "stored" else NAMES[name]
            axes.plot([f["k"] for f in found], values, label=label, **STYLES[name])
        axes.set_ylim(bottom=0)
    add_legend(figure.axes[0], loc="upper right", bbox_to_anchor=(1.0, 0.75))
    return figure


def make_page(results: dict[str, Any], command: str) -> Report:
    """Return the page with all figures and tables."""
    settings = results["settings"]
    best = max(results["results"], key=lambda found: (found["exact"], -found["k"]))
    stream = best["stream"]
    report = Report(
        "Sparse-HFS: the paper's experiment",
        f"At k = {best['k']:,}, {stream['n_kept']:,} of {best['n_edges']:,} edges "
        f"({stream['kept_share']:.1%}) give {np.mean(stream['sparse']):.1%} correct labels after "
        f"one pass and {np.mean(stream['refined']):.1%} after {REFINED_PASSES}. The whole graph "
        f"gives {best['exact']:.1%}.",
    )
    report.add_text(
        f"The data are {settings['n_points']:,} points in four clusters. The two upper clusters "
        f"form one class. Two points of the uppermost and two of the lowermost cluster are "
        f"labelled; this draw is repeated {settings['draws']} times. Each point is joined to its k "
        f"nearest neighbours. Edges are generated from the points while they are read and are "
        f"never stored. gamma = 1, epsilon = {settings['epsilon']}."
    )
    report.add_figure(
        draw_findings(results),
        "(a) The points; stars are the labelled points of the first draw. (b) With few neighbours "
        "the inner clusters are not connected to a label. With very many, the difference between "
        "the classes is too small. In between, the labels are correct. (c) The fraction of edges "
        "that the sparsifier keeps.",
    )
    report.add_table(
        *_table_of_labels(results),
        caption="Fraction of correct labels. Means over the draws, with the range. A node counts "
        "one half if it is not connected to a label or if its answer is zero.",
    )
    if any("paper" in found for found in results["results"]):
        caption = 'Sampled as in the paper (scheme="paper"), with a tenth of its copies.'
        report.add_table(*_table_of_paper_scheme(results), caption=caption)
    report.add_heading("Memory and time")
    report.add_figure(
        draw_costs(results),
        "(d) Each measurement is a separate process that labels one draw, including the start of "
        "Python. The memory of the streams does not depend on the number of edges.",
    )
    report.add_table(*_table_of_costs(results), caption="Peak memory and processor time.")
    skipped = [f"{f['k']:,}" for f in results["results"] if "skipped" in f["stored"]]
    if skipped:
        report.add_text(
            f"The graphs for k = {', '.join(skipped)} were not stored in memory, because that "
            f"would take more than {STORED_LIMIT:g} GiB."
        )
    report.add_text(
        "The paper does not publish its points. These are chosen to reproduce what it describes."
    )
    return report.add_command(command)


def make_markdown(results: dict[str, Any]) -> str:
    """Return the tables of the page as Markdown."""
    tables = [_table_of_labels(results), _table_of_costs(results), _table_of_paper_scheme(results)]
    lines: list[str] = []
    for header, rows in tables:
        if rows:
            lines += [
                "| " + " | ".join(row) + " |" for row in [header, ["---"] * len(header), *rows]
            ]
            lines.append("")
    return "\n".join(lines)


def _table_of_labels(results: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    header = ["k", "edges", "kept", "fraction", "exact", "one pass", f"{REFINED_PASSES} passes"]
    header.append("passes to exact")
    rows = []
    for found in results["results"]:
        stream = found["stream"]
        row = [f"{found['k']:,}", f"{found['n_edges']:,}", f"{stream['n_kept']:,}"]
        row += [f"{stream['kept_share']:.2%}", f"{found['exact']:.3f}"]
        row += [_mean_and_range(stream[name]) for name in ("sparse", "refined")]
        rows.append([*row, str(stream["exact_passes"])])
    return header, rows


def _table_of_paper_scheme(results: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    header = ["k", "kept", "fraction", "one pass", "GiB", "seconds"]
    rows = []
    for found in results["results"]:
        if "paper" in found:
            paper = found["paper"]
            row = [f"{found['k']:,}", f"{paper['n_kept']:,}", f"{paper['kept_share']:.2%}"]
            rows.append([*row, _mean_and_range(paper["sparse"]), *_cost_cells(paper["cost"])])
    return header, rows


def _table_of_costs(results: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    header = ["k"]
    for name in ("one pass", f"{REFINED_PASSES} passes", "in memory"):
        header += [f"{name}: GiB", "seconds"]
    rows = []
    for found in results["results"]:
        row = [f"{found['k']:,}"]
        for _, kind, key in COSTS:
            row += _cost_cells(found[kind].get(key))
        rows.append(row)
    return header, rows


def _mean_and_range(scores: list[float]) -> str:
    return f"{np.mean(scores):.3f} ({min(scores):.3f} to {max(scores):.3f})"


def _cost_cells(cost: dict[str, float] | None) -> list[str]:
    if cost is None:
        return ["–", "–"]
    return [f"{cost['peak_bytes'] / 2**30:.2f}", f"{cost['cpu_seconds']:.1f}"]
