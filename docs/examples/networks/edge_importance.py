"""
Resistances as the importance of edges
======================================

How important is an edge? One measure is its weight times the effective resistance between its ends.
It is 1 for a bridge, which no other path can replace, and near 0 if many other paths connect the
ends.
"""

# %%
# The points form two crescents. Each point is connected to its eight nearest neighbours, and three
# long links connect the crescents.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection
from sklearn.datasets import make_moons

from ohmlearn import Graph, effective_resistance, knn_edges, sparsify

points, moon = make_moons(700, noise=0.07, random_state=1)
u, v, _ = Graph.from_batches(knn_edges(points, n_neighbors=8, weights="uniform")).edges()
rng = np.random.default_rng(0)
links = [rng.choice(np.flatnonzero(moon == side), 3) for side in (0, 1)]
graph = Graph.from_edges(np.append(u, links[0]), np.append(v, links[1]), n_nodes=len(points))
u, v, w = graph.edges()
importance = w * effective_resistance(graph, exact=True)

# %%
# Each product is the probability that the edge is in a random spanning tree. Therefore the products
# sum to the number of nodes minus the number of components.

print(f"{graph}, {graph.components()[0]} component(s)")
print(f"sum of weight times resistance: {importance.sum():.6f}")

# %%
# What a sparsifier keeps
# -----------------------
# The links between the crescents and the edges to outlying points have the largest products. A
# sparsifier keeps an edge with a probability proportional to its product. It therefore drops edges
# in the middle of the crescents and keeps the links.

small = sparsify(graph, max_edges=2 * graph.n_nodes, random_state=0)
a, b, heavier = small.edges()
across = np.sum(moon[a] != moon[b])
print(
    f"{small.n_edges} of {graph.n_edges} edges kept, {across} of {np.sum(moon[u] != moon[v])} links"
)

figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 3.3), sharex=True, sharey=True)
order = np.argsort(importance)
lines = LineCollection(
    np.stack([points[u], points[v]], axis=1)[order],
    array=importance[order],
    cmap="viridis_r",
    clim=(0, 1),
    linewidths=0.4 + 2.6 * importance[order],
)
left.add_collection(lines)
left.set_title("Weight times resistance of each edge")
figure.colorbar(lines, ax=left, shrink=0.7)
right.add_collection(
    LineCollection(np.stack([points[a], points[b]], axis=1), colors="C0", linewidths=0.5 * heavier)
)
right.set_title("Edges of a sparsifier; width shows weight")
for axes in (left, right):
    axes.plot(*points.T, ".", color="#1b2a38", markersize=2)
    axes.set(xticks=[], yticks=[], aspect="equal")
    axes.spines[:].set_visible(False)
    axes.autoscale()
plt.show()
