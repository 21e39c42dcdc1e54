"""Single cells and entity resolution, beside what these fields use, on made data.

``python -m benchmarks.fields cells`` labels 10⁵ cells and finds their fates; ``entities`` groups
records from 10⁶ pairs that arrive day by day. Peers that are not installed are named as missing.

The cells lie in 30 dimensions on a branching tree of ten types, as principal components do, with
noise that grows along the dimensions and batches that shift them; types differ in number by 30 to
1. 1% have a label. Every method gets the same graph of scanpy's kind: 15 neighbours, symmetric.

Records belong to entities of skewed sizes, and entities to groups of like names, of skewed sizes,
too. Pairs of a group are compared if a blocking rule finds them: nine in ten of one entity, three
in ten of others. Scores have errors, of pairs and of records. Tables list pairs with p > 0.01.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_matrix
from scipy.sparse.csgraph import connected_components

from benchmarks.measure import emit, run_child

TYPES, DIMENSIONS, LABELLED = 10, 30, 0.01
SIZES = ((2, 2), (3, 5), (6, 10), (11, 20), (21, 10**9))


def make_cells(n: int, seed: int) -> tuple[Any, Any, Any]:
    """Return points, types and ends: the last cells of each branch, -1 for others."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(TYPES, n, p=(w := np.geomspace(30, 1, TYPES)) / w.sum())
    along = rng.random(n)
    tips = rng.normal(0, 6, (TYPES + 1, DIMENSIONS)) * np.geomspace(1, 0.2, DIMENSIONS)
    above = np.array([0, *(rng.integers(at) + 1 for at in range(1, TYPES))])
    points = tips[above[kind]] + along[:, None] * (tips[1:] - tips[above])[kind]
    points += rng.normal(0, 1, (n, DIMENSIONS)) * np.geomspace(0.8, 1.2, DIMENSIONS)
    points += rng.normal(0, 0.3, (4, DIMENSIONS))[rng.integers(4, size=n)]
    leaf = ~np.isin(np.arange(1, TYPES + 1), above)
    end = np.where(leaf[kind] & (along > 0.97), kind, -1)
    return points.astype(np.float32), kind, end


def measure_cells(method: str, n: int, seed: int = 0) -> None:
    """Print time, memory and accuracy of one method."""
    import pandas as pd
    from anndata import AnnData

    from ohmlearn import HFSClassifier, knn_edges

    points, kind, end = make_cells(n, seed)
    adata = AnnData(
        np.zeros((n, 1), np.float32), obs=pd.DataFrame(index=[f"cell{at}" for at in range(n)])
    )
    u, v, _ = knn_edges(points, n_neighbors=15, weights="uniform").to_graph().edges()
    ones = np.ones(2 * len(u), np.float32)
    adata.obsp["connectivities"] = coo_array((ones, (np.r_[u, v], np.r_[v, u])), (n, n)).tocsr()
    del u, v, ones
    known = np.random.default_rng(seed + 1).random(n) < LABELLED
    adata.obs["known"] = pd.Series(kind.astype(str), adata.obs_names).where(known)
    adata.obs["end"] = pd.Series(end.astype(str), adata.obs_names).where(end >= 0)
    walk = adata.obsp["connectivities"].multiply(
        1.0 / adata.obsp["connectivities"].sum(axis=1)[:, None]
    ).tocsr()  # fmt: skip
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    more: dict[str, Any] = {}
    if method == "ohmlearn labels":
        from ohmlearn.anndata import label_cells

        label_cells(adata, "known", model=HFSClassifier(random_state=0), abstain=0.8)
        p = adata.obsm["ohmlearn"]
        found, sure = p.to_numpy().argmax(axis=1), ~adata.obs["ohmlearn_abstains"].to_numpy()
        right = p.columns.astype(int).to_numpy()[found] == kind
        more = {"abstains": round(1 - float(sure[~known].mean()), 4),
                "right_of_others": round(float(right[~known & sure].mean()), 4)}  # fmt: skip
    elif method == "LabelSpreading, points":
        from sklearn.semi_supervised import LabelSpreading

        spread = LabelSpreading(kernel="knn", n_neighbors=16)
        right = spread.fit(points, np.where(known, kind, -1)).transduction_ == kind
    elif method == "propagation, stored graph":  # the equations of LabelSpreading, sparse
        scores = given = np.where(known[:, None] & (kind[:, None] == np.arange(TYPES)), 1.0, 0.0)
        root = np.sqrt(adata.obsp["connectivities"].sum(axis=1))[:, None]
        for _ in range(30):  # as many as LabelSpreading
            scores = 0.2 * given + 0.8 * root * (walk @ (scores / root))
        right = scores.argmax(axis=1) == kind
    elif method == "ohmlearn fates":
        from ohmlearn.anndata import find_fates

        fates = find_fates(adata, "end").to_numpy()
        more = check_fates(fates, walk, end)
    elif method == "CellRank fates":
        import warnings

        import cellrank

        warnings.simplefilter("ignore")
        adata.uns["neighbors"] = {"connectivities_key": "connectivities", "params": {}}
        kernel = cellrank.kernels.PrecomputedKernel(csr_matrix(walk), adata=adata)
        estimator = cellrank.estimators.GPCCA(kernel)
        names = pd.Series(adata.obs_names)
        states = {str(k): names[end == k].tolist() for k in np.unique(end[end >= 0])}
        estimator.set_terminal_states(states)
        estimator.compute_fate_probabilities(use_petsc=False, n_jobs=1, show_progress_bar=False)
        more = check_fates(np.asarray(estimator.fate_probabilities), walk, end)
    cpu, after = time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if "fates" not in method:
        more = {"accuracy": round(float(right[~known].mean()), 4)} | more
    more |= {"cpu_s": round(cpu, 2), "memory_mib": round((after - before) / 1024)}
    emit({"bench": "cells", "method": method, "cells": n} | more)


