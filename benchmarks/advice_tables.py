"""Tables and sentences for the advice in the documentation."""

from __future__ import annotations

import numpy as np

from benchmarks.label_tables import by_set
from benchmarks.results import Results, percent, table


def passes_table(results: Results) -> str:
    """Error and accuracy after each number of passes over the paper's graph."""
    rows = [
        [str(f["passes"]), f"{f['error']:.1e}".replace("e-0", "e-"), percent(f["right"])]
        for f in results.figures("advice", case="passes")
    ]
    return table(["passes", "relative error of f", "nodes labelled correctly"], rows)


def alike_sentence(results: Results) -> str:
    """Accuracy after several passes where the classes are very similar."""
    right = {f["passes"]: f["right"] for f in results.figures("advice", case="RBF passes")}
    first, *others = right
    steps = ", ".join(f"{percent(right[passes])} after {passes}" for passes in others[:3])
    return (
        f"For five clusters, {percent(right[first])} of the labels are correct after one pass, "
        f"{steps}, and {percent(right[others[-1]])} after {others[-1]}."
    )


def gamma_table(results: Results) -> str:
    """Mean accuracy over the sets, by gamma and labels per class; the best of a row is bold."""
    figures = [f for f in results.figures("advice", case="gamma") if "1" in f]
    ways = [key for key in figures[0] if key[0].isdigit()] if figures else []
    rows = []
    for labels in dict.fromkeys(f["labels"] for f in figures):
        chosen = [f for f in figures if f["labels"] == labels]
        means = [f"{100 * np.mean([f[way] for f in chosen]):.1f}" for way in ways]
        best = max(means, key=float)
        rows.append([labels, *(f"**{mean}**" if mean == best else mean for mean in means)])
    return table(["labels per class", *(f"{float(way):,g}" for way in ways)], rows)


def weights_sentence(results: Results) -> str:
    """Compare self-tuning weights with uniform ones."""
    figures = [f for f in results.figures("advice", case="weights") if "uniform" in f]
    parts = []
    for labels, words in (("1", "one label per class"), ("10", "ten")):
        chosen = [f for f in figures if f["labels"] == labels]
        ours, theirs = (100 * np.mean([f[way] for f in chosen]) for way in ("gaussian", "uniform"))
        parts.append(f"{ours:.1f}% instead of {theirs:.1f}% with {words}")
    worst = 100 * min(f["gaussian"] - f["uniform"] for f in figures)
    return (
        f"With Gaussian instead of uniform weights, and 10 neighbours, the mean accuracy of exact "
        f"stable-HFS over {len({f['set'] for f in figures})} sets is {', and '.join(parts)}. The "
        f"smallest gain on a set is {worst:+.1f} points."
    )


def neighbours_sentence(results: Results) -> str:
    """Compare a hundred neighbours with ten."""
    rows = by_set(results.figures("labels", method="exact", labels="10"))
    found = {name: row["exact"]["accuracy"] for (name, _), row in rows.items()}
    gains = {
        name.removesuffix(" k=100"): found[name] - found[name.replace("k=100", "k=10")]
        for name in found
        if name.endswith("k=100")
    }
    better = [name for name, gain in gains.items() if gain > 0]
    gaining = f"more accurate on {', '.join(better)}" if better else "more accurate on none"
    return (
        f"With ten labels per class, the answer from all edges with 100 neighbours instead of 10 "
        f"is less accurate on {len(gains) - len(better)} of the {len(gains)} sets of points, by "
        f"up to {-min(gains.values()):.0f} points. It is {gaining}."
    )


def unequal_table(results: Results) -> str:
    """Accuracy with unequal numbers of labels, for each divisor of the scores."""
    rows = []
    for f in results.figures("advice", case="unequal"):
        if "root" in f:
            shown = [[100 * x for x in f[way]] for way in ("nothing", "root", "number")]
            cells = [f"{all_nodes:.1f}, {classes:.1f}" for all_nodes, classes in shown]
            rows.append([f["set"], str(f["labels"]), *cells])
    return table(["", "labels", "not divided", "by the square root", "by the number"], rows)


def unequal_sentence(results: Results) -> str:
    """Gain from class mass normalisation with unequal numbers of labels."""
    f = results.one("advice", case="unequal digits")
    return (
        f"If all classes are about equally frequent, as in digits (one label per class and twenty "
        f'more at random), `normalization="cmn"` with a uniform `class_prior` is better still: '
        f"{percent(f['cmn, uniform'])} correct instead of {percent(f['stable'])}."
    )


def wrong_table(results: Results) -> str:
    """Accuracy with wrong labels, for several values of gamma."""
    figures = results.figures("advice", case="wrong labels")
    ways = [key for key in figures[0] if key.startswith("gamma")] if figures else []
    rows = [[f"{f['share']:.0%}", *(percent(f[way]) for way in ways)] for f in figures]
    heads = ["`gamma_`" if way.endswith(" 1") else f"{way.split()[-1]} times" for way in ways]
    return table(["wrong labels", *heads], rows)
