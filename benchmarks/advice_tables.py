"""Tables and sentences behind advice."""

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
    return table(["passes", "relative error of f", "nodes labelled right"], rows)


def alike_sentence(results: Results) -> str:
    """Accuracy after some passes where the classes are much alike."""
    right = {f["passes"]: f["right"] for f in results.figures("advice", case="RBF passes")}
    first, *others = right
    steps = ", ".join(f"{percent(right[passes])} after {passes}" for passes in others[:3])
    return (
        f"Five clusters of which {percent(right[others[-1]])} can be told apart come out "
        f"{percent(right[first])} right after one pass, {steps}."
    )


def gamma_table(results: Results) -> str:
    """Mean accuracy over the sets by gamma and labels a class; the best of a row is bold."""
    figures = [f for f in results.figures("advice", case="gamma") if "1" in f]
    ways = [key for key in figures[0] if key[0].isdigit()] if figures else []
    rows = []
    for labels in dict.fromkeys(f["labels"] for f in figures):
        chosen = [f for f in figures if f["labels"] == labels]
        means = [f"{100 * np.mean([f[way] for f in chosen]):.1f}" for way in ways]
        best = max(means, key=float)
        rows.append([labels, *(f"**{mean}**" if mean == best else mean for mean in means)])
    return table(["labels a class", *(f"{float(way):,g}" for way in ways)], rows)


def weights_sentence(results: Results) -> str:
    """Self-tuning weights beside uniform ones."""
    figures = [f for f in results.figures("advice", case="weights") if "uniform" in f]
    parts = []
    for labels, words in (("1", "one label a class"), ("10", "ten")):
        chosen = [f for f in figures if f["labels"] == labels]
        ours, theirs = (100 * np.mean([f[way] for f in chosen]) for way in ("gaussian", "uniform"))
        parts.append(f"{ours:.1f}% against {theirs:.1f}% with {words}")
    worst = 100 * min(f["gaussian"] - f["uniform"] for f in figures)
    return (
        f"Exact stable-HFS with 10 neighbours, mean over {len({f['set'] for f in figures})} sets: "
        f"{', '.join(parts)}; the least gain of a set is {worst:+.1f} points."
    )


def neighbours_sentence(results: Results) -> str:
    """A hundred neighbours beside ten."""
    rows = by_set(results.figures("labels", method="exact", labels="10"))
    found = {name: row["exact"]["accuracy"] for (name, _), row in rows.items()}
    gains = {
        name.removesuffix(" k=100"): found[name] - found[name.replace("k=100", "k=10")]
        for name in found
        if name.endswith("k=100")
    }
    better = [name for name, gain in gains.items() if gain > 0]
    gaining = f"{', '.join(better)} gain" if better else "none gains"
    return (
        f"With ten labels a class exact stable-HFS loses on {len(gains) - len(better)} of the "
        f"{len(gains)} sets of points when 100 neighbours take the place of 10, by up to "
        f"{-min(gains.values()):.0f} points; {gaining}."
    )


def unequal_table(results: Results) -> str:
    """Accuracy with unequal numbers of labels, by what scores are divided by."""
    rows = []
    for f in results.figures("advice", case="unequal"):
        if "root" in f:
            shown = [[100 * x for x in f[way]] for way in ("nothing", "root", "number")]
            cells = [f"{all_nodes:.1f}, {classes:.1f}" for all_nodes, classes in shown]
            rows.append([f["set"], str(f["labels"]), *cells])
    return table(["", "labels", "divided by nothing", "by the root", "by the number"], rows)


def unequal_sentence(results: Results) -> str:
    """What class shares add where numbers of labels are unequal."""
    f = results.one("advice", case="unequal digits")
    return (
        f"With as frequent classes as in digits (one label a class and twenty more at random), "
        f'`normalization="cmn"` with a uniform `class_prior` adds to that: '
        f"{percent(f['cmn, uniform'])} right instead of {percent(f['stable'])}."
    )


def wrong_table(results: Results) -> str:
    """Accuracy with wrong labels, by gamma."""
    figures = results.figures("advice", case="wrong labels")
    ways = [key for key in figures[0] if key.startswith("gamma")] if figures else []
    rows = [[f"{f['share']:.0%}", *(percent(f[way]) for way in ways)] for f in figures]
    heads = ["`gamma_`" if way.endswith(" 1") else f"{way.split()[-1]} times" for way in ways]
    return table(["wrong labels", *heads], rows)
