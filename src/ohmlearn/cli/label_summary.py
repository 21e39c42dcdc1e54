"""What ``label`` says about its answer: counts, costs, and how good the labels are."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ohmlearn.cli.messages import summarise
from ohmlearn.cli.open_edges import nodes_read
from ohmlearn.cli.options import Options

if TYPE_CHECKING:
    from ohmlearn.cli.label_command import LabelOutcome
    from ohmlearn.estimators.label_columns import AnswerTable

MANY = 20  # classes, each with a column
COUNTED = ("n_edges_seen", "n_self_loops_dropped", "n_zero_weights_dropped")
SHOWN, NAMED = 10, 5  # classes of a review, and nodes


def make_summary(
    outcome: "LabelOutcome", answers: "AnswerTable", options: Options
) -> dict[str, Any]:
    """Return all figures."""
    from ohmlearn.estimators.review import review_answer
    from ohmlearn.report.report_quality import (
        measure_combination,
        measure_features,
        measure_quality,
    )

    stream, answer, kept = outcome.stream, outcome.answer, outcome.sparsifier
    problem, stats = answer.problem, kept.stats_
    summary = {
        "sources": stream.sources,
        "n_nodes": len(nodes_read(stream)),
        **{name: int(stats[name]) for name in COUNTED},
        "n_bad_rows": stream.n_bad,
        "n_edges_kept": problem.full_graph.n_edges,
        "n_labelled": len(problem.labels.nodes),
        "n_unused_labels": len(problem.labels.nodes) - len(problem.used.nodes),
        "n_relabelled": answers.n_relabelled,
        "n_unreached": int((~answers.reached).sum()),
        "classes": answers.count(),
        "top": options["top"],
    }
    if answer.has_features:
        several = (problem.labels.values > 0.0).sum(axis=1) > 1
        summary |= {
            "n_without_answer": int((~answers.answered).sum()),
            "passes": 1,
            "n_contradicting": int(several.sum()),
            "method": "features",
            "features": {"model": options["method"] or "logistic", **measure_features(answer)},
        }
    else:
        names = map(str, problem.classes.tolist())
        summary |= {
            "passes": answer.n_iter,
            "n_contradicting": len(problem.contradicting),
            "class_prior": dict(zip(names, answer.class_prior.tolist(), strict=True)),
            "method": problem.method,
            **measure_combination(answer),
        }
    view = problem.full_graph.view
    if view is not None:
        unit = stream.time_unit
        when = {"latest": kept.latest_, "unit": unit, "asked": kept.options.half_life}
        summary["time"] = {**asdict(view), **when}
    if outcome.kept is not None and stream.is_log:
        summary["staleness"] = outcome.kept.staleness
    if answers.abstained is not None:
        summary["n_abstained"] = int(answers.abstained.sum())
    imbalance = answer.find_imbalance()
    if imbalance is not None:
        summary["imbalance"] = imbalance._asdict()
    summary |= measure_quality(answer)
    if options["review"]:
        summary["review"] = review_answer(answer).to_dict()["classes"]
    if "unstable_share" in summary:
        summary["unstable_remedy"] = _remedy(stream.rereadable, options)
    return summary


def _remedy(rereadable: bool, options: Options) -> str:
    """Return the options that bring an answer of one pass closer to that of all edges."""
    if options["state"] is not None:
        return "start a state with a lower --epsilon, or label all edges without --state"
    size = "raise --max-edges"
    if options["max_edges"] is None:
        size = "lower --epsilon" if options["memory"] is None else "raise --memory"
    return f"raise --passes or {size}" if rereadable else size


def print_summary(summary: dict[str, Any]) -> None:
    """Print a summary to the standard error, as text or JSON, unless it is to be quiet."""
    summarise(summary, *(f"{name:9} {text}" for name, text in _lines(summary)))


def _lines(summary: dict[str, Any]) -> list[tuple[str, str]]:
    from ohmlearn.estimators.class_proportions import Imbalance
    from ohmlearn.report.report_quality import (
        describe_accuracy,
        describe_combination,
        describe_stability,
    )

    kept = summary["n_edges_kept"]
    percent = 100.0 * kept / max(1, summary["n_edges_seen"])
    edges = f"{summary['n_edges_seen']:,} seen, {kept:,} kept ({percent:.3g}%)"
    dropped = summary["n_self_loops_dropped"] + summary["n_zero_weights_dropped"]
    if dropped:
        edges += f"; {dropped:,} self-loops and zero weights left out"
    nodes = f"{summary['n_nodes']:,}, {summary['n_labelled']:,} of them with a label given"
    if n_unused := summary["n_unused_labels"]:
        nodes += f", {n_unused:,} without an edge{' or features' if 'features' in summary else ''}"
        nodes += f" (kept, but {'counts' if n_unused == 1 else 'count'} for nothing else)"
    if summary["n_contradicting"]:
        nodes += f", {summary['n_contradicting']:,} with contradicting ones"
    if summary["n_relabelled"]:
        gets = "get" if summary["n_relabelled"] > 1 else "gets"
        nodes += f"; {summary['n_relabelled']:,} of these {gets} another label"
    n_apart = summary["n_unreached"]
    if "features" in summary and n_apart > summary["n_without_answer"]:
        are = "is" if n_apart == 1 else "are"
        nodes += f"; {n_apart:,} {are} not connected to a label"
    lines = [("Edges", edges), ("Nodes", nodes), ("Classes", _classes(summary))]
    if "state" in summary:
        state = summary["state"]
        n_new = summary["n_edges_seen"] - state["n_edges_before"]
        labels = ", ".join(f"{count:,} {kind}" for kind, count in state["labels"].items() if count)
        lines.insert(0, ("State", f"{state['path']}: {n_new:,} edges added; labels: {labels}"))
        if changes := state.get("changes"):
            lines.append(("Changes", f"since the last run, {changes['text']}"))
            lines += [
                ("", f"{x['node']}: {x['before']} -> {x['after']} ({100 * x['probability']:.0f}%)")
                for x in changes["surest"][:NAMED]
            ]
    if "time" in summary:
        lines.insert(lines.index(("Edges", edges)) + 1, ("Time", _time(summary["time"])))
    if "staleness" in summary:
        stale = "0: nothing was removed from the log since its sparsifier was built"
        if fraction := summary["staleness"]:
            what = "of no cut, more than this fraction was removed since the last build"
            stale = f"{fraction:.2g}: {what}"
        lines.append(("Staleness", stale))
    if "n_abstained" in summary:
        lines.append(("Abstained", f"{summary['n_abstained']:,} nodes, whose label is left empty"))
    if "imbalance" in summary:
        lines.append(("Caution", Imbalance(**summary["imbalance"]).describe("--class-prior")))
    caveats = list(summary["accuracy_caveats"])
    if summary["accuracy_estimate"] is not None:
        caveats = [describe_accuracy(summary), *caveats]
    lines += zip(["Accuracy", *[""] * len(caveats)], caveats, strict=False)
    lines += describe_combination(summary)
    if "features" in summary:
        lines += _features(summary["features"], "time" in summary)
        epsilon = summary["epsilon_estimate"]
        what = f"labels are those of the edges kept (epsilon about {epsilon:.2g}, estimated)"
        is_less = kept < summary["n_edges_seen"]
        all_kept = "no edge was left out" + (" (parallel ones added up)" if is_less else "")
        lines.append(("Passes", f"1; {what if epsilon > 0 else all_kept}"))
    elif "residual" in summary:
        residual = f"{max(summary['residual']):.2g}"
        passes, of = summary["passes"], "full graph"
        if passes == 1:
            of = "one is enough, because all edges are kept"
        lines.append(("Passes", f"{passes}, residual {residual} ({of})"))
    else:
        epsilon = f"epsilon about {summary['epsilon_estimate']:.2g}, estimated"
        lines.append(("Passes", f"1, so labels are those of the edges kept ({epsilon})"))
        stability = describe_stability(summary)
        if summary["unstable_share"] >= 0.01:
            stability += f": {summary['unstable_remedy']}"
        lines.append(("Stability", stability))
    memory = f"{summary['peak_memory'] / 2**20:.0f} MiB at peak"
    lines.append(("Cost", f"{summary['seconds']:.1f} s, {memory}"))
    lines += zip(["Review", *[""] * MANY**2], _review(summary.get("review", [])), strict=False)
    if "report" in summary:
        lines.append(("Page", summary["report"]))
    return lines


def _review(classes: list[dict[str, Any]]) -> Iterator[str]:
    """Yield lines about the thresholds of each class, and the nodes to look at."""
    for one in sorted(classes, key=lambda one: -one["thresholds"][0]["n_nodes"])[:SHOWN]:
        yield from (row["text"] for row in one["thresholds"] if row["n_nodes"] > 0)
        for kind in ("surest", "borderline"):
            nodes = [f"{row['node']} ({row['probability']:.2f})" for row in one[kind][:NAMED]]
            if nodes:
                yield f'{kind} "{one["label"]}": {", ".join(nodes)}'
    if len(classes) > SHOWN:
        yield f"and {len(classes) - SHOWN:,} more classes, which --json and the page have"


def _features(features: dict[str, Any], has_times: bool) -> list[tuple[str, str]]:
    from ohmlearn.report.report_quality import describe_weights

    n_columns = features["n_columns"]
    columns = "column" if n_columns == 1 else "columns"
    table = f"{features['path']}: {n_columns:,} {columns} of numbers"
    if n_without := features["n_nodes_without"]:
        table += f"; {n_without:,} {'node has' if n_without == 1 else 'nodes have'} none"
    if n_ids := features["n_ids_without_edges"]:
        table += f"; {n_ids:,} {'id has' if n_ids == 1 else 'ids have'} no edge"
        table += " that counts" if has_times else ""
    verdict = features["verdict"].removeprefix("The graph ").removeprefix("It is ")
    return [
        ("Features", table),
        ("Graph", verdict.removesuffix(".")),
        ("Weights", describe_weights(features["weights"])),
    ]


def _time(time: dict[str, Any]) -> str:
    def show(name: str) -> str:
        from ohmlearn.checks.times import show_time

        return show_time(time[name], time["unit"])

    if time["half_life"] is not None:
        return f"half-life {_duration(time['asked'], time['unit'])}, at {show('at')}"
    return f"edges since {show('since')}; the latest is of {show('latest')}"


def _duration(asked: str | float, unit: str | None) -> str:
    """Return a duration with its unit, if that is known."""
    if isinstance(asked, str):
        return asked
    return f"{asked:g}" if unit is None else f"{asked:g} {'s' if unit == 'date' else unit}"


def _classes(summary: dict[str, Any]) -> str:
    if not any(summary["classes"].values()):
        return "none, because no label is likely enough"
    largest = sorted(summary["classes"].items(), key=lambda item: -item[1])
    classes = ", ".join(f"{name[:30]}: {count:,}" for name, count in largest[:10])
    if len(largest) > 10:
        classes += f", and {len(largest) - 10} more"
    if len(largest) > MANY and not summary["top"]:
        classes += " (--top 3 writes the likeliest three, not a column for each)"
    without = summary.get("n_without_answer", summary["n_unreached"])
    if without and "n_abstained" not in summary:
        classes += f"; none: {without:,}, which are not connected to a label"
        if "features" in summary:
            classes += " and have no features"
    return classes
