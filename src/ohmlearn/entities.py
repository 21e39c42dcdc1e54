"""Entity resolution: which records are the same thing, from the scores of pairs of records.

A pair with the probability p >= threshold of a match is a link, evidence log(p / (1 - p)) that its
records are one entity. Any other pair is evidence log(1 - recall): if the two were one entity,
there would probably be a link. Entities grow from single records along links. Those with small
leverage come first, as other paths confirm them; those that alone hold two groups together come
last. A link joins two entities if the evidence of all pairs between them is positive: one link
between two groups of five is not enough, as 24 are missing. Connected components would join them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components, dijkstra

from ohmlearn.checks.edge_arrays import is_from
from ohmlearn.checks.parameters import check_fraction
from ohmlearn.edges import Edges
from ohmlearn.errors import InputError, Param
from ohmlearn.graph import Graph
from ohmlearn.nodes import NodeTable
from ohmlearn.reading import read_edges
from ohmlearn.resistance import effective_resistance

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

__all__ = ["EntityResolver", "MergeReason"]

SUREST = 0.999  # links count as at most so sure, since scores are too sure
PACK = 64  # records of components whose leverages are computed together
DIGITS = 9  # of leverages; rounding must not decide the order of links
SPLINK = ("unique_id_l", "unique_id_r")


class MergeReason(NamedTuple):
    """Why two records are one entity, or not; see `EntityResolver.explain`.

    `path` has the links (left, right, probability, joined) of the path whose probabilities have the
    largest product. `probability` counts all paths, as independent evidence: 1 - exp(-1 / R).
    """

    joined: bool
    probability: float
    path: list[tuple[object, object, float, bool]]

    def __str__(self) -> str:
        steps = (f"{a} {'-' if joined else '|'} {b} ({p:.2f})" for a, b, p, joined in self.path)
        found = ", ".join(steps) or "no path"
        return f"{'one entity' if self.joined else 'two entities'}: {found}, {self.probability:.2f} by all paths"


class EntityResolver:
    """Groups records into entities by scores of pairs, which may arrive day by day.

    Parameters
    ----------
    threshold : float
        Smallest probability of a link.
    recall : float
        Roughly, the fraction of the pairs of records of one entity that are links. The larger it
        is, the more a missing link counts against a match.

    Attributes
    ----------
    nodes_ : NodeTable
        The ids of the records, in the order of their first appearance.
    entities_ : ndarray of shape (n_records,)
        Number of the first record of the entity of each record.

    Examples
    --------
    >>> from ohmlearn.entities import EntityResolver
    >>> monday = [("a1", "a2", 0.9), ("a2", "a3", 0.9), ("a1", "a3", 0.8), ("b1", "b2", 0.9)]
    >>> found = EntityResolver().update(monday).update([("a3", "b1", 0.95)])
    >>> found.clusters()["cluster"].tolist()
    ['a1', 'a1', 'a1', 'b1', 'b1']
    >>> links = found.links()
    >>> links["left"][~links["joined"]], links["right"][~links["joined"]]  # false bridges
    (array(['a3'], dtype=object), array(['b1'], dtype=object))
    >>> print(found.explain("a1", "b2"))
    two entities: a1 - a2 (0.90), a2 - a3 (0.90), a3 | b1 (0.95), b1 - b2 (0.90), 0.59 by all paths
    """

    def __init__(self, *, threshold: float = 0.8, recall: float = 0.8) -> None:
        self.threshold = check_fraction("threshold", threshold)
        self.recall = check_fraction("recall", recall)
        self.nodes_, self.entities_ = NodeTable(), np.empty(0, np.int64)
        self._pairs = np.empty(0, np.int64)  # smaller number << 32 | larger number, sorted
        self._p, self._leverage = np.empty(0), np.empty(0)
        self._cluster = np.empty(0, np.int64)  # of each record, if it is known, else -1
        self._names: dict[object, int] = {}  # of these clusters

    def update(self, pairs: object, known: Mapping[Any, object] | None = None) -> Self:
        """Take in more pairs, and group again the records that they may have changed.

        The answer is as if all pairs had come at once. A pair that comes again has a new score.

        Parameters
        ----------
        pairs : table, path, Series, structured array, list or tuple
            What `read_edges` reads, with probabilities as weights: tables of Splink, in which it
            finds ``unique_id_l``, ``unique_id_r`` and ``match_probability``, other tables with a
            column ``weight``, lists of (left, right, probability), tuples of three arrays. Also a
            Series with a MultiIndex, as of recordlinkage, and pairs with scores of dedupe.
        known : dict {record: cluster}, optional
            Records whose cluster is known. Those of one cluster are joined, those of different
            ones never. Earlier ones remain.
        """
        none = np.empty(0, np.int64)
        batches = [(none, none, none), *(batch[:3] for batch in _open(pairs, self.nodes_))]
        if any(w is None or w.max(initial=0.0) > 1.0 for _, _, w in batches):
            what = "must have a column of probabilities, or of weights between 0 and 1"
            raise InputError(f"{Param('pairs')} {what}")
        u, v, p = map(np.concatenate, zip(*batches, strict=True))
        given, names, n_before = known or {}, self._names, len(self.entities_)
        records = self.nodes_.add(list(given)).astype(np.int64)
        n = len(self.nodes_)
        self.entities_ = np.append(self.entities_, np.arange(n_before, n))
        self._cluster = np.append(self._cluster, np.full(n - n_before, -1))
        self._cluster[records] = [names.setdefault(x, len(names)) for x in given.values()]
        new = (np.minimum(u, v) << 32 | np.maximum(u, v))[u != v]
        keys, p = np.append(self._pairs, new), np.append(self._p, p[u != v])
        leverages = np.append(self._leverage, np.full(len(new), np.nan))
        last = len(keys) - 1 - np.unique(keys[::-1], return_index=True)[1]
        self._pairs, self._p, self._leverage = keys[last], p[last], leverages[last]
        self._group(np.concatenate([u, v, records]))
        return self

    def _group(self, changed: Ints) -> None:
        """Group all records of the components of links that have a changed record."""
        n, (u, v), is_link = len(self.nodes_), self._ends(), self._p >= self.threshold
        known = np.flatnonzero(self._cluster >= 0)  # each is joined to a node for its cluster
        ends = np.append(u[is_link], known), np.append(v[is_link], n + self._cluster[known])
        joins = coo_array((np.ones(len(ends[0])), ends), [n + len(self._names)] * 2)
        component = connected_components(joins)[1][:n]
        touched = np.isin(component, component[changed])
        links = np.flatnonzero(touched[u] & is_link)
        p = np.minimum(self._p[links], SUREST)
        leverages = _find_leverages(u[links], v[links], -np.log1p(-p), component)
        self._leverage[links] = leverages
        order = np.lexsort((-p, leverages))
        nodes, ends = np.flatnonzero(touched), np.stack([u, v])[:, links[order]]
        roots = _grow(
            (np.cumsum(touched) - 1)[ends].T.tolist(), np.log(p / (1.0 - p))[order].tolist(),
            self._cluster[nodes].tolist(), math.log(1.0 - self.recall),
        )  # fmt: skip
        _, first, which = np.unique(roots, return_index=True, return_inverse=True)
        self.entities_[nodes] = nodes[first[which]]

    def _ends(self) -> tuple[Ints, Ints]:
        return self._pairs >> 32, self._pairs & 0xFFFFFFFF

    def clusters(self) -> dict[str, NDArray[Any]]:
        """Return two columns: each ``record``, and its ``cluster``, named by its first record."""
        return {"record": self.nodes_.ids(), "cluster": self.nodes_.ids(self.entities_)}

    def links(self) -> dict[str, NDArray[Any]]:
        """Return all links: ``left``, ``right``, ``probability``, ``leverage`` and ``joined``.

        The leverage is 1 if nothing but this link joins the two, and small if many paths do. Links
        that are unsure, and that little else confirms, come first: 1 - probability, times leverage.
        Links that are not `joined` are false bridges, between records of two entities.
        """
        at = np.flatnonzero(self._p >= self.threshold)
        at = at[np.argsort((self._p[at] - 1.0) * self._leverage[at], kind="stable")]
        u, v = (end[at] for end in self._ends())
        left, right, joined = (
            self.nodes_.ids(u),
            self.nodes_.ids(v),
            np.equal(*self.entities_[[u, v]]),
        )
        found = {"left": left, "right": right, "probability": self._p[at]}
        return found | {"leverage": self._leverage[at], "joined": joined}

    def explain(self, left: object, right: object) -> MergeReason:
        """Return the links that make one entity of two records, or those that do not."""
        (a, b), n = self.nodes_.find([left, right]).tolist(), len(self.nodes_)
        joined = bool(self.entities_[a] == self.entities_[b])
        ends = np.stack(self._ends())
        chosen = (self._p >= self.threshold) & (np.equal(*self.entities_[ends]) | (not joined))
        (u, v), p = ends[:, chosen], np.minimum(self._p[chosen], SUREST)
        costs = coo_array((-np.log(p), (u, v)), (n, n)).tocsr()
        before = dijkstra(costs, directed=False, indices=a, return_predecessors=True)[1]
        path = [b]
        while before[path[0]] >= 0:
            path.insert(0, int(before[path[0]]))
        if len(path) == 1:  # no path, or the same record
            return MergeReason(joined, float(a == b), [])
        near = (before[u] >= 0) | (before[v] >= 0)
        graph = Graph.from_edges(u[near], v[near], -np.log1p(-p[near]))
        resistance = effective_resistance(graph, [[a, b]], exact=True)[0]
        steps = np.array(path[:-1]), np.array(path[1:])
        keys = np.minimum(*steps) << 32 | np.maximum(*steps)
        p, names = self._p[np.searchsorted(self._pairs, keys)], self.nodes_.ids(path).tolist()
        same = np.equal(*self.entities_[[*steps]])
        found = list(zip(names[:-1], names[1:], p.tolist(), same.tolist(), strict=True))
        return MergeReason(joined, 1.0 - math.exp(-1.0 / resistance), found)


def _find_leverages(u: Ints, v: Ints, w: Floats, component: Ints) -> Floats:
    """Return the leverages of links, sorted by their ends; exact in components of few records."""
    leverages, sizes = np.ones(len(u)), np.bincount(component)  # 1 in trees
    is_cyclic = np.bincount(component[u], minlength=len(sizes)) >= sizes
    packs = (np.cumsum(np.where(is_cyclic, sizes, 0)) // PACK)[component[u]]
    rest = np.flatnonzero(is_cyclic[component[u]])
    rest = rest[np.argsort(packs[rest], kind="stable")]
    for part in np.split(rest, np.flatnonzero(np.diff(packs[rest])) + 1):
        ends = np.unique(np.stack([u[part], v[part]]), return_inverse=True)[1].reshape(2, -1)
        found = effective_resistance(Graph.from_edges(*ends, w[part]), random_state=0)
        leverages[part] = np.round(w[part] * found, DIGITS)
    return leverages


def _grow(
    pairs: list[list[int]], evidence: list[float], known: list[int], missing: float
) -> list[int]:
    """Return a member of the entity of each record; links join entities in the given order.

    `between` has the evidence and the number of links between an entity and each other one. Links
    that are refused are tried again as long as entities grow.
    """
    root, members = list(range(len(known))), [[node] for node in range(len(known))]
    between: list[dict[int, tuple[float, int]]] = [{} for _ in root]
    for (a, b), one in zip(pairs, evidence, strict=True):
        between[a][b] = between[b][a] = (one, 1)

    def join(a: int, b: int) -> None:
        if len(between[a]) + len(members[a]) < len(between[b]) + len(members[b]):
            a, b = b, a
        for node in members[b]:
            root[node] = a
        members[a] += members[b]
        known[a] = max(known[a], known[b])
        for c, (more, count) in between[b].items():
            del between[c][b]
            if c != a:
                old, n_old = between[a].get(c, (0.0, 0))
                between[a][c] = between[c][a] = (old + more, n_old + count)

    firsts: dict[int, int] = {}
    for node, cluster in enumerate(known.copy()):
        if cluster >= 0 and firsts.setdefault(cluster, node) != node:
            join(root[firsts[cluster]], node)
    n_before = -1
    while len(pairs) != n_before:
        n_before, waiting, pairs = len(pairs), pairs, []
        for u, v in waiting:
            a, b = root[u], root[v]
            if a == b:
                continue
            found, count = between[a][b]
            found += (len(members[a]) * len(members[b]) - count) * missing
            if found > 0.0 and min(known[a], known[b]) < 0:
                join(a, b)
            else:
                pairs.append([u, v])
    return root


def _open(given: Any, nodes: NodeTable) -> Edges:
    """Return pairs as edges; scores are their weights."""
    if is_from("splink", given):
        given = given.as_pandas_dataframe()
    if is_from("pandas", given) and given.ndim == 1:  # recordlinkage
        given = (*(given.index.get_level_values(level) for level in (0, 1)), given)
    elif is_from("pandas", given) and {*SPLINK, "source_dataset_l"} <= set(given.columns):
        ends = (
            given[f"source_dataset_{end[-1]}"] + "-__-" + given[end].astype(str) for end in SPLINK
        )
        given = (*ends, given["match_probability"])
    elif getattr(getattr(given, "dtype", None), "names", None) == ("pairs", "score"):  # dedupe
        given = (*given["pairs"].T, given["score"])
    return read_edges(given, nodes=nodes)
