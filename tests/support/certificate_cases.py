"""Pairs (G, H) of graphs with known ratios of energies, which may be many decades apart.

If two parts of a graph share at most one node, the differences of x within one part do not
restrict those within the other. So if H consists of the same parts, the ratios x'L_H x / x'L_G x
range from the smallest to the largest ratio of all parts. Each part may be multiplied by any
factor.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import scipy.linalg

from benchmarks.families import Ruler
from ohmlearn import Graph


@dataclass
class Pair:
    """G, H, and the smallest and largest ratio; None if only `count_below` can check them."""

    g: Graph
    h: Graph
    ratios: tuple[float, float] | None


def draw_pair(kind, rng):
    """Return a pair whose ratios, and often also its weights, span 2 to 12 decades."""
    return {"pendant": _pendant, "tree": _tree, "tiny": _tiny, "large": _large}.get(kind, _parts)(
        rng
    )


def faults(pair, certificate, rounding=1e-9):
    """Return a description of each wrong statement of the certificate."""
    found = []
    lower, upper = certificate.lower, certificate.upper
    low, high = certificate.lower_bound, certificate.upper_bound
    if pair.ratios is not None:
        least, most = pair.ratios
        checks = {
            f"lower_bound {low:.6g} above the ratio {least:.6g}": low <= least * (1 + rounding),
            f"upper_bound {high:.6g} below the ratio {most:.6g}": high >= most * (1 - rounding),
            f"lower {lower:.6g} below all ratios": not lower < least * (1 - rounding),
            f"upper {upper:.6g} above all ratios": not upper > most * (1 + rounding),
        }
    else:
        rank = pair.h.n_nodes - 1
        checks = {
            f"lower_bound {low:.6g} above a ratio": count_below(pair, low * (1 - rounding)) == 0,
            f"upper_bound {high:.6g} below a ratio": high == np.inf
            or count_below(pair, high * (1 + rounding)) == rank,
            f"lower {lower:.6g} below all ratios": np.isnan(lower)
            or count_below(pair, lower * (1 + rounding)) > 0,
            f"upper {upper:.6g} above all ratios": np.isnan(upper)
            or count_below(pair, upper * (1 - rounding)) < rank,
        }
    found += [what for what, holds in checks.items() if not holds]
    return found


def energy_ratios(h, g):
    """Return the extremes of x'L_H x / x'L_G x over the complement of the null space of L_G."""
    return Ruler(g).ratios(h)[[0, -1]]


def count_below(pair, t):
    """Return how many ratios of a connected pair are below t: the inertia of L_H - t L_G, exact."""
    n, t = pair.g.n_nodes, Fraction(float(t))
    rows = [[Fraction(0)] * n for _ in range(n)]
    for graph, factor in ((pair.h, Fraction(1)), (pair.g, -t)):
        for u, v, w in zip(*graph.edges(), strict=True):
            current = factor * Fraction(float(w))
            for a, b in ((int(u), int(v)), (int(v), int(u))):
                rows[a][a] += current
                rows[a][b] -= current
    rows = [row[1:] for row in rows[1:]]
    negative = 0
    while rows:
        k = next(i for i, row in enumerate(rows) if row[i] != 0)
        pivot = rows.pop(k)
        value = pivot.pop(k)
        negative += value < 0
        for row in rows:
            share = row.pop(k) / value
            if share != 0:
                row[:] = [a - share * b for a, b in zip(row, pivot, strict=True)]
    return negative


def _spread(rng, count, decades):
    """Return factors in random order that span this many decades around a random size."""
    exponents = np.append(rng.uniform(0, decades, max(count - 2, 0)), [0.0, decades])[-count:]
    return 10.0 ** (rng.permutation(exponents) - rng.choice([0.0, decades / 2, decades]))


def _pendant(rng, n=None):
    """A complete graph, the same in H, with a few pendant edges, which H multiplies."""
    n = int(rng.integers(3, 60)) if n is None else n
    count = int(rng.integers(1, 5))
    factors = _spread(rng, count + 1, rng.uniform(2, 12))
    if rng.random() < 0.3:  # some, as in a sparsifier, are near 1
        factors[0] = 1.0
    u, v = np.triu_indices(n, 1)
    leaves = np.arange(n, n + count)
    u, v = np.r_[u, rng.integers(0, n, count)], np.r_[v, leaves]
    decades = rng.choice([0.0, 3.0, 12.0])
    w = np.r_[np.ones(len(u) - count), 10.0 ** rng.uniform(-decades, decades, count)]
    times = np.r_[np.full(len(u) - count, factors[0]), factors[1:]]
    return _multiply(u, v, w, times, n + count)


def _tree(rng):
    """A tree: its ratios are the factors of its edges."""
    n = int(rng.integers(2, 40))
    v = np.arange(1, n)
    u = (rng.random(n - 1) * np.minimum(v, rng.choice([1, 3, n]))).astype(int)
    u = np.where(rng.random() < 0.5, u, v - 1 - u)
    decades = rng.choice([0.0, 2.0, 6.0])
    w = 10.0 ** rng.uniform(-decades, decades, n - 1)
    return _multiply(u, v, w, _spread(rng, n - 1, rng.uniform(2, 12)), n)


def _multiply(u, v, w, times, n):
    g, h = Graph.from_edges(u, v, w, n_nodes=n), Graph.from_edges(u, v, w * times, n_nodes=n)
    return Pair(g, h, (float(times.min()), float(times.max())))


def _large(rng):
    """More nodes than the direct method solves."""
    return _pendant(rng, n=int(rng.integers(502, 560)))


def _parts(rng):
    """Several random graphs that share one node or none, each multiplied in G and in H."""
    count = int(rng.integers(2, 7))
    factors = _spread(rng, count, rng.uniform(2, 12))
    decades = rng.choice([0.0, 2.0, 6.0])
    apart = rng.choice([0.0, 0.3])
    ends, g_weights, h_weights, ratios, n = [], [], [], [], 0
    for factor in factors:
        u, v, w, kept, (least, most) = _part(rng)
        size = int(max(u.max(), v.max())) + 1
        number = np.arange(n, n + size)
        if n > 0 and rng.random() >= apart:
            number = np.r_[rng.integers(n), number[:-1]]
        n = max(n, int(number.max()) + 1)
        scale = 10.0 ** rng.uniform(-decades, decades)
        ends.append((number[u], number[v]))
        g_weights.append(scale * w)
        h_weights.append(factor * scale * kept)
        ratios += [factor * least, factor * most]
    u, v = (np.concatenate([end[i] for end in ends]) for i in (0, 1))
    n += int(rng.integers(0, 2))  # a node without edges
    w, kept = np.concatenate(g_weights), np.concatenate(h_weights)
    g, h = (
        Graph.from_edges(u, v, weights, n_nodes=n) for weights in (w, kept)
    )  # zeros are no edges
    return Pair(g, h, (min(ratios), max(ratios)))


def _part(rng):
    """Return edges of a connected graph, weights in G and H, and the ratios of the two."""
    n = int(rng.choice([2, 3, 4, 8, 20]))
    u, v = np.triu_indices(n, 1)
    present = (rng.random(len(u)) < rng.choice([0.2, 0.6, 1.0])) | (v == u + 1)
    u, v = u[present], v[present]
    w = rng.uniform(0.2, 2.0, len(u))
    kept = w.copy()
    if rng.random() < 0.6:
        kept = np.where((v == u + 1) | (rng.random(len(u)) < 0.5), w * rng.uniform(0.5, 2.0), 0.0)
    dense = []
    for weights in (kept, w):
        laplacian = np.zeros((n, n))
        np.add.at(laplacian, (u, v), -weights)
        laplacian += laplacian.T
        laplacian -= np.diag(laplacian.sum(axis=0))
        dense.append(laplacian[1:, 1:])
    values = scipy.linalg.eigvalsh(*dense)
    return u, v, w, kept, (float(values[0]), float(values[-1]))


def _tiny(rng):
    """Up to eight nodes, all weights of G and of H drawn over up to twelve decades."""
    n = int(rng.integers(2, 9))
    u, v = np.triu_indices(n, 1)
    chosen = (rng.random(len(u)) < 0.6) | (v == u + 1)
    u, v = u[chosen], v[chosen]
    sizes = rng.uniform(0, 12, 2)
    g, h = (Graph.from_edges(u, v, 10.0 ** rng.uniform(-s, 0, len(u)), n_nodes=n) for s in sizes)
    return Pair(g, h, None)
