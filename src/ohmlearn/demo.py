"""The command ``ohmlearn demo``: label all points from four labels and 30 million edges."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ohmlearn import gallery
from ohmlearn.certificate import Certificate, certify
from ohmlearn.estimators import HFSClassifier
from ohmlearn.paper.experiment_job import draw_labelled, make_classes
from ohmlearn.paper.experiment_page import draw_points
from ohmlearn.points import knn_edges
from ohmlearn.report.html_page import (
    COLOURS,
    INK,
    Report,
    add_legend,
    figure_to_png,
    new_figure,
    style_axes,
)
from ohmlearn.report.progress import peak_memory

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPSILON = 0.8
MORE_PASSES = 3
EXACT_PASSES, EXACT_TOL = 40, 1e-6
STORED_BYTES = 24  # per edge of a Graph in memory, without the memory for solving
NAMES = {1.0: "upper", -1.0: "lower"}  # not -1: that means unlabelled
BLUE, ORANGE, _, _, GREY = COLOURS


@dataclass(frozen=True)
class Answer:
    """Scores after a number of passes, positive for the upper class, and the resulting labels."""

    scores: NDArray[np.float64]
    labels: NDArray[np.float64]
    passes: int
    right: float
    residual: float
    seconds: float


@dataclass(frozen=True)
class Demo:
    """All results of the demo."""

    points: NDArray[np.float64]
    classes: NDArray[np.float64]
    labelled: NDArray[np.int64]
    n_neighbors: int
    n_edges: int
    n_kept: int
    n_resamples: int
    certificate: Certificate
    one_pass: Answer
    refined: Answer
    exact: Answer
    seconds: float
    cpu_seconds: float
    peak_bytes: int

    def agreement(self, answer: Answer) -> float:
        """Return the fraction of all nodes with the same label as in the exact solution."""
        return float(np.mean(answer.labels == self.exact.labels))


def run(n_points: int = 12_100, n_neighbors: int = 4500, seed: int = 0) -> Demo:
    """Stream the graph through Sparse-HFS, then certify and refine the result."""
    start = time.perf_counter()
    points = gallery.paper_points(n_points)
    classes = make_classes(n_points)
    labelled = draw_labelled(n_points, 1, seed)[0]
    edges = knn_edges(points, n_neighbors=n_neighbors, weights="uniform")
    given = {int(node): NAMES[classes[node]] for node in labelled}

    model = HFSClassifier(gamma=1.0, epsilon=EPSILON, passes=1, tol=EXACT_TOL, random_state=seed)
    one_pass = _answer(lambda: model.fit_edges(edges, given), classes, labelled)
    sparsifier = model.sparsifier_
    assert sparsifier is not None  # epsilon is a number
    certificate = certify(edges, model.graph_, random_state=seed)
    refined, exact = (
        _answer(partial(model.refine, edges, passes=passes), classes, labelled)
        for passes in (MORE_PASSES, EXACT_PASSES)
    )
    return Demo(
        points=points, classes=classes, labelled=labelled, n_neighbors=n_neighbors,
        n_edges=sparsifier.n_edges_seen_, n_kept=model.graph_.n_edges,
        n_resamples=sparsifier.n_resamples_, certificate=certificate, one_pass=one_pass,
        refined=refined, exact=exact, seconds=time.perf_counter() - start,
        cpu_seconds=time.process_time(), peak_bytes=peak_memory(),
    )  # fmt: skip


def _answer(
    fit: Callable[[], HFSClassifier], classes: NDArray[np.float64], labelled: NDArray[np.int64]
) -> Answer:
    """Return the answer of a model that is being fitted, and how long this takes."""
    began = time.perf_counter()
    model = fit()
    labels = np.where(model.transduction_ == NAMES[1.0], 1.0, -1.0)
    right = float(np.delete(labels == classes, labelled).mean())
    columns = dict(zip(model.classes_.tolist(), model.scores_.T, strict=True))
    scores = columns[NAMES[1.0]] - columns[NAMES[-1.0]]
    seconds = time.perf_counter() - began
    return Answer(scores, labels, model.n_iter_, right, float(model.residual_.max()), seconds)


def describe(demo: Demo) -> str:
    """Return the main results as text."""
    fraction, stored = demo.n_kept / demo.n_edges, STORED_BYTES * demo.n_edges / 2**30
    certificate = str(demo.certificate).splitlines()
    one, more, exact = demo.one_pass, demo.refined, demo.exact
    lines = [
        f"Points       {len(demo.points):,} in the plane, {len(demo.labelled)} of them labelled",
        f"Stream       {demo.n_edges:,} edges from each point to its {demo.n_neighbors:,} nearest, "
        f"generated while reading, never stored",
        f"Kept         {demo.n_kept:,} edges ({fraction:.2%}) after one pass, "
        f"{demo.n_resamples} resamples",
        *(f"{'' if at else 'Certificate':12} {line}" for at, line in enumerate(certificate)),
        f"Labels       {one.right:.2%} correct after one pass, {one.seconds:.1f} s; "
        f"{demo.agreement(one):.2%} equal to the exact answer",
        f"             {more.right:.2%} correct after {more.passes} passes, {more.seconds:.1f} s "
        f"more; {demo.agreement(more):.2%} equal to the exact answer",
        f"             {exact.right:.2%} correct on the whole graph, {exact.passes} passes, "
        f"relative residual {exact.residual:.0e}",
        f"Cost         {demo.seconds:.1f} s, {demo.cpu_seconds:.1f} s of processor time, peak "
        f"memory {demo.peak_bytes / 2**30:.2f} GiB; the stored graph alone would take "
        f"{stored:.2f} GiB",
    ]
    return "\n".join(lines)


def draw(demo: Demo) -> Figure:
    """Draw the given labels, the labels found, and their scores."""
    figure: Figure = new_figure(10, 5.0)
    axes = figure.subplots(1, 4, width_ratios=[1, 1, 1, 3.4])
    grey = np.full(len(demo.points), GREY)
    drawn = [
        ("given: 4 labels", grey),
        (f"one pass:\n{demo.one_pass.right:.1%} correct", _colour(demo.one_pass)),
        (f"{demo.refined.passes} passes:\n{demo.refined.right:.1%} correct", _colour(demo.refined)),
    ]
    for panel, (title, colours) in zip(axes, drawn, strict=False):
        style_axes(panel)
        draw_points(panel, demo.points, colours, demo.labelled, demo.classes)
        panel.set_title(title, color=INK, fontsize=10)

    right = axes[3]
    style_axes(right, "", "lower class  ←   score   →  upper class", "height of the point")
    right.set_title("scores (the sign is the label)", color=INK, fontsize=10)
    height = demo.points[:, 1]
    unlabelled = np.delete(np.arange(len(height)), demo.labelled)
    scale = np.abs(demo.exact.scores[unlabelled]).max() or 1.0
    series = [
        (demo.one_pass, BLUE, f"from {demo.n_kept:,} edges", 0.5),
        (demo.exact, ORANGE, f"from all {demo.n_edges:,}", 1.0),
    ]
    for answer, colour, label, alpha in series:
        values = answer.scores[unlabelled] / scale
        dots = {"s": 2, "linewidths": 0, "alpha": alpha, "rasterized": True}
        right.scatter(values, height[unlabelled], color=colour, **dots)
        right.scatter([], [], s=16, color=colour, label=label)
    right.axvline(0.0, color=INK, linewidth=1)
    right.set_xlim(-1.6, 1.6)  # leaves out neighbours of labelled points in the sparsifier
    add_legend(right, loc="upper left")
    return figure


def _colour(answer: Answer) -> NDArray[np.str_]:
    return np.where(answer.labels > 0, BLUE, ORANGE)


def make_page(demo: Demo, command: str) -> Report:
    """Return the page of the demo."""
    report = Report(
        "Four labels, thirty million edges, one pass"
        if demo.n_edges > 2.5e7
        else f"Four labels, {demo.n_edges:,} edges, one pass",
        f"With {demo.n_kept / demo.n_edges:.1%} of the edges, {demo.one_pass.right:.1%} of "
        f"{len(demo.points):,} points get the correct label after one pass, and "
        f"{demo.refined.right:.1%} after {demo.refined.passes} passes. Peak memory is "
        f"{demo.peak_bytes / 2**30:.2f} GiB.",
    )
    report.add_text(
        "The two upper clusters form one class, and the two lower clusters the other. Two points "
        "of the uppermost cluster and two of the lowermost are labelled. Only a dense graph "
        "carries labels across the gaps. Its edges are read as a stream, and only a sparsifier of "
        "them is kept. The labels spread on the sparsifier."
    )
    report.add_figure(
        draw(demo),
        "Left: the labelled points, and the labels found. Right: the scaled scores, whose sign is "
        "the label. The sparsifier adds noise to the scores of the whole graph.",
    )
    rows = [
        [name, answer.passes, f"{answer.right:.2%}", f"{demo.agreement(answer):.2%}"]
        for name, answer in (
            ("Sparse-HFS", demo.one_pass),
            ("refined", demo.refined),
            ("exact", demo.exact),
        )
    ]
    report.add_table(["answer", "passes", "correct", "equal to the exact answer"], rows)
    return report.add_heading("Numbers").add_code(describe(demo)).add_command(command)


def write(demo: Demo, page: Path, picture: Path, command: str) -> None:
    """Write the page and its picture."""
    make_page(demo, command).write(page)
    figure_to_png(draw(demo), picture)
