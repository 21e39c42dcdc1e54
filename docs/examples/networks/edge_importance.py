"""
Resistances as the importance of edges
======================================

How much would be lost without an edge? Its weight times the effective resistance between its ends
says: 1 for a bridge, which nothing can replace, near 0 where many other paths lead the same way.
"""

# %%
# Two crescents, each point joined to its eight nearest, and three long links between the
# crescents.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection
from sklearn.datasets import make_moons

from ohmlearn import Graph, effective_resistance, knn_edges, sparsify

points, moon = make_moons(700, noise=0.07, random_state=1)
u, v, _ = Graph.from_batches(knn_edges(points, n_neighbors=8)).edges()
rng = np.random.default_rng(0)
links = [rng.choice(np.flatnonzero(moon == side), 3) for side in (0, 1)]
graph = Graph.from_edges(np.append(u, links[0]), np.append(v, links[1]), n_nodes=len(points))
u, v, w = graph.edges()
importance = w * effective_resistance(graph, exact=True)

# %%
# The products are probabilities: that of an edge being in a random spanning tree. So they sum to
# nodes minus components.

print(f"{graph}, {graph.components()[0]} component(s)")
print(f"sum of weight times resistance: {importance.sum():.6f}")

# %%
# Where it matters
# ----------------
# Links between the crescents and edges to lonely points stand out. A sparsifier keeps edges with a
# probability in proportion to this: the middle of the crescents is thinned out, and the links
# stay.

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
right.set_title("What a sparsifier keeps, as wide as heavy")
for axes in (left, right):
    axes.plot(*points.T, ".", color="#1b2a38", markersize=2)
    axes.set(xticks=[], yticks=[], aspect="equal")
    axes.spines[:].set_visible(False)
    axes.autoscale()
plt.show()
