"""Tables and sentences about labelling."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

import numpy as np

from benchmarks.events import MADE
from benchmarks.label_methods import METHODS
from benchmarks.labels import accuracy_table
from benchmarks.measure import Figure
from benchmarks.results import Results, count, digits, ending, memory, percent, seconds, table

OURS = ("1 pass", "3 passes", "exact")
PEERS = tuple(name for name in METHODS if name not in OURS)
WHO = {
    "paper k=4500, 1 pass": "ohmlearn, one pass, {share:.1%} of the edges kept",
    "paper k=4500, 4 passes": "ohmlearn, four passes",
    "LabelSpreading k=4500, points": "scikit-learn LabelSpreading, from the points",
    "LabelSpreading k=4500, stored": "scikit-learn LabelSpreading",
    "Diffusion k=4500, stored": "scikit-network DiffusionClassifier",
    "Poisson k=4500, stored": "graphlearning Poisson",
    "harmonic_function k=4500, stored": "networkx harmonic_function",
}
WHOLE = "all points"
LARGE = 20_000  # nodes


def label_cost(results: Results) -> str:
    """Cost of labelling the paper's graph, for ours and peers."""
    rows = []
    for case, who in WHO.items():
        f = results.one("label_cost", case=case)
        if not f:
            continue
        share = f["edges_kept"] / f["edges_seen"] if "edges_seen" in f else 0.0
        cells = ["", "", ending(f)]
        if "cpu_s" in f:
            cells = [seconds(f["cpu_s"]), memory(f["rss_peak_mib"]), percent(f["accuracy"])]
        rows.append([who.format(share=share), *cells])
    return table(["", "CPU", "memory", "correct"], rows)


def label_scale(results: Results) -> str:
    """Sentences about accuracy on real data and about large graphs."""
    rows = by_set(results.figures("labels"))
    gaps = [
        abs(row["3 passes"]["accuracy"] - row["exact"]["accuracy"])
        for row in rows.values()
        if {"3 passes", "exact"} <= row.keys()
    ]
    both = [row for row in rows.values() if {"3 passes", "Poisson"} <= row.keys()]
    ours, poisson = (
        np.mean([row[name]["accuracy"] for row in both]) for name in ("3 passes", "Poisson")
    )
    lines = [
        f"On real data the accuracy after three passes is {ours:.1f}% on average, at most "
        f"{digits(max(gaps))} points from the exact solution. Poisson learning reaches "
        f"{poisson:.1f}% ([table](docs/defaults.md#accuracy-on-real-data))."
    ]
    large = results.one("events", stream=MADE, method="ohmlearn")
    if "cpu_s" in large:
        lines.append(
            f"Reading {large['events'] / 1e6:.0f} million events between names from a Parquet file "
            f"and labelling {large['nodes']:,} nodes takes {seconds(large['cpu_s'])} of CPU time "
            f"and {memory(large['rss_peak_mib'])} of memory ([beside other packages]"
            f"(docs/benchmarks/labels.md#streams-of-events))."
        )
    flat = sorted(results.figures("sparsifier", case="flat"), key=lambda f: f.get("n_edges", 0))
    if flat and all("rss_peak_mib" in f for f in flat):
        first, last = flat[0], flat[-1]
        lines.append(
            f"A stream of {count(last['n_edges'])} edges on 100,000 nodes takes "
            f"{memory(last['rss_peak_mib'])}, and one of {count(first['n_edges'])} edges "
            f"{memory(first['rss_peak_mib'])}."
        )
    return "\n".join(lines)


