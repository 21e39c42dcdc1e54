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
from typing import Any, Self

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
from ohmlearn.reading.read_edges import read_edges
from ohmlearn.resistance import effective_resistance

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

__all__ = ["EntityResolver"]

SUREST = 0.999  # links count as at most so sure, since scores are too sure
PACK = 64  # records of components whose leverages are computed together
DIGITS = 9  # of leverages; rounding must not decide the order of links


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
    >>> links, probability = found.explain("a1", "b2")
    >>> links["left"].tolist(), links["right"].tolist(), round(probability, 2)
    (['a1', 'a2', 'a3', 'b1'], ['a2', 'a3', 'b1', 'b2'], 0.59)
    """

    def __init__(self, *, threshold: float = 0.8, recall: float = 0.8) -> None:
        self.threshold = check_fraction("threshold", threshold)
        self.recall = check_fraction("recall", recall)
        self.nodes_, self.entities_ = NodeTable(), np.empty(0, np.int64)
        self._pairs = np.empty(0, np.int64)  # smaller number << 32 | larger number, sorted
        self._p, self._leverage = np.empty(0), np.empty(0)
        self._cluster = np.empty(0, np.int64)  # of each record, if it is known, else -1
        self._names: dict[object, int] = {}  # of these clusters

    def update(self, pairs: object = None, known: Mapping[Any, object] | None = None) -> Self:
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
        given, names, n_before = known or {}, self._names, len(self.entities_)
        is_empty = pairs is None or (isinstance(pairs, list) and not pairs)
        try:
            edges = () if is_empty else _open(pairs, self.nodes_)
            batches = [(none, none, none), *(batch[:3] for batch in edges)]
            if any(w is None or w.max(initial=0.0) > 1.0 for _, _, w in batches):
                what = "must have a column of probabilities, or of weights between 0 and 1"
                raise InputError(f"{Param('pairs')} {what}")
            u, v, p = map(np.concatenate, zip(*batches, strict=True))
            records = self.nodes_.add(list(given)).astype(np.int64)
            numbers = [names.setdefault(x, len(names)) for x in given.values()]
        except BaseException:
            self.nodes_.truncate(n_before)
            raise
        n = len(self.nodes_)
        self.entities_ = np.append(self.entities_, np.arange(n_before, n))
        self._cluster = np.append(self._cluster, np.full(n - n_before, -1))
        self._cluster[records] = numbers
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
        left = np.isin(self.entities_, self.entities_[changed])  # also of clusters known before
        touched = np.isin(component, component[left])
        links = np.flatnonzero(touched[u] & is_link)
        p = np.minimum(self._p[links], SUREST)
        leverages = _find_leverages(u[links], v[links], -np.log1p(-p), component)
        self._leverage[links] = leverages
        order = np.lexsort((-p, leverages))
        nodes, place = np.flatnonzero(touched), np.cumsum(touched) - 1
        roots = _grow(
            place[np.stack([u, v], axis=1)[links[order]]].tolist(),
            np.log(p / (1.0 - p))[order].tolist(),
            self._cluster[nodes].tolist(),
            math.log(1.0 - self.recall),
        )
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
        return self._show(*(end[at] for end in self._ends()))

    def _show(self, u: Ints, v: Ints) -> dict[str, NDArray[Any]]:
        at = np.searchsorted(self._pairs, np.minimum(u, v) << 32 | np.maximum(u, v))
        table: dict[str, NDArray[Any]] = {"left": self.nodes_.ids(u), "right": self.nodes_.ids(v)}
        table |= {"probability": self._p[at], "leverage": self._leverage[at]}
        return table | {"joined": self.entities_[u] == self.entities_[v]}

    def explain(self, left: object, right: object) -> tuple[dict[str, NDArray[Any]], float]:
        """Return the strongest path of links between two records, and how strongly all join them.

        The path is a table as of `links`; its probabilities have the largest product. If the two
        are one entity, all its links are joined, else some are false bridges. The second value is 1
        - exp(-1 / R), R the resistance: all paths, as independent evidence.
        """
        (a, b), n, ends = self.nodes_.find([left, right]).tolist(), len(self.nodes_), self._ends()
        inside = np.equal(*self.entities_[np.stack(ends)]) | (
            self.entities_[a] != self.entities_[b]
        )
        chosen = (self._p >= self.threshold) & inside
        (u, v), p = np.stack(ends)[:, chosen], np.minimum(self._p[chosen], SUREST)
        costs = coo_array((-np.log(p), (u, v)), (n, n)).tocsr()
        before = dijkstra(costs, directed=False, indices=a, return_predecessors=True)[1]
        path = [b]
        while before[path[0]] >= 0:
            path.insert(0, int(before[path[0]]))
        near = (before[u] >= 0) | (before[v] >= 0)
        graph = Graph.from_edges(u[near], v[near], -np.log1p(-p[near]), n_nodes=n)
        resistance = float(effective_resistance(graph, [[a, b]], exact=True)[0])
        joins = 1.0 if a == b else -math.expm1(-1.0 / resistance)
        return self._show(np.array(path[:-1], np.int64), np.array(path[1:], np.int64)), joins


def _find_leverages(u: Ints, v: Ints, w: Floats, component: Ints) -> Floats:
    """Return the leverages of links, sorted by their ends; exact in components of few records.

    They are estimates in large components, which are computed alone, so that others change nothing.
    """
    leverages, sizes = np.ones(len(u)), np.bincount(component)  # 1 in trees
    is_cyclic = np.bincount(component[u], minlength=len(sizes)) >= sizes
    packs = np.cumsum(np.where(is_cyclic & (sizes < PACK), sizes, 0)) // PACK
    packs = np.where(sizes < PACK, packs, -1 - np.arange(len(sizes)))[component[u]]
    rest = np.flatnonzero(is_cyclic[component[u]])
    rest = rest[np.argsort(packs[rest], kind="stable")]
    for part in np.split(rest, np.flatnonzero(np.diff(packs[rest])) + 1):
        a, b = np.unique(np.stack([u[part], v[part]]), return_inverse=True)[1].reshape(2, -1)
        found = effective_resistance(Graph.from_edges(a, b, w[part]), random_state=0)
        leverages[part] = np.round(w[part] * found, DIGITS)
    return leverages


def _grow(
    pairs: list[list[int]], evidence: list[float], known: list[int], missing: float
) -> list[int]:
    """Return a member of the entity of each record; links join entities in the given order.

    Links that are refused are tried again as long as entities grow.
    """
    root, members = list(range(len(known))), [[node] for node in range(len(known))]
    near: list[list[tuple[int, float]]] = [[] for _ in root]
    for (u, v), one in zip(pairs, evidence, strict=True):
        near[u].append((v, one))
        near[v].append((u, one))

    def join(small: int, large: int) -> None:
        for node in members[small]:
            root[node] = large
        members[large] += members[small]
        known[large] = max(known[small], known[large])

    firsts: dict[int, int] = {}
    for node, cluster in enumerate(known.copy()):
        if cluster >= 0 and firsts.setdefault(cluster, node) != node:
            join(node, firsts[cluster])
    n_before = -1
    while len(pairs) != n_before:
        n_before, waiting, pairs = len(pairs), pairs, []
        for u, v in waiting:
            a, b = sorted((root[u], root[v]), key=lambda node: len(members[node]))
            if a == b:
                continue
            found = [x for node in members[a] for other, x in near[node] if root[other] == b]
            n_missing = len(members[a]) * len(members[b]) - len(found)
            if sum(found) + n_missing * missing > 0.0 and min(known[a], known[b]) < 0:
                join(a, b)
            else:
                pairs.append([u, v])
    return root


def _open(pairs: Any, nodes: NodeTable) -> Edges:
    """Return pairs as edges; scores are their weights."""
    if is_from("splink", pairs):
        pairs = pairs.as_pandas_dataframe()
    if is_from("pandas", pairs) and pairs.ndim == 1:  # recordlinkage
        pairs = (*(pairs.index.get_level_values(level) for level in (0, 1)), pairs)
    elif is_from("pandas", pairs) and "source_dataset_l" in pairs:  # ids of several data sets
        columns = ((f"source_dataset_{side}", f"unique_id_{side}") for side in "lr")
        ends = (pairs[of] + "-__-" + pairs[ids].astype(str) for of, ids in columns)
        pairs = (*ends, pairs["match_probability"])
    elif getattr(getattr(pairs, "dtype", None), "names", None) == ("pairs", "score"):  # dedupe
        pairs = (*pairs["pairs"].T, pairs["score"])
    return read_edges(pairs, nodes=nodes)
