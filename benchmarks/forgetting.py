"""Measure what forgetting old edges gains, and what it costs.

``python -m benchmarks.forgetting`` prints one JSON line per view of a stream: all edges, half-lives
and windows of several lengths. There are three cases.

- ``labels``: streams with labels that do not change. Each view labels the nodes from a few labels;
  the figure is the accuracy on the unlabelled nodes. Nodes that no label reaches count as wrong.
- ``links``: questions and answers without labels. The view at the start of a month ranks pairs of
  users by effective resistance; the figure is the probability (AUC) that a pair of this month ranks
  before another pair: one drawn at random, or one of the same users in other pairs.
- ``drift``: a random stream among nodes that change their group; the truth is the group now.

Weights are exact and no edge is dropped, so that only the view matters. Figures are means, with
standard errors, over draws of labels, over months, and over streams. ``gain`` is the difference
from all edges for the same draws. The kind "chosen" is the view with the largest
`accuracy_estimate_` times the fraction of nodes reached, which needs no other labels.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.graphs import DATA
from benchmarks.measure import Figure, emit
from benchmarks.trust import draw_labels
from ohmlearn import Graph, HFSClassifier, effective_resistance
from ohmlearn.graph.time_view import TimeView

SETS = ("dblp_temporal", "school_primary")
LINKS = "snap_mathoverflow_a2q"
PER_CLASS = (5, 20)
METHODS = ("harmonic", "restart", "auto")
SHARES = (1, 2, 4, 8, 16, 32)  # lengths of views: the span of the stream divided by these
DAY = 86400.0
LINK_DAYS = (1000, 365, 180, 90, 30, 10)
DRIFT_DAYS = (40, 20, 10, 5, 2, 1)
DRIFTS = (0.0, 0.005, 0.02, 0.05)  # share of the nodes that choose a new group each day
N_DAYS, N_GROUPS, N_NODES, PER_DAY = 60, 5, 1000, 2000
DAYS = (10, 20, 40, 60)  # when accuracy is measured


@dataclass
class Stream:
    """Edges with times, and the classes of the nodes, if there are any."""

    u: np.ndarray
    v: np.ndarray
    t: np.ndarray
    n_nodes: int
    y: np.ndarray | None = None

    def graph(self, view: TimeView, before: float = np.inf) -> Graph:
        """Return the graph of a view of the edges before a time."""
        past = self.t < before
        edges = view.weigh(self.u[past], self.v[past], None, self.t[past])
        return Graph.from_edges(*edges, n_nodes=self.n_nodes)


def read_stream(folder: Path, name: str) -> Stream:
    """Read a stream, and the classes of its nodes if the set has labels."""
    import pyarrow.parquet as pq

    edges = pq.read_table(folder / f"{name}_stream.parquet")
    u, v, t = (edges[c].to_numpy() for c in "uvt")
    n_nodes, y = int(max(u.max(), v.max())) + 1, None
    labels = folder / f"{name}_labels.parquet"
    if labels.exists():
        found = pq.read_table(labels)
        nodes = found["node"].to_numpy()
        n_nodes = max(n_nodes, int(nodes.max()) + 1)
        y = np.full(n_nodes, -1)
        y[nodes] = found["label"].to_numpy()
    return Stream(u, v, t.astype(float), n_nodes, y)


def views(at: float, lengths: Sequence[float]) -> Iterator[tuple[Figure, TimeView]]:
    """Yield all edges, then a half-life and a window of each length, with their names.

    Examples
    --------
    >>> [(f["kind"], f["length"], view.since) for f, view in views(10.0, [4.0])]
    [('all', None, None), ('half-life', 4.0, None), ('window', 4.0, 6.0)]
    """
    yield {"kind": "all", "length": None}, TimeView()
    for length in lengths:
        yield {"kind": "half-life", "length": length}, TimeView(at=at, half_life=length)
    for length in lengths:
        yield {"kind": "window", "length": length}, TimeView(since=at - length)


class Answer:
    """What a view says about the nodes, from some labels."""

    def __init__(self, graph: Graph, y: np.ndarray, chosen: np.ndarray, method: str) -> None:
        given = np.full(len(y), -1)
        given[chosen] = y[chosen]
        calibration = "loo" if method == "auto" else None  # None has the same labels and is faster
        model = HFSClassifier(epsilon=None, calibration=calibration, method=method, random_state=0)
        self.model = model.fit_edges(graph, given)
        self.rest = (y >= 0) & (given < 0)
        self.reached = model.reached_
        self.right = (model.transduction_ == y) & self.reached

    def estimate(self) -> float:
        """Return the fraction of all nodes that get a right label, estimated from the labels."""
        reached = float(self.reached.mean())
        return float(np.nan_to_num(self.model.accuracy_estimate_.value)) * reached


def mean_error(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean of some values and its standard error.

    Examples
    --------
    >>> mean_error([0.0, 1.0, 0.0, 1.0])
    (0.5, 0.2887)
    """
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return round(float(np.mean(values)), 4), round(float(error), 4)


