"""HFS and stable-HFS by exact rational elimination."""

from fractions import Fraction

import numpy as np


def solve_exactly(graph, labelled, y, gamma, stable, weights=None):
    """Solve for f by Gaussian elimination with fractions; all components must have labels."""
    shares = [Fraction(1) if weights is None else Fraction(weights[at]) for at in range(len(y))]
    n, c = graph.n_nodes, Fraction(gamma) * sum(shares)
    rows = [[Fraction(0)] * (n + 2) for _ in range(n + 1)]
    for u, v, w in zip(*graph.edges(), strict=True):
        flow = c * Fraction(float(w))
        for a, b in ((int(u), int(v)), (int(v), int(u))):
            rows[a][a] += flow
            rows[a][b] -= flow
    for node, value, share in zip(labelled, y, shares, strict=True):
        rows[node][node] += share
        rows[node][n + 1] += share * Fraction(float(value))
    for i in range(n):  # the column of the multiplier, and the constraint as last row
        rows[i][n] = rows[n][i] = Fraction(int(stable))
    if not stable:
        rows[n][n] = Fraction(1)
    for i in range(n + 1):
        pivot = next(j for j in range(i, n + 1) if rows[j][i] != 0)
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for j in range(n + 1):
            if j != i and rows[j][i] != 0:
                factor = rows[j][i] / rows[i][i]
                rows[j] = [a - factor * b for a, b in zip(rows[j], rows[i], strict=True)]
    solution = [float(rows[i][n + 1] / rows[i][i]) for i in range(n + 1)]
    return np.array(solution[:n]), solution[n]
