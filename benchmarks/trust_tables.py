"""Tables and sentences on how far probabilities and estimates can be trusted."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.measure import Figure
from benchmarks.results import Results, table
from benchmarks.trust import DRAWS, METHODS_AT, PER_CLASS

CLEAR = 0.3  # points of accuracy by which a set is won or lost
HOW = {"stratified": "equal per class", "uniform": "at random"}


def _sets(results: Results, **wanted: object) -> list[Figure]:
    return [f for f in results.figures("trust", case="sets", **wanted) if "error" in f]


def _mean(figures: list[Figure], key: str) -> float:
    return float(np.mean([f[key] for f in figures])) if figures else float("nan")


def calibration_means(results: Results) -> str:
    """Means over the sets: calibration error, prediction sets, and estimated accuracy."""
    rows = []
    for how in DRAWS:
        for labels in PER_CLASS:
            found = _sets(results, labels=labels, drawn=how)
            worse = sum(f["error"] > f["error_before"] + 0.02 for f in found)
            rows.append([
                HOW[how], str(labels), f"{_mean(found, 'error_before'):.3f}",
                f"{_mean(found, 'error'):.3f}", f"{_mean(found, 'error_true_shares'):.3f}",
                f"{worse} of {len(found)}",
                f"{100 * _mean(found, 'coverage'):.1f}%", f"{_mean(found, 'set_size'):.1f}",
                f"{100 * held(found):.0f}%", f"{100 * _mean(found, 'width'):.0f} points",
            ])  # fmt: skip
    head = [
        "labels drawn", "per class", "error before", "calibrated", "with true shares",
        "sets worse by > 0.02", "90% sets hold the class", "classes in a set",
        "interval holds the accuracy", "its width",
    ]  # fmt: skip
    return table(head, rows)


def held(figures: list[Figure]) -> float:
    """Return the share of all draws whose interval held the accuracy."""
    draws = sum(f["draws"] for f in figures)
    return float(sum(f["held"] * f["draws"] for f in figures) / max(draws, 1))


def calibration_sets(results: Results) -> str:
    """Calibration error of each set, before and after."""
    rows = []
    for name in dict.fromkeys(f["set"] for f in _sets(results)):
        row = [name]
        for how in DRAWS:
            for labels in PER_CLASS:
                f = results.one("trust", case="sets", set=name, labels=labels, drawn=how)
                shown = f"{f['error_before']:.2f} → {f['error']:.2f}"
                row.append(f"**{shown}**" if f["error"] > f["error_before"] + 0.02 else shown)
        rows.append(row)
    head = [f"{labels}, {HOW[how]}" for how in DRAWS for labels in PER_CLASS]
    return table(["set", *head], rows)


def class_shares(results: Results) -> str:
    """Mean accuracy without class shares, with the true ones and with those of the labels."""
    rows = []
    for how in DRAWS:
        for labels in PER_CLASS:
            found = _sets(results, labels=labels, drawn=how)
            changes = [_change(found, key) for key in ("true_shares", "labels_shares")]
            plain = f"{100 * _mean(found, 'accuracy'):.1f}"
            rows.append([HOW[how], str(labels), plain, *changes])
    head = ["labels drawn", "per class", "no shares", "true shares", "shares of the labels"]
    return table(head, rows)


def _change(found: list[Figure], key: str) -> str:
    """Return the mean accuracy with the largest loss and gain on a set."""
    gains = sorted((100 * (f[key] - f["accuracy"]), f["set"]) for f in found)
    if not gains:
        return "not run"
    (least, worst), (most, best) = gains[0], gains[-1]
    mean = 100 * _mean(found, key)
    return f"{mean:.1f} ({least:+.0f} {worst}, {most:+.0f} {best})"


def defaults_table(results: Results) -> str:
    """Accuracy and calibration error with the defaults of version 0.1 and with those of now."""
    rows = []
    for how in DRAWS:
        for labels in PER_CLASS:
            found = [f for f in _sets(results, labels=labels, drawn=how) if "first" in f]
            gains = sorted((100 * (f["accuracy"] - f["first"]), f["set"]) for f in found)
            if not gains:
                continue
            won, lost = (sum(sign * gain > CLEAR for gain, _ in gains) for sign in (1, -1))
            means = [f"{100 * _mean(found, key):.1f}" for key in ("first", "accuracy")]
            worst = f"{gains[0][0]:+.1f} {gains[0][1]}"
            errors = [f"{_mean(found, key):.3f}" for key in ("error_first", "error")]
            counts = f"{won} of {len(gains)}, {lost}"
            rows.append([HOW[how], str(labels), *means, counts, worst, *errors])
    head = ["labels drawn", "per class", "0.1", "now", "sets won, lost", "worst set",
            "calibration error, 0.1", "now"]  # fmt: skip
    return table(head, rows)


def methods_table(results: Results) -> str:
    """Accuracy of each method on each set, and the mean."""
    ways = ("harmonic", "restart", "accuracy")
    rows, cells = [], []
    for name in dict.fromkeys(f["set"] for f in _sets(results)):
        one = {n: results.one("trust", case="sets", set=name, labels=n, drawn="stratified")
               for n in METHODS_AT}  # fmt: skip
        values = [100 * one[n][way] for n in METHODS_AT for way in ways if way in one[n]]
        cells.append(values)
        rows.append([name, *(f"{value:.1f}" for value in values)])
    if rows:
        means = np.mean(cells, axis=0)
        rows.append([f"mean of {len(rows)}", *(f"**{mean:.1f}**" for mean in means)])
    names = {"harmonic": "harmonic", "restart": "restart", "accuracy": "auto"}
    return table(["set", *(f"{n}: {names[way]}" for n in METHODS_AT for way in ways)], rows)


def complete_table(results: Results) -> str:
    """Complete graphs, most of whose edges are dropped."""
    rows = []
    for f in results.figures("trust", case="complete"):
        if "error" in f:
            rows.append([
                f["set"], str(f["labels"]), f"{100 * f['kept']:.1f}%", f"{f['error_before']:.3f}",
                f"{f['error']:.3f}", f"{100 * f['accuracy']:.1f}%", f"{100 * f['estimate']:.1f}%",
                f"{100 * f['held']:.0f}%", f"{100 * f['coverage']:.1f}%",
            ])  # fmt: skip
    head = [
        "set", "labels per class", "edges kept", "error before", "calibrated", "accuracy",
        "estimated", "interval holds it", "90% sets hold the class",
    ]  # fmt: skip
    return table(head, rows)


def estimates_table(results: Results) -> str:
    """Estimated over true epsilon."""
    rows: dict[str, dict[float, str]] = {}
    for f in results.figures("estimates", case="epsilon"):
        found = f"{f['ratio']:.2f} ({f['spread']:.2f})" if "ratio" in f else "nothing dropped"
        rows.setdefault(f["family"], {})[f["epsilon"]] = found
    columns = sorted({epsilon for row in rows.values() for epsilon in row})
    return table(
        ["family", *(f"ε = {epsilon}" for epsilon in columns)],
        [[name, *(row.get(epsilon, "") for epsilon in columns)] for name, row in rows.items()],
    )


def estimate_cost(results: Results) -> str:
    """What the estimate costs beside the pass."""
    alone, both = (results.one("estimates", case="cost", estimate=on) for on in (False, True))
    return (
        f"10 million edges among 100,000 nodes: {alone['cpu_s']:.1f} CPU s and "
        f"{alone['memory_mib']:.0f} MiB for pass and snapshot, {both['cpu_s']:.1f} s and "
        f"{both['memory_mib']:.0f} MiB with the estimate, which is computed when it is asked for."
    )


def stability_table(results: Results) -> str:
    """Labels of one pass that other seeds change, as expected and as counted."""
    rows = [
        [
            f["set"], *(f"{100 * f[key]:.1f}%" for key in ("kept", "changed", "expected")),
            f"{f['correlation']:.2f}",
        ]
        for f in results.figures("estimates", case="stability")
    ]  # fmt: skip
    return table(["set", "edges kept", "labels changed", "expected", "correlation"], rows)


BLOCKS: dict[str, Callable[[Results], str]] = {
    "calibration": calibration_means,
    "calibration of sets": calibration_sets,
    "class shares": class_shares,
    "methods": methods_table,
    "defaults before": defaults_table,
    "calibration of complete graphs": complete_table,
    "estimates": estimates_table,
    "estimate cost": estimate_cost,
    "stability": stability_table,
}