def check_fates(fates: Any, walk: Any, end: Any) -> dict[str, Any]:
    """Return how far fates are from being those of the neighbours, where walks go on."""
    free = end < 0
    known = np.isfinite(fates).all(axis=1)
    gap = np.abs(walk @ np.nan_to_num(fates) - np.nan_to_num(fates))[free & known]
    return {"states": fates.shape[1], "largest_residual": float(f"{gap.max():.1e}")}


def make_pairs(n_pairs: int, days: int, seed: int) -> tuple[Any, ...]:
    """Return the entity of each record, and the ends, probabilities and days of pairs."""
    rng = np.random.default_rng(seed)
    n = int(n_pairs / 4.9)
    sizes = np.minimum(rng.geometric(0.4, n), 40)
    many = rng.random(n) < 0.01
    sizes[many] = rng.integers(10, 40, np.count_nonzero(many))
    sizes = sizes[: np.searchsorted(np.cumsum(sizes), n)]
    entity = np.repeat(np.arange(len(sizes)), sizes)
    groups = np.minimum(rng.zipf(1.9, len(sizes)), 30)
    name = np.repeat(np.arange(len(groups)), groups)[: len(sizes)][entity]
    starts = np.append(np.flatnonzero(np.diff(name, prepend=-1)), len(name))
    pairs = [a + np.stack(np.triu_indices(b - a, 1)) for a, b in pairwise(starts)]
    u, v = np.concatenate(pairs, axis=1)
    same = entity[u] == entity[v]
    found = rng.random(len(u)) < np.where(same, 0.9, 0.3)
    u, v, same = u[found], v[found], same[found]
    error = rng.normal(0, 0.8, len(entity))
    shift = np.where(same, error[u] + error[v], np.abs(error[u] + error[v]))
    p = 1 / (1 + np.exp(-(np.where(same, 5.0, -5.0) + rng.normal(0, 2.2, len(u)) + shift)))
    arrival = rng.integers(days, size=len(entity))
    day, kept = np.maximum(arrival[u], arrival[v]), p > 0.01
    return entity, u[kept], v[kept], p[kept], day[kept]


