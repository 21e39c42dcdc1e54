"""Tables and sentences on how faithful reasons are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.measure import Figure
from benchmarks.reasons import EDGE_WAYS, LABEL_WAYS, N_EDGES, N_LABELS
from benchmarks.results import Results, seconds, table

LABELS = {
    "named": "the largest contributions",
    "nearest": "the nearest of its class, by number of edges",
    "shortest": "the nearest of its class, by inverse weights",
    "random": "random ones of its class",
}
EDGES = {
    "named": "the largest supports",
    "path": "on shortest paths to labels of its class",
    "current": "the largest currents from the node to labels",
    "random": "random ones within two steps",
}


def _sets(results: Results) -> list[Figure]:
    found = results.figures("reasons", case="sets", method="harmonic")
    return [f for f in found if "explained" in f]


def _mean(found: list[Figure], key: str) -> float:
    return 100 * float(np.mean([f[key] for f in found])) if found else float("nan")


def faithful_table(results: Results) -> str:
    """Answers changed without some labels or edges; in brackets, nodes that are cut off."""
    found = _sets(results)
    rows = []
    for what, ways, sizes in (("labels", LABEL_WAYS, N_LABELS), ("edges", EDGE_WAYS, N_EDGES)):
        names = LABELS if what == "labels" else EDGES
        for way in ways:
            cells = []
            for size in sizes:
                changed, cut = (_mean(found, f"{what}_{way}_{size}{end}") for end in ("", "_cut"))
                cells.append(f"{changed:.0f}%" + (f" ({cut:.0f}%)" if cut >= 0.5 else ""))
            rows.append([f"{what}: {names[way]}", *cells])
    heads = [f"{a} or {b}" if a != b else f"{a}" for a, b in zip(N_LABELS, N_EDGES, strict=True)]
    return table(["removed", *heads], rows)


def faithful_sets(results: Results) -> str:
    """Answers changed on each graph by three labels and ten edges."""
    rows = [
        [
            f["set"], f"{100 * f['right']:.0f}%", f"{f['labels_of_half']:.0f}",
            *(f"{100 * f[f'labels_{way}_{N_LABELS[-1]}']:.0f}%" for way in LABEL_WAYS),
            *(f"{100 * f[f'edges_{way}_{N_EDGES[-1]}']:.0f}%" for way in EDGE_WAYS),
        ]
        for f in _sets(results)
    ]  # fmt: skip
    head = ["graph", "right", "labels that make half"]
    head += [f"{N_LABELS[-1]} labels: {way}" for way in LABEL_WAYS]
    return table(head + [f"{N_EDGES[-1]} edges: {way}" for way in EDGE_WAYS], rows)


def exact_sentence(results: Results) -> str:
    """Errors of the identities, and how many printed changes a fresh model confirms."""
    found = _sets(results)
    if not found:
        return ""
    n_nodes, changes = (sum(f[key] for f in found) for key in ("explained", "changes"))
    confirmed = sum(f["changes"] * f["confirmed"] for f in found)
    sums, removed = (max(f[key] for f in found) for key in ("sum_error", "removal_error"))
    return (
        f"For all {n_nodes} nodes, contributions add up to the margin with a relative error of at "
        f"most {sums:.0e}, and the margin without the first label is that of a solve without it, "
        f"all else held, with an error of at most {removed:.0e}. Of {changes} sets in "
        f"`changes_if`, {confirmed:.0f} gave the node another label in a fresh model."
    )


def cost_sentence(results: Results) -> str:
    """Time for a node."""
    found = results.figures("reasons", case="cost")
    if not found:
        return ""
    alone, block = (max(f[key] for f in found) for key in ("alone_cpu_s", "block_cpu_s"))
    return (
        f"On graphs of {found[0]['nodes']:,} nodes and about {found[0]['edges'] / 1e6:.1f} million "
        f"edges, a node takes {seconds(alone)} of CPU time, and {seconds(block)} if sixteen nodes "
        "are explained together."
    )


BLOCKS: dict[str, Callable[[Results], str]] = {
    "faithful": faithful_table,
    "faithful sets": faithful_sets,
    "exact reasons": exact_sentence,
    "reasons cost": cost_sentence,
}
