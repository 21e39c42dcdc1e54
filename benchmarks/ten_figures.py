"""The ten comparisons that decide whether to use ohmlearn, for docs/benchmarks.md."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.events import MADE
from benchmarks.feature_tables import GRAPH_SET
from benchmarks.label_tables import WHOLE, by_set
from benchmarks.measure import Figure
from benchmarks.results import Results, memory, percent, seconds, table
from benchmarks.solver_tables import FAIR, SOLVERS, total

Found = tuple[float, str] | None  # a figure, and what has it
STORED = {
    "LabelSpreading k=4500, stored": "LabelSpreading",
    "Diffusion k=4500, stored": "scikit-network",
    "Poisson k=4500, stored": "graphlearning",
}
NETWORKS = {"C&S, MLP": "Correct and Smooth", "GCN": "GCN", "APPNP": "APPNP"}


def ten_table(results: Results) -> str:
    """One line for each comparison; the better figure is bold."""
    dense = _cost(results, "paper k=4500, 4 passes")
    peers = {name: _cost(results, case) for case, name in STORED.items()}
    right = {name: f for name, f in peers.items() if f.get("accuracy", 0.0) > 0.99}
    sets = {name: _on_sets(results, name) for name in ("3 passes", "Poisson", "LabelSpreading")}
    trust = results.figures("trust", case="sets", labels=5, drawn="stratified")
    features = results.figures("features", set=GRAPH_SET, labels=20)
    ours = next((f for f in features if f["method"] == "GraphFeatureClassifier"), {})
    networks = {NETWORKS[f["method"]]: f for f in features if f["method"] in NETWORKS}
    network = max(networks.values(), key=lambda f: f.get("accuracy", 0.0), default={})
    if "accuracies" in ours and "accuracy" in network:  # on the same draws
        ours = {"accuracy": float(np.mean(ours["accuracies"][: network["draws"]]))}
    solver, resistance = "grid_1000x1000", "grid_300x300"
    rows = [
        _row("Memory to label a dense graph, 29.6 M edges", _value(dense, "rss_peak_mib"),
             _best(right, "rss_peak_mib"), memory),
        _row("CPU time of that", _value(dense, "cpu_s"), _best(right, "cpu_s"), seconds),
        _row("Accuracy on real data, 5 labels per class", *_pair(sets, "accuracy"),
             lambda value: f"{value:.1f}%", larger=True),
        _row("CPU time of a fit on these sparse graphs", *_pair(sets, "cpu_s"), seconds),
        _row("Memory to label 20 M events between names, from a file",
             *_events(results, "rss_peak_mib"), memory),
        _row("Calibration error, 5 labels per class", _mean(trust, "error"),
             _named(_mean(trust, "error_before"), "the same scores, not calibrated"),
             lambda value: f"{value:.3f}"),
        _row("Laplacian system, grid 1000²", *_solvers(results, solver, 1), seconds),
        _row("The same with 16 right-hand sides", *_solvers(results, solver, 16), seconds),
        _row("Resistances of all edges, grid 300², about 10% error",
             _value(results.one("resistance", graph=resistance, solver="ohmlearn"), "cpu_s"),
             _best({"NetworKit": results.one("resistance", graph=resistance, solver="networkit")},
                   "cpu_s"), seconds),
        _row("Accuracy with columns and edges, Cora, 20 labels per class",
             _value(ours, "accuracy"), _best(networks, "accuracy", larger=True), percent,
             larger=True),
    ]  # fmt: skip
    return table(["", "ohmlearn", "the best of the others"], rows)


def _row(
    what: str, ours: Found, peer: Found, write: Callable[[float], str], *, larger: bool = False
) -> Sequence[str]:
    if ours is None or peer is None:
        return [what, "not measured", ""]
    is_ahead = ours[0] > peer[0] if larger else ours[0] < peer[0]
    cells = [write(ours[0]), write(peer[0])]
    cells[not is_ahead] = f"**{cells[not is_ahead]}**"
    return [what, cells[0], f"{cells[1]} ({peer[1]})"]


def _cost(results: Results, case: str) -> Figure:
    return results.one("label_cost", case=case)


def _value(figure: Figure, key: str) -> Found:
    return (figure[key], "ohmlearn") if key in figure else None


def _named(found: Found, name: str) -> Found:
    return found and (found[0], name)


def _best(figures: dict[str, Figure], key: str, *, larger: bool = False) -> Found:
    """Return the best of several, with its name."""
    found = [(f[key], name) for name, f in figures.items() if key in f]
    if not found:
        return None
    return max(found) if larger else min(found)


def _mean(figures: Sequence[Figure], key: str) -> Found:
    return (float(np.mean([f[key] for f in figures])), "") if figures else None


def _on_sets(results: Results, name: str) -> Figure:
    """Return means over the sets that all three methods finished, with 5 labels per class."""
    rows = by_set(
        f
        for f in results.figures("labels", labels="5")
        if "set" in f and not f["set"].endswith(WHOLE)
    )
    whole = [row for row in rows.values() if {"3 passes", "Poisson", "LabelSpreading"} <= set(row)]
    if not whole:
        return {}
    return {key: float(np.mean([row[name][key] for row in whole])) for key in ("accuracy", "cpu_s")}


def _pair(sets: dict[str, Figure], key: str) -> tuple[Found, Found]:
    peers = {name: f for name, f in sets.items() if name != "3 passes"}
    return _value(sets["3 passes"], key), _best(peers, key, larger=key == "accuracy")


def _events(results: Results, key: str) -> tuple[Found, Found]:
    """Return ours, and the best of the methods that are about as accurate or more."""
    found = {f["method"]: f for f in results.figures("events", stream=MADE) if "accuracy" in f}
    ours = found.get("ohmlearn", {})
    least = ours.get("accuracy", 1.0) - 0.05
    peers = {
        name: f for name, f in found.items()
        if f["package"] != "ohmlearn" and f["accuracy"] >= least
    }  # fmt: skip
    return _value(ours, key), _best(peers, key)


def _solvers(results: Results, graph: str, rhs: int) -> tuple[Found, Found]:
    found = {
        name: {"cpu_s": total(f)}
        for solver, name in SOLVERS.items()
        for f in results.figures("solver", graph=graph, solver=solver, threads=1, rhs=rhs)
        if "solve_cpu_s" in f and f["status"] in FAIR
    }
    ours = found.pop("ohmlearn", {})
    return _value(ours, "cpu_s"), _best(found, "cpu_s")
