"""Entity resolution: which records are the same thing, from the scores of pairs of records.

A pair with the probability p >= threshold of a match is a link, evidence log(p / (1 - p)) that its
records are one entity. Any other pair is evidence log(1 - recall): if the two were one entity,
there would probably be a link. Entities grow from single records along links. Links with small
leverage come first, as other paths confirm them, and those that alone hold two groups together come
last. A link joins two entities if the evidence of all pairs between them is positive: one link
between two groups of five is not enough, as 24 links are missing. Connected components, which most
programs report, would join the groups.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components, dijkstra

from ohmlearn._display import Shown
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

__all__ = ["EntityResolver", "Link", "MergeReason"]

LEAST = 1e-3  # probabilities of links count as at most 1 - LEAST: scores are too sure
PACK = 64  # records of components whose leverages are computed together
DIGITS = 9  # of leverages; rounding must not decide the order of links
SPLINK = ("unique_id_l", "unique_id_r")


class Link(NamedTuple):
    """Two records, the probability of a match, the leverage, and whether they are one entity now.

    The leverage is 1 if nothing but this link joins the two, and small if many paths do.
    """

    left: object
    right: object
    probability: float
    leverage: float
    joined: bool


class MergeReason(NamedTuple):
    """Why two records are one entity, or not; see `EntityResolver.explain`.

    `path` has the links of the path with the largest product of probabilities. `probability` counts
    all paths, as independent evidence: 1 - exp(-1 / R), R the effective resistance.
    """

    joined: bool
    probability: float
    path: list[Link]

    def __str__(self) -> str:
        found = "one entity" if self.joined else "two entities"
        if not self.path:
            return f"{found}: no path of links joins them"
        marks = ("not joined, ", "")
        steps = (f"{a} - {b} ({marks[joined]}{p:.2f})" for a, b, p, _, joined in self.path)
        return f"{found}: {', '.join(steps)}; all paths together give {self.probability:.2f}"


class EntityResolver(Shown):
    """Groups records into entities by scores of pairs, which may arrive day by day.

    Parameters
    ----------
    threshold : float
        Smallest probability of a link.
    recall : float
        Roughly, the fraction of the pairs of records of one entity that are links. The larger it
        is, the more a missing link counts against a match.
    n_jobs : int, optional
        Number of threads, as in scikit-learn.

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
    >>> [(link.left, link.right) for link in found.false_bridges()]
    [('a3', 'b1')]
    >>> found.weak_links(1)
    [Link(left='a1', right='a3', probability=0.8, leverage=0.582975389, joined=True)]
    >>> print(found.explain("a1", "b2"))
    two entities: a1 - a2 (0.90), a2 - a3 (0.90), a3 - b1 (not joined, 0.95), b1 - b2 (0.90); all
    paths together give 0.62
    """

    def __init__(
        self, *, threshold: float = 0.8, recall: float = 0.8, n_jobs: int | None = None
    ) -> None:
        self.threshold = check_fraction("threshold", threshold)
        self.recall, self.n_jobs = check_fraction("recall", recall), n_jobs
        self.nodes_, self.entities_ = NodeTable(), np.empty(0, np.int64)
        self._pairs = np.empty(0, np.int64)  # smaller number << 32 | larger number, sorted
        self._p, self._leverage = np.empty(0), np.empty(0)
        self._cluster = np.empty(0, np.int64)  # of each record, if it is known, else -1
        self._names: dict[object, int] = {}  # of these clusters

    def _facts(self) -> dict[str, Any]:
        n_entities = len(np.unique(self.entities_))
        return {"records": len(self.nodes_), "pairs": len(self._p), "entities": n_entities}

    def update(self, pairs: object, known: Mapping[Any, object] | None = None) -> Self:
        """Take in more pairs, and group again the records that they may have changed.

        The answer is as if all pairs had come at once. A pair that comes again has a new score.

        Parameters
        ----------
        pairs : table, path, Series, structured array, list or tuple
            What `read_edges` reads, with probabilities as weights: tables of Splink, in which it
            finds ``unique_id_l``, ``unique_id_r`` and ``match_probability``, tables and files with
            a column ``weight``, lists of (left, right, probability), and tuples of three arrays.
            Also a Series with a MultiIndex, as of recordlinkage, and the array of pairs and scores
            of dedupe.
        known : dict {record: cluster}, optional
            Records whose cluster is known. Those of one cluster are joined, those of different
            ones never. Earlier ones remain.

        Returns
        -------
        self : object
        """
        batches = [batch[:3] for batch in _open(pairs, self.nodes_) if len(batch.u) > 0]
        if any(w is None or w.max() > 1.0 for _, _, w in batches):
            what = "must have a column of probabilities, or of weights between 0 and 1"
            raise InputError(f"{Param('pairs')} {what}")
        empty = [np.empty(0, np.int64)] * 2 + [np.empty(0)]
        u, v, p = (np.concatenate(each) for each in zip(empty, *batches, strict=True))
        given = known or {}
        records = self.nodes_.add(list(given)).astype(np.int64)
        n, n_before = len(self.nodes_), len(self.entities_)
        self.entities_ = np.append(self.entities_, np.arange(n_before, n))
        self._cluster = np.append(self._cluster, np.full(n - n_before, -1))
        names = self._names
        self._cluster[records] = [names.setdefault(x, len(names)) for x in given.values()]
        new = np.where(u < v, u << 32 | v, v << 32 | u)[u != v]
        columns = (self._pairs, new), (self._p, p[u != v]), (self._leverage, np.empty(len(new)))
        keys, p, leverages = (np.concatenate(both)[::-1] for both in columns)
        self._pairs, last = np.unique(keys, return_index=True)
        self._p, self._leverage = p[last], leverages[last]
        self._group(np.concatenate([u, v, records]))
        return self

    def _group(self, changed: Ints) -> None:
        """Group all records of the components of links that have a changed record."""
        n, (u, v), is_link = len(self.nodes_), self._ends(), self._p >= self.threshold
        known = np.flatnonzero(self._cluster >= 0)
        known = known[np.argsort(self._cluster[known], kind="stable")]
        same = self._cluster[known[1:]] == self._cluster[known[:-1]]
        ties = known[:-1][same], known[1:][same]  # each known record and the next of its cluster
        ends = np.append(u[is_link], ties[0]), np.append(v[is_link], ties[1])
        component = connected_components(coo_array((np.ones(len(ends[0])), ends), (n, n)))[1]
        touched = np.isin(component, component[changed])
        links = np.flatnonzero(touched[u] & is_link)
        p = np.minimum(self._p[links], 1.0 - LEAST)
        self._leverage[links] = _find_leverages(
            u[links], v[links], -np.log1p(-p), component, self.n_jobs
        )
        order = np.lexsort((-p, self._leverage[links]))
        links, p = links[order], p[order]
        nodes, place = np.flatnonzero(touched), np.cumsum(touched) - 1
        columns = place[u[links]], place[v[links]], np.log(p / (1.0 - p))
        tied = [place[end[touched[end]]] for end in ties]
        roots = _grow(*columns, self._cluster[nodes], tied, math.log(1.0 - self.recall))
        _, first, which = np.unique(roots, return_index=True, return_inverse=True)
        self.entities_[nodes] = nodes[first[which]]

    def _ends(self) -> tuple[Ints, Ints]:
        return self._pairs >> 32, self._pairs & 0xFFFFFFFF

    def clusters(self) -> dict[str, NDArray[Any]]:
        """Return two columns: each ``record``, and its ``cluster``, named by its first record."""
        return {"record": self.nodes_.ids(), "cluster": self.nodes_.ids(self.entities_)}

    def weak_links(self, n: int = 20) -> list[Link]:
        """Return the links inside entities that are most worth a look.

        Those with the largest leverage times 1 - probability are unsure, and nothing confirms them.
        """
        return self._choose(self._leverage * (1.0 - self._p), True, n)

    def false_bridges(self, n: int = 20) -> list[Link]:
        """Return the links whose records are two entities, the most probable ones first."""
        return self._choose(self._p, False, n)

    def _choose(self, order: Floats, joined: bool, n: int) -> list[Link]:
        u, v = self._ends()
        is_joined = self.entities_[u] == self.entities_[v]
        found = np.flatnonzero((self._p >= self.threshold) & (is_joined == joined))
        found = found[np.argsort(-order[found], kind="stable")[:n]]
        return [self._link(pair) for pair in self._pairs[found].tolist()]

    def _link(self, pair: int) -> Link:
        at = int(np.searchsorted(self._pairs, pair))
        ends = [pair >> 32, pair & 0xFFFFFFFF]
        joined = self.entities_[ends[0]] == self.entities_[ends[1]]
        left, right = self.nodes_.ids(ends).tolist()
        return Link(left, right, float(self._p[at]), float(self._leverage[at]), bool(joined))

    def explain(self, left: object, right: object) -> MergeReason:
        """Return the links that make one entity of two records, or those that do not."""
        a, b = self.nodes_.find([left, right]).tolist()
        u, v = self._ends()
        is_joined, n = self.entities_[u] == self.entities_[v], len(self.nodes_)
        joined = bool(self.entities_[a] == self.entities_[b])
        links = np.flatnonzero((self._p >= self.threshold) & (is_joined | (not joined)))
        u, v, p = u[links], v[links], np.minimum(self._p[links], 1.0 - LEAST)
        costs = coo_array((-np.log(p), (u, v)), (n, n)).tocsr()
        before = dijkstra(costs, directed=False, indices=a, return_predecessors=True)[1]
        path, end = [], b
        while end != a and before[end] >= 0:
            start = int(before[end])
            link = self._link(min(start, end) << 32 | max(start, end))
            path.append(link if start < end else link._replace(left=link.right, right=link.left))
            end = start
        if end != a or not path:
            return MergeReason(joined, float(a == b), [])
        near = (before >= 0)[u] | (u == a)
        graph = Graph.from_edges(u[near], v[near], -np.log1p(-p[near]))
        resistance = effective_resistance(graph, [[a, b]], exact=True)[0]
        return MergeReason(joined, 1.0 - math.exp(-1.0 / resistance), path[::-1])


def _find_leverages(u: Ints, v: Ints, w: Floats, component: Ints, n_jobs: int | None) -> Floats:
    """Return the leverages of links, sorted by their ends; exact in components of few records."""
    leverages, sizes = np.ones(len(u)), np.bincount(component)  # 1 in trees
    is_cyclic = np.bincount(component[u], minlength=len(sizes)) >= sizes
    packs = (np.cumsum(np.where(is_cyclic, sizes, 0)) // PACK)[component[u]]
    rest = np.flatnonzero(is_cyclic[component[u]])
    rest = rest[np.argsort(packs[rest], kind="stable")]
    for part in np.split(rest, np.flatnonzero(np.diff(packs[rest])) + 1):
        ends = np.unique(np.stack([u[part], v[part]]), return_inverse=True)[1].reshape(2, -1)
        found = effective_resistance(
            Graph.from_edges(*ends, w[part]), random_state=0, n_jobs=n_jobs
        )
        leverages[part] = np.round(w[part] * found, DIGITS)
    return leverages


def _grow(
    u: Ints, v: Ints, evidence: Floats, known: Ints, ties: list[Ints], missing: float
) -> Ints:
    """Return the root of the entity of each record; links join entities in the given order.

    `between` has the evidence and the number of links between an entity and each other one. Links
    that are refused are tried again as long as entities grow.
    """
    root, size, cluster = list(range(len(known))), [1] * len(known), known.tolist()
    between: list[dict[int, tuple[float, int]]] = [{} for _ in root]
    pairs = list(zip(u.tolist(), v.tolist(), strict=True))
    for (a, b), one in zip(pairs, evidence.tolist(), strict=True):
        between[a][b] = between[b][a] = (one, 1)

    def find(a: int) -> int:
        while root[a] != a:
            root[a] = a = root[root[a]]
        return a

    def join(a: int, b: int) -> None:
        if len(between[a]) < len(between[b]):
            a, b = b, a
        root[b], size[a], cluster[a] = a, size[a] + size[b], max(cluster[a], cluster[b])
        for c, (more, count) in between[b].items():
            del between[c][b]
            if c != a:
                old, n_old = between[a].get(c, (0.0, 0))
                between[a][c] = between[c][a] = (old + more, n_old + count)
        between[b].clear()

    for a, b in zip(*(end.tolist() for end in ties), strict=True):
        join(find(a), find(b))
    n_before = -1
    while len(pairs) != n_before:
        n_before, waiting, pairs = len(pairs), pairs, []
        for pair in waiting:
            a, b = find(pair[0]), find(pair[1])
            if a == b:
                continue
            found, count = between[a][b]
            found += (size[a] * size[b] - count) * missing
            if found > 0.0 and min(cluster[a], cluster[b]) < 0:
                join(a, b)
            else:
                pairs.append(pair)
    return np.array([find(a) for a in root], dtype=np.int64)


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