def summary(found: dict[str, list[float]], base: dict[str, list[float]]) -> Figure:
    """Return mean, standard error, and the gain over all edges, of each measure."""
    figure: Figure = {}
    for key, values in found.items():
        figure[key], figure[f"{key}_se"] = mean_error(values)
        gains = [a - b for a, b in zip(values, base[key], strict=True)]
        figure[f"{key}_gain"], figure[f"{key}_gain_se"] = mean_error(gains)
    return figure


def choose(
    found: list[dict[str, list[float]]], estimates: list[list[float]]
) -> dict[str, list[float]]:
    """Return the measures of the view with the largest estimate, for each draw.

    Examples
    --------
    >>> choose([{"accuracy": [0.1, 0.2]}, {"accuracy": [0.3, 0.4]}], [[0.5, 0.5], [0.6, 0.4]])
    {'accuracy': [0.3, 0.2]}
    """
    best = np.argmax(estimates, axis=0)
    return {key: [found[at][key][i] for i, at in enumerate(best)] for key in found[0]}


def study_labels(name: str, stream: Stream, draws: int) -> Iterator[Figure]:
    """Yield the accuracy of each view of a stream whose labels do not change."""
    span = float(np.ptp(stream.t))
    newest = stream.t >= np.quantile(stream.t, 0.9)
    recent = np.zeros(stream.n_nodes, bool)  # nodes with one of the newest tenth of the edges
    recent[stream.u[newest]] = recent[stream.v[newest]] = True
    graphs = [
        (kind, stream.graph(view))
        for kind, view in views(stream.t.max(), [span / share for share in SHARES])
        if kind != {"kind": "window", "length": span}  # these are all edges
    ]
    for method in METHODS:
        for per_class in PER_CLASS if method != "auto" else PER_CLASS[:1]:
            head = {"case": "labels", "set": name, "nodes": stream.n_nodes, "method": method}
            head |= {"labels": per_class, "draws": draws}
            found, estimates = [], []
            for kind, graph in graphs:
                measured, estimated = label_static(stream, graph, recent, method, per_class, draws)
                found.append(measured)
                estimates.append(estimated)
                share = None if kind["length"] is None else round(span / kind["length"])
                figure = {**kind, "share": share, "edges": graph.n_edges}
                yield {**head, **figure, **summary(measured, found[0])}
            if method == "auto":
                yield {**head, "kind": "chosen", **summary(choose(found, estimates), found[0])}


def label_static(
    stream: Stream, graph: Graph, recent: np.ndarray, method: str, per_class: int, draws: int
) -> tuple[dict[str, list[float]], list[float]]:
    """Return the measures of a view for each draw of labels, and the estimates of accuracy."""
    found: dict[str, list[float]] = {"accuracy": [], "recent": [], "reached": []}
    estimates = []
    assert stream.y is not None
    for seed in range(draws):
        chosen = draw_labels(stream.y, per_class, "stratified", seed)
        answer = Answer(graph, stream.y, chosen, method)
        found["accuracy"].append(answer.right[answer.rest].mean())
        found["recent"].append(answer.right[answer.rest & recent].mean())
        found["reached"].append(answer.reached[answer.rest].mean())
        estimates.append(answer.estimate() if method == "auto" else 0.0)
    return found, estimates


def study_links(stream: Stream, months: int) -> Iterator[Figure]:
    """Yield how well resistances in each view predict the pairs of the next month."""
    moments = np.linspace(0.35, 0.97, months) * np.ptp(stream.t) + stream.t.min()
    tests = [pairs_to_rank(stream, moment, seed) for seed, moment in enumerate(moments)]
    base: dict[str, list[float]] = {}
    for at_view in range(1 + 2 * len(LINK_DAYS)):
        found: dict[str, list[float]] = {"random": [], "same_users": [], "connected": []}
        for moment, (true, random, swapped) in zip(moments, tests, strict=True):
            head, view = list(views(moment, [days * DAY for days in LINK_DAYS]))[at_view]
            graph = stream.graph(view, before=moment)
            pairs = np.concatenate([true, random, swapped])
            resistances = effective_resistance(graph, pairs, rtol=0.2, random_state=0)
            ours, theirs, others = np.split(resistances, [len(true), len(true) + len(random)])
            found["random"].append(auc(-ours, -theirs))
            found["same_users"].append(auc(-ours, -others))
            found["connected"].append(float(np.isfinite(ours).mean()))
        base = base or found
        days = None if head["length"] is None else round(head["length"] / DAY)
        pairs_mean = int(np.mean([len(true) for true, *_ in tests]))
        figure = {"case": "links", "set": LINKS, "kind": head["kind"], "days": days}
        yield {**figure, "months": months, "pairs": pairs_mean, **summary(found, base)}


