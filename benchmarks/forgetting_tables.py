"""Tables on what forgetting old edges gains and costs."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks import windows
from benchmarks.forgetting import (
    DRIFT_DAYS,
    DRIFTS,
    LINK_DAYS,
    LINKS,
    METHODS,
    PER_CLASS,
    SETS,
    SHARES,
)
from benchmarks.measure import Figure
from benchmarks.results import Results, count, memory, table

KINDS = ("half-life", "window")
SHOWN_DRIFT = 0.02  # the drift for which all lengths are shown


def best_table(results: Results) -> str:
    """All edges, the best half-life and the best window of each case."""
    rows = []
    for name in SETS:
        for labels in PER_CLASS:
            found = results.figures(
                "forgetting", case="labels", set=name, method="harmonic", labels=labels
            )
            chosen = results.one(
                "forgetting", case="labels", set=name, method="auto", labels=labels, kind="chosen"
            )
            for key, nodes in (("accuracy", name), ("recent", f"{name}, recent nodes")):
                cells = [*_best(found, key, _share), _percent(chosen, key)]
                rows.append([nodes, f"{labels}", *cells])
    found = results.figures("forgetting", case="links")
    rows.append([f"{LINKS}, AUC", "none", *_best(found, "random", _days), ""])
    for rate in DRIFTS:
        for labels in PER_CLASS:
            found = results.figures("forgetting", case="drift", rate=rate, labels=labels)
            chosen = next((f for f in found if f["kind"] == "chosen"), {})
            cells = [*_best(found, "day_60", _days), _percent(chosen, "day_60")]
            rows.append([f"groups, {_drift(rate)}", f"{labels}", *cells])
    head = ["stream", "labels per class", "all edges", "best half-life", "best window", "chosen"]
    return table(head, rows)


def _best(found: list[Figure], key: str, length: Callable[[Figure], str]) -> list[str]:
    """Return the figure with all edges, and the best with a half-life and with a window."""
    cells = [_percent(f, key) for f in found if f.get("kind") == "all"]
    for kind in KINDS:
        tried = [f for f in found if f.get("kind") == kind]
        if not tried:
            return ["no data"] * 3
        best = max(tried, key=lambda f: float(f[key]))
        text = f"{_percent(best, key)} ({length(best)})"
        sure = best[f"{key}_gain"] > 2 * best[f"{key}_gain_se"]
        cells.append(f"**{text}**" if sure else text)
    return cells


def _percent(figure: Figure, key: str) -> str:
    return f"{100 * figure[key]:.1f} ± {100 * figure[f'{key}_se']:.1f}" if figure else ""


def _share(figure: Figure) -> str:
    return "1" if figure["share"] == 1 else f"1/{figure['share']}"


def _days(figure: Figure) -> str:
    return f"{figure['days']} days" if figure["days"] != 1 else "1 day"


def _drift(rate: float) -> str:
    return f"{100 * rate:g}% move per day" if rate else "nobody moves"


def labels_table(results: Results) -> str:
    """Accuracy for each length of half-life and window, static labels."""
    columns = [
        (name, labels, method)
        for name in SETS
        for labels in PER_CLASS
        for method in (METHODS if name == SETS[0] else METHODS[:1])
        if method != "auto" or labels == PER_CLASS[0]
    ]
    rows = []
    for kind, share in [("all", None), *((kind, s) for kind in KINDS for s in SHARES)]:
        found = [
            results.one(
                "forgetting", case="labels", set=name, labels=labels, method=method, kind=kind,
                share=share,
            )
            for name, labels, method in columns
        ]  # fmt: skip
        if any(found):
            reached = f"{100 * found[0]['reached']:.0f}%" if found[0] else ""
            name = "all edges" if share is None else f"{kind} {_share({'share': share})}"
            rows.append([name, reached, *(_percent(f, "accuracy") for f in found)])
    short = {SETS[0]: "dblp", SETS[1]: "school"}
    head = [
        f"{short[name]}, {labels}" + (f", {method}" if method != METHODS[0] else "")
        for name, labels, method in columns
    ]
    return table(["view", "dblp, nodes reached", *head], rows)


def links_table(results: Results) -> str:
    """How well the resistances of each view predict the pairs of the next month."""
    keys = ("random", "same_users", "connected")
    rows = []
    for kind, days in [("all", None), *((kind, d) for kind in KINDS for d in LINK_DAYS)]:
        f = results.one("forgetting", case="links", kind=kind, days=days)
        if f:
            name = "all edges" if days is None else f"{kind} {_days(f)}"
            rows.append([name, *(_percent(f, key) for key in keys)])
    head = ["view", "AUC, random pairs", "AUC, same users in other pairs", "pairs connected"]
    return table(head, rows)


def drift_table(results: Results) -> str:
    """Accuracy over the days, for one speed of drift."""
    days = (10, 20, 40, 60)
    rows = []
    for kind, length in [("all", None), *((kind, d) for kind in KINDS for d in DRIFT_DAYS)]:
        f = results.one(
            "forgetting", case="drift", rate=SHOWN_DRIFT, labels=20, kind=kind, days=length
        )
        if f:
            name = "all edges" if length is None else f"{kind} {_days(f)}"
            rows.append([name, *(_percent(f, f"day_{day}") for day in days)])
    return table(["view", *(f"day {day}" for day in days)], rows)


def windows_table(results: Results) -> str:
    """How far the windows of one state are from their graphs."""
    rows = []
    for f in results.figures("windows", case="epsilon"):
        met = f"{100 * min(f['met']):.0f}%"
        means = [f"{value:.2f}" for value in f["mean"]]
        rows.append([f["family"], *means, f"{max(f['most']):.2f}", met, f"{f['rows_ratio']:.2f}"])
    shares = [f"{share:g}" for share in windows.SHARES]
    return table(["stream", *shares, "largest", "met, at least", "rows"], rows)


def windows_cost_table(results: Results) -> str:
    """Time, rows and memory of windows."""
    rows = []
    for f in results.figures("windows", case="speed"):
        million = f"{f['edges_per_s'] / 1e6:.1f} ({f['plain_per_s'] / 1e6:.0f})"
        kept = f"{f['rows_per_node']:.0f} ({f['plain_rows_per_node']:.0f})"
        rows.append([f"{f['nodes']:,}", count(f["edges"]), "none", million, kept, ""])
    for f in results.figures("windows", case="memory"):
        million = f"{f['edges'] / f['cpu_s'] / 1e6:.1f}"
        size = memory(f["memory_mib"])
        horizon, kept = count(f["horizon_edges"]), f"{f['rows_per_node']:.0f}"
        rows.append([f"{f['nodes']:,}", count(f["edges"]), horizon, million, kept, size])
    head = ["nodes", "edges", "horizon, edges", "million edges per CPU second", "rows per node"]
    return table([*head, "peak memory"], rows)


def half_life_table(results: Results) -> str:
    """How far H is from the faded graph, over the same without half-life at equal rows."""
    found = results.figures("half_life", bench="half_life")
    names = list(dict.fromkeys(f["family"] for f in found))
    rows = [
        [name, *(f"{f['ratio']:.2f} ± {f['error']:.2f}" for f in found if f["family"] == name)]
        for name in names
    ]
    shares = [f["share"] for f in found if f["family"] == names[0]] if names else []
    head = ["no half-life" if share is None else f"1/{1 / share:.0f}" for share in shares]
    return table(["graph", *head], rows)


def half_life_cost_table(results: Results) -> str:
    """CPU time of an edge with a half-life."""
    found = results.figures("half_life", bench="half_life_cost")
    rows = []
    for n, weighted in dict.fromkeys((f["n_nodes"], f["weighted"]) for f in found):
        cells = [f for f in found if (f["n_nodes"], f["weighted"]) == (n, weighted)]
        times = [f"{f['ns_per_edge']:.1f} ns ({f['resamples']})" for f in cells]
        rows.append([f"{n:,}", "yes" if weighted else "no", *times])
    head = ["no half-life", "1000: nothing fades", "1/3", "1/10"]
    return table(["nodes", "weights", *head], rows)


BLOCKS: dict[str, Callable[[Results], str]] = {
    "forgetting": best_table,
    "forgetting labels": labels_table,
    "forgetting links": links_table,
    "forgetting drift": drift_table,
    "windows": windows_table,
    "windows cost": windows_cost_table,
    "half-life": half_life_table,
    "half-life cost": half_life_cost_table,
}
