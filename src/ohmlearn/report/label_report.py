"""The page about a labelling: the input, the edges kept, and the certainty of the labels."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ohmlearn._blas import one_blas_thread
from ohmlearn.certificate import Certificate
from ohmlearn.estimators.answer import judge_left_out
from ohmlearn.estimators.class_proportions import Imbalance
from ohmlearn.estimators.kept_graph import KeptGraph
from ohmlearn.estimators.label_columns import AnswerTable
from ohmlearn.estimators.reasons import Explanation
from ohmlearn.estimators.review import review_answer
from ohmlearn.estimators.suggest_labels import suggest_labels
from ohmlearn.features.feature_reasons import PooledExplanation
from ohmlearn.graph import Graph
from ohmlearn.nodes import NodeTable
from ohmlearn.report.html_page import COLOURS, INK, Report, add_legend, new_figure, style_axes
from ohmlearn.report.reasons_page import add_reasons
from ohmlearn.report.report_quality import (
    WORDS,
    Group,
    describe_accuracy,
    describe_combination,
    describe_stability,
    group_by_probability,
    group_labels,
)
from ohmlearn.solver import LaplacianSolver

MOST_FEATURES = 50  # columns that the page lists
MOST_DRAWN = 1500  # nodes
MOST_EDGES = 4000
MOST_CLASSES = 12  # each with its own colour and bar; the rest are "others"
N_SUGGESTED = 20
N_LISTED = 10  # nodes of a class
MOST_TIES = 3  # components of the same size that are listed one by one
MORE_COLOURS = (*COLOURS, "#c2577c", "#b8a02e", "#4bb3c4", "#7a5c3e", "#6f7fd6", "#a3b84f")
RELIABILITY = (
    "Reliability of the probabilities. {} labels were predicted, each without itself, and grouped "
    "by the probability of the prediction. The height of a dot is the fraction of right ones, with "
    "a 95% interval; its size shows how many labels the group has. On the dashed line, "
    "probabilities mean what they say; above it, labels are better than that."
)
Floats = NDArray[np.float64]


def make_page(
    kept: KeptGraph | None,
    answer: Any,
    nodes: NodeTable,
    answers: AnswerTable,
    summary: dict[str, Any],
    certificate: Certificate | str,
    command: str,
    reasons: Sequence[Explanation | PooledExplanation] = (),
) -> Report:
    """Return the page of a ClassAnswer on a kept graph, or of a FeatureClassAnswer.

    `nodes` has the ids. Without a certificate, the page says why there is none.
    """
    h = answer.problem.full_graph
    n_nodes, n_answers = summary["n_nodes"], sum(summary["classes"].values())
    n_kept = summary["n_edges_kept"]
    percent = 100.0 * n_kept / max(1, summary["n_edges_seen"])
    lead = (
        f"{'' if n_answers == n_nodes else f'{n_answers:,} of '}{n_nodes:,} nodes were labelled "
        f"from {summary['n_labelled']} labelled ones. "
        f"{n_kept:,} of {summary['n_edges_seen']:,} edges ({percent:.3g}%) were kept."
    )
    if summary["accuracy_estimate"] is not None:
        lead += f" The labels are {describe_accuracy(summary)}."
    report = Report("Labels of a graph", lead)
    if "imbalance" in summary:
        report.add_alarm(f"{Imbalance(**summary['imbalance']).describe('--class-prior')}.")
    _add_quality(report, answer, summary)
    if "features" in summary:
        _add_features(report, summary["features"])
    report.add_heading("Input and sparsifier")
    report.add_table(["", ""], _facts(summary), "")
    report.add_heading("Certificate")
    if isinstance(certificate, str):
        report.add_text(certificate)
    else:
        report.add_code(str(certificate))
        report.add_text(
            "G is the graph of all edges, and H the graph of the edges kept. A ratio of energies is"
            " x'Lx on H divided by x'Lx on G. If all ratios are near 1, H and G give nearly the"
            " same labels."
        )
    report.add_heading("Labels")
    without = f" {n_nodes - n_answers:,} nodes have no label." if n_answers < n_nodes else ""
    report.add_figure(_draw_classes(summary["classes"]), f"Number of nodes in each class.{without}")
    report.add_figure(
        _draw_certainty(answer.probabilities.max(axis=1)[answers.answered]),
        f"Certainty of the labels: the probability of the most likely class, for nodes "
        f"{'that have an answer' if answer.has_features else 'connected to a label'}.",
    )
    report.add_figure(_draw_graph(h, answer.problem.labels.nodes, answers), _describe_drawing(h))
    if "changes" in summary.get("state", {}):
        _add_changes(report, summary["state"]["changes"])
    _add_review(report, summary.get("review") or review_answer(answer).to_dict()["classes"])
    if reasons:
        report.add_heading("Why")
        report.add_text(f"Reasons from {reasons[0].basis}.")
        add_reasons(report, reasons, changes=False)
    if kept is None:
        report.add_heading("Nodes to label next")
        report.add_text(
            "Not computed with features; ohmlearn suggest computes them from the edges."
        )
    else:
        _add_suggestions(report, kept, answer, nodes, answers)
    return report.add_command(command)


def _add_quality(report: Report, answer: Any, summary: dict[str, Any]) -> None:
    """Add how good the labels are, and how this is known."""
    report.add_heading("How good the labels are")
    if summary["accuracy_estimate"] is None:
        report.add_text(f"The accuracy is {summary['accuracy_caveats'][0]}.")
    else:
        how = "each labelled node without its own label"
        if answer.has_features:
            how = "the labelled nodes in folds, without the labels of the same fold"
        report.add_text(
            f"The accuracy is estimated by labelling {how}. It holds for nodes that get a label, "
            f"like the labelled ones, so for all of these if labels were drawn at random."
        )
        for caveat in summary["accuracy_caveats"]:
            report.add_text(f"Note: {caveat}.")
    if "unstable_share" in summary:
        text = f"The labels are those of the edges kept: {describe_stability(summary)}."
        if summary["unstable_share"] >= 0.01:
            text += f" For more stable ones, {summary['unstable_remedy']}."
        report.add_text(text)
    if summary["accuracy_estimate"] is not None:
        left_out = judge_left_out(answer)
        groups = group_by_probability(*left_out[:3])
        n_labels = sum(group.n_labels for group in groups)
        report.add_figure(draw_reliability(groups), RELIABILITY.format(n_labels))
        by_class = sorted(group_labels(*left_out), key=lambda group: -group.n_labels)
        report.add_table(
            ["answer", "left-out labels", "mean probability", "right", "95% interval"],
            [
                [
                    str(answer.problem.classes[group.key])[:30], f"{group.n_labels:,}",
                    f"{100 * group.probability:.0f}%", f"{100 * group.right:.0f}%",
                    f"{100 * group.low:.0f}-{100 * group.high:.0f}%",
                ]
                for group in by_class[:MOST_CLASSES]
            ],
            "The same by the class of the answer: what a label of this class is worth.",
        )  # fmt: skip


def draw_reliability(groups: list[Group]) -> Any:
    """Return a figure with the fraction of right labels in each group, and the diagonal."""
    axes = new_figure(7.0, 3.4).subplots()
    axes.plot([0, 1], [0, 1], color=INK, alpha=0.5, linewidth=1, linestyle="--")
    _, p, right, low, high, n_labels = (np.array(one) for one in zip(*groups, strict=True))
    axes.vlines(p, low, high, color=COLOURS[0], alpha=0.5, linewidth=2)
    axes.scatter(p, right, s=20 + 230 * n_labels / n_labels.sum(), color=COLOURS[0], zorder=3)
    style_axes(axes, xlabel="probability of the label", ylabel="fraction of right labels")
    axes.set(xlim=(0, 1), ylim=(-0.03, 1.05))
    return axes.figure


def _facts(summary: dict[str, Any]) -> list[list[str]]:
    names = {
        "n_edges_seen": "Edges seen",
        "n_edges_kept": "Edges kept",
        "n_self_loops_dropped": "Self-loops skipped",
        "n_zero_weights_dropped": "Edges of weight zero skipped",
        "n_bad_rows": "Bad rows skipped",
        "n_nodes": "Nodes",
        "n_labelled": "Labelled nodes",
        "n_unused_labels": "Labelled nodes without an edge, whose labels count for nothing else",
        "n_contradicting": "Nodes with contradicting labels",
        "n_relabelled": "Labelled nodes that get another label",
        "n_unreached": "Nodes not connected to a label",
        "n_without_answer": "Nodes without an answer, for lack of evidence",
        "n_abstained": "Nodes without an answer, for lack of confidence",
        "passes": "Passes over the edges",
    }
    rows = [["Sources", ", ".join(summary["sources"][:5])]]
    rows += [[text, f"{summary[name]:,}"] for name, text in names.items() if name in summary]
    rows += map(list, describe_combination(summary))
    if "residual" in summary:
        rows.append(["Residual on the full graph", f"{max(summary['residual']):.2g}"])
    else:
        rows.append(["Epsilon of H, estimated", f"{summary['epsilon_estimate']:.2g}"])
    if "staleness" in summary:
        rows.append(["Staleness of H, because of edges removed", f"{summary['staleness']:.2g}"])
    rows.append(["Time", f"{summary['seconds']:.1f} s"])
    return [*rows, ["Peak memory", f"{summary['peak_memory'] / 2**20:.0f} MiB"]]


def _draw_classes(counts: dict[str, int]) -> Any:
    largest = sorted(counts.items(), key=lambda item: -item[1])
    shown = dict(largest[:MOST_CLASSES])
    if len(largest) > MOST_CLASSES:
        shown["others"] = sum(count for _, count in largest[MOST_CLASSES:])
    axes = new_figure(7.0, 0.6 + 0.32 * len(shown)).subplots()
    axes.barh(range(len(shown)), list(shown.values()), color=COLOURS[0])
    style_axes(axes, xlabel="nodes")
    axes.set_yticks(range(len(shown)), [_plain(name, 30) for name in shown], color=INK)
    axes.invert_yaxis()
    return axes.figure


def _draw_certainty(certainty: Floats) -> Any:
    axes = new_figure(7.0, 2.6).subplots()
    axes.hist(certainty, bins=40, range=(0.0, 1.0), color=COLOURS[0])
    style_axes(axes, xlabel="probability of the most likely class", ylabel="nodes")
    return axes.figure


@one_blas_thread()
def lay_out(graph: Graph, seed: int = 0) -> tuple[NDArray[np.int64], Floats]:
    """Return the nodes of the largest component, and coordinates that place neighbours together.

    The coordinates are the eigenvectors of the two smallest nonzero eigenvalues of the normalised
    Laplacian, computed by inverse iteration.
    """
    _, component = graph.components()
    nodes = np.flatnonzero(component == np.argmax(np.bincount(component)))
    degrees = graph.degrees
    inside = np.zeros(graph.n_nodes)
    inside[nodes] = degrees[nodes]
    total = inside.sum()
    x = np.random.default_rng(seed).standard_normal((graph.n_nodes, 3))
    if total == 0:
        return nodes, x[nodes, :2]
    solver = LaplacianSolver(graph, random_state=seed)
    for _ in range(12):
        x -= inside @ x / total  # remove the constant eigenvector, which carries no information
        x = solver.solve(inside[:, np.newaxis] * x, tol=1e-4)
        x -= inside @ x / total
        gram = x.T @ (inside[:, np.newaxis] * x)
        values, vectors = np.linalg.eigh(gram)
        least = max(1e-12 * values[-1], 1e-300)  # three nodes have only two such vectors
        x = x @ vectors[:, ::-1] / np.sqrt(np.maximum(values[::-1], least))
    return nodes, x[nodes, :2]


def _draw_graph(h: Graph, labelled: NDArray[np.int64], answers: AnswerTable) -> Any:
    nodes, places = lay_out(h)
    random = np.random.default_rng(0)
    given = np.flatnonzero(np.isin(nodes, labelled))
    others = random.permutation(len(nodes))[:MOST_DRAWN]
    chosen = np.union1d(given[:MOST_DRAWN], others)
    position = np.full(h.n_nodes, -1)
    position[nodes[chosen]] = chosen
    u, v, _ = h.edges()
    both = np.flatnonzero((position[u] >= 0) & (position[v] >= 0))
    both = np.sort(random.choice(both, min(MOST_EDGES, len(both)), replace=False))
    axes = new_figure(7.0, 5.2).subplots()
    from matplotlib.collections import LineCollection

    # Ranks separate nodes that the eigenvectors put on top of one another, and pull in outliers.
    rank = np.argsort(np.argsort(places, axis=0, kind="stable"), axis=0) / max(1, len(places) - 1)
    plain = (places - places.min(axis=0)) / np.maximum(np.ptp(places, axis=0), 1e-300)
    # Within a dense cluster the coordinates hardly differ; a little noise separates the nodes.
    mixed = 0.8 * rank + 0.2 * plain + 0.02 * random.standard_normal(places.shape)
    lines = np.stack([mixed[position[u[both]]], mixed[position[v[both]]]], axis=1)
    axes.add_collection(LineCollection(list(lines), colors=INK, linewidths=0.4, alpha=0.15))
    codes = answers.codes[nodes[chosen]]
    sizes = np.array(list(answers.count().values()))
    largest = np.argsort(-sizes, kind="stable")[: len(MORE_COLOURS)]
    largest = largest[sizes[largest] > 0]
    rest = (codes >= 0) & ~np.isin(codes, largest)
    if rest.any():
        axes.scatter(*mixed[chosen[rest]].T, s=5, color="#b9bfc5", label="others", linewidths=0)
    none = codes < 0
    if none.any():
        axes.scatter(
            *mixed[chosen[none]].T, s=9, color=INK, alpha=0.4, marker="x", label="no label",
            linewidths=0.6,
        )  # fmt: skip
    for code, colour in zip(largest, MORE_COLOURS, strict=False):
        name = _plain(answers.classes[code], 20)
        axes.scatter(*mixed[chosen[codes == code]].T, s=7, color=colour, label=name, linewidths=0)
    axes.scatter(*mixed[given].T, s=42, facecolors="none", edgecolors=INK, linewidths=1.2)
    axes.set_axis_off()
    add_legend(axes, loc="upper left", bbox_to_anchor=(1.0, 1.0), markerscale=2)
    return axes.figure


def _plain(name: object, limit: int) -> str:
    """Return text for matplotlib, with dollar signs escaped because they start mathematics."""
    return str(name)[:limit].replace("$", r"\$")


def _describe_drawing(h: Graph) -> str:
    _, component = h.components()
    size = int(np.bincount(component).max())
    sample = f"{MOST_DRAWN:,} random nodes of " if size > MOST_DRAWN else ""
    return (
        f"The edges kept, with nodes coloured by label. The picture shows {sample}the largest "
        f"component, which has {size:,} of {h.n_nodes:,} nodes. Nodes connected by many edges are "
        f"close together. Rings mark the given labels."
    )


def _add_changes(report: Report, changes: dict[str, Any]) -> None:
    """Add which labels are not those of the last run."""
    report.add_heading("What changed since the last run").add_text(f"{changes['text']}.")
    rows = [[x["node"], x["before"], x["after"], f"{x['probability']:.3f}"]
            for x in changes["surest"]]  # fmt: skip
    if rows:
        report.add_table(["node", "before", "now", "probability"], rows, text_columns=(1, 2))


def _add_review(report: Report, classes: list[dict[str, Any]]) -> None:
    """Add how many nodes are above a probability and how many of them right, and which."""
    largest = sorted(classes, key=lambda one: -one["thresholds"][0]["n_nodes"])[:MOST_CLASSES]
    rows = [
        [
            str(one["label"])[:30], f"{row['threshold']:g}", f"{row['n_nodes']:,}",
            _interval(row["precision"]), _interval(row["recall"]),
        ]
        for one in largest for row in one["thresholds"] if row["n_nodes"] > 0
    ]  # fmt: skip
    if not rows:
        return
    report.add_heading("What to look at")
    report.add_text(
        "If you act on the nodes of a class above a probability, so many of them are right, and "
        "they are so many of all nodes of the class. Both are estimated from left-out labels, with "
        "95% intervals, and hold for nodes like the labelled ones."
    )
    header = ["class", "probability at least", "nodes", "of them right", "of the class"]
    report.add_table(header, rows)
    listed = [
        [
            str(one["label"])[:30],
            *(", ".join(str(x["node"])[:30] for x in one[kind][:N_LISTED])
              for kind in ("surest", "borderline")),
        ]
        for one in largest
    ]  # fmt: skip
    report.add_table(["class", "surest nodes", "least sure"], listed, text_columns=(1, 2))


def _interval(one: dict[str, Any] | None) -> str:
    if one is None:
        return "too few labels"
    return f"{100 * one['value']:.0f}% ({100 * one['low']:.0f}-{100 * one['high']:.0f}%)"


def _add_suggestions(
    report: Report, kept: KeptGraph, answer: Any, nodes: NodeTable, answers: AnswerTable
) -> None:
    """Add which nodes to label next; many rows that are alike become one sentence."""
    p, n_jobs = answer.probabilities, answer.problem.parameters.n_jobs
    rows, picks = [], suggest_labels(kept, answer, N_SUGGESTED, n_jobs=n_jobs)
    for pick in picks:
        at = int(nodes.find([pick.node])[0])
        code = answers.codes[at]
        present = ["", ""] if code < 0 else [answers.classes[code], f"{p[at].max():.3f}"]
        rows.append([pick.node, pick.reason, *present])
    if not rows:
        return
    counts = Counter(tuple(row[1:]) for row in rows)
    ties = [alike for alike, count in counts.items() if count > MOST_TIES]
    report.add_heading("Nodes to label next")
    listed = [row for row in rows if tuple(row[1:]) not in ties]
    if listed:
        report.add_text("Labels of these nodes would improve the answers most, best first.")
        header = ["node", "reason", "label", "probability"]
        report.add_table(header, listed, text_columns=(1, 2))
    for alike in ties:
        first = next(at for at, row in enumerate(rows) if tuple(row[1:]) == alike)
        if picks[first].kind == "component":
            report.add_text(_describe_components(answer, picks[first].n_settled))
            continue
        reason, label, probability = alike
        report.add_text(
            f"{counts[alike]} of the {len(rows)} best nodes are alike, such as {rows[first][0]}: "
            f"each {reason}{f', now {label} ({probability})' if label != '' else ''}. None of them "
            f"is a better choice than another."
        )


def _describe_components(answer: Any, size: int) -> str:
    """Say how many components of a size have no label."""
    _, component = answer.problem.full_graph.components()
    count = np.count_nonzero(np.bincount(component[~answer.reached]) == size)
    if size == 1:
        return f"{count:,} nodes have neither a label nor an edge; a label would help only itself."
    return (
        f"{count:,} components of {size:,} nodes have no label. A label helps only the component "
        f"that it is in, so none of them is a better choice than another."
    )


def _add_features(report: Report, figures: dict[str, Any]) -> None:
    """Add whether the graph helps, the weights of features and graph, and the columns used."""
    report.add_heading("Features and graph")
    report.add_text(figures["verdict"])
    report.add_text(
        "The answers are a weighted mean; the weights are from labels that were left out."
    )
    weights = [[what, f"{figures['weights'][name]:.2f}"] for name, what in WORDS.items()]
    report.add_table(["answers from", "weight"], weights, "")
    columns = [[name, what] for name, what in figures["columns"].items()]
    n_more = len(columns) - MOST_FEATURES
    n_nodes, n_ids = figures["n_nodes_without"], figures["n_ids_without_edges"]
    report.add_text(
        f"The table of features has {figures['n_rows']:,} rows, which became "
        f"{figures['n_columns']:,} {'column' if figures['n_columns'] == 1 else 'columns'} of "
        f"numbers. {n_nodes:,} {'node has' if n_nodes == 1 else 'nodes have'} no features, and "
        f"{n_ids:,} {'id has' if n_ids == 1 else 'ids have'} no edge."
        + (f" The first {MOST_FEATURES} columns of the table:" if n_more > 0 else "")
    )
    report.add_table(["column", "use"], columns[:MOST_FEATURES], "", text_columns=(1,))