def pairs_to_rank(stream: Stream, moment: float, seed: int) -> tuple[np.ndarray, ...]:
    """Return pairs of the 30 days after a moment, random pairs, and pairs of the same users.

    All users have an edge before the moment. The last kind keeps how often each user occurs, so
    that only who meets whom can tell it from the first.
    """
    rng = np.random.default_rng(seed)
    past = stream.t < moment
    known = np.zeros(stream.n_nodes, bool)
    known[stream.u[past]] = known[stream.v[past]] = True
    month = (stream.t >= moment) & (stream.t < moment + 30 * DAY) & (stream.u != stream.v)
    month &= known[stream.u] & known[stream.v]
    true = np.unique(np.stack([stream.u[month], stream.v[month]], axis=1), axis=0)
    random = rng.choice(np.flatnonzero(known), true.shape)
    swapped = np.stack([true[:, 0], rng.permutation(true[:, 1])], axis=1)
    taken = set(map(tuple, true.tolist()))
    swapped = swapped[[tuple(pair) not in taken for pair in swapped.tolist()]]
    return true, random[random[:, 0] != random[:, 1]], swapped[swapped[:, 0] != swapped[:, 1]]


def auc(better: np.ndarray, worse: np.ndarray) -> float:
    """Return how often a value of the first array is above one of the second; ties count half.

    Examples
    --------
    >>> auc(np.array([2.0, 3.0]), np.array([1.0, 2.0]))
    0.875
    """
    order = np.sort(worse)
    below = np.searchsorted(order, better, "left") + np.searchsorted(order, better, "right")
    return float(below.mean() / (2 * len(worse)))


def drifting(rate: float, seed: int) -> tuple[Stream, list[np.ndarray]]:
    """Return a stream of messages, half of them within a group, and the groups of each day.

    Every day, so many of the nodes choose a group at random.

    Examples
    --------
    >>> stream, groups = drifting(0.1, 0)
    >>> len(stream.t), len(groups), float(np.mean(groups[0] != groups[10]).round(1))
    (120000, 60, 0.5)
    """
    rng = np.random.default_rng(seed)
    group = np.arange(N_NODES) % N_GROUPS
    parts, groups = [], []
    for day in range(N_DAYS):
        moves = rng.random(N_NODES) < rate
        group = np.where(moves, rng.integers(N_GROUPS, size=N_NODES), group)
        u = rng.integers(N_NODES, size=PER_DAY)
        members = np.argsort(group, kind="stable")
        start = np.searchsorted(group[members], np.arange(N_GROUPS + 1))
        low, high = start[group[u]], start[group[u] + 1]
        friend = members[low + (rng.random(PER_DAY) * (high - low)).astype(int)]
        v = np.where(rng.random(PER_DAY) < 0.5, friend, rng.integers(N_NODES, size=PER_DAY))
        parts.append((u, v, day + np.sort(rng.random(PER_DAY))))
        groups.append(group)
    u, v, t = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Stream(u, v, t, N_NODES), groups


def study_drift(rate: float, per_class: int, streams: int) -> Iterator[Figure]:
    """Yield the accuracy of each view of streams whose nodes change group, over the days."""
    made = [drifting(rate, seed) for seed in range(streams)]
    head = {"case": "drift", "rate": rate, "labels": per_class, "streams": streams}
    found: list[dict[str, list[float]]] = []
    estimates: list[list[float]] = []
    for at_view in range(1 + 2 * len(DRIFT_DAYS)):
        found.append({f"day_{day}": [] for day in DAYS})
        estimates.append([])
        for seed, (stream, groups) in enumerate(made):
            for day in DAYS:
                kind, view = list(views(float(day), DRIFT_DAYS))[at_view]
                graph, y = stream.graph(view, before=day), groups[day - 1]
                answer = Answer(graph, y, draw_labels(y, per_class, "stratified", seed), "harmonic")
                found[-1][f"day_{day}"].append(answer.right[answer.rest].mean())
                if day == DAYS[-1]:
                    estimates[-1].append(answer.estimate())
        figure = {"kind": kind["kind"], "days": kind["length"]}
        yield {**head, **figure, **summary(found[-1], found[0])}
    last = [{f"day_{DAYS[-1]}": measured[f"day_{DAYS[-1]}"]} for measured in found]
    yield {**head, "kind": "chosen", **summary(choose(last, estimates), last[0])}


def studies(options: argparse.Namespace) -> Iterator[Figure]:
    """Yield all figures."""
    for name in SETS:
        if not (options.data / f"{name}_stream.parquet").exists():
            yield {"case": "labels", "set": name, "status": "no data"}
            continue
        print(name, file=sys.stderr, flush=True)
        yield from study_labels(name, read_stream(options.data, name), options.draws)
    if (options.data / f"{LINKS}_stream.parquet").exists():
        print(LINKS, file=sys.stderr, flush=True)
        yield from study_links(read_stream(options.data, LINKS), options.months)
    else:
        yield {"case": "links", "set": LINKS, "status": "no data"}
    for rate in DRIFTS:
        for per_class in PER_CLASS:
            yield from study_drift(rate, per_class, options.draws)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=DATA, help="folder with the data sets")
    parser.add_argument("--draws", type=int, default=10, help="draws of labels, random streams")
    parser.add_argument("--months", type=int, default=10)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # components without a label are intended
    for figure in studies(options):
        emit({"bench": "forgetting", **figure})


if __name__ == "__main__":
    main()