def events_table(results: Results) -> str:
    """Accuracy, time and memory from a file of events to the labels of all nodes."""
    parts = []
    for stream in dict.fromkeys(f["stream"] for f in results.figures("events")):
        found = results.figures("events", stream=stream)
        rows = []
        for f in found:
            cells = [ending(f) if "method" in f else f["status"], "", "", ""]
            if "cpu_s" in f:
                error = f"{100 * f['accuracy']:.1f}% ± {100 * f['accuracy_se']:.1f}"
                cells = [error, seconds(f["cpu_s"]), seconds(f["wall_s"])]
                cells.append(memory(f["rss_peak_mib"]))
            rows.append([f.get("method", ""), *cells])
        first = found[0]
        pairs = next((f["pairs"] for f in found if "pairs" in f), 0)
        kept = next((f["kept"] for f in found if "kept" in f), 0)
        draws = max(f.get("draws", 0) for f in found)
        if draws:
            parts.append(
                f"**{stream}**: {first['events']:,} events between {first['nodes']:,} nodes, "
                f"{pairs:,} different pairs, {first['same_class']:.0%} of the events inside a "
                f"class; {draws} draws of labels. ohmlearn keeps {kept:,} edges."
            )
        head = ["", "correct", "CPU time", "by the clock", "memory"]
        parts.append(table(head, rows))
    return "\n\n".join(parts) or "Not run."


def events_losses(results: Results) -> list[str]:
    """List where other methods are faster or more accurate on streams of events."""
    lines = []
    for stream in dict.fromkeys(f["stream"] for f in results.figures("events")):
        found = {f["method"]: f for f in results.figures("events", stream=stream) if "cpu_s" in f}
        ours = found.get("ohmlearn")
        peers = [f for f in found.values() if f["package"] != "ohmlearn"]
        if not ours or not peers:
            continue
        # Of those that are about as accurate: it is easy to be fast and wrong.
        level = [f for f in peers if f["accuracy"] > ours["accuracy"] - 0.05]
        first = min(level, key=lambda f: float(f["cpu_s"]), default=ours)
        if first["cpu_s"] < ours["cpu_s"]:
            lines.append(
                f"Events ({stream}): {first['method']} takes {seconds(first['cpu_s'])} instead of "
                f"{seconds(ours['cpu_s'])}, with {percent(first['accuracy'])} correct instead of "
                f"{percent(ours['accuracy'])}."
            )
        best = max(peers, key=lambda f: float(f["accuracy"]))
        if best["accuracy"] > ours["accuracy"] + 0.01:
            lines.append(
                f"Events ({stream}): {best['method']} has {percent(best['accuracy'])} correct, "
                f"ohmlearn {percent(ours['accuracy'])}."
            )
    return lines


def by_set(figures: Iterable[Figure]) -> dict[tuple[str, str], dict[str, Figure]]:
    """Group figures by set and labels, then by method."""
    rows: dict[tuple[str, str], dict[str, Figure]] = defaultdict(dict)
    for f in figures:
        if "accuracy" in f:
            rows[f["set"], f["labels"]][f["method"]] = f
    return rows


def accuracy(results: Results) -> str:
    """All accuracies on real data, and their averages."""
    return "\n".join(accuracy_table([f for f in results.figures("labels") if "accuracy" in f]))


def accuracy_means(results: Results) -> str:
    """Averages over the sets that all methods finished, with CPU time and memory."""
    figures = [f for f in results.figures("labels") if "accuracy" in f]
    figures = [f for f in figures if not f["set"].endswith(WHOLE)]
    methods = [name for name in METHODS if any(f["method"] == name for f in figures)]
    rows = [row for row in by_set(figures).values() if all(name in row for name in methods)]
    lines = []
    for name in methods:
        chosen = [row[name] for row in rows]
        cells = [
            _mean([f["accuracy"] for f in chosen if f["labels"] == labels], "{:.1f}".format)
            for labels in ("1", "5", "10")
        ]
        cells.append(_mean([f["cpu_s"] for f in chosen], seconds))
        cells.append(_mean([f["memory_mib"] for f in chosen if "memory_mib" in f], memory))
        lines.append([f"{METHODS[name].package}: {name}", *cells])
    return table(["method", "1 label per class", "5", "10", "mean CPU", "mean memory"], lines)


def _mean(values: list[float], write: Callable[[float], str]) -> str:
    return write(float(np.mean(values))) if values else ""


