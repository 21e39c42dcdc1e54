"""Scores that labelled nodes would have without their own label, from one solve for each label.

Let K be the matrix with f = K y: column i is the response of the scores to the value of label i.
Without label i, and with everything else as it is, the scores are f + K_i (F - y_i), where F is the
score of node i that we look for, because a label that equals the score has no effect. Node i then
is an ordinary node. With a the mean of f over its neighbours, kappa that of K_i, d its degree, and
mu and mu_i the multipliers of f and of K_i, its equation is

    c d (F - a - kappa (F - y_i)) = -mu - mu_i (F - y_i).

We solve this for F instead of using (f_i - K_ii y_i) / (1 - K_ii): in a dense graph the score of a
labelled node is nearly all due to its own label, and what others say would be lost in rounding.

In passes over a full graph, a and d are those of that graph. The responses K_i come from the
sparsifier H, but their mean over the neighbours is taken over the edges of the full graph. (On H it
would be far too large: H has fewer, heavier edges, and more of a response returns to its node.)
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ohmlearn.graph import Graph
from ohmlearn.harmonic.hfs_system import Floats, HFSSolver, HFSSystem

# Columns that are solved for together: a multiple of this, which the solver takes at once, with at
# most so many entries if that is possible.
COLUMNS, ENTRIES, MOST = 8, 1 << 21, 32


class Responses(NamedTuple):
    """How scores respond to the values of some labels."""

    labels: NDArray[np.int64]  # positions among the labelled nodes
    average: Floats  # mean over the neighbours of the labelled node
    mu: Floats  # multiplier
    mean: Floats  # mean over the nodes of its component that `unlabelled_nodes` gives
    x: NDArray[np.float32]  # at all nodes; no rows unless they are kept


class LeftOut(NamedTuple):
    """Leave-one-out scores, with a row for each label."""

    labels: NDArray[np.int64]  # positions among the labelled nodes
    f: Floats  # scores of their nodes, each without its own label; 0 if no other reaches it
    # Of the scores without this label, over the unlabelled nodes of its component; if there are
    # none, how far the only score that is free then moves so that the sum is zero.
    means: Floats


def respond(
    solver: HFSSolver, labels: NDArray[np.int64], tol: float, *, keep: bool = False
) -> Responses:
    """Solve for the responses to the values of some labels, a block of them at a time."""
    system, graph = solver.system, solver.graph
    size = len(labels)
    average, mu, mean = (np.empty(size) for _ in range(3))
    x = np.empty((system.n_nodes if keep else 0, size), dtype=np.float32)
    counted = unlabelled_nodes(system.component, system.labelled).astype(np.float64)
    sizes = np.bincount(system.component, weights=counted)
    block = min(MOST, max(1, ENTRIES // (COLUMNS * system.n_nodes)) * COLUMNS)
    of_ones = None  # the last column of a stable system, which does not depend on the values
    for first in range(0, size, block):
        part = slice(first, min(first + block, size))
        chosen = labels[part]
        nodes = system.labelled[chosen]
        values = np.zeros((len(system.labelled), len(chosen)))
        values[chosen, np.arange(len(chosen))] = 1.0
        unit = system.with_values(values)
        b = unit.right_hand_sides
        if b.shape[1] > len(chosen):
            if of_ones is None:
                of_ones = solver.solve(b[:, -1:], tol)
            b[:, :-1] = solver.solve(b[:, :-1], tol)
            b[:, -1:] = of_ones
        else:
            b = solver.solve(b, tol)
        k, mu[part] = unit.combine(b)
        for column, node in enumerate(nodes):
            near = slice(graph.indptr[node], graph.indptr[node + 1])
            total = np.sum(graph.weights[near] * k[graph.indices[near], column])
            average[first + column] = total / (graph.degrees[node] or 1.0)
            component = system.component[node]
            total = np.bincount(system.component, weights=counted * k[:, column])[component]
            mean[first + column] = total / sizes[component]
        if keep:
            x[:, part] = k
    return Responses(labels, average, mu, mean, x)


def leave_out_labels(
    system: HFSSystem, f: Floats, mu: Floats, average: Floats, degrees: Floats, responses: Responses
) -> LeftOut:
    """Return leave-one-out scores, from the scores f of all nodes and their multipliers mu.

    `average` are the means of f over the neighbours of the nodes left out, from `average_around`.
    """
    labels = responses.labels
    nodes, values = system.labelled[labels], system.values[labels]
    d = np.where(degrees[nodes] > 0.0, degrees[nodes], 1.0)[:, np.newaxis]
    kappa, own_mu = responses.average[:, np.newaxis], responses.mu[:, np.newaxis]
    alone = (np.bincount(system.at)[system.at[labels]] == 1)[:, np.newaxis]  # in its component
    with np.errstate(invalid="ignore", divide="ignore"):
        rest = average - kappa * values
        left = np.where(alone, 0.0, system.score_without_label(rest, d, mu, values, kappa, own_mu))
    counted = unlabelled_nodes(system.component, system.labelled)
    means = component_means(f, system.component, counted)[system.component[nodes]]
    means = means + responses.mean[:, np.newaxis] * (left - values)
    if system.stable and len(system.labelled) == np.count_nonzero(system.reached):
        # Without the constraint, all f are higher by mu n / l, and all K_i by mu_i n / l.
        ratio = system.size_per_label[system.component[nodes], np.newaxis]
        others = np.where(alone, 1.0, 1.0 - kappa - ratio * own_mu)
        means = left - ((rest + ratio * (mu - own_mu * values)) / others - ratio * mu)
    return LeftOut(labels, left, means)


def unlabelled_nodes(
    component: NDArray[np.int32], labelled: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return which nodes have no label; all nodes of components where every node has one."""
    found = np.ones(len(component), dtype=np.bool_)
    found[labelled] = False
    full = np.bincount(component, weights=found) == 0
    found |= full[component]
    return found


def component_means(f: Floats, component: NDArray[np.int32], counted: NDArray[np.bool_]) -> Floats:
    """Return the mean of each column of f over the counted nodes of each component."""
    sums = np.zeros((int(component.max()) + 1, f.shape[1]))
    np.add.at(sums, component[counted], f[counted])
    return sums / np.bincount(component[counted], minlength=len(sums))[:, np.newaxis]


def average_in(graph: Graph, nodes: NDArray[np.int64], f: Floats) -> Floats:
    """Return the weighted means of f over the neighbours of nodes; f at a node that has none."""
    average = f[nodes]
    for at, node in enumerate(nodes):
        near = slice(graph.indptr[node], graph.indptr[node + 1])
        if graph.degrees[node] > 0.0:
            sums = (graph.weights[near, np.newaxis] * f[graph.indices[near]]).sum(axis=0)
            average[at] = sums / graph.degrees[node]
    return average


def average_around(nodes: NDArray[np.int64], f: Floats, energy: Floats, degrees: Floats) -> Floats:
    """Return the weighted means of f over the neighbours of nodes, given L f."""
    d = np.where(degrees[nodes] > 0.0, degrees[nodes], 1.0)[:, np.newaxis]
    return f[nodes] - energy[nodes] / d
