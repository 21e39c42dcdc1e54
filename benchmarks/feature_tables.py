"""Tables of graph and features together, beside peers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.measure import Figure
from benchmarks.results import Results, ending, memory, seconds, table

GRAPH_SET = "cora"
BOTH = "GraphFeatureClassifier"
ALONE = {"HFSClassifier": "graph alone", "logistic regression": "features alone"}
PEERS = {
    "C&S, linear": "PyG CorrectAndSmooth, logistic regression",
    "C&S, MLP": "PyG CorrectAndSmooth, neural network",
    "APPNP": "PyG APPNP",
    "GCN": "PyG GCN",
    "scikit-network GNN": "scikit-network GNNClassifier",
}
BAR = 0.005  # half a point


def _accuracy(figure: Figure) -> str:
    """Return the mean accuracy and its standard deviation over the draws, in percent.

    Examples
    --------
    >>> _accuracy({"accuracy": 0.756, "spread": 0.034}), _accuracy({})
    ('75.6 ± 3.4', '')
    """
    if "accuracy" not in figure:
        return ""
    return f"{100 * figure['accuracy']:.1f} ± {100 * figure['spread']:.1f}"


def graph_table(results: Results) -> str:
    """Accuracy, CPU time of a fit and memory on a graph with features of its own."""
    all_lines = results.figures("features", set=GRAPH_SET)
    found = [f for f in all_lines if "accuracy" in f]
    counts = sorted({f["labels"] for f in found})
    names = {BOTH: f"ohmlearn {BOTH}", **{m: f"{m}, {w}" for m, w in ALONE.items()}, **PEERS}
    rows = []
    for method, name in names.items():
        own = {f["labels"]: f for f in found if f["method"] == method}
        if own:
            last = own[max(own)]
            cells = [_accuracy(own.get(count, {})) for count in counts]
            draws = str(last["draws"])
            times = seconds(last["cpu_median_s"])
            rows.append([name, draws, *cells, times, memory(last["memory_mib"])])
        else:
            line = next((f for f in all_lines if f.get("method") == method), {})
            rows.append([name, "", *("" for _ in counts), ending(line), ""])
    header = ["", "draws", *(f"{c} labels per class" for c in counts), "CPU time", "memory"]
    return "\n\n".join([table(header, rows), *_first_draws(found)])


def _first_draws(found: list[Figure]) -> list[str]:
    """Return the accuracy of ours on the draws that methods with fewer draws have."""
    ours = {f["labels"]: f for f in found if f["method"] == BOTH and "accuracies" in f}
    counts = {f["draws"] for f in found if f["method"] in PEERS}
    lines = []
    for n_draws in sorted(counts):
        firsts = [
            f"{100 * float(np.mean(f['accuracies'][:n_draws])):.1f} with {labels} labels"
            for labels, f in sorted(ours.items())
            if n_draws < f["draws"]
        ]
        if firsts:
            lines.append(f"On the first {n_draws} draws, {BOTH} has {' and '.join(firsts)}.")
    return lines


def points_table(results: Results) -> str:
    """Accuracy on sets of points: graph alone, features alone, both."""
    rows, short = [], []
    for name, count, own in _cells(results):
        methods = (*ALONE, BOTH)
        rows.append([name, str(count), *(_accuracy(own.get(m, {})) for m in methods)])
        if all(m in own for m in methods):
            gap = own[BOTH]["accuracy"] - max(own[m]["accuracy"] for m in ALONE)
            if round(gap + BAR, 4) < 0:
                short.append(f"{name} with {count} ({100 * gap:+.2f})")
    text = table(["set", "labels per class", *ALONE.values(), "both"], rows)
    if not rows:
        return text
    if not short:
        return f"{text}\n\nNowhere is it more than half a point below the better of the two."
    return (
        f"{text}\n\nIn {len(rows) - len(short)} of {len(rows)} rows it is at most half a point "
        f"below the better of the two. In the others: {', '.join(short)}."
    )


def _cells(results: Results) -> list[tuple[str, int, dict[str, Figure]]]:
    """Return each set of points and number of labels, with the figures of all methods."""
    cells: dict[tuple[str, int], dict[str, Figure]] = {}
    for f in results.figures("features"):
        if "accuracy" in f and f["set"] != GRAPH_SET:
            cells.setdefault((f["set"], f["labels"]), {})[f["method"]] = f
    return [(name, count, own) for (name, count), own in cells.items()]


def feature_losses(results: Results) -> list[str]:
    """Return where peers are better with graph and features."""
    found = [f for f in results.figures("features", set=GRAPH_SET) if "accuracy" in f]
    ours = {f["labels"]: f for f in found if f["method"] == BOTH}
    lines = []
    for method, name in PEERS.items():
        for f in (f for f in found if f["method"] == method and f["labels"] in ours):
            own, case = ours[f["labels"]], f"{GRAPH_SET}, {f['labels']} labels per class"
            same = float(np.mean(own.get("accuracies", [own["accuracy"]])[: f["draws"]]))
            if f["accuracy"] > same:
                lines.append(
                    f"Features and graph ({case}): the accuracy of {name} is "
                    f"{100 * f['accuracy']:.2f}%, ours {100 * same:.2f}% on the same draws."
                )
            if f["cpu_median_s"] < own["cpu_median_s"]:
                lines.append(
                    f"Features and graph ({case}): {name} takes {seconds(f['cpu_median_s'])} and "
                    f"{memory(f['memory_mib'])}, ours {seconds(own['cpu_median_s'])} and "
                    f"{memory(own['memory_mib'])}."
                )
    return lines


BLOCKS: dict[str, Callable[[Results], str]] = {
    "features": graph_table,
    "features of points": points_table,
}