def large_sets(results: Results) -> str:
    """Accuracy, CPU time and memory on the largest sets, with ten labels per class."""
    figures = [f for f in results.figures("labels") if f.get("labels", "10") == "10"]
    sets = {f["set"]: f for f in figures if f.get("nodes", 0) >= LARGE}
    if not sets:
        return "Not measured."
    lines = []
    for name, method in METHODS.items():
        found = {f["set"]: f for f in figures if f.get("method") == name and "set" in f}
        if not found:
            continue
        cells = []
        for chosen in sets:
            f = found.get(chosen, {})
            if "accuracy" not in f:
                cells.append(ending(f))
                continue
            parts = [f"{f['accuracy']:.1f}", seconds(f["cpu_s"])]
            if "memory_mib" in f:
                parts.append(memory(f["memory_mib"]))
            cells.append(", ".join(parts))
        lines.append([f"{method.package}: {name}", *cells])
    header = [f"{name}: n = {f['nodes']:,}, m = {f['edges']:,}" for name, f in sets.items()]
    return table(["method", *header], lines)


def cost_table(results: Results) -> str:
    """All cases of the cost of labelling."""
    rows = []
    for f in results.figures("label_cost"):
        seen, kept = (f"{f[key]:,}" if key in f else "" for key in ("edges_seen", "edges_kept"))
        cells = ["", "", ending(f)]
        if "cpu_s" in f:
            cells = [f"{f['cpu_s']:.1f}", f"{f['rss_peak_mib']:.0f}", percent(f["accuracy"])]
        rows.append([f["case"], seen, kept, *cells])
    return table(["case", "edges seen", "kept", "CPU s", "peak MiB", "correct"], rows)


CURVES = (("1 pass", 1), ("1 pass", 2), ("3 passes", 1), *((peer, 1) for peer in PEERS))


def edge_table(results: Results) -> str:
    """CPU time and memory for growing numbers of edges on the same nodes."""
    figures = results.figures("scaling", curve="edges")
    rows = []
    for m in sorted({f["n_edges"] for f in figures}):
        cells = []
        for method, threads in CURVES:
            f = results.one("scaling", curve="edges", n_edges=m, method=method, threads=threads)
            if "cpu_s" not in f:
                cells.append(ending(f))
            elif threads == 2:
                cells.append(seconds(f["wall_s"]))
            else:
                cells.append(f"{seconds(f['cpu_s'])}, {memory(f['memory_mib'])}")
        rows.append([f"{m:,}", *cells])
    return table(["edges", "1 pass", "1 pass, 2 threads, wall", "3 passes", *PEERS], rows)


def label_losses(results: Results) -> list[str]:
    """List the cases where peers are more accurate or cheaper."""
    rows = by_set(results.figures("labels"))
    lines = []
    for peer in PEERS:
        both = {key: row for key, row in rows.items() if {peer, "3 passes"} <= row.keys()}
        gains = {
            key: row[peer]["accuracy"] - row["3 passes"]["accuracy"] for key, row in both.items()
        }
        won = {key: gain for key, gain in gains.items() if gain > 1.0}
        if won:
            (name, labels), most = max(won.items(), key=lambda item: item[1])
            lines.append(
                f"Accuracy: {peer} is more than one point better than three passes in {len(won)} "
                f"of {len(both)} rows. The largest difference is {most:+.1f} points, on {name} "
                f"(labels{' per class' * str(labels).isdigit()}: {labels.removeprefix('labeled')})."
            )
    for peer in PEERS:
        chosen = results.figures("scaling", method=peer, status="ok")
        faster = [f for f in chosen if f["cpu_s"] < _ours_on(results, f).get("cpu_s", 0)]
        if faster:
            most = max(f["n_edges"] for f in faster)
            lines.append(
                f"CPU time: {peer} on the stored graph takes less time than one pass over the "
                f"stream in {len(faster)} of {len(chosen)} measurements under Scaling, with up to "
                f"{count(most)} edges."
            )
        smaller = [f for f in chosen if f["memory_mib"] < _ours_on(results, f).get("memory_mib", 0)]
        if smaller:
            most = max(f["n_edges"] for f in smaller)
            lines.append(
                f"Memory: {peer} takes less memory than one pass in {len(smaller)} of "
                f"{len(chosen)} measurements under Scaling, with up to {count(most)} edges."
            )
    return lines


def _ours_on(results: Results, figure: Figure) -> Figure:
    same = {key: figure[key] for key in ("curve", "n_nodes", "n_edges")}
    return results.one("scaling", **same, method="1 pass", threads=1, status="ok")
