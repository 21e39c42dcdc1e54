"""Tables on what forgetting old edges gains and costs."""

from __future__ import annotations

from collections.abc import Callable

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
from benchmarks.results import Results, table

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


BLOCKS: dict[str, Callable[[Results], str]] = {
    "forgetting": best_table,
    "forgetting labels": labels_table,
    "forgetting links": links_table,
    "forgetting drift": drift_table,
}