def judge(entity: Any, cluster: Any) -> dict[str, Any]:
    """Return pairwise precision, overall and by size of cluster, and recall."""
    cluster = np.unique(cluster, return_inverse=True)[1]
    n, sizes = len(entity), np.bincount(cluster)
    both, counts = np.unique(cluster * n + entity, return_counts=True)
    right = np.bincount(both // n, counts * (counts - 1) // 2)
    made, true = sizes * (sizes - 1) // 2, np.bincount(entity)
    precision, recall = right.sum() / made.sum(), right.sum() / (true * (true - 1) // 2).sum()
    by_size = {}
    for low, high in SIZES:
        chosen = (sizes >= low) & (sizes <= high)
        name = str(low) if low == high else f"{low}-{high}" if high < 10**9 else f"{low}+"
        part = right[chosen].sum() / max(1, made[chosen].sum())
        by_size[name] = [int(chosen.sum()), round(float(part), 4)]
    return {"precision": round(float(precision), 4), "recall": round(float(recall), 4),
            "f1": round(float(2 * precision * recall / (precision + recall)), 4),
            "clusters_and_precision_by_size": by_size}  # fmt: skip


def measure_entities(method: str, n_pairs: int, days: int = 20, seed: int = 0) -> None:
    """Print precision by size of cluster, time and memory of one method."""
    entity, u, v, p, day = make_pairs(n_pairs, days, seed)
    n, name, level = len(entity), *method.rsplit(" ", 1)
    threshold = float(level)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    more: dict[str, Any] = {}
    start = time.process_time()
    if name == "ohmlearn":
        from ohmlearn.entities import EntityResolver

        found, seconds = EntityResolver(threshold=threshold), []
        for today in range(days):
            now, at = time.process_time(), day == today
            found.update((u[at], v[at], p[at]))
            seconds.append(time.process_time() - now)
        cluster = np.arange(n, 2 * n)
        cluster[found.nodes_.ids()] = found.nodes_.ids(found.entities_)
        more = {"slowest_day_s": round(max(seconds), 2)}
    else:
        link = p >= threshold
        for today in range(days if name == "connected components" else 0):
            some = link & (day <= today)
            joins = coo_array((np.ones(np.count_nonzero(some)), (u[some], v[some])), (n, n))
            cluster = connected_components(joins)[1]
        if name == "dedupe":  # its hierarchical clustering, once
            cluster_scores = import_module("dedupe.clustering").cluster
            scores = np.empty(len(p), [("pairs", "i8", 2), ("score", "f4")])
            scores["pairs"], scores["score"] = np.column_stack([u, v]), p
            cluster = np.arange(n)
            for records, _ in cluster_scores(scores, threshold):
                cluster[list(records)] = min(records)
    cpu, after = time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    more |= {"cpu_s": round(cpu, 2), "memory_mib": round((after - before) / 1024)}
    emit({"bench": "entities", "method": method, "pairs": len(p), "records": n}
         | judge(entity, cluster) | more)  # fmt: skip


METHODS: dict[str, tuple[Callable[..., None], list[str]]] = {
    "cells": (measure_cells, ["ohmlearn labels", "LabelSpreading, points",
                              "propagation, stored graph", "ohmlearn fates", "CellRank fates"]),
    "entities": (measure_entities, ["ohmlearn 0.8", "connected components 0.5",
                                    "connected components 0.9", "connected components 0.95",
                                    "connected components 0.99", "dedupe 0.3", "dedupe 0.5"]),
}  # fmt: skip


def main() -> None:
    """Measure each method in its own process."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("field", choices=METHODS)
    parser.add_argument("--size", type=float, help="number of cells (1e5) or of pairs (1e6)")
    parser.add_argument("--method", help="only this one, in this process")
    options = parser.parse_args()
    measure, methods = METHODS[options.field]
    size = int(options.size or {"cells": 1e5, "entities": 1e6}[options.field])
    if options.method:
        measure(options.method, size)
        return
    for method in methods:
        arguments = [options.field, "--size", str(size), "--method", method]
        for figure in run_child("benchmarks.fields", arguments, limit=80, memory_gib=6):
            if figure.get("end", "ok") != "ok":
                emit({"bench": options.field, "method": method, "status": figure["end"],
                      "note": str(figure.get("note", ""))[-200:]})  # fmt: skip
            elif "bench" in figure:
                emit(figure)


if __name__ == "__main__":
    main()
