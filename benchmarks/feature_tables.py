"""Tables of graph and features together, beside peers."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.measure import Figure
from benchmarks.results import Results, memory, seconds, table

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
    found = [f for f in results.figures("features", set=GRAPH_SET) if "accuracy" in f]
    counts = sorted({f["labels"] for f in found})
    names = {BOTH: f"ohmlearn {BOTH}", **{m: f"{m}, {w}" for m, w in ALONE.items()}, **PEERS}
    rows = []
    for method, name in names.items():
        own = {f["labels"]: f for f in found if f["method"] == method}
        if own:
            last = own[max(own)]
            cells = [_accuracy(own.get(count, {})) for count in counts]
            rows.append([name, *cells, seconds(last["cpu_s"]), memory(last["memory_mib"])])
    return table(["", *(f"{c} labels per class" for c in counts), "CPU time", "memory"], rows)


def points_table(results: Results) -> str:
    """Accuracy on sets of points: graph alone, features alone, both."""
    found = [f for f in results.figures("features") if "accuracy" in f and f["set"] != GRAPH_SET]
    methods = (*ALONE, BOTH)
    rows = []
    for name in dict.fromkeys(f["set"] for f in found):
        for count in sorted({f["labels"] for f in found if f["set"] == name}):
            own = {f["method"]: f for f in found if f["set"] == name and f["labels"] == count}
            rows.append([name, str(count), *(_accuracy(own.get(m, {})) for m in methods)])
    return table(["set", "labels per class", *ALONE.values(), "both"], rows)


BLOCKS: dict[str, Callable[[Results], str]] = {
    "features": graph_table,
    "features of points": points_table,
}
