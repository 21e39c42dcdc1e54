"""Entity resolution: which records are the same thing, from the scores of pairs of records.

A pair with the probability p of a match is evidence log(p / (1 - p)) that its records are one
entity if p >= threshold; then it is a link. A pair with a lower score, or none, is evidence
log(1 - recall): if the two were one entity, there would probably be a link. Entities are grown from
single records along links. Links with small leverage come first, as other paths confirm them; last
come those that alone hold two groups together. A link joins two entities if the evidence of all
pairs between them is positive. One link between two groups of five is not enough: 24 pairs are
missing. Connected components, which most programs report, would join them.
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
from ohmlearn.checks.edge_arrays import check_same_length, is_from, is_table
from ohmlearn.checks.parameters import check_fraction, require_extra
from ohmlearn.errors import InputError, Param
from ohmlearn.graph import Graph
from ohmlearn.nodes import NodeTable
from ohmlearn.reading.array_reader import columns_of_rows
from ohmlearn.resistance import effective_resistance

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

__all__ = ["EntityResolver", "Link", "MergeReason"]

LEAST = 1e-3  # probabilities count as at least this, and at most 1 - LEAST: scores are too sure
PACK = 64  # records of components whose leverages are computed together
DIGITS = 9  # of leverages; rounding must not decide the order of links
SPLINK = ("unique_id_l", "unique_id_r", "match_probability")
DATASETS = ("source_dataset_l", "source_dataset_r")  # of tables that link several data sets


class Link(NamedTuple):
    """A pair of records, its probability and leverage, and whether both are in one entity now.

    The leverage is 1 if nothing but this link joins the two, and small if many paths do.
    """

    left: object
    right: object
    probability: float
    leverage: float
    joined: bool


class MergeReason(NamedTuple):
    """Why two records are one entity or not; see `EntityResolver.explain`.

    Attributes
    ----------
    left, right : the two records
    joined : bool
        Whether they are one entity.
    probability : float
        Of a match, if all paths of links count: 1 - exp(-1 / R), R the effective resistance. Two
        paths count as independent evidence.
    path : list of Link
        The path between them with the largest product of probabilities; empty if there is none.
    """

    left: object
    right: object
    joined: bool
    probability: float
    path: list[Link]

    def __str__(self) -> str:
        found = (
            f"{self.left} and {self.right} are {'one entity' if self.joined else 'two entities'}"
        )
        if not self.path:
            return f"{found}: no path of links joins them"
        steps = ", ".join(f"{one.left} - {one.right} ({one.probability:.2f})" for one in self.path)
        found += f": the strongest path is {steps}; all paths together give {self.probability:.2f}"
        cut = [one for one in self.path if not one.joined]
        return found + "".join(f"; {one.left} - {one.right} is not believed" for one in cut)


class EntityResolver(Shown):
    """Groups records into entities from scores of pairs, which may arrive day by day.

    Parameters
    ----------
    threshold : float
        Smallest probability of a link.
    recall : float
        Roughly, which fraction of the pairs of records of one entity are links. The larger it is,
        the more a missing link counts against a match.
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
    >>> monday = [("a1", "a2", 0.9), ("a2", "a3", 0.8), ("a1", "a3", 0.9), ("b1", "b2", 0.7)]
    >>> found = EntityResolver().update(monday)
    >>> found.clusters()["cluster"].tolist()
    ['a1', 'a1', 'a1', 'b1', 'b1']
    >>> found.update([("a3", "b1", 0.95)]).clusters()["cluster"].tolist()
    ['a1', 'a1', 'a1', 'b1', 'b1']
    >>> [(link.left, link.right) for link in found.false_bridges()]
    [('a3', 'b1')]
    """

    def __init__(
        self, *, threshold: float = 0.5, recall: float = 0.8, n_jobs: int | None = None
    ) -> None:
        self.threshold = check_fraction("threshold", threshold)
        self.recall = check_fraction("recall", recall)
        self.n_jobs = n_jobs
        self.nodes_ = NodeTable()
        self.entities_ = np.empty(0, np.int64)
        self._pairs = np.empty(0, np.int64)  # smaller number << 32 | larger number, sorted
        self._p, self._leverage = np.empty(0), np.empty(0)  # NaN for what is no link
        self._codes: dict[object, int] = {}  # of the clusters that are known
        self._given = np.empty(0, np.int64)  # the one of each record, -1 for none

    def _facts(self) -> dict[str, Any]:
        n_entities = len(np.unique(self.entities_))
        return {"records": len(self.nodes_), "pairs": len(self._p), "entities": n_entities}

    def update(self, pairs: object, known: Mapping[Any, object] | None = None) -> Self:
        """Take in more pairs, and group again the records that they may have changed.

        The result is the same as if all pairs had come at once. A pair that comes again has its
        new score.

        Parameters
        ----------
        pairs : table, Series, structured array, list or tuple
            A table (pandas, polars, pyarrow, DuckDB) with the columns of Splink, ``unique_id_l``,
            ``unique_id_r`` and ``match_probability``, or with two columns of ids and one of
            probabilities; a Series whose MultiIndex has the ids, as recordlinkage makes; an array
            with the fields ``pairs`` and ``score``, as dedupe makes; a list of (left, right,
            probability); or a tuple of three arrays.
        known : dict {record: cluster}, optional
            Records whose cluster is known: those of one cluster are joined, those of different
            clusters never. What was known before stays.

        Returns
        -------
        self : object
        """
        left, right, p = _columns(pairs)
        bad = ~((p >= 0.0) & (p <= 1.0))
        if bad.any():
            at = int(np.argmax(bad))
            raise InputError(
                f"{Param('pairs')}: probabilities must be between 0 and 1, got {p[at]} in row {at}"
            )
        u, v = (ends.astype(np.int64) for ends in self.nodes_.add_edges(left, right))
        records = list(known or {})
        numbers = self.nodes_.add(records).astype(np.int64)
        n = len(self.nodes_)
        self._given = np.append(self._given, np.full(n - len(self._given), -1))
        names = (known or {}).values()
        self._given[numbers] = [self._codes.setdefault(x, len(self._codes)) for x in names]
        self.entities_ = np.append(self.entities_, np.arange(len(self.entities_), n))
        two = u != v
        keys = np.append(self._pairs, (np.minimum(u, v) << 32 | np.maximum(u, v))[two])
        self._pairs, last = np.unique(keys[::-1], return_index=True)
        self._p = np.append(self._p, p[two])[::-1][last]
        self._leverage = np.append(self._leverage, np.full(two.sum(), np.nan))[::-1][last]
        self._group(np.concatenate([u, v, numbers]))
        return self

    def _group(self, changed: Ints) -> None:
        """Group all components of links that have a changed record."""
        n, (u, v) = len(self.nodes_), self._ends()
        is_link = self._p >= self.threshold
        known = np.flatnonzero(self._given >= 0)
        known = known[np.argsort(self._given[known], kind="stable")]
        same = self._given[known[1:]] == self._given[known[:-1]]
        ties = known[:-1][same], known[1:][same]  # each known record and the next of its cluster
        ends = np.append(u[is_link], ties[0]), np.append(v[is_link], ties[1])
        component = connected_components(coo_array((np.ones(len(ends[0])), ends), shape=(n, n)))[1]
        touched = np.isin(component, component[changed])
        self._leverage[~is_link] = np.nan
        links = np.flatnonzero(touched[u] & is_link)
        p = np.clip(self._p[links], LEAST, 1.0 - LEAST)
        self._leverage[links] = self._find_leverages(u[links], v[links], -np.log1p(-p), component)
        nodes = np.flatnonzero(touched)
        place = np.cumsum(touched) - 1
        order = np.lexsort((-p, self._leverage[links]))
        roots = _grow(
            place[u[links]][order], place[v[links]][order], np.log(p / (1.0 - p))[order],
            self._given[nodes], [place[end[touched[end]]] for end in ties],
            math.log(1.0 - self.recall),
        )  # fmt: skip
        _, first, which = np.unique(roots, return_index=True, return_inverse=True)
        self.entities_[nodes] = nodes[first[which]]

    def _ends(self) -> tuple[Ints, Ints]:
        return self._pairs >> 32, self._pairs & 0xFFFFFFFF

    def _find_leverages(self, u: Ints, v: Ints, w: Floats, component: Ints) -> Floats:
        """Return the leverages of links, exactly in components of up to 500 records."""
        leverages, sizes = np.ones(len(u)), np.bincount(component)  # 1 in trees
        is_cyclic = np.bincount(component[u], minlength=len(sizes)) >= sizes
        packs = (np.cumsum(np.where(is_cyclic, sizes, 0)) // PACK)[component[u]]
        rest = np.flatnonzero(is_cyclic[component[u]])
        rest = rest[np.argsort(packs[rest], kind="stable")]
        for part in np.split(rest, np.flatnonzero(np.diff(packs[rest])) + 1 if len(rest) else []):
            ends = np.unique(np.stack([u[part], v[part]]), return_inverse=True)[1].reshape(2, -1)
            graph = Graph.from_edges(*ends, w[part])
            found = effective_resistance(graph, random_state=0, n_jobs=self.n_jobs)
            leverages[part] = np.round(w[part] * found, DIGITS)
        return leverages

    def clusters(self) -> dict[str, NDArray[Any]]:
        """Return two columns: each ``record``, and its ``cluster``, named by its first record.

        Examples
        --------
        >>> from ohmlearn.entities import EntityResolver
        >>> EntityResolver().update([(3, 7, 0.9), (5, 6, 0.1)]).clusters()
        {'record': array([3, 7, 5, 6]), 'cluster': array([3, 3, 5, 6])}
        """
        return {"record": self.nodes_.ids(), "cluster": self.nodes_.ids(self.entities_)}

    def _links(self, at: Ints) -> list[Link]:
        u, v = (end[at] for end in self._ends())
        joined = (self.entities_[u] == self.entities_[v]).tolist()
        left, right = (self.nodes_.ids(end).tolist() for end in (u, v))
        values = self._p[at].tolist(), self._leverage[at].tolist()
        return [Link(*row) for row in zip(left, right, *values, joined, strict=True)]

    def _choose(self, joined: bool, order: Floats, n: int) -> list[Link]:
        u, v = self._ends()
        found = np.flatnonzero(
            (self._p >= self.threshold) & ((self.entities_[u] == self.entities_[v]) == joined)
        )
        return self._links(found[np.argsort(-order[found], kind="stable")[:n]])

    def weak_links(self, n: int = 20) -> list[Link]:
        """Return the links inside entities that are most worth a look.

        Those with the largest leverage times 1 - probability: they are not sure, and nothing else
        confirms them.
        """
        return self._choose(True, self._leverage * (1.0 - self._p), n)

    def false_bridges(self, n: int = 20) -> list[Link]:
        """Return the links that join no entities because the other pairs speak against them.

        Those with the largest probability first.
        """
        return self._choose(False, self._p, n)

    def explain(self, left: object, right: object) -> MergeReason:
        """Return why two records are one entity, or why not.

        Examples
        --------
        >>> from ohmlearn.entities import EntityResolver
        >>> found = EntityResolver().update([("ann", "anne", 0.8), ("anne", "anna", 0.9)])
        >>> print(found.explain("ann", "anna"))
        ann and anna are one entity: the strongest path is ann - anne (0.80), anne - anna (0.90);
        all paths together give 0.61
        """
        a, b = self.nodes_.find([left, right]).astype(np.int64).tolist()
        joined = bool(self.entities_[a] == self.entities_[b])
        u, v = self._ends()
        n, links = len(self.nodes_), np.flatnonzero(self._p >= self.threshold)
        if joined:
            links = links[(self.entities_[u] == self.entities_[v])[links]]
        p = np.clip(self._p[links], LEAST, 1.0 - LEAST)
        costs = coo_array((-np.log(p), (u[links], v[links])), shape=(n, n)).tocsr()
        before = dijkstra(costs, directed=False, indices=a, return_predecessors=True)[1]
        ends = [b]
        while ends[0] != a and before[ends[0]] >= 0:
            ends.insert(0, int(before[ends[0]]))
        if ends[0] != a or a == b:
            return MergeReason(left, right, joined, float(a == b), [])
        near = np.flatnonzero(before >= 0)
        near = np.union1d(near, [a])
        some = np.isin(u[links], near)
        local = np.searchsorted(near, np.stack([u[links][some], v[links][some]]))
        graph = Graph.from_edges(*local, -np.log1p(-p[some]))
        resistance = effective_resistance(graph, np.searchsorted(near, [[a, b]]), exact=True)[0]
        steps = np.array([ends[:-1], ends[1:]])
        keys = steps.min(axis=0) << 32 | steps.max(axis=0)
        path = self._links(np.searchsorted(self._pairs, keys))
        path = [
            one if number == low else one._replace(left=one.right, right=one.left)
            for one, number, low in zip(path, steps[0], steps.min(axis=0), strict=True)
        ]
        return MergeReason(left, right, joined, 1.0 - math.exp(-1.0 / resistance), path)


def _grow(
    u: Ints, v: Ints, evidence: Floats, known: Ints, ties: list[Ints], missing: float
) -> Ints:
    """Return the root of the entity of each record; links join entities in the given order.

    `between` has the evidence and the number of links between an entity and each other one. Links
    that were refused are tried again while entities grow.
    """
    root, size, label = list(range(len(known))), [1] * len(known), known.tolist()
    between: list[dict[int, tuple[float, int]]] = [{} for _ in root]
    for a, b, one in zip(u.tolist(), v.tolist(), evidence.tolist(), strict=True):
        between[a][b] = between[b][a] = (one, 1)

    def find(a: int) -> int:
        while root[a] != a:
            root[a] = a = root[root[a]]
        return a

    def join(a: int, b: int) -> None:
        if len(between[a]) < len(between[b]):
            a, b = b, a
        root[b], size[a], label[a] = a, size[a] + size[b], max(label[a], label[b])
        for c, (more, count) in between[b].items():
            del between[c][b]
            if c != a:
                old, n_old = between[a].get(c, (0.0, 0))
                between[a][c] = between[c][a] = (old + more, n_old + count)
        between[b].clear()

    for a, b in zip(*(end.tolist() for end in ties), strict=True):
        join(find(a), find(b))
    waiting, n_before = list(zip(u.tolist(), v.tolist(), strict=True)), -1
    while len(waiting) != n_before:
        n_before, refused = len(waiting), []
        for pair in waiting:
            a, b = find(pair[0]), find(pair[1])
            if a == b:
                continue
            total, count = between[a][b]
            total += (size[a] * size[b] - count) * missing
            if total > 0.0 and not (label[a] >= 0 <= label[b]):
                join(a, b)
            else:
                refused.append(pair)
        waiting = refused
    return np.array([find(a) for a in root], dtype=np.int64)


def _columns(given: Any) -> tuple[Any, Any, Floats]:
    """Return the ids of both ends of pairs, and their probabilities."""
    if is_from("splink", given):
        given = given.as_pandas_dataframe()
    if is_from("pandas", given) and given.ndim == 1:  # recordlinkage
        left, right, p = (*(given.index.get_level_values(level) for level in (0, 1)), given)
    elif is_table(given):
        table = require_extra("pyarrow", "files").table(given)
        names = table.column_names
        if set(SPLINK) <= set(names):
            left, right, p = (table[name].combine_chunks() for name in SPLINK)
            if set(DATASETS) <= set(names):  # ids are those of one data set
                left, right = (
                    np.char.add(
                        np.char.add(np.asarray(table[of], str), "-__-"), np.asarray(ids, str)
                    )
                    for of, ids in zip(DATASETS, (left, right), strict=True)
                )
        elif len(names) == 3:
            left, right, p = (column.combine_chunks() for column in table.columns)
        else:
            raise InputError(
                f"{Param('pairs')} must have the columns {', '.join(SPLINK)}, or two columns of ids "
                f"and one of probabilities, got {', '.join(names)}"
            )
    elif getattr(given, "dtype", None) is not None and given.dtype.names is not None:  # dedupe
        left, right, p = *np.asarray(given["pairs"]).T, given["score"]
    else:
        left, right, p = (columns_of_rows(given) or given)[:3]
    found = np.asarray(p, dtype=np.float64)
    check_same_length(left=left, right=right, probability=found)
    return left, right, found
